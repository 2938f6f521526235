"""A job of the real Piper voice."""

from __future__ import annotations

from farm.jobs import Job, Kind

MEDIUM_BYTES = 63_201_294
"""Of that voice's checkpoint."""

COMPILE = Job(
    id="compile-1",
    kind=Kind.COMPILE,
    commands=(),
    folder="rk3588/joe",
    needs=("export-1",),
    family="piper",
    stage="decoder",
    voice="joe",
    width="",
    target="rk3588",
    toolkit="2.3.2",
    checkpoint_bytes=MEDIUM_BYTES,
)
