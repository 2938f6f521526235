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


@pytest.mark.parametrize(
    ("script", "another"),
    [
        ("echo n1; echo n2", True),
        ("echo n1; echo n1", False),  # one node of two partitions
        ("echo n2; echo n3", False),  # it is none of this cluster's
        ("echo n1; echo n2; exit 1", False),
        ("exit 0", False),
    ],
)
def test_has_another_when_sinfo_lists_nodes(
    script: str, another: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sinfo(tmp_path / "bin", script, monkeypatch)
    assert has_another("n1") is another


def test_has_another_asks_for_nodes_that_answer_when_it_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _sinfo(tmp_path / "bin", 'case "$*" in *--responding*) echo n1 ;; *) echo n1; echo n2 ;; esac', monkeypatch)
    assert not has_another("n1")


def test_has_another_is_false_when_there_is_no_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not has_another("n1")
