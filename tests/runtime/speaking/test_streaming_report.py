"""What a person waits for, of times that are known."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from rknn_tts_runtime.faults import RunFault
from rknn_tts_runtime.speaking.speaker import Asked, FloatArray
from rknn_tts_runtime.speaking.stopwatch import Stopwatch
from rknn_tts_runtime.speaking.streaming_report import StreamingReport, measured, table

RATE = 1000


class Clock:
    """Stands still but for what is spent."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Speaker:
    """Gives pieces of given lengths, each after given seconds."""

    sample_rate = RATE
    notes = ("a stand-in",)

    def __init__(self, clock: Clock, pieces: list[tuple[float, int]]) -> None:
        self.clock, self.pieces = clock, pieces

    def speak(self, asked: Asked, stopwatch: Stopwatch) -> Iterator[FloatArray]:
        with stopwatch.stage("host half"):
            self.clock.now += 0.25
        for seconds, samples in self.pieces:
            with stopwatch.stage("decoder"):
                self.clock.now += seconds
            yield np.full(samples, seconds, np.float32)

    def close(self) -> None: ...


def report_of(pieces: list[tuple[float, int]]) -> tuple[FloatArray, StreamingReport]:
    clock = Clock()
    return measured("piper", "onnx", lambda: {"onnxruntime": "1.2"}, Speaker(clock, pieces), Asked(ids=(1,)), clock)


def test_measured_tells_what_was_waited_for() -> None:
    # 0.25 s of host half; pieces of 1 s, 1 s and 0.5 s, after 0.5, 1.5 and 0.25 s more.
    samples, report = report_of([(0.5, 1000), (1.5, 1000), (0.25, 500)])
    assert samples.size == 2500
    assert report.first_audio_ms == pytest.approx(750)
    assert report.total_ms == pytest.approx(2500)
    assert report.audio_ms == pytest.approx(2500)
    assert report.rtf == pytest.approx(1.0)
    assert report.chunks == 3
    # The first piece plays from 0.75 to 1.75 s; the second is there at 2.25 s, and the third at 2.5 s, before 3.25.
    assert report.largest_gap_ms == pytest.approx(500)
    assert [(stage.name, stage.runs) for stage in report.stages] == [("host half", 1), ("decoder", 3)]
    assert [stage.total_ms for stage in report.stages] == pytest.approx([250, 2250])
    assert (report.notes, report.versions) == (("a stand-in",), {"onnxruntime": "1.2"})


def test_measured_counts_no_empty_piece_as_audio() -> None:
    _, report = report_of([(1.0, 0), (0.5, 1000)])
    assert report.chunks == 1
    assert report.first_audio_ms == pytest.approx(1750)


def test_measured_fails_where_there_is_no_audio() -> None:
    with pytest.raises(RunFault, match="gave no audio"):
        report_of([(0.5, 0)])


def test_peak_memory_is_at_least_what_this_process_holds() -> None:
    held = np.ones(8 << 20, np.float64)  # 64 MiB
    _, report = report_of([(0.5, 1000)])
    assert report.peak_rss_bytes is not None
    assert report.peak_rss_bytes > held.nbytes


def test_table_has_every_figure() -> None:
    _, report = report_of([(0.5, 1000), (0.25, 500)])
    text = table(report)
    for part in ("1500 ms in 2 chunks", "750 ms", "0.667", "onnx onnxruntime 1.2", "250 ms, 1 x", "note: a stand-in"):
        assert part in text
