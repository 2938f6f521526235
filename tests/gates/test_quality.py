from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from contracts.quality import FIGURES, Istft, Quality
from contracts.verdicts import Measurement, Status, Verdict
from gates import quality as room
from gates.quality import judge_quality, quality_names, unproven_quality

MEL = np.array([[[-4.0, 1.0, 9.0], [2.0, -3.0, 9.0]]], np.float32)
"""[1, 2, 3]: two bins, three frames."""


def judged(item: Quality, measured: Any, reference: Any = MEL, feed: Any = None) -> Verdict | Measurement:
    (found,) = judge_quality([item], [feed or {}], [{item.output: reference}], [{item.output: measured}])
    return found


def failed(found: Verdict | Measurement) -> str:
    assert isinstance(found, Verdict)
    assert found.status is Status.FAILED
    return found.detail


def test_every_figure_is_computed() -> None:
    assert set(room._FUNCTIONS) == set(FIGURES)


@pytest.mark.parametrize(("bound", "status"), [(0.1001, Status.PASSED), (0.0999, Status.FAILED)])
def test_bound_is_the_most_of_a_difference(bound: float, status: Status) -> None:
    found = judged(Quality("mel_l1", "mel", bound), MEL + np.float32(0.1))
    assert isinstance(found, Verdict)
    assert (found.gate, found.threshold, found.unit, found.status) == ("quality.mel_l1", bound, "", status)
    assert found.measured == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize(("bound", "status"), [(0.79, Status.PASSED), (0.81, Status.FAILED)])
def test_bound_is_the_least_of_a_cosine(bound: float, status: Status) -> None:
    reference, measured = np.array([[4.0, 3.0]]), np.array([[4.0, 0.0]])
    found = judged(Quality("embedding_cosine", "e", bound), measured, reference)
    assert isinstance(found, Verdict)
    assert found.status is status
    assert found.measured == pytest.approx(0.8)


def test_figure_without_a_bound_is_a_measurement_and_says_so() -> None:
    found = judged(Quality("mel_l1", "mel", remark="of a stand-in"), MEL + np.float32(0.25))
    assert isinstance(found, Measurement)
    assert (found.name, found.unit) == ("quality.mel_l1", "")
    assert found.measured == pytest.approx(0.25)
    assert "of a stand-in; no bound is stated" in found.reason


def test_worst_run_decides_and_the_mean_is_told() -> None:
    outputs = [{"mel": MEL + np.float32(off)} for off in (0.125, 0.5, 0.25)]
    (found,) = judge_quality([Quality("mel_l1", "mel", 1.0)], [{}] * 3, [{"mel": MEL}] * 3, outputs)
    assert found.measured == pytest.approx(0.5)
    assert isinstance(found, Verdict)
    assert "against onnxruntime, the worst of 3; their mean is 0.291667" in found.detail


LOGITS = np.array([[[1.0, 0.0], [0.0, 5.0], [0.0, 0.0]]])
"""[1, 3, 2]: three numbers at each of two positions."""


def test_vectors_lie_along_the_second_axis_and_the_worst_decides() -> None:
    measured = np.array([[[2.0, 0.0], [0.0, 4.0], [0.0, 3.0]]])  # cosines 1 and 0.8
    assert judged(Quality("logits_cosine", "l", 0.5), measured, LOGITS).measured == pytest.approx(0.8)
    assert judged(Quality("logits_cosine_mean", "l", 0.5), measured, LOGITS).measured == pytest.approx(0.9)
    four = [array[..., None, :] for array in (measured, LOGITS)]
    assert judged(Quality("logits_cosine", "l", 0.5), *four).measured == pytest.approx(0.8)


def test_top1_agreement_is_a_share_of_all_positions_of_all_runs() -> None:
    right, wrong = LOGITS, np.array([[[1.0, 6.0], [0.0, 5.0], [0.0, 0.0]]])
    item = Quality("logits_top1", "l")
    (found,) = judge_quality([item], [{}] * 2, [{"l": LOGITS}] * 2, [{"l": right}, {"l": wrong}])
    assert (found.measured, found.unit) == (75.0, "%")


