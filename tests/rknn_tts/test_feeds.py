from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from contracts.errors import UserInput
from rknn_tts.carried import FEEDS_LIMIT_BYTES
from rknn_tts.feeds import STAND_IN_LIMIT_BYTES, stand_in_feed
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.interfaces import node


def test_stand_in_feed_is_normal_of_the_inputs_shapes_and_types_and_the_same_each_time() -> None:
    nodes = [helper.make_node("Cast", ["h"], ["c"], to=TensorProto.FLOAT), helper.make_node("Add", ["x", "c"], ["y"])]
    inputs = [tensor("x", [1, 64, 64]), tensor("h", [1], TensorProto.FLOAT16)]
    graph = model(nodes, inputs, [tensor("y", [1, 64, 64])])
    feed = stand_in_feed(graph, "m.onnx")
    assert {name: (array.shape, array.dtype.name) for name, array in feed.items()} == {
        "x": ((1, 64, 64), "float32"),
        "h": ((1,), "float16"),
    }
    assert abs(feed["x"].mean()) < 0.1
    assert abs(feed["x"].std() - 1) < 0.1
    for name, array in stand_in_feed(graph, "m.onnx").items():
        np.testing.assert_array_equal(array, feed[name])


def test_stand_in_feed_leaves_out_weights_that_are_listed_as_inputs() -> None:
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
    graph = model(nodes, [tensor("x", [1, 4]), tensor("w", [4])], [tensor("y", [1, 4])], [constant("w", [1.0] * 4)])
    assert list(stand_in_feed(graph, "m.onnx")) == ["x"]


def test_stand_in_feed_gives_a_scalar_when_the_input_has_rank_0() -> None:
    graph = model([node("Mul", "x s", "y")], [tensor("x", [1, 4]), tensor("s", [])], [tensor("y", [1, 4])])
    assert stand_in_feed(graph, "m.onnx")["s"].shape == ()


IDS = tensor("ids", [1, 500], TensorProto.INT64)
TABLES = [
    constant("t7", np.zeros((7, 3))),
    constant("t5", np.zeros((5, 3))),
    constant("t35", np.zeros((3, 5))),
    constant("t579", np.zeros((5, 7, 9))),
    constant("zero", 0, np.int64),
    constant("six", 6, np.int64),
    constant("axis", [0], np.int64),
    constant("row", [-1], np.int64),
    constant("pairs", [1, 250, 2], np.int64),
    constant("two", [2, 1, 1], np.int64),
    constant("depth", [11], np.int64),
    constant("off_on", [0.0, 1.0]),
    constant("mask", np.ones((1, 500)), np.bool_),
    constant("data", np.zeros((4, 500))),
]


def indexing(*nodes: Any, ids: Any = IDS, **options: Any) -> ir.Model:
    """An input `ids` that `nodes` read; what they make is not looked at."""
    return model(nodes, [ids], [tensor("y", ["a"])], TABLES, **options)


GATHERS = {
    "Gather": (7, indexing(node("Gather", "t7 ids", "y"))),
    "axis 1": (5, indexing(node("Gather", "t35 ids", "y", axis=1))),
    "axis -1": (5, indexing(node("Gather", "t35 ids", "y", axis=-1))),
    "two tables": (5, indexing(node("Gather", "t7 ids", "a"), node("Gather", "t5 ids", "y"))),
    "Cast": (7, indexing(node("Cast", "ids", "a", to=TensorProto.INT32), node("Gather", "t7 a", "y"))),
    "Reshape": (7, indexing(node("Reshape", "ids row", "a"), node("Gather", "t7 a", "y"))),
    "Squeeze": (7, indexing(node("Squeeze", "ids axis", "a"), node("Gather", "t7 a", "y"))),
    "Unsqueeze": (7, indexing(node("Unsqueeze", "ids axis", "a"), node("Gather", "t7 a", "y"))),
    "Transpose, Identity": (
        7, indexing(node("Transpose", "ids", "a"), node("Identity", "a", "b"), node("Gather", "t7 b", "y")),
    ),
    "Clip": (7, indexing(node("Clip", "ids zero six", "a"), node("Gather", "t7 a", "y"))),
    "Expand": (7, indexing(node("Expand", "ids two", "a"), node("Gather", "t7 a", "y"))),
    "Where": (7, indexing(node("Where", "mask ids zero", "a"), node("Gather", "t7 a", "y"))),
    "Concat": (7, indexing(node("Concat", "ids ids", "a", axis=1), node("Gather", "t7 a", "y"))),
    "Slice": (7, indexing(node("Slice", "ids axis row axis", "a"), node("Gather", "t7 a", "y"))),
    "also compared": (7, indexing(node("Equal", "ids zero", "a"), node("Gather", "t7 ids", "y"))),
    "GatherElements": (4, indexing(node("GatherElements", "data ids", "y", axis=0))),
    "GatherND": (5, indexing(node("Reshape", "ids pairs", "a"), node("GatherND", "t579 a", "y"))),
    "GatherND, batch": (
        7, indexing(node("GatherND", "t579 ids", "y", batch_dims=1), ids=tensor("ids", [5, 2], TensorProto.INT64)),
    ),
    "OneHot": (11, indexing(node("OneHot", "ids depth off_on", "y"))),
    "computed table": (7, indexing(node("Tanh", "t7", "a"), node("Gather", "a ids", "y"))),
    "codebooks": (
        7,
        indexing(
            node("Gather", "ids zero", "a", axis=1), node("Split", "a", "b", axis=0), node("Gather", "t7 b", "y"),
            ids=tensor("ids", [1, 3, 100], TensorProto.INT64), opset=11,
        ),
    ),
    "floats": (
        7,
        indexing(
            node("Cast", "ids", "a", to=TensorProto.INT64), node("Gather", "t7 a", "y"), ids=tensor("ids", [1, 500])
        ),
    ),
    "int32": (7, indexing(node("Gather", "t7 ids", "y"), ids=tensor("ids", [1, 500], TensorProto.INT32))),
}  # fmt: skip


