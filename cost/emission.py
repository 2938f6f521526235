"""What a run of an engine emits: so many frames, or codes, each a stretch of audio."""

from __future__ import annotations

from dataclasses import dataclass

from contracts.contract import Contract
from contracts.manifest import Manifest

FRAME, CODE = "frame", "code"


@dataclass(frozen=True)
class Emission:
    """What one run emits.

    Attributes:
        unit: `FRAME` or `CODE`.
        count: how many of them.
        samples: samples of audio in each.
        sample_rate: samples per second; None where nothing states it.
    """

    unit: str
    count: int
    samples: int
    sample_rate: int | None

    @property
    def audio_s(self) -> float | None:
        """Seconds of audio that a run emits; None where nothing states the sample rate."""
        return self.count * self.samples / self.sample_rate if self.sample_rate else None


def emission_of(stated: Manifest | Contract | None) -> Emission | None:
    """What a run emits of the engine that `stated` is of; None where it has neither window nor step."""
    if stated is None:
        return None
    if (step := stated.step) is not None:
        return Emission(CODE, step.emitted, step.samples_per_code, step.sample_rate)
    if (window := stated.window) is not None:
        return Emission(FRAME, window.emitted, window.hop, window.sample_rate)
    return None
