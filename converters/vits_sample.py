"""A sentence to hear of decoders whose fixed window is walked over a latent (`converters.vits_ladder`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.window_cover import RunRung, sampled_frames, walk_cover

from contracts.errors import UserInput
from converters.stages import Array, FloatArray, OpenSession, Sample, Session
from converters.vits_ladder import EXAMPLE, DecoderWindow
from converters.vits_windows import AUDIO, MASK, PLACE, Latent, decode
from surgery.mask_decoder import mask_decoder

MOST_IDS = 2048
"""Of a sample. Piper's default voice takes 37 ids a second: 55 s of speech, some hundred windows, each 2 s in the
simulator."""


@dataclass(frozen=True)
class SampleRung:
    """An engine that a sample is heard of.

    Attributes:
        made: what it is built for.
        decoder: the original, as it decodes a window: masked where the engine is, of any length.
        cost: of a run, which tells a board what to take of several.
    """

    made: DecoderWindow
    decoder: Session
    cost: float


def sample_rungs(
    cut: ir.Model, windows: Mapping[str, DecoderWindow], costs: Mapping[str, float], open_session: OpenSession
) -> dict[str, SampleRung]:
    """The engines of `windows`, by role; what pads one is heard as the engine decodes it, masked or not.

    Args:
        cut: the decoder, unpatched, of any length.
        windows: what they are built for.
        costs: of a run, by role; their widths where it is not told for all of them.
        open_session: opens graphs.
    """
    opened: dict[bool, Session] = {}
    for made in windows.values():
        if made.masked not in opened:
            opened[made.masked] = open_session(mask_decoder(MASK).rewrite(cut).model if made.masked else cut)
    told = windows.keys() <= costs.keys()
    return {
        role: SampleRung(made, opened[made.masked], costs[role] if told else float(made.window.frames))
        for role, made in windows.items()
    }


def sample_by_windows(
    rungs: Mapping[str, SampleRung], latent: Latent, whole: FloatArray, said: str, sample_rate: int
) -> Sample:
    """The sample of `latent`, cut into windows, each decoded and all put together.

    Args:
        rungs: the engines, by role.
        latent: what is said.
        whole: its full-length decode by the original.
        said: what it is, for the user; its length is put behind.
        sample_rate: in Hz.

    Raises:
        UserInput: it is shorter than the windows, and none of them takes that.
    """
    ladder = [each.made.rung(each.cost) for each in rungs.values()]
    hop = next(iter(rungs.values())).made.window.hop
    feeds: list[Mapping[str, Array]] = []
    roles: list[str] = []

    def decoding(role: str, each: SampleRung) -> RunRung:
        def run(part: FloatArray, mask: FloatArray, place: FloatArray | None) -> FloatArray:
            given = Latent(part, mask, latent.given)
            feeds.append(given.feed if place is None else {**given.feed, PLACE: place})
            roles.append(role)
            samples = decode(each.decoder, given)
            if place is None:
                return samples
            first, count = sampled_frames(each.made.rung(), int(np.argmax(place)))
            return samples[first * hop : (first + count) * hop]

        return run

    def walked(runs: Sequence[RunRung]) -> FloatArray:
        parts = [part for _, part in walk_cover(runs, [latent.latent, latent.mask], ladder, hop)]
        return np.asarray(np.concatenate(parts), np.float32)

    def render(outputs: Sequence[Mapping[str, Array]]) -> FloatArray:
        following: Iterator[Mapping[str, Array]] = iter(outputs)
        return walked([lambda *_, place: next(following)[AUDIO]] * len(ladder))

    try:
        windowed = walked([decoding(role, each) for role, each in rungs.items()])
    except BadInput as error:
        widths = sorted(each.made.window.frames for each in rungs.values())
        raise UserInput(
            f"--sample: the sentence takes {counted(latent.frames, 'frame')}, and the engines take no fewer than "
            f"{widths[0]}: give a longer one, or add a masked window to --windows, as in {EXAMPLE}."
        ) from error
    return Sample(
        said=f"{said}, {_frames(latent.frames, min(each.made.window.frames for each in rungs.values()))}",
        feeds=tuple(feeds),
        render=render,
        whole=whole,
        windowed=windowed,
        sample_rate=sample_rate,
        roles=tuple(roles),
    )


def counted(count: int, what: str) -> str:
    """`1 id`, `2 ids`."""
    return f"{count} {what}{'s' * (count != 1)}"


def _frames(frames: int, window: int) -> str:
    return counted(frames, "frame") + (f" (less than a window, so padded to {window})" if frames < window else "")
