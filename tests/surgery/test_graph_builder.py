"""Nodes before one that a pass rewrites."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from surgery.graph import input_of
from surgery.graph_builder import Builder, sizes_of, take_place
from tests.onnx_runs import Array, run
from tests.surgery.convolutions import one_node
from tests.surgery.graphs import check

X = np.arange(12, dtype=np.float32).reshape(1, 2, 6)


def built(made: ir.Model) -> dict[str, Array]:
    check(made)
    return run(made, {"x": X})


def builder(made: ir.Model) -> tuple[ir.Node, Builder, ir.Value]:
    node = made.graph[0]
    return node, Builder(made.graph, node, "a_pass/y"), input_of(node)


def test_what_is_built_takes_the_place_and_the_name_and_unused_weights_go() -> None:
    made = one_node("Conv", [1, 2, 6], [3, 2, 4])
    node, make, x = builder(made)
    take_place(node, make.reshape(x, [1, 12], "flat"))
    assert [(node.op_type, node.name) for node in made.graph] == [("Reshape", "a_pass/y/flat")]
    assert list(made.graph.initializers) == ["a_pass/y/flat_shape"]
    made.graph.outputs[0].shape = ir.Shape([1, 12])
    np.testing.assert_array_equal(built(made)["y"], X.reshape(1, 12))


@pytest.mark.parametrize(
    ("before", "behind", "blocks", "op"),
    [(0, 3, 4, "Concat"), (2, 1, 4, "Pad"), (0, 2, 2, "Pad"), (0, 0, 4, None)],
)
def test_filled_has_so_many_zeros_on_each_side(before: int, behind: int, blocks: int, op: str | None) -> None:
    made = one_node("Relu", [1, 2, 6])
    node, make, x = builder(made)
    value = make.filled(x, 2, before, behind, blocks)
    assert sizes_of(value) == [1, 2, 6 + before + behind]
    take_place(node, make.add("Identity", [value], sizes_of(value), "kept"))
    assert [node.op_type for node in made.graph] == ([op] if op else []) + ["Identity"]
    made.graph.outputs[0].shape = ir.Shape(sizes_of(value))
    np.testing.assert_array_equal(built(made)["y"], np.pad(X, ((0, 0), (0, 0), (before, behind))))


@pytest.mark.parametrize(("before", "behind", "parts"), [(2, 3, 3), (2, 2, 3), (0, 1, 2), (4, 0, 2)])
@pytest.mark.parametrize("axis", [1, 2])
def test_surrounded_joins_zeros_to_each_side_that_has_some(before: int, behind: int, parts: int, axis: int) -> None:
    made = one_node("Relu", [1, 2, 6])
    node, make, x = builder(made)
    value = make.surrounded(x, axis, before, behind, "wide")
    wanted = np.pad(X, [(before, behind) if place == axis else (0, 0) for place in range(3)])
    assert sizes_of(value) == list(wanted.shape)
    take_place(node, value)
    (concat,) = made.graph
    assert (concat.op_type, len(concat.inputs), len(made.graph.initializers)) == (
        "Concat",
        parts,
        len({before, behind} - {0}),
    )
    made.graph.outputs[0].shape = ir.Shape(list(wanted.shape))
    np.testing.assert_array_equal(built(made)["y"], wanted)


def test_first_cuts_off_what_is_behind_and_nothing_where_all_stays() -> None:
    made = one_node("Relu", [1, 2, 6])
    node, make, x = builder(made)
    assert make.first(x, 2, 6, "all") is x
    take_place(node, make.first(x, 2, 4, "cut"))
    made.graph.outputs[0].shape = ir.Shape([1, 2, 4])
    np.testing.assert_array_equal(built(made)["y"], X[:, :, :4])


def test_part_is_what_stands_between() -> None:
    made = one_node("Relu", [1, 2, 6])
    node, make, x = builder(made)
    take_place(node, make.part(x, 2, 1, 3, "cut"))
    made.graph.outputs[0].shape = ir.Shape([1, 2, 3])
    np.testing.assert_array_equal(built(made)["y"], X[:, :, 1:4])


@pytest.mark.parametrize("opset", [11, 12, 13, 17, 18, 19])
def test_split_makes_parts_of_the_sizes_in_every_opset(opset: int) -> None:
    made = one_node("Relu", [1, 2, 6], opset=opset)
    node, make, x = builder(made)
    parts = make.split(x, 2, [1, 3, 2], "apart")
    assert [sizes_of(part) for part in parts] == [[1, 2, 1], [1, 2, 3], [1, 2, 2]]
    take_place(node, make.add("Concat", parts[::-1], [1, 2, 6], "back", axis=2))
    np.testing.assert_array_equal(built(made)["y"], X[:, :, [4, 5, 1, 2, 3, 0]])


def test_sizes_of_insists_on_a_static_shape() -> None:
    with pytest.raises(AssertionError):
        sizes_of(ir.Value(name="x", shape=ir.Shape([1, "n"])))
