"""Results of probes on a board that is none, signed off, of an engine of a few bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rknn_tts_runtime.backends.engine import Backend
from rknn_tts_runtime.probing.kit_reading import open_kit
from rknn_tts_runtime.probing.result import result_text, sign_off_digest, signed_off
from rknn_tts_runtime.probing.run import run_kit

from contracts.errors import UserInput
from rknn_tts.verify import verify
from tests.runtime.probing.boards import BoardBackend, write_board
from tests.runtime.probing.kits import write_kit, write_kit_file, write_subject

BEFORE = "2026-11-29T12:00:00+00:00"
DATE = "2026-11-30T12:00:00+00:00"
LATER = "2026-12-01T12:00:00+00:00"


def write_probed_engine(folder: Path) -> Path:
    """The engine that `rknn-tts probe` made a kit of, in a folder of its own in `folder`."""
    (folder / "engines").mkdir()
    write_subject(folder / "engines")
    return folder / "engines" / "net.rknn"


def noisy(factor: float) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    return lambda feed: {"y": np.asarray(feed["x"] * factor, np.float32)}


def probe(
    folder: Path,
    backend: Backend | None = None,
    change: Callable[[dict[str, Any]], object] = lambda data: None,
    date: str = DATE,
    soc: str = "rk3588",
    **kit_changes: Any,
) -> Path:
    """A kit that was run on a board that is none, its result changed before it was signed off."""
    kit = write_kit(folder / "kit")
    write_kit_file(folder / "kit", kit, **kit_changes)
    root = write_board(folder / "board", soc=soc)
    found = run_kit(open_kit(folder / "kit"), backend or BoardBackend(), lambda line: None, repeats=1, root=root)
    data = json.loads(result_text(signed_off(found, "Ada", date)))
    data["conditions"]["date"] = date
    data["cases"][0].update(ms=20.714, least_ms=19.5, repeats=5)
    change(data)
    data["signed_off"]["sha256"] = sign_off_digest(data)
    place = folder / "probe-result.json"
    place.write_text(json.dumps(data), encoding="utf-8")
    return place


def refused(engine: Path, place: Path) -> str:
    """Why the result in `place` is not taken for `engine`; its manifest stays as it is."""
    before = engine.with_suffix(".json").read_bytes() if engine.with_suffix(".json").exists() else None
    with pytest.raises(UserInput) as caught:
        verify(engine, place)
    if before is not None:
        assert engine.with_suffix(".json").read_bytes() == before
    return str(caught.value)
