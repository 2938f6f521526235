"""What may be asked of a stage's precision, and what is refused."""

from __future__ import annotations

import pytest

from contracts.errors import Refusal, UserInput
from converters.precision import FLOW_LOSES, HIFT_LOSES, Precision, chosen_precision

HEAD = Precision(default="w8a8")
FLOW = Precision(loses=FLOW_LOSES)


@pytest.mark.parametrize(
    ("says", "asked", "calibration", "allowed", "built"),
    [
        (None, None, None, None, "fp16"),
        (None, "fp16", None, None, "fp16"),
        (HEAD, None, None, None, "w8a8"),
        (HEAD, None, "a.npz", None, "w8a8"),
        (HEAD, "fp16", None, None, "fp16"),
        (FLOW, None, None, False, "fp16"),
        (FLOW, "w8a8", None, True, "w8a8"),
        (FLOW, "w8a8", "a.npz", True, "w8a8"),
    ],
)
def test_precision_is_what_was_asked_for_or_the_stages_own(
    says: Precision | None, asked: str | None, calibration: str | None, allowed: bool | None, built: str
) -> None:
    assert chosen_precision("a stage", says, asked, calibration, allowed) == built


@pytest.mark.parametrize(
    ("says", "asked", "calibration", "allowed", "words"),
    [
        (HEAD, "int8", None, None, "--precision int8: there is none of this name; there are fp16, w8a8"),
        (HEAD, "W8A8", None, None, "--precision W8A8: there is none of this name"),
        (HEAD, "fp16", "a.npz", None, "--calibration is for --precision w8a8, and a stage is built in fp16"),
        (FLOW, None, "a.npz", False, "--calibration is for --precision w8a8, and a stage is built in fp16"),
        (FLOW, None, None, True, "--allow-quantized is for --precision w8a8, and a stage is built in fp16"),
    ],
)
def test_precision_is_refused_when_options_do_not_go_together(
    says: Precision, asked: str | None, calibration: str | None, allowed: bool | None, words: str
) -> None:
    with pytest.raises(UserInput, match=words):
        chosen_precision("a stage", says, asked, calibration, allowed)


@pytest.mark.parametrize("loses", [FLOW_LOSES, HIFT_LOSES])
def test_8_bits_are_refused_with_the_reason_where_they_lose_too_much(loses: str) -> None:
    with pytest.raises(Refusal, match=f"a stage is not built in W8A8: {loses}.*add --allow-quantized"):
        chosen_precision("a stage", Precision(loses=loses), "w8a8", None, False)


@pytest.mark.parametrize("says", [Precision(loses=FLOW_LOSES), Precision(loses="nobody measured it")])
def test_refusal_of_8_bits_names_no_way_out_where_there_is_none(says: Precision) -> None:
    with pytest.raises(Refusal, match=r"for fp16\.$") as caught:
        chosen_precision("a stage", says, "w8a8", None, None)
    assert "--allow-quantized" not in str(caught.value)
