"""How well a voice streams: what a person waits for, and where the time goes.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Callable, Mapping

import numpy as np

from rknn_tts_runtime.board import peak_rss_bytes
from rknn_tts_runtime.faults import RunFault
from rknn_tts_runtime.speaking.speaker import Asked, FloatArray, Speaker
from rknn_tts_runtime.speaking.stopwatch import Stopwatch

_MS = 1000.0
_MIB = 1 << 20


@dataclass(frozen=True)
class StageReport:
    """One stage of speaking: how often it ran, and how long in all."""

    name: str
    runs: int
    total_ms: float


@dataclass(frozen=True)
class StreamingReport:
    """One utterance, from the call until its last sample. Field names are the keys of its JSON.

    Attributes:
        family: the voice's.
        backend: what ran the engines.
        versions: of what ran them.
        first_audio_ms: until the first piece of audio.
        total_ms: until the last.
        audio_ms: how long the audio is.
        rtf: real-time factor, `total_ms / audio_ms`: below 1 it is faster than it plays.
        chunks: pieces of audio.
        largest_gap_ms: the longest that a piece came after the audio before it had played out; 0: playback never waits.
        stages: where the time went; what they leave of `total_ms` lies between them.
        peak_rss_bytes: the most memory that the process ever held; None where the system does not tell.
        notes: what else a person should know.
    """

    family: str
    backend: str
    versions: Mapping[str, str]
    first_audio_ms: float
    total_ms: float
    audio_ms: float
    rtf: float
    chunks: int
    largest_gap_ms: float
    stages: tuple[StageReport, ...]
    peak_rss_bytes: int | None
    notes: tuple[str, ...]


def measured(
    family: str,
    backend: str,
    versions: Callable[[], Mapping[str, str]],
    speaker: Speaker,
    asked: Asked,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[FloatArray, StreamingReport]:
    """What `speaker` says of `asked`, `[S]`, and how it streamed.

    Raises:
        BadInput, RunFault: as `speaker.speak`; RunFault too where it gives no sample.
    """
    stopwatch = Stopwatch(clock)
    begun = clock()
    pieces: list[FloatArray] = []
    arrivals: list[float] = []
    for piece in speaker.speak(asked, stopwatch):
        if piece.size:
            pieces.append(piece)
            arrivals.append(clock() - begun)
    total = clock() - begun
    if not pieces:
        raise RunFault("The voice gave no audio for what was asked; give it something to say.")
    samples = np.concatenate(pieces)
    audio = samples.size / speaker.sample_rate
    return samples, StreamingReport(
        family=family,
        backend=backend,
        versions=dict(versions()),
        first_audio_ms=arrivals[0] * _MS,
        total_ms=total * _MS,
        audio_ms=audio * _MS,
        rtf=total / audio,
        chunks=len(pieces),
        largest_gap_ms=_largest_gap([piece.size / speaker.sample_rate for piece in pieces], arrivals) * _MS,
        stages=tuple(StageReport(name, t.runs, t.seconds * _MS) for name, t in stopwatch.stages.items()),
        peak_rss_bytes=peak_rss_bytes(),
        notes=tuple(speaker.notes),
    )


def _largest_gap(lengths: list[float], arrivals: list[float]) -> float:
    """The longest that playback, begun with the first piece, waits for another, in seconds."""
    largest, played_out = 0.0, arrivals[0] + lengths[0]
    for length, arrival in zip(lengths[1:], arrivals[1:]):
        largest = max(largest, arrival - played_out)
        played_out = max(played_out, arrival) + length
    return largest


def table(report: StreamingReport) -> str:
    """`report` as lines for a terminal."""
    rows = [
        ("voice", report.family),
        ("backend", " ".join([report.backend, *(f"{name} {version}" for name, version in report.versions.items())])),
        ("audio", f"{report.audio_ms:.0f} ms in {report.chunks} chunk{'s' if report.chunks > 1 else ''}"),
        ("time to first audio", f"{report.first_audio_ms:.0f} ms"),
        ("time", f"{report.total_ms:.0f} ms"),
        ("real-time factor", f"{report.rtf:.3f}"),
        ("playback waits", f"{report.largest_gap_ms:.0f} ms at most"),
        ("peak memory", "not told" if report.peak_rss_bytes is None else f"{report.peak_rss_bytes / _MIB:.0f} MiB"),
    ]
    stages = [(stage.name, f"{stage.total_ms:.0f} ms, {stage.runs} x") for stage in report.stages]
    width = max(len(name) for name, _ in [*rows, *stages]) + 1
    lines = [f"{name + ':':<{width}} {value}" for name, value in rows]
    lines += [f"{name + ':':<{width}} {value}" for name, value in stages]
    return "\n".join([*lines, *(f"note: {note}" for note in report.notes)])
