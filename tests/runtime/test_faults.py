from __future__ import annotations

import pytest
from rknn_tts_runtime.faults import BadInput, Fault, Mismatch, RunFault

from contracts.errors import EXIT_FAILED, EXIT_REFUSED


@pytest.mark.parametrize(
    ("fault", "exit_code"),
    [
        (Fault("x"), EXIT_FAILED),
        (RunFault("x"), EXIT_FAILED),
        (RunFault("x", -13), EXIT_FAILED),
        (BadInput("x"), EXIT_REFUSED),
        (Mismatch("x"), EXIT_REFUSED),
    ],
)
def test_fault_ends_a_command_as_the_toolchain_does(fault: Fault, exit_code: int) -> None:
    assert fault.exit_code == exit_code


def test_run_fault_keeps_the_code_of_the_api() -> None:
    assert (RunFault("refused", -4).code, RunFault("short").code) == (-4, None)
