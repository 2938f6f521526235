from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from farm.outcomes import Ended, JobOutcome, MadeFile, read_outcome, write_outcome

DONE = JobOutcome(
    job="export-0123456789abcdef",
    ended=Ended.DONE,
    sentence=None,
    node="node-3",
    attempt=2,
    started_s=1_790_000_000.25,
    wall_s=26.5,
    cpu_s=31.0,
    peak_bytes=1_533_000_000,
    files=(MadeFile("onnx/Ærø/piper-decoder-w109.onnx", "ab" * 32, 19_717_587),),
    models=("onnx/Ærø/piper-decoder-w109.onnx",),
    reused=("export", "graph"),
    report=".farm/reports/export-0123456789abcdef.0.json",
)
LOST = JobOutcome("compile-1", Ended.LOST, "Its process ended without a word.", "node-1", 3, 0.0, 0.0, 0.0, 0)

NO_UTF_8 = replace(LOST, sentence="/Stra\udcdfe/anna.onnx: cannot be read.")
"""Of a folder whose name was written in Latin-1, as Python has such a path."""


@pytest.mark.parametrize("outcome", [DONE, LOST, NO_UTF_8])
def test_outcome_is_read_as_it_was_written(outcome: JobOutcome, tmp_path: Path) -> None:
    path = tmp_path / "outcomes" / "job.json"  # the folder is made
    write_outcome(outcome, path)
    assert read_outcome(path) == outcome
    assert [entry.name for entry in path.parent.iterdir()] == ["job.json"]


@pytest.mark.parametrize("ended", Ended)
def test_outcome_names_how_it_ended_as_a_word(ended: Ended, tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    write_outcome(JobOutcome("x", ended, "Why.", "n", 1, 0.0, 0.0, 0.0, 0), path)
    data = json.loads(path.read_text(encoding="utf-8"))
    assert (data["schema"], data["ended"]) == ("rknn-tts/farm-outcome/1", ended.value)


def test_outcome_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    write_outcome(LOST, tmp_path / "job.json")
    write_outcome(DONE, tmp_path / "job.json")
    assert read_outcome(tmp_path / "job.json") == DONE


def damaged(key: str, value: Any, folder: Path) -> bytes:
    """What the file of `DONE` holds, with `value` for `key`."""
    write_outcome(DONE, folder / "whole.json")
    data = json.loads((folder / "whole.json").read_text(encoding="utf-8"))
    return json.dumps({**data, key: value}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[1]",
        b"null",
        b"{}",
        b"\xff\xfe",
        b"\0" * 4096,  # what a file system may leave of a file after a power failure
        b'{"schema": "rknn-tts/farm-outcome/1"}',
        b"[" * 100_000,
    ],
)
def test_outcome_is_none_when_the_file_is_damaged(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "job.json").write_bytes(content)
    assert read_outcome(tmp_path / "job.json") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema", "rknn-tts/farm-outcome/2"),
        ("ended", "finished"),
        ("wall_s", "long"),
        ("files", [{"path": "a"}]),
        ("models", "a"),
        ("peak_bytes", None),
    ],
)
def test_outcome_is_none_when_a_value_cannot_be_one(key: str, value: Any, tmp_path: Path) -> None:
    (tmp_path / "job.json").write_bytes(damaged(key, value, tmp_path))
    assert read_outcome(tmp_path / "job.json") is None


def test_outcome_is_none_when_it_was_cut_anywhere(tmp_path: Path) -> None:
    write_outcome(DONE, tmp_path / "whole.json")
    whole = (tmp_path / "whole.json").read_bytes()
    for length in range(0, len(whole.rstrip()), 7):
        (tmp_path / "job.json").write_bytes(whole[:length])
        assert read_outcome(tmp_path / "job.json") is None, length


def test_outcome_is_none_when_there_is_none(tmp_path: Path) -> None:
    assert read_outcome(tmp_path / "none.json") is None
    assert read_outcome(tmp_path) is None
