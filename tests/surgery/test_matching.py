"""What the passes say of the attributes of the operators they match is complete."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest

from surgery.catalogue import CATALOGUE
from surgery.graph import RATED
from surgery.matching import Matched, is_one_of

OPSETS = range(11, 20)
"""Older ones have attributes where these have inputs; 19 is the toolkit's highest."""

MATCHED = [*RATED, *(matched for entry in CATALOGUE for matched in entry.matches)]


@pytest.mark.parametrize("matched", MATCHED, ids=lambda matched: matched.op)
def test_matched_lists_every_attribute_once_when_compared_with_onnx(matched: Matched) -> None:
    listed = matched.attributes()
    assert len(set(listed)) == len(listed)
    known = [opset for opset in OPSETS if onnx.defs.has(matched.op, opset, "")]
    of_onnx = {name for opset in known for name in onnx.defs.get_schema(matched.op, opset, "").attributes}
    assert set(listed) == of_onnx


def test_matched_names_no_operator_twice_in_a_pass() -> None:
    for matches in (RATED, *(entry.matches for entry in CATALOGUE)):
        assert len({matched.op for matched in matches}) == len(matches)


@pytest.mark.parametrize(
    ("op", "domain", "wanted"),
    [("Conv", "", True), ("Conv", "ai.onnx", True), ("Conv", "com.microsoft", False), ("Gemm", "", False)],
)
def test_is_one_of_asks_for_the_operator_in_onnxs_own_domain(op: str, domain: str, wanted: bool) -> None:
    assert is_one_of(ir.node(op, [], domain=domain), RATED) is wanted
