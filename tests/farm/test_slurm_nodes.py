"""Which nodes a SLURM has, as a stand-in of sinfo tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from farm.slurm_nodes import has_another


def _sinfo(folder: Path, script: str, patch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    program = folder / "sinfo"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    patch.setenv("PATH", str(folder))


ANOTHER = "echo n1 farm idle; echo n2 farm mix"


@pytest.mark.parametrize(
    ("script", "another"),
    [
        (ANOTHER, True),
        ("echo n1 farm idle; echo n1 more idle", False),  # one node of two partitions
        ("echo n2 farm idle; echo n3 farm idle", False),  # it is none of this cluster's
        ("echo n1 farm drain; echo n2 farm alloc", True),
        ("echo n1 farm idle; echo n2 farm 'idle~'", True),  # switched on when it is needed
        ("echo n1 farm idle; echo n2 farm drain", False),
        ("echo n1 farm idle; echo n2 farm drng", False),
        ("echo n1 farm idle; echo n2 farm 'idle*'", False),  # it does not answer
        ("echo n1 farm idle; echo n2 large idle", False),  # of another partition
        ("echo n1 farm idle; echo n1 more idle; echo n2 farm idle", False),  # the job may be of `more`
        ("echo n1 farm idle; echo n2 farm idle; echo n2 more idle", True),
        (f"{ANOTHER}; exit 1", False),
        ("exit 0", False),
    ],
)
def test_has_another_when_sinfo_lists_nodes(
    script: str, another: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sinfo(tmp_path / "bin", script, monkeypatch)
    assert has_another("n1") is another


def test_has_another_asks_for_nodes_that_answer_when_it_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f'case "$*" in *--responding*"--format=%N %R %t") {ANOTHER} ;; esac'
    _sinfo(tmp_path / "bin", script, monkeypatch)
    assert has_another("n1")


def test_has_another_is_false_when_there_is_no_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not has_another("n1")
