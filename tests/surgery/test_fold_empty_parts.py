"""Parts of no length are taken out of a Split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from surgery.fold_empty_parts import fold_empty_parts
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run
from tests.surgery.graphs import check, serialised
from tests.surgery.split_graphs import parts

FEED = {"x": np.random.default_rng(4).standard_normal((2, 8, 3)).astype(np.float32)}


@pytest.mark.parametrize(
    ("lengths", "left", "options"),
    [
        ([8, 0], "Identity", {}),
        ([0, 8], "Identity", {}),
        ([3, 0, 5], "Split", {}),
        ([0, 3, 0, 5], "Split", {"axis": -2}),
        ([3, 0, 5], "Split", {"opset": 11}),
        ([3, 0, 5], "Split", {"outputs": [0, 2]}),
        ([0, 8], "Identity", {"outputs": [1]}),
    ],
)
def test_fold_empty_parts_computes_the_same_when_a_part_is_empty(
    lengths: Sequence[int], left: str, options: dict[str, int]
) -> None:
    original = parts(lengths, **options)  # type: ignore[arg-type] # values of each parameter's type
    before = serialised(original)
    done = fold_empty_parts().rewrite(original)
    assert (done.hits, done.refused) == (1, ())
    assert serialised(original) == before
    check(done.model)
    assert [node.op_type for node in done.model.graph] == [left, "Concat", "Relu"]
    wanted, made = run(original, FEED), run(done.model, FEED)
    assert list(wanted) == list(made)
    assert all(np.array_equal(wanted[name], made[name]) for name in wanted)


def test_fold_empty_parts_leaves_nothing_behind_when_nothing_reads_the_part() -> None:
    nodes = [
        helper.make_node("Split", ["x", "lengths"], ["a", "b"], "cut", axis=1),
        helper.make_node("Relu", ["a"], ["y"], "bend"),
    ]
    weights = [constant("lengths", [8, 0], np.int64)]
    made = model(nodes, [tensor("x", [2, 8, 3])], [tensor("y", [2, 8, 3])], weights)
    done = fold_empty_parts().rewrite(made)
    assert [node.op_type for node in done.model.graph] == ["Identity", "Relu"]
    assert np.array_equal(run(made, FEED)["y"], run(done.model, FEED)["y"])


def computed_lengths() -> ir.Model:
    """The lengths are an input."""
    made = parts([8, 0])
    lengths = made.graph.initializers.pop("lengths")
    lengths.const_value = None
    made.graph.inputs.append(lengths)
    return made


@pytest.mark.parametrize("original", [parts([3, 5]), parts([4, 4], opset=11), computed_lengths()])
def test_fold_empty_parts_returns_the_model_itself_when_no_part_is_known_to_be_empty(original: ir.Model) -> None:
    done = fold_empty_parts().rewrite(original)
    assert done.model is original
    assert (done.hits, done.refused) == (0, ())
