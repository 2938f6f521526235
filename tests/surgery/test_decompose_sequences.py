"""Sequences of tensors become the tensors, with the same numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from surgery.declaration import Rewritten
from surgery.decompose_sequences import decompose_sequences
from tests.gates.small_graphs import chain, constant, model, tensor
from tests.onnx_runs import run
from tests.surgery.branches import node
from tests.surgery.graphs import check, serialised

FEED = {"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4)}
X = tensor("x", [2, 3, 4])
ON_SEQUENCES = ("Sequence", "SplitTo", "FromSequence")


def whole(name: str, value: object) -> onnx.TensorProto:
    return constant(name, value, np.int64)


WEIGHTS = [
    *(whole(name, value) for name, value in (("zero", 0), ("one", 1), ("two", 2), ("last", -1), ("second_last", -2))),
    whole("one_three", [1, 3]),
]


def graph(nodes: Sequence[onnx.NodeProto], shape: Sequence[int | str] = ("a", "b", "c"), opset: int = 17) -> ir.Model:
    return model(nodes, [X], [tensor("y", shape)], WEIGHTS, opset=opset)


def split(*sizes: str, **attributes: int) -> onnx.NodeProto:
    return node("SplitToSequence", ["x", *sizes], "s", **attributes)


def at(position: str, output: str = "y") -> onnx.NodeProto:
    return node("SequenceAt", ["s", position], output)


def decompose(original: ir.Model) -> Rewritten:
    before = serialised(original)
    done = decompose_sequences().rewrite(original)
    assert serialised(original) == before
    check(done.model)
    wanted, got = run(original, FEED)["y"], run(done.model, FEED)["y"]
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)
    assert serialised(decompose_sequences().rewrite(original).model) == serialised(done.model)
    return done


def operators(done: Rewritten) -> list[str]:
    return [node.op_type for node in done.model.graph]


@pytest.mark.parametrize(
    ("nodes", "shape", "wanted"),
    [
        ([split("one_three", axis=2), at("one")], "abc", ["Split", "Identity"]),
        ([split("two", axis=2), at("last", "z"), node("Neg", ["z"], "y")], "abc", ["Split", "Neg"]),
        ([split("two", axis=-2), at("one")], "abc", ["Split", "Identity"]),
        ([split("two"), at("zero")], "abc", ["Identity"]),
        ([split(axis=1), at("one")], "abc", ["Split", "Identity"]),
        ([split(axis=-2, keepdims=0), at("two", "z"), node("Neg", ["z"], "y")], "ab", ["Split", "Squeeze", "Neg"]),
        (
            [split(axis=2), at("zero", "p"), at("last", "q"), node("Sub", ["p", "q"], "y")],
            "abc",
            ["Split", "Sub"],
        ),
        ([split(axis=2), node("ConcatFromSequence", ["s"], "y", axis=1)], "abc", ["Split", "Concat", "Identity"]),
        (
            [split("one_three", axis=2), node("SequenceLength", ["s"], "n"), node("Cast", ["n"], "y", to=1)],
            "",
            ["Identity"],
        ),
    ],
    ids=[
        "sizes",
        "uneven",
        "negative axis",
        "one piece",
        "ones",
        "squeezed",
        "two",
        "joined",
        "length",
    ],
)
def test_decompose_sequences_splits_when_a_tensor_is_cut(
    nodes: Sequence[onnx.NodeProto], shape: str, wanted: list[str]
) -> None:
    done = decompose(graph(nodes, list(shape)))
    assert sorted(name for name in operators(done) if name != "Squeeze") == sorted(w for w in wanted if w != "Squeeze")
    assert ("Squeeze" in operators(done)) == ("Squeeze" in wanted)
    assert done.hits == len([made for made in nodes if any(word in made.op_type for word in ON_SEQUENCES)])


def test_decompose_sequences_keeps_the_shape_when_a_member_is_a_scalar() -> None:
    row = model([split(axis=0, keepdims=0), at("two")], [tensor("x", [4])], [tensor("y", [])], WEIGHTS, opset=17)
    done = decompose_sequences().rewrite(row)
    check(done.model)
    assert done.model.graph.outputs[0].shape == []


A, B = node("Neg", ["x"], "a"), node("Exp", ["x"], "b")
BOTH = node("SequenceConstruct", ["a", "b"], "s")


@pytest.mark.parametrize(
    ("nodes", "shape", "wanted"),
    [
        ([A, B, BOTH, at("zero")], "abc", ["Neg", "Identity"]),
        ([A, B, BOTH, node("ConcatFromSequence", ["s"], "y", axis=2)], "abc", ["Neg", "Exp", "Concat", "Identity"]),
        (
            [A, B, BOTH, node("ConcatFromSequence", ["s"], "y", axis=-1, new_axis=1)],
            "abcd",
            ["Neg", "Exp", "Unsqueeze", "Unsqueeze", "Concat", "Identity"],
        ),
        (
            [A, B, BOTH, node("SequenceInsert", ["s", "x", "one"], "t"), node("SequenceAt", ["t", "last"], "y")],
            "abc",
            ["Exp", "Identity"],
        ),
        (
            [A, B, BOTH, node("SequenceInsert", ["s", "x", "second_last"], "t"), node("SequenceAt", ["t", "one"], "z"),
             node("Tanh", ["z"], "y")],
            "abc",
            ["Neg", "Tanh"],
        ),
        (
            [A, B, BOTH, node("SequenceErase", ["s", "zero"], "t"), node("SequenceAt", ["t", "zero"], "y")],
            "abc",
            ["Exp", "Identity"],
        ),
        (
            [A, B, BOTH, node("SequenceErase", ["s"], "t"), node("SequenceAt", ["t", "last"], "y")],
            "abc",
            ["Neg", "Identity"],
        ),
        (
            [A, node("SequenceEmpty", [], "e"), node("SequenceInsert", ["e", "a"], "s"), at("zero")],
            "abc",
            ["Neg", "Identity"],
        ),
    ],
    ids=["member", "joined", "stacked", "inserted", "inserted from the end", "erased", "last erased", "from nothing"],
)  # fmt: skip
def test_decompose_sequences_knows_the_members_when_a_sequence_is_built(
    nodes: Sequence[onnx.NodeProto], shape: str, wanted: list[str]
) -> None:
    assert sorted(operators(decompose(graph(nodes, list(shape))))) == sorted(wanted)


def test_decompose_sequences_names_what_it_makes_after_itself() -> None:
    done = decompose(graph([split("two", axis=2), at("one")]))
    assert all("decompose_sequences" in (made.name or "") for made in done.model.graph if made.op_type == "Identity")
    assert next(made.name for made in done.model.graph) == "make_s.Split"


def position_of_the_data() -> ir.Model:
    return model(
        [split("two", axis=2), at("n")], [X, tensor("n", [], TensorProto.INT64)], [tensor("y", "abc")], WEIGHTS
    )


def split_of_the_data() -> ir.Model:
    return model([split("n"), at("zero")], [X, tensor("n", [1], TensorProto.INT64)], [tensor("y", "abc")], WEIGHTS)


def open_axis() -> ir.Model:
    return model([split(axis=1), at("zero")], [tensor("x", [2, "n", 4])], [tensor("y", "abc")], WEIGHTS)


def a_sequence_that_is_an_output() -> ir.Model:
    output = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    return model([split(axis=1)], [X], [output], WEIGHTS)


@pytest.mark.parametrize(
    "build",
    [
        position_of_the_data,
        split_of_the_data,
        open_axis,
        a_sequence_that_is_an_output,
        lambda: graph([split(axis=1), at("zero")], opset=12),
        lambda: graph([split("one_three", axis=1), at("zero")]),
        lambda: graph([split("two", axis=1, keepdims=0), at("zero")]),
        lambda: chain("Tanh", "Neg"),
    ],
    ids=[
        "position",
        "split",
        "open axis",
        "output",
        "opset 12",
        "sizes that do not add up",
        "keepdims and a split",
        "none",
    ],
)
def test_decompose_sequences_leaves_the_graph_alone_when_members_are_not_known(build: object) -> None:
    original: ir.Model = build()  # type: ignore[operator]
    done = decompose_sequences().rewrite(original)
    assert done.hits == 0
    assert done.model is original
