"""The catalogue as a file."""

from __future__ import annotations

import json
from pathlib import Path

from contracts.errors import UserInput
from contracts.serial import from_json, parse_json, to_json
from farm.catalogue import SCHEMA, Catalogue


def catalogue_bytes(catalogue: Catalogue, **more: object) -> bytes:
    """The catalogue as the bytes of its file (UTF-8); `more` are other keys of its object (what changed)."""
    data = to_json(catalogue)
    assert isinstance(data, dict)
    told = {"schema": data.pop("schema"), **data, **{key: to_json(value) for key, value in more.items()}}
    text = json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    # A name may hold bytes that are no UTF-8, which JSON has an escape for.
    return text.encode("utf-8", errors="backslashreplace")


def read_catalogue(path: Path) -> Catalogue:
    """The catalogue in the file `path`.

    Raises:
        UserInput: it cannot be read, or is no catalogue of this schema.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe may never end, nor a device
            raise UserInput(f"{path}: is no plain file; name a catalogue.json of rknn-tts.")
        data = parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserInput(f"{path}: cannot be read ({error.strerror}).") from error
    except ValueError as error:
        raise UserInput(f"{path}: is no catalogue ({error}); name a catalogue.json of rknn-tts.") from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        told = f"its schema is {schema!r:.60}, expected {SCHEMA!r}"
        raise UserInput(f"{path}: is no catalogue: {told}; name a catalogue.json of rknn-tts.")
    try:
        return from_json(Catalogue, data, "catalogue")
    except ValueError as error:
        raise UserInput(f"{path}: is a damaged catalogue ({error}).") from error
