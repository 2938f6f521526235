from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir
import pytest

from contracts.contract import Window
from contracts.verdicts import Status
from converters.inflect.evidence import drawn_latent, receptive_field, short_frames, slice_evidence
from converters.inflect.seam import SliceSeam, find_slice
from converters.stages import Array
from converters.vits_ladder import DecoderWindow
from converters.vits_windows import AUDIO, LATENT, MASK
from gates.snr import compare
from tests.onnx_runs import open_session
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import decoder_model

HOP = 2


def window(frames: int, context: int) -> Window:
    return Window(frames, frames - 2 * context, context, context, HOP, 24_000)


def made(masked: bool) -> DecoderWindow:
    return DecoderWindow(Window(80, 16, 32, 32, 16, 24_000), masked, None, takes_short=True)


def seeing(frames: int) -> object:
    """A decoder whose sample is the sum of the latent so many frames before and behind it: whole numbers, exact."""

    def session(feed: Mapping[str, Array]) -> dict[str, Array]:
        line = np.rint(np.asarray(feed[LATENT][0, 0], np.float64) * 8)
        padded = np.pad(line, frames)
        summed = padded[: len(line)] + padded[2 * frames :]
        return {AUDIO: np.repeat(summed, HOP).astype(np.float32)[None, None]}

    return session


@pytest.mark.parametrize(("seen", "exact"), [(1, (20, 24, 32)), (22, (24, 32)), (28, (32,)), (40, ())])
def test_receptive_field_is_exact_from_the_context_on_that_a_frame_sees(seen: int, exact: tuple[int, ...]) -> None:
    session = seeing(seen)
    assert callable(session)
    figures = receptive_field(session, drawn_latent(3, 480), window(256, 32))
    assert [figure.name for figure in figures] == [f"fp32.context_{context}" for context in (0, 20, 24, 32)]
    assert [figure.measured == np.inf for figure in figures] == [c in exact for c in (0, 20, 24, 32)]
    assert all("480 frames" in figure.reason for figure in figures)


def test_receptive_field_leaves_out_a_context_that_does_not_fit() -> None:
    session = seeing(1)
    assert callable(session)
    figures = receptive_field(session, drawn_latent(3, 480), window(45, 10))
    assert [figure.name for figure in figures] == ["fp32.context_0", "fp32.context_20"]


def test_receptive_field_is_not_told_of_less_than_a_window() -> None:
    session = seeing(1)
    assert callable(session)
    assert receptive_field(session, drawn_latent(3, 200), window(256, 32)) == ()


@pytest.mark.parametrize(
    ("frames", "wanted"),
    [(256, (30, 47, 91, 210)), (210, (30, 47, 91)), (65, (30, 47)), (30, (20,)), (2, (1,)), (1, ())],
)
def test_short_frames_are_the_references_that_are_shorter_than_a_window(frames: int, wanted: tuple[int, ...]) -> None:
    assert short_frames(window(frames, 0)) == wanted


def a_slice(frames: int | None) -> tuple[SliceSeam, ir.Model]:
    model = decoder_model(Recipe(latent=6))
    if frames is not None:
        for value in model.graph.input:
            value.type.tensor_type.shape.dim[2].dim_value = frames
    read = ir.from_proto(model)
    return find_slice(read, "decoder_z.onnx"), read


def test_slice_that_is_pinned_is_decoded_against_itself_and_says_so() -> None:
    seam, model = a_slice(80)
    session = open_session(model)
    evidence = slice_evidence(seam, made(masked=True), session)
    (equality,) = evidence.equalities
    assert equality.gate == "fp32.self"
    assert "degraded, for decode.onnx is not there: one window-length latent" in equality.detail
    verdict = compare(equality.gate, equality.reference, equality.measured, equality.minimum_db, equality.detail)
    assert verdict.status is Status.PASSED
    assert evidence.measurements == ()
    assert evidence.decode is not None
    (utterance,) = evidence.decode.utterances
    assert utterance.latent.shape == (1, 6, 80)
    wanted = session({LATENT: utterance.latent, MASK: np.ones((1, 1, 80), np.float32)})["audio"]
    np.testing.assert_array_equal(utterance.reference, wanted.reshape(-1))


def test_slice_of_any_length_is_walked_over_longer_and_shorter_latents_too() -> None:
    seam, model = a_slice(None)
    evidence = slice_evidence(seam, made(masked=False), open_session(model))
    assert evidence.decode is not None
    assert [utterance.mask.shape[-1] for utterance in evidence.decode.utterances] == [480, 30, 47]
    assert evidence.decode.short_db is None  # unmasked: a measurement
    assert len(evidence.measurements) == 4
