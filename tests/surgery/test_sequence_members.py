"""The members of sequences, against ONNX's specification."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from surgery.node_types import stated_type
from surgery.sequence_members import MOST_MEMBERS, Members, draft, members_of, position, whole
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.interfaces import node

WEIGHTS = [
    constant("two", 2, np.int64), constant("one_three", [1, 3], np.int64), constant("five", [5], np.int64),
    constant("first", 0, np.int64), constant("last", -1, np.int64), constant("past", 3, np.int64),
    constant("behind", -4, np.int64), constant("zero", 0, np.int64),
]  # fmt: skip
MEMBERS = node("SequenceConstruct", "a b c", "s")


def members(nodes: Sequence[onnx.NodeProto]) -> tuple[list[str | None] | None, list[ir.Node]]:
    """The names of the members of what the last node makes, and the nodes that were drafted for them."""
    inputs = [tensor(name, [2, 4]) for name in "abc"] + [tensor("open", ["n", 4]), tensor("at", [], 7)]
    made = model(nodes, inputs, [tensor("y", [1])], WEIGHTS)
    types = {value: kind for value in made.graph.inputs if (kind := stated_type(value)) is not None}
    known, drafted, found = Members(), list[ir.Node](), None
    for one in made.graph:
        found = members_of(one, types, known, drafted)
        if found is not None:
            known[one.outputs[0]] = found
    return None if found is None else [value.name for value in found], drafted


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        ([node("SequenceEmpty", "", "y")], []),
        ([node("SequenceConstruct", "a b a", "y")], ["a", "b", "a"]),
        ([MEMBERS, node("SequenceInsert", "s a", "y")], ["a", "b", "c", "a"]),
        ([MEMBERS, node("SequenceInsert", "s c first", "y")], ["c", "a", "b", "c"]),
        ([MEMBERS, node("SequenceInsert", "s a last", "y")], ["a", "b", "a", "c"]),
        ([MEMBERS, node("SequenceInsert", "s a past", "y")], ["a", "b", "c", "a"]),
        ([MEMBERS, node("SequenceErase", "s", "y")], ["a", "b"]),
        ([MEMBERS, node("SequenceErase", "s first", "y")], ["b", "c"]),
        ([MEMBERS, node("SequenceErase", "s last", "y")], ["a", "b"]),
        ([MEMBERS, node("SequenceErase", "s past", "y")], None),
        ([MEMBERS, node("SequenceErase", "s behind", "y")], None),
        ([MEMBERS, node("SequenceErase", "s at", "y")], None),
        ([node("SequenceEmpty", "", "s"), node("SequenceErase", "s", "y")], None),
        ([node("Neg", "a", "y")], None),
    ],
)
def test_members_of_are_those_that_the_specification_says(
    nodes: list[onnx.NodeProto], wanted: list[str] | None
) -> None:
    assert members(nodes) == (wanted, [])


@pytest.mark.parametrize(
    ("inputs", "attributes", "lengths", "squeezed"),
    [
        ("a one_three", {"axis": 1}, [1, 3], False),
        ("a two", {"axis": -1}, [2, 2], False),
        ("a", {"axis": 1}, [1, 1, 1, 1], False),
        ("a", {"keepdims": 0}, [1, 1], True),
        ("open", {"axis": 1}, None, False),
    ],
)
def test_members_of_a_cut_tensor_are_pieces_of_a_split(
    inputs: str, attributes: dict[str, int], lengths: list[int] | None, squeezed: bool
) -> None:
    found, drafted = members([node("SplitToSequence", inputs, "y", **attributes)])
    if lengths is None:
        assert (found, drafted) == (None, [])
        return
    assert found is not None
    assert len(found) == len(lengths)
    assert [one.op_type for one in drafted] == ["Split", *["Squeeze"] * (len(lengths) if squeezed else 0)]
    stated = drafted[0].inputs[1]
    assert stated is not None
    assert stated.const_value is not None
    assert stated.const_value.numpy().tolist() == lengths


@pytest.mark.parametrize(
    ("inputs", "attributes"),
    [
        ("open", {}),
        ("a five", {"axis": 1}),
        ("a at", {"axis": 1}),
        ("a zero", {"axis": 1}),
        ("a", {"axis": 2}),
        ("a two", {"axis": 1, "keepdims": 0}),
    ],
    ids=["open length", "longer than the axis", "computed", "of length 0", "no such axis", "squeezed and cut"],
)
def test_members_of_a_cut_tensor_are_not_known_when_its_pieces_are_not(inputs: str, attributes: dict[str, int]) -> None:
    assert members([node("SplitToSequence", inputs, "y", **attributes)]) == (None, [])


def test_members_of_a_cut_tensor_are_the_tensor_when_there_is_one_piece() -> None:
    assert members([node("SplitToSequence", "a two", "y", axis=0)]) == (["a"], [])


def test_members_of_are_written_out_up_to_a_limit() -> None:
    for length, wanted in ((MOST_MEMBERS, True), (MOST_MEMBERS + 1, False)):
        made = model([node("SplitToSequence", "x", "s")], [tensor("x", [length])], [tensor("y", [1])])
        kind = stated_type(made.graph.inputs[0])
        assert kind is not None
        assert (members_of(made.graph[0], {made.graph.inputs[0]: kind}, {}, []) is not None) is wanted


@pytest.mark.parametrize(
    ("number", "highest", "wanted"),
    [(0, 2, 0), (2, 2, 2), (3, 2, None), (3, 3, 3), (-1, 2, 2), (-3, 2, 0), (-4, 2, None)],
)
def test_position_counts_from_the_end_when_it_is_negative(number: int, highest: int, wanted: int | None) -> None:
    assert position(whole(np.array(number)), 3, highest) == wanted


def test_position_is_none_when_it_is_no_constant_number() -> None:
    assert position(ir.Value(name="at"), 3, 2) is None
    assert position(whole(np.array([0, 1])), 3, 2) is None


def test_draft_makes_weights_of_lists() -> None:
    drafted: list[ir.Node] = []
    outputs = draft(drafted, "Split", ir.Value(name="x"), [1, 2], outputs=2, axis=1)
    assert (len(outputs), drafted[0].op_type, drafted[0].attributes.get_int("axis", 0)) == (2, "Split", 1)
    weight = drafted[0].inputs[1]
    assert weight is not None
    assert weight.const_value is not None
    assert (weight.dtype, weight.const_value.numpy().tolist()) == (ir.DataType.INT64, [1, 2])
