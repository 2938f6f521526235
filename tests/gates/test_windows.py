"""Gates over windows: who is judged, what is measured, and that nothing slips through a long utterance."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from contracts.contract import Trim, Window
from contracts.errors import ToolFailure
from contracts.verdicts import Status, Verdict
from gates.windows import Thresholds, window_gates

Floats = NDArray[np.float32]
HOP = 2
WINDOW = Window(frames=10, emitted=4, left=3, right=3, hop=HOP, sample_rate=None)
STRICT = Thresholds(whole_db=95.0, interior_db=90.0, short_db=None)


def decode(latent: Floats, mask: Floats, place: Floats | None = None) -> Floats:
    """A decoder that looks one frame to both sides and, like a conv with a bias, is not zero in padding."""
    padded = np.pad(latent[0, 0] + 0.5, 1)
    mixed = padded[1:-1] + 0.25 * padded[:-2] + 0.25 * padded[2:]
    return np.repeat(mixed, HOP).astype(np.float32)[None, None]


def utterance(frames: int) -> list[Floats]:
    latent = np.random.default_rng(frames).standard_normal((1, 1, frames)).astype(np.float32)
    return [latent, np.ones((1, 1, frames), np.float32)]


def reference(frames: int) -> Floats:
    return decode(*utterance(frames))


def spoilt(frame: int, by: float, frames: int) -> Callable[..., Floats]:
    """The decoder with an error in the window whose latent holds `frame` of the utterance in its middle."""
    value = utterance(frames)[0][0, 0, frame]

    def run(latent: Floats, mask: Floats, place: Floats | None = None) -> Floats:
        samples = decode(latent, mask)
        return samples + np.float32(by) if value in latent[0, 0, 3:7] else samples

    return run


def by_name(verdicts: tuple[Verdict, ...]) -> dict[str, Verdict]:
    return {verdict.gate: verdict for verdict in verdicts}


def test_window_gates_pass_whole_and_interior_when_context_suffices() -> None:
    report = window_gates("fp32.noise", decode, utterance(30), reference(30), WINDOW, STRICT)
    verdicts = by_name(report.verdicts)
    assert set(verdicts) == {"fp32.noise.whole", "fp32.noise.worst_interior"}
    assert all(verdict.status is Status.PASSED and verdict.measured == math.inf for verdict in report.verdicts)
    assert verdicts["fp32.noise.whole"].detail == "30 frames in 6 windows"
    assert verdicts["fp32.noise.whole"].threshold == 95.0
    assert verdicts["fp32.noise.worst_interior"].threshold == 90.0
    assert report.measurements == ()


def test_window_gates_name_the_worst_interior_window_when_one_is_spoilt() -> None:
    # Interior windows emit frames 7 to 10, 11 to 14, ...; frame 12 lies in the middle of the second.
    report = window_gates("g", spoilt(12, 0.01, 300), utterance(300), reference(300), WINDOW, Thresholds(40, 80, None))
    verdicts = by_name(report.verdicts)
    assert verdicts["g.whole"].status is Status.PASSED
    assert verdicts["g.worst_interior"].status is Status.FAILED
    assert "(frames 11 to 14)" in verdicts["g.worst_interior"].detail
    emitted = reference(300).reshape(-1)[11 * HOP : 15 * HOP].astype(np.float64)
    expected = 10 * math.log10(np.sum(emitted**2) / (len(emitted) * 0.01**2))
    assert verdicts["g.worst_interior"].measured == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(("frames", "windows"), [(10, "1 window,"), (11, "2 windows,"), (14, "2 windows,")])
def test_window_gates_say_so_when_no_window_is_interior(frames: int, windows: str) -> None:
    report = window_gates("g", decode, utterance(frames), reference(frames), WINDOW, STRICT)
    (verdict,) = report.verdicts
    assert (verdict.gate, verdict.status) == ("g.whole", Status.PASSED)
    assert verdict.detail == f"{frames} frames in {windows} none of them interior"


def test_window_gates_measure_with_the_reason_when_utterance_is_short() -> None:
    report = window_gates("g", decode, utterance(6), reference(6), WINDOW, STRICT)
    assert report.verdicts == ()
    (measurement,) = report.measurements
    assert (measurement.name, measurement.unit) == ("g.short", "dB")
    assert isinstance(measurement.measured, float)
    assert 0 < measurement.measured < 60
    assert "6 frames in one padded window of 10" in measurement.reason
    assert "end of the tensor" in measurement.reason


@pytest.mark.parametrize(("short_db", "status"), [(5.0, Status.PASSED), (95.0, Status.FAILED)])
def test_window_gates_judge_a_short_utterance_when_the_decoder_is_masked(short_db: float, status: Status) -> None:
    report = window_gates("g", decode, utterance(6), reference(6), WINDOW, Thresholds(95, 95, short_db))
    (verdict,) = report.verdicts
    assert (verdict.gate, verdict.threshold, verdict.status) == ("g.short", short_db, status)
    assert report.measurements == ()


@pytest.mark.parametrize("frames", [6, 10, 30])
@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0])
def test_window_gates_fail_when_output_is_not_finite_or_zero(frames: int, value: float) -> None:
    def run(latent: Floats, mask: Floats, place: Floats | None = None) -> Floats:
        return np.full((1, 1, 10 * HOP), value, np.float32)

    report = window_gates("g", run, utterance(frames), reference(frames), WINDOW, Thresholds(-999, -999, None))
    assert report.verdicts
    assert all(verdict.status is Status.FAILED for verdict in report.verdicts)


@pytest.mark.parametrize("frames", [6, 30])
@pytest.mark.parametrize("cut", [1, -1])
def test_window_gates_fail_when_reference_has_another_length(frames: int, cut: int) -> None:
    whole = reference(frames).reshape(-1)
    wrong = whole[:-1] if cut == 1 else np.append(whole, 0).astype(np.float32)
    (verdict,) = window_gates("g", decode, utterance(frames), wrong, WINDOW, STRICT).verdicts
    assert verdict.status is Status.FAILED
    assert f"shape [{frames * HOP}] instead of [{wrong.size}]" in verdict.detail


def broken(latent: Floats, mask: Floats, place: Floats | None = None) -> Floats:
    raise ToolFailure("the graph: onnxruntime failed: out of memory.")


def half(latent: Floats, mask: Floats, place: Floats | None = None) -> Floats:
    return decode(latent, mask)[..., :HOP]


@pytest.mark.parametrize(("run", "reason"), [(broken, "out of memory"), (half, "gave 2 samples, expected 10 frames")])
def test_window_gates_fail_with_reason_when_a_window_does_not_run(run: Callable[..., Floats], reason: str) -> None:
    (verdict,) = window_gates("g", run, utterance(30), reference(30), WINDOW, STRICT).verdicts
    assert (verdict.gate, verdict.status) == ("g.whole", Status.FAILED)
    assert verdict.detail.startswith("it could not run: ")
    assert reason in verdict.detail


def test_window_gates_fail_when_there_are_no_frames() -> None:
    empty = np.zeros((1, 1, 0), np.float32)
    (verdict,) = window_gates("g", decode, [empty, empty], np.zeros(0, np.float32), WINDOW, STRICT).verdicts
    assert verdict.status is Status.FAILED
    assert "at least one frame" in verdict.detail


def test_window_gates_fail_when_window_is_one_sample_late() -> None:
    def late(latent: Floats, mask: Floats, place: Floats | None = None) -> Floats:
        return np.roll(decode(latent, mask), 1)

    verdicts = window_gates("g", late, utterance(30), reference(30), WINDOW, STRICT).verdicts
    assert [verdict.status for verdict in verdicts] == [Status.FAILED, Status.FAILED]


@pytest.mark.parametrize(("frames", "windows"), [(14, 2), (24, 3)])
def test_window_gates_ask_a_trimmed_window_for_the_samples_of_its_place(frames: int, windows: int) -> None:
    # 14 = 3 + 8 + 3 frames, of which 10 come out: the first, those from frame 2 on, or the last; 8 + 1 are right at
    # either end of an utterance, and 8 between.
    asked: list[int] = []

    def trimmed(latent: Floats, mask: Floats, place: Floats | None) -> Floats:
        assert place is not None
        assert place.shape == (1, 3, 1, 1)
        asked.append(int(np.argmax(place)))
        first = (0, 2, 4)[asked[-1]]
        samples = decode(latent, mask)[0, 0]
        kept: Floats = samples[first * HOP : (first + 10) * HOP].copy()
        for number, wrong in enumerate((slice(-HOP, None), slice(0, 0), slice(0, HOP))):
            kept[wrong] = np.nan if number == asked[-1] else kept[wrong]
        if asked[-1] == 1:
            kept[:HOP] = kept[-HOP:] = np.nan
        return kept

    window = Window(frames=14, emitted=8, left=3, right=3, hop=HOP, sample_rate=None)
    report = window_gates("g", trimmed, utterance(frames), reference(frames), window, STRICT, Trim("place", 10))
    assert all(verdict.status is Status.PASSED and verdict.measured == math.inf for verdict in report.verdicts)
    assert asked == [*range(windows - 1), 2]


def test_window_gates_fail_when_a_trimmed_window_gets_a_short_utterance() -> None:
    window = Window(frames=14, emitted=8, left=3, right=3, hop=HOP, sample_rate=None)
    (verdict,) = window_gates("g", decode, utterance(9), reference(9), window, STRICT, Trim("place", 10)).verdicts
    assert verdict.status is Status.FAILED
    assert "a trimmed engine takes no padding" in verdict.detail
