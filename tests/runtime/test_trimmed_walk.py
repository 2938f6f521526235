"""Ladders of graphs that surgery made, masked, trimmed and plain, against the whole decoder at once."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from rknn_tts_runtime import manifest
from rknn_tts_runtime.window_cover import Rung, RunRung, cover_utterance, walk_cover
from rknn_tts_runtime.windows import FloatArray

from surgery import mask_decoder as masking
from surgery import trim_decoder as trimming
from surgery.mask_decoder import mask_decoder
from surgery.normalise_static_inputs import normalise_static_inputs
from surgery.trim_decoder import trim_decoder, trimmed_frames
from tests.onnx_runs import open_session, snr_db
from tests.surgery.graphs import decoder, decoder_feed, static_shapes
from tests.vits_writer.recipe import Recipe

CONTEXT = 24
"""Frames on each side: all that these small voices see."""

MASK = "y_mask"


def static(recipe: Recipe, width: int) -> ir.Model:
    return normalise_static_inputs(static_shapes(recipe, width)).rewrite(decoder(recipe)).model


def rung(recipe: Recipe, width: int, kind: str) -> tuple[Rung, RunRung]:
    """An engine's graph as the toolchain makes it, opened; it costs its width."""
    emitted = width - 2 * CONTEXT
    model = static(recipe, width)
    trim = None
    if kind == "masked":
        model = mask_decoder(MASK).rewrite(model).model
    if kind == "trimmed":
        model = trim_decoder(MASK, CONTEXT, emitted).rewrite(model).model
        trim = trimmed_frames(decoder(recipe), MASK, emitted)
    session = open_session(model)

    def run(z: FloatArray, mask: FloatArray, place: FloatArray | None) -> FloatArray:
        where = {} if place is None else {"place": place}
        samples: FloatArray = session({"z": z, MASK: mask, **where})["audio"]
        return samples

    return Rung(width, CONTEXT, CONTEXT, trim, kind == "masked", float(width)), run


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(strides=(5, 3), resblock="1")], ids=["plain", "odd"])
@pytest.mark.parametrize(
    "kinds", [{80: "masked", 96: "trimmed", 128: "trimmed"}, {88: "trimmed"}, {64: "", 96: "trimmed"}], ids=str
)
def test_ladder_says_what_the_whole_decoder_does_when_engines_are_trimmed(
    recipe: Recipe, kinds: dict[int, str]
) -> None:
    rungs, runs = zip(*(rung(recipe, width, kind) for width, kind in kinds.items()), strict=True)
    whole = open_session(decoder(recipe))
    shortest = 7 if "masked" in kinds.values() else min(kinds)
    used = set()
    for frames in (shortest, 88, 97, 150, 301):
        feed = decoder_feed(recipe, frames)
        walked = list(walk_cover(runs, [feed["z"], feed[MASK]], rungs, recipe.hop))
        used |= {rungs[step.rung].width for step, _ in walked}
        samples = np.concatenate([samples for _, samples in walked])
        assert snr_db(whole(feed)["audio"].reshape(-1), samples) >= 120
        assert [step for step, _ in walked] == cover_utterance(frames, rungs)
    assert used == set(kinds)


def test_what_makes_an_engine_masked_or_trimmed_is_called_as_in_surgery() -> None:
    assert masking.DECLARATION.name == manifest.MASKING
    assert trimming.PLACE_SHAPE == manifest.PLACE_SHAPE
