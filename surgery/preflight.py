"""The passes that every graph goes through before the toolkit sees it, whoever made it, in their order."""

from __future__ import annotations

from surgery.declaration import Pass
from surgery.normalise_header import normalise_header


def preflight() -> tuple[Pass, ...]:
    """What any ONNX needs to be compiled; a graph that is in order already is changed by none but the last."""
    return (normalise_header(),)
