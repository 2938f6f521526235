"""What a build leaves in its result folder, written and read back."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.child import Cause, ChildResult
from engine.endings import WorkerReport
from engine.result import keep_build, read_build

CHILD = ChildResult(
    exit_code=0, signal=None, cause=Cause.ITSELF, reason=None, wall_s=2.5, cpu_s=1.5, peak_rss_bytes=300
)
REPORT = WorkerReport(
    step="done", versions={"numpy": "1.26.4"}, outputs=("y/1", "file"), fixed_addresses=True, peak_rss_bytes=500
)


def worked(folder: Path, windows: int, **changes: Any) -> Path:
    """A working directory as a worker leaves it: array j of window i holds 10 * i + j."""
    folder.mkdir()
    (folder / "engine.rknn").write_bytes(b"RKNN engine")
    (folder / "lines.log").write_text("D a line\n")
    (folder / "raw.log").write_text("scratch")
    arrays: dict[str, Any] = {
        f"{w}_{i}": np.full((1, 2), 10 * w + i, np.float32) for w in range(windows) for i in (0, 1)
    }
    np.savez(folder / "simulated.npz", **{**arrays, **changes})
    return folder


def test_build_is_read_as_it_was_kept_when_two_windows_were_simulated(tmp_path: Path) -> None:
    keep_build(worked(tmp_path / "work", windows=2), tmp_path / "result", CHILD, REPORT, windows=2)
    found = read_build(tmp_path / "result")
    assert found.engine.read_bytes() == b"RKNN engine"
    assert found.engine_sha256 == hashlib.sha256(b"RKNN engine").hexdigest()
    assert found.lines.read_text() == "D a line\n"
    assert [{name: array.tolist() for name, array in window.items()} for window in found.simulated] == [
        {"y/1": [[0, 0]], "file": [[1, 1]]},
        {"y/1": [[10, 10]], "file": [[11, 11]]},
    ]
    assert (found.versions, found.fixed_addresses) == ({"numpy": "1.26.4"}, True)
    assert (found.peak_rss_bytes, found.wall_s, found.cpu_s) == (500, 2.5, 1.5)  # of two peaks, the larger


def test_build_keeps_nothing_else_when_nothing_was_simulated(tmp_path: Path) -> None:
    keep_build(worked(tmp_path / "work", windows=0), tmp_path / "result", CHILD, REPORT, windows=0)
    assert sorted(path.name for path in (tmp_path / "result").iterdir()) == ["build.json", "engine.rknn", "lines.log"]
    assert read_build(tmp_path / "result").simulated == ()


@pytest.mark.parametrize("windows", [1, 3])
def test_build_is_not_read_when_it_simulated_another_number_of_windows(tmp_path: Path, windows: int) -> None:
    keep_build(worked(tmp_path / "work", windows=2), tmp_path / "result", CHILD, REPORT, windows=windows)
    with pytest.raises(ValueError, match=rf"holds 4 arrays where {windows} windows of 2 outputs"):
        read_build(tmp_path / "result")


def test_build_is_not_read_when_it_simulated_more_outputs_than_the_onnx_has(tmp_path: Path) -> None:
    work = worked(tmp_path / "work", windows=1, **{"0_2": np.zeros(1)})
    keep_build(work, tmp_path / "result", CHILD, REPORT, windows=1)
    with pytest.raises(ValueError, match="holds 3 arrays where 1 windows of 2 outputs"):
        read_build(tmp_path / "result")


def test_build_is_not_read_when_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_build(tmp_path)


@pytest.mark.parametrize("text", ["{", "{}", json.dumps({"engine_sha256": 1})])
def test_build_is_not_read_when_its_summary_is_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / "build.json").write_text(text)
    with pytest.raises(ValueError, match=r"build\.json|Expecting"):
        read_build(tmp_path)


def test_build_leaves_the_earlier_result_when_a_file_is_missing(tmp_path: Path) -> None:
    keep_build(worked(tmp_path / "one", windows=0), tmp_path / "result", CHILD, REPORT, windows=0)
    two = worked(tmp_path / "two", windows=0)
    (two / "lines.log").unlink()
    with pytest.raises(FileNotFoundError):
        keep_build(two, tmp_path / "result", CHILD, REPORT, windows=0)
    assert read_build(tmp_path / "result").lines.read_text() == "D a line\n"
