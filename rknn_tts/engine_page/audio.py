"""Sound, pictures and other bytes inside a page: data URIs, which need no second file and no network."""

from __future__ import annotations

import base64


def data_uri(data: bytes, media_type: str) -> str:
    """`data` as a URI of the given type ("audio/wav")."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"
