"""How an engine of 8 bits was made of a float graph."""

from __future__ import annotations

import re
from dataclasses import dataclass

FP16, W8A8 = "fp16", "w8a8"
"""Precisions: what the toolkit makes of a float graph unless told otherwise, and weights and activations of 8 bits."""

PRECISIONS = (FP16, W8A8)

ALGORITHMS = ("normal", "mmse", "kl_divergence")
"""How the toolkit finds a range: the extremes, the least squared error, or the least divergence. Its `gdq` is none of
them: it needs a torch that computes (toolkit-facts)."""

METHODS = ("channel", "layer")
"""A scale for each output channel of a weight, or one for all."""

FROM_FILE, SYNTHETIC, OWN_FEEDS = "file", "synthetic", "feeds"
CALIBRATIONS = (FROM_FILE, SYNTHETIC, OWN_FEEDS)
"""What ranges were found on: real inputs of the user's, seeded random ones that stand in for them, or what the stage is
judged on as well."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Quantisation:
    """What the toolkit was told, and what it found the ranges of activations on.

    Attributes:
        dtype: one of `PRECISIONS` but fp16 (toolkit: `quantized_dtype`).
        algorithm: one of `ALGORITHMS` (`quantized_algorithm`).
        method: one of `METHODS` (`quantized_method`).
        calibration: one of `CALIBRATIONS`.
        windows: how many inputs that were; 0 before they are counted.
        sha256: digest (hex) of these inputs, as they are handed on; "" before.
        insisted: whether the stage refuses 8 bits, and the user insisted: the engine owes what it owes in fp16 then.
    """

    dtype: str = W8A8
    algorithm: str = "normal"
    method: str = "channel"
    calibration: str = SYNTHETIC
    windows: int = 0
    sha256: str = ""
    insisted: bool = False


def quantisation_fault(found: Quantisation) -> str | None:
    """What makes a quantisation that was read from a file unfit to be built; None where nothing does."""
    choices = (
        ("precision", found.dtype, (W8A8,)),
        ("quantisation algorithm", found.algorithm, ALGORITHMS),
        ("quantisation method", found.method, METHODS),
        ("calibration", found.calibration, CALIBRATIONS),
    )
    for what, word, known in choices:
        if word not in known:
            return f"its {what} {word!r:.60} is none of {', '.join(known)}"
    if found.windows < 1 or not _SHA256.fullmatch(found.sha256):
        return "its calibration has no windows, or no digest"
    return None
