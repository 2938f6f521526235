"""JSON objects of plans, read strictly: a key that stands twice is an error, since one of the two would be lost.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.json_keys import LARGEST_BYTES, bounded_whole
from rknn_tts_runtime.plans.wording import shown


def read_text(path: Path) -> str:
    """The text of the plan's file `path`.

    Raises:
        BadInput: it cannot be read, is larger than any plan, or is no text.
    """
    try:
        with path.open("rb") as file:  # a pipe too, whose size nothing tells beforehand
            data = file.read(LARGEST_BYTES + 1)
        if len(data) > LARGEST_BYTES:
            raise BadInput(f"{path}: is no plan: those have {LARGEST_BYTES} bytes at most.")
        return data.decode("utf-8")
    except OSError as error:
        raise BadInput(f"{path}: cannot be read as a plan ({error.strerror}).") from error
    except ValueError as error:
        raise BadInput(f"{path}: is no text, so no plan ({error}).") from error


def object_in(text: str, where: str) -> dict[str, Any]:
    """The JSON object in `text`; `where` begins the sentences: file, or file and option.

    A text that is itself a JSON text (as a shell hands one over) is read once more.

    Raises:
        BadInput: it is no JSON, is nested too deep, holds no object, or a key stands twice in one.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise BadInput(f"{where}: has {shown(name)} twice in one object; only one can be meant.")
            found[name] = value
        return found

    try:
        data = json.loads(text, object_pairs_hook=once, parse_int=bounded_whole)
        if isinstance(data, str):
            data = json.loads(data, object_pairs_hook=once, parse_int=bounded_whole)
    except RecursionError as error:
        raise BadInput(f"{where}: is nested too deep to be a plan.") from error
    except ValueError as error:
        raise BadInput(f"{where}: is not JSON, so no plan ({error}).") from error
    if not isinstance(data, dict):
        raise BadInput(f"{where}: is {shown(data)}, expected an object.")
    return data
