from __future__ import annotations

from dataclasses import replace

import pytest

from farm.catalogue import Failure, Fault, RepeatedFile, VerdictCounts, exit_code_of, summed
from farm.gathering import assembled
from farm.jobs import Unplanned
from farm.outcomes import Ended

FAILURE = Failure(Fault.FAILED, "No.", "compile-1", "compile", "piper", "decoder", "amy", "", "rk3588")
LEFT_OUT = (Unplanned("x.onnx", "piper", "decoder", "No voice."),)


@pytest.mark.parametrize(
    ("faults", "unplanned", "code"),
    [
        ([], (), 0),
        ([], LEFT_OUT, 2),
        ([Fault.REFUSED, Fault.WAITING], (), 2),
        ([Fault.REFUSED, Fault.FAILED], (), 1),
        ([Fault.WAITING], (), 1),
        *(([fault, Fault.WAITING], LEFT_OUT, 1) for fault in Fault if fault not in (Fault.REFUSED, Fault.WAITING)),
    ],
)
def test_exit_code_is_of_the_worst(faults: list[Fault], unplanned: tuple[Unplanned, ...], code: int) -> None:
    found = assembled(None, [], [replace(FAILURE, fault=fault) for fault in faults])
    assert exit_code_of(replace(found, unplanned=unplanned)) == code


def test_fault_names_every_way_in_which_a_job_ends_but_well() -> None:
    assert {how.value for how in Ended} - {fault.value for fault in Fault} == {"done"}


def test_counts_are_summed_by_kind() -> None:
    assert summed([VerdictCounts(1, 2, 3), VerdictCounts(10, 20, 30)]) == VerdictCounts(11, 22, 33)


def test_file_made_once_is_not_the_same() -> None:
    assert not RepeatedFile("a", "1", None).same
