"""The section in which an engine is heard and seen: players, ratios along the utterance, spectrograms."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rknn_tts.blocks import Facts, Notice
from rknn_tts.engine_page.along import BLOCK_S, level_along, snr_along
from rknn_tts.engine_page.audio import data_uri
from rknn_tts.engine_page.elements import Element, Player, Players, Section
from rknn_tts.engine_page.figures import axis_figure, snr_figure, spectra_figure
from rknn_tts.engine_page.hearing import Hearing
from rknn_tts.engine_page.simulated import Simulated
from rknn_tts.engine_page.spectra import spectrogram
from rknn_tts.numbers import number
from rknn_tts.present import measurement_table
from rknn_tts.sample import ENGINE, REFERENCE, WINDOWS

TITLE, ANCHOR = "Hearing", "hearing"

_PLAYED = (
    (REFERENCE, "the original, whole"),
    (WINDOWS, "the original, by the engine's windows"),
    (ENGINE, "the engine, in the simulator"),
)

Samples = NDArray[np.float32]


def listening_section(hearing: Hearing, anchor: str = ANCHOR, title: str = TITLE) -> Section:
    """What was heard of an engine, or of several."""
    return Section(anchor, title, tuple(_elements(hearing)))


def silent_section(why: str, found: Simulated | None = None, unfound: str = "") -> Section:
    """Why nothing was heard; instead, how the simulator's arrays agree, or why that is not known."""
    elements: list[Element] = [Notice("no sample", why, "warn")]
    if found is not None:
        caption = (
            f"The simulator against {found.against}, along each output's last axis, over all {found.runs} runs that "
            "it is judged on."
        )
        elements.append(axis_figure(found.curves, caption))
        elements.append(Facts(tuple((name, _worst_text(along.worst, "place")) for name, along in found.curves)))
    elif unfound:
        elements.append(Notice("along an axis", unfound, "warn"))
    return Section(ANCHOR, TITLE, tuple(elements))


def _elements(hearing: Hearing) -> Iterator[Element]:
    spoken = hearing.spoken
    yield Notice("sample", spoken.heard.note)
    for note in hearing.notes:
        yield Notice("note", note)
    yield Players(
        tuple(Player(label, data_uri((spoken.folder / name).read_bytes(), "audio/wav")) for name, label in _PLAYED)
    )
    yield dataclasses.replace(measurement_table(spoken.heard.measurements), title="The sample")
    rate = spoken.sample_rate
    seams_s = [seam / rate for seam in spoken.seams]
    by_windows = snr_along(spoken.windowed, spoken.engine, rate)
    curves = [
        ("engine / original by windows", by_windows),
        ("engine / original whole", snr_along(spoken.whole, spoken.engine, rate)),
        ("original by windows / whole", snr_along(spoken.whole, spoken.windowed, rate)),
    ]
    yield snr_figure(
        level_along(spoken.whole, rate),
        curves,
        seams_s,
        f"Signal-to-noise ratio in blocks of {1000 * BLOCK_S:.0f} ms along the utterance, {_seams(len(seams_s))}; "
        "below, the level of the original. Where it is silent there is no ratio; where both are the same, it is drawn "
        "at 140 dB.",
    )
    yield Facts(tuple((name, _worst_text(along.worst)) for name, along in curves))
    yield spectra_figure(
        [
            ("original, by the engine's windows", spectrogram(spoken.windowed, rate)),
            ("engine, in the simulator", spectrogram(spoken.engine, rate)),
        ],
        seams_s,
        "Spectrograms of both on one scale of colours, and by how much the engine's level differs. Ticks at the bottom "
        "are seams.",
    )


def _seams(count: int) -> str:
    if not count:
        return "which is one window long"
    return f"with the {count} seam{'s' * (count != 1)} between windows dashed"


def _worst_text(worst: tuple[float, float] | None, unit: str = "s") -> str:
    if worst is None:
        return "no block differs"
    where = f"{worst[1]:.2f} s" if unit == "s" else f"{unit} {worst[1]:.0f}"
    return f"the worst block has {number(worst[0])} dB, at {where}"
