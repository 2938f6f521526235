"""Fixtures of the environment tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.environments.stubs import Machine, new_machine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine without Python, whose variables are those of this process too."""
    made = new_machine(tmp_path)
    monkeypatch.setenv("PATH", str(made.bin))
    monkeypatch.setenv("STUB_CALLS", str(made.calls))
    for name in ("PYTHON", "RKNN_TTS_ENVIRONMENTS", "STUB_UNTIL", "STUB_SAYS", "STUB_STATUS"):
        monkeypatch.delenv(name, raising=False)
    return made
