"""What the engines of a ladder are: windows with their costs, or fixed lengths, of which the shortest is taken.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import Mapping, Sequence, TypeVar

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.manifest import EngineManifest, WindowInfo
from rknn_tts_runtime.window_cover import Rung

Held = TypeVar("Held")


MEASURED, MODELLED = "measured on a board", "modelled"
"""What the time of a run may be."""


def rungs_of(manifests: Sequence[EngineManifest]) -> list[Rung]:
    """The engines of a ladder, as `cover_utterance` takes them, with their `costs_of`.

    Raises:
        BadInput: there are none, or one has no window.
    """
    costs, _ = costs_of(manifests)
    return [_rung(manifest, cost) for manifest, cost in zip(manifests, costs)]


def costs_of(manifests: Sequence[EngineManifest]) -> tuple[list[float], str | None]:
    """What a run of each engine of a ladder costs, in milliseconds, and whether that was `MEASURED` or is `MODELLED`.

    A board's times count where it measured all of them, else the modelled ones. Where a manifest tells neither, it is
    the frames that are run, for all of them, and None.

    Raises:
        BadInput: there are none, or one has no window.
    """
    if not manifests:
        raise BadInput("a ladder needs one engine at least: name one in the plan.")
    widths = [float(window_of(manifest).frames) for manifest in manifests]
    for times, kind in (
        ([manifest.measured_ms for manifest in manifests], MEASURED),
        ([manifest.modelled_ms for manifest in manifests], MODELLED),
    ):
        told = [time for time in times if time]  # a time of 0 tells nothing either
        if len(told) == len(times):
            return told, kind
    return widths, None


def rung_of(manifest: EngineManifest) -> Rung:
    """One engine by itself, as `rungs_of` has it: its costs may be of another kind than another engine's.

    Raises:
        BadInput: it has no window.
    """
    return rungs_of([manifest])[0]


def _rung(manifest: EngineManifest, cost: float) -> Rung:
    window, trim = window_of(manifest), manifest.trim
    frames = None if trim is None else trim.frames
    return Rung(window.frames, window.left, window.right, frames, manifest.masked and trim is None, cost)


def full_or_short(frames: int, full: EngineManifest, short: EngineManifest | None) -> EngineManifest:
    """Of Kokoro's two engines the one for an utterance: `full` has no masks and takes no padding, `short` has them.

    Args:
        frames: frames of the utterance.
        full: for utterances that fill its window.
        short: for shorter ones; None where there is none.

    Raises:
        BadInput: the utterance is shorter than the window of `full`, and there is no `short`; or `full` has no window.
    """
    width = window_of(full).frames
    if frames >= width:
        return full
    if short is None:
        raise BadInput(
            f"{full.engine}: takes utterances of {width} frames and more, and this one has {frames}. Name the engine "
            "of shorter ones in the plan as the artifact `short`, or say more at once."
        )
    return short


def narrowest_rung(length: int, ladder: Mapping[int, Held]) -> Held | None:
    """Of engines of fixed lengths the shortest that holds `length`; None where none does, for the host's part to run.

    Args:
        length: what is to be held, in the ladder's unit: ids of a sentence, frames of a mel.
        ladder: length to engine.
    """
    holding = [rung_length for rung_length in ladder if rung_length >= length]
    return ladder[min(holding)] if holding else None


def ladder_of(rungs: Sequence[EngineManifest], tensor: str) -> dict[int, EngineManifest]:
    """Engines by the length of the last axis of their input `tensor`, ascending.

    Raises:
        BadInput: an engine has no such input, or two are of one length.
    """
    found: dict[int, EngineManifest] = {}
    for rung in rungs:
        shape = next((each.shape for each in rung.inputs if each.name == tensor), ())
        if not shape:
            raise BadInput(f"{rung.path}: has no input {tensor!r}, so it is no rung of this ladder; correct the plan.")
        other = found.setdefault(shape[-1], rung)
        if other is not rung:
            raise BadInput(f"{other.engine} and {rung.engine} are both of length {shape[-1]}; name one in the plan.")
    return dict(sorted(found.items()))


def window_of(manifest: EngineManifest) -> WindowInfo:
    """The window of an engine that is to have one.

    Raises:
        BadInput: it has none.
    """
    if manifest.window is None:
        raise BadInput(f"{manifest.path}: tells of no window, so its engine decodes no frames; correct the plan.")
    return manifest.window