@pytest.mark.parametrize("name", GATHERS)
def test_stand_in_feed_draws_indices_over_the_whole_axis_when_an_integer_input_indexes_one(name: str) -> None:
    size, graph = GATHERS[name]
    ids = stand_in_feed(graph, "m.onnx")["ids"]
    value = graph.graph.inputs[0]
    assert value.dtype is not None
    assert ids.dtype == value.dtype.numpy()
    assert (int(ids.min()), int(ids.max()) < size) == (0, True)
    if ids.size > 10 * size:
        assert set(ids.ravel().tolist()) == set(range(size))


def test_stand_in_feed_draws_indices_when_the_gather_stands_in_a_local_function() -> None:
    embed = helper.make_function(
        "local", "Embed", ["t", "i"], ["o"], [helper.make_node("Gather", ["t", "i"], ["o"])],
        [helper.make_opsetid("", 17)],
    )  # fmt: skip
    proto = ir.to_proto(indexing(node("Embed", "t7 ids", "y", domain="local")))
    proto.functions.append(embed)
    proto.opset_import.append(helper.make_opsetid("local", 1))
    assert stand_in_feed(ir.from_proto(proto), "m.onnx")["ids"].max() == 6


@pytest.mark.parametrize(
    ("dtype", "largest"),
    [
        (TensorProto.UINT8, 255),
        (TensorProto.INT8, 127),
        (TensorProto.INT16, 999),
        (TensorProto.UINT64, 999),
        (TensorProto.FLOAT16, 999),
        (TensorProto.BFLOAT16, 255),
    ],
)
def test_stand_in_feed_draws_small_indices_when_the_type_holds_less_than_the_axis(dtype: int, largest: int) -> None:
    ids = tensor("ids", [20_000], dtype)
    nodes = [node("Cast", "ids", "a", to=TensorProto.INT64), node("Gather", "t a", "y")]
    graph = model(nodes, [ids], [tensor("y", [20_000])], [constant("t", np.zeros(1000))])
    assert int(stand_in_feed(graph, "m.onnx")["ids"].max()) == largest


OTHERS = {
    "cast to floats": (node("Cast", "ids", "y", to=TensorProto.FLOAT), TensorProto.INT64, "int64"),
    "int32": (node("Cast", "ids", "y", to=TensorProto.FLOAT), TensorProto.INT32, "int32"),
    "truth values": (node("Cast", "ids", "y", to=TensorProto.FLOAT), TensorProto.BOOL, "bool"),
    "the table": (node("Gather", "ids zero", "y"), TensorProto.INT64, "int64"),
    "sizes": (node("Expand", "t7 ids", "y"), TensorProto.INT64, "int64"),
    "another domain": (node("Gather", "t7 ids", "y", domain="com.example"), TensorProto.INT64, "int64"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_stand_in_feed_asks_for_real_inputs_when_nothing_says_what_one_holds(name: str) -> None:
    reader, dtype, kind = OTHERS[name]
    graph = indexing(reader, ids=tensor("ids", [1, 4], dtype))
    with pytest.raises(UserInput, match=rf"^m\.onnx: the input ids is {kind} of shape \[1,4\] .*--inputs FILE\.npz"):
        stand_in_feed(graph, "m.onnx")


@pytest.mark.parametrize(("dtype", "kind"), [(TensorProto.STRING, "string"), (TensorProto.COMPLEX64, "complex64")])
def test_stand_in_feed_names_an_input_when_it_holds_no_numbers(dtype: int, kind: str) -> None:
    graph = indexing(node("Identity", "ids", "y"), ids=tensor("ids", [1, 4], dtype))
    with pytest.raises(UserInput, match=rf"^m\.onnx: the input ids is of type {kind}, and the NPU takes numbers"):
        stand_in_feed(graph, "m.onnx")


def test_stand_in_feed_asks_for_real_inputs_when_the_index_is_computed_with() -> None:
    graph = indexing(node("Add", "ids six", "a"), node("Gather", "t7 a", "y"))
    with pytest.raises(UserInput, match="--inputs"):
        stand_in_feed(graph, "m.onnx")


@pytest.mark.parametrize("shape", [[STAND_IN_LIMIT_BYTES // 4 + 1], [10**6, 10**6], [2**31 - 1] * 8])
def test_stand_in_feed_names_an_input_when_it_is_too_large(shape: list[int]) -> None:
    graph = model([node("Tanh", "x", "y")], [tensor("x", shape)], [tensor("y", shape)])
    with pytest.raises(UserInput, match=r"^m\.onnx: the input x of shape .* takes .* GB"):
        stand_in_feed(graph, "m.onnx")


def test_stand_in_feed_names_an_input_when_all_together_are_too_large() -> None:
    count = FEEDS_LIMIT_BYTES // STAND_IN_LIMIT_BYTES + 1
    inputs = [tensor(f"x{i}", [STAND_IN_LIMIT_BYTES // 4]) for i in range(count)]
    graph = model([node("Tanh", "x0", "y")], inputs, [tensor("y", ["n"])])
    with pytest.raises(UserInput, match=f"the input x{count - 1} of shape"):
        stand_in_feed(graph, "m.onnx")
