"""What the values at the seams of a voice are called in its parts; a voice's own inputs have other names there."""

from __future__ import annotations

from converters.vits_windows import AUDIO, LATENT, MASK

SPEAKER = "g"
"""The speaker's embedding, beside latent and mask."""

NOISE_LATENT, NOISE_DURATION = "noise_latent", "noise_duration"
"""The host half's noises; several of durations are numbered (`noise_duration_0`)."""

STATS, CONDITIONING, DURATIONS = "stats", "conditioning", "durations"
"""At the duration encoder's seam and behind it."""

_OURS = frozenset({LATENT, MASK, AUDIO, SPEAKER, NOISE_LATENT, STATS, CONDITIONING, DURATIONS})


def is_ours(name: str) -> bool:
    """Whether a value of a part may be called `name`."""
    return name in _OURS or name.startswith(NOISE_DURATION)