def test_single_vector_may_come_in_any_of_its_shapes() -> None:
    for shape in ((2,), (1, 2), (1, 2, 1, 1)):
        measured, reference = np.array([4.0, 0.0]).reshape(shape), np.array([4.0, 3.0]).reshape(shape)
        assert judged(Quality("embedding_cosine", "e"), measured, reference).measured == pytest.approx(0.8)


MASKED = Quality("mel_l1", "mel", 1.0, mask="mask")


@pytest.mark.parametrize(
    ("mask", "wanted"),
    [([[[1, 1, 0]]], 0.2), ([[[1, 0, 0]]], 0.2), ([[[0, 0, 1]]], 7.0), ([[[1.0, 1.0, 1.0]]], (0.2 * 2 + 7) / 3)],
)
def test_frames_of_padding_do_not_count(mask: Any, wanted: float) -> None:
    measured = MEL + np.array([[[0.2, 0.2, 7.0]]], np.float32)
    found = judged(MASKED, measured, feed={"mask": np.array(mask, np.float32)})
    assert found.measured == pytest.approx(wanted, rel=1e-5)


def test_padding_that_is_no_number_does_not_count_either() -> None:
    measured = MEL.copy()
    measured[..., 2] = np.nan
    assert judged(MASKED, measured, feed={"mask": np.array([[[1, 1, 0]]])}).measured == 0.0


def test_mask_may_be_of_each_in_a_batch_and_coarser_than_the_output() -> None:
    reference = np.ones((2, 1, 4))
    measured = np.array([[[1.1, 1.2, 9.0, 9.0]], [[1.3, 1.4, 1.5, 1.6]]])
    of_each = {"mask": np.array([[[1, 0]], [[1, 1]]])}
    assert judged(MASKED, measured, reference, of_each).measured == pytest.approx(2.1 / 6)
    alike = {"mask": np.array([[[1, 0]]])}
    assert judged(MASKED, measured, reference, alike).measured == pytest.approx(1.0 / 4)
    wide, owed = measured[:, :, None, :], reference[:, :, None, :]
    assert judged(MASKED, wide, owed, of_each).measured == pytest.approx(2.1 / 6)


@pytest.mark.parametrize(
    ("feed", "says"),
    [
        ({}, "no mask 'mask'"),
        ({"mask": np.zeros((1, 1, 3))}, "holds no values"),
        ({"mask": np.ones((1, 1, 2))}, "fits no [1, 2, 3]"),
        ({"mask": np.ones((3, 1, 3))}, "fits no [1, 2, 3]"),
        ({"mask": np.ones((1, 1, 0))}, "is not [B, 1, S]"),
        ({"mask": np.ones((1, 2, 3))}, "is not [B, 1, S]"),
        ({"mask": np.ones(3)}, "is not [B, 1, S]"),
    ],
)
def test_mask_that_fits_nothing_or_leaves_nothing_fails(feed: Any, says: str) -> None:
    assert says in failed(judged(MASKED, MEL, feed=feed or {"x": MEL}))


def test_what_an_original_leaves_out_is_padding_and_needs_no_mask() -> None:
    measured = np.concatenate([MEL + np.float32(0.5), MEL], axis=2)[:, :, None, :]
    feed = {"mask": np.array([[[1, 1, 1, 0, 0, 0]]])}
    for item in (MASKED, Quality("mel_l1", "mel", 1.0)):
        (found,) = judge_quality([item], [feed], [{"mel": MEL}], [{"mel": measured}], by_original=True)
        assert found.measured == pytest.approx(0.5)
        assert isinstance(found, Verdict)
        assert "against the unpatched original" in found.detail
        assert "instead of [1, 2, 3]" in failed(judged(item, measured, feed=feed))


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("bound", [None, 0.0])
@pytest.mark.parametrize(
    ("measured", "reference", "says"),
    [
        (MEL[..., :2], MEL, "shape [1, 2, 2] instead of [1, 2, 3]"),
        (MEL * np.float32(np.nan), MEL, "not finite"),
        (MEL, MEL * np.float32(np.inf), "not finite"),
        (MEL, MEL * 0, "all zero"),
        (MEL * 0, MEL, "all zero"),
        (MEL[..., :0], MEL[..., :0], "holds no values"),
    ],
)
def test_what_cannot_be_compared_fails_with_a_bound_or_without(
    figure: str, bound: float | None, measured: Any, reference: Any, says: str
) -> None:
    assert says in failed(judged(Quality(figure, "mel", bound), measured, reference))


