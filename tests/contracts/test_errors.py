"""Exit codes of errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import GateFailure, NotWritten, Refusal, RknnTtsError, ToolFailure, UserInput
from contracts.verdicts import failure


@pytest.mark.parametrize(
    ("kind", "exit_code"),
    [(UserInput, 2), (Refusal, 2), (GateFailure, 1), (ToolFailure, 1), (NotWritten, 1), (RknnTtsError, 1)],
)
def test_errors_carry_the_exit_code_of_the_design(kind: type[RknnTtsError], exit_code: int) -> None:
    error = kind("A sentence.")
    assert error.exit_code == exit_code
    assert str(error) == "A sentence."
    assert isinstance(error, RknnTtsError)


def test_gate_failure_keeps_verdicts_and_log_when_given() -> None:
    verdict = failure("g", "why")
    error = GateFailure("A sentence.", [verdict], Path("build.log"))
    assert (error.verdicts, error.log) == ((verdict,), Path("build.log"))
    assert ToolFailure("A sentence.").log is None
