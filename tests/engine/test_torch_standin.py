"""What the toolkit does with torch at import works with the stand-in; each in a fresh interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STANDIN = Path(__file__).resolve().parents[2] / "engine" / "torch_standin.py"
INSTALL = f"import runpy; print(runpy.run_path({str(STANDIN)!r})['install']())\n"


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_standin_serves_the_three_names_when_torch_is_imported() -> None:
    code = """
import torch, torch.nn as nn
from torch.nn import Module
@torch.no_grad()
def double(x): return 2 * x
class Net(nn.Module): pass
with torch.no_grad(): print(double(4), Net().__class__.__mro__[1] is Module, isinstance(1, torch.Tensor))
"""
    assert run(INSTALL + code).stdout.split("\n")[:2] == ["stand-in", "8 True False"]


def test_standin_counts_as_torch_does_when_the_toolkit_splits_an_axis() -> None:
    code = """
import torch
whole = torch.arange(12).reshape([2, 3, 2])
first, second = torch.split(whole, [1, 2], dim=1)
print(first.reshape(-1).tolist(), second.reshape(2, -1).tolist())
print(torch.cat([second, first], dim=1).reshape(-1).tolist())
"""
    assert run(INSTALL + code).stdout.split("\n")[1:3] == [
        "[0, 1, 6, 7] [[2, 3, 4, 5], [8, 9, 10, 11]]",
        "[2, 3, 4, 5, 0, 1, 8, 9, 10, 11, 6, 7]",
    ]


@pytest.mark.parametrize("value", ["", "standin", "REAL"])
def test_standin_is_used_when_the_switch_is_not_real(value: str) -> None:
    assert run(INSTALL, RKNN_TTS_TORCH=value).stdout == "stand-in\n"


def test_installed_torch_is_used_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("name = 'the installed one'")
    result = run(INSTALL + "import torch; print(torch.name)", RKNN_TTS_TORCH="real", PYTHONPATH=str(tmp_path))
    assert result.stdout == "real\nthe installed one\n"
