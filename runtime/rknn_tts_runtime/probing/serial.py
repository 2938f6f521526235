"""Kits and results as JSON.

JSON has no infinity: such figures are the texts "inf", "-inf" and "nan", as in manifests.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from typing import Any, Mapping


def as_data(value: Any) -> Any:
    """`value` (a dataclass, mapping, sequence or scalar) as JSON data, fields in their order, a schema first."""
    if isinstance(value, (list, tuple)):
        return [as_data(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): as_data(item) for name, item in value.items()}
    if dataclasses.is_dataclass(value):
        named = {field.name: as_data(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"schema": named.pop("schema"), **named} if "schema" in named else named
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def text_of(data: Any) -> str:
    """JSON data as the text of a file."""
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def digest_of(data: Any) -> str:
    """SHA-256 of JSON data, whatever the order of its keys and the blanks around them."""
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()