def test_row_of_zeros_has_no_cosine_and_fails() -> None:
    measured = LOGITS.copy()
    measured[..., 1] = 0
    for figure in ("logits_cosine", "logits_cosine_mean"):
        assert "no number" in failed(judged(Quality(figure, "l", -1.0), measured, LOGITS))


@pytest.mark.parametrize(
    ("feeds", "references", "outputs"),
    [(1, 1, 0), (1, 1, 2), (2, 1, 1), (1, 2, 1), (0, 0, 0)],
)
def test_another_number_of_runs_fails(feeds: int, references: int, outputs: int) -> None:
    item = Quality("mel_l1", "mel", 1.0)
    (found,) = judge_quality([item], [{}] * feeds, [{"mel": MEL}] * references, [{"mel": MEL}] * outputs)
    assert "runs came back" in failed(found)


@pytest.mark.parametrize(("owed", "got", "says"), [("mel", "x", "the simulator has no"), ("x", "mel", "the reference")])
def test_output_that_is_not_there_fails(owed: str, got: str, says: str) -> None:
    (found,) = judge_quality([Quality("mel_l1", "mel")], [{}], [{owed: MEL}], [{got: MEL}])
    assert says in failed(found)


def test_figures_of_several_outputs_are_told_apart() -> None:
    declared = [Quality("mel_l1", "a"), Quality("mel_l1", "b"), Quality("mel_cosine", "b")]
    assert quality_names(declared) == ["quality.mel_l1.a", "quality.mel_l1.b", "quality.mel_cosine"]


def test_what_was_not_simulated_is_unproven_where_it_is_owed() -> None:
    declared = [Quality("mel_l1", "a", 0.1), Quality("mel_cosine", "a")]
    (verdict,) = unproven_quality(declared, "too little memory")
    assert (verdict.gate, verdict.status, verdict.detail) == ("quality.mel_l1", Status.UNPROVEN, "too little memory")


N_FFT, HOP = 16, 4


def _raw(seed: int, columns: int = 1201) -> Any:
    drawn = np.random.default_rng(seed).standard_normal((1, N_FFT + 2, columns))
    return drawn.astype(np.float32)


WAVE = Quality("log_spectral_distance", "spec", 5.0, istft=Istft(N_FFT, HOP))


def test_gain_of_magnitudes_is_one_of_the_waveform() -> None:
    """A number added to log magnitudes is a factor of the samples: ln 2 is 6.0206 dB."""
    reference = _raw(0)
    measured = reference.copy()
    measured[:, : N_FFT // 2 + 1] += np.log(2.0)
    found = judged(WAVE, measured, reference)
    assert found.measured == pytest.approx(20 * math.log10(2), abs=1e-3)
    assert judged(WAVE, measured[:, :, None], reference[:, :, None]).measured == pytest.approx(found.measured)


def test_whole_turn_of_the_phase_argument_is_no_distance() -> None:
    reference = _raw(0)
    measured = reference.copy()
    measured[:, N_FFT // 2 + 1 :] += np.float32(2 * np.pi)
    assert judged(WAVE, measured, reference).measured < 1e-3  # type: ignore[operator]


def test_magnitudes_are_cut_as_the_host_cuts_them() -> None:
    cut = Quality("log_spectral_distance", "spec", 5.0, istft=Istft(N_FFT, HOP, largest_magnitude=100.0))
    reference = _raw(0)
    reference[:, : N_FFT // 2 + 1] = 6.0  # above ln 100 = 4.6
    measured = reference.copy()
    measured[:, : N_FFT // 2 + 1] = 7.0
    assert judged(cut, measured, reference).measured == pytest.approx(0.0, abs=1e-9)
    assert judged(WAVE, measured, reference).measured == pytest.approx(20 / math.log(10), abs=1e-3)


@pytest.mark.parametrize("shape", [(1, 18, 1), (1, 17, 5)])
def test_what_is_no_spectrogram_fails(shape: tuple[int, ...]) -> None:
    assert "no spectrogram of 16" in failed(judged(WAVE, np.ones(shape), np.ones(shape)))


def test_magnitudes_that_overflow_fail() -> None:
    huge = np.full((1, N_FFT + 2, 5), 1000.0, np.float32)
    assert "no number" in failed(judged(WAVE, huge, huge))
