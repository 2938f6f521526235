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
        ([8, 0], [], {}),
        ([0, 8], [], {}),
        ([3, 0, 5], ["Split", "Concat"], {}),
        ([0, 3, 0, 5], ["Split", "Concat"], {"axis": -2}),
        ([3, 0, 5], ["Split", "Concat"], {"opset": 11}),
        ([3, 0, 5], ["Split", "Concat"], {"outputs": [0, 2]}),
        ([0, 8], ["Identity"], {"outputs": [1]}),
    ],
)
def test_fold_empty_parts_computes_the_same_when_a_part_is_empty(
    lengths: Sequence[int], left: list[str], options: dict[str, int]
) -> None:
    original = parts(lengths, **options)  # type: ignore[arg-type] # values of each parameter's type
    before = serialised(original)
    done = fold_empty_parts().rewrite(original)
    assert (done.hits, done.refused) == (2, ())
    assert serialised(original) == before
    check(done.model)
    assert [node.op_type for node in done.model.graph] == [*left, "Relu"]
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
    assert [node.op_type for node in done.model.graph] == ["Relu"]
    assert np.array_equal(run(made, FEED)["y"], run(done.model, FEED)["y"])


def joined(*widths: int) -> ir.Model:
    """Constants of these widths joined around x [2, 3]; x stands where a width is -1."""
    names = [f"k{place}" if width >= 0 else "x" for place, width in enumerate(widths)]
    weights = [constant(name, np.ones((2, width))) for name, width in zip(names, widths, strict=True) if width >= 0]
    nodes = [helper.make_node("Concat", names, ["y"], "join", axis=-1)]
    width = sum(3 if width < 0 else width for width in widths)
    return model(nodes, [tensor("x", [2, 3])], [tensor("y", [2, width])], weights)


@pytest.mark.parametrize(("widths", "left"), [((0, -1), "Identity"), ((-1, 0, 2), "Concat"), ((-1, 0, -1), "Concat")])
def test_fold_empty_parts_computes_the_same_when_an_operand_is_empty(widths: Sequence[int], left: str) -> None:
    original = joined(*widths)
    done = fold_empty_parts().rewrite(original)
    assert done.hits == 1
    check(done.model)
    assert [node.op_type for node in done.model.graph] == [left]
    feed = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
    assert np.array_equal(run(original, feed)["y"], run(done.model, feed)["y"])


def computed_lengths() -> ir.Model:
    """The lengths are an input."""
    made = parts([8, 0])
    lengths = made.graph.initializers.pop("lengths")
    lengths.const_value = None
    made.graph.inputs.append(lengths)
    return made


@pytest.mark.parametrize("original", [parts([3, 5]), parts([4, 4], opset=11), computed_lengths(), joined(-1, 2)])
def test_fold_empty_parts_returns_the_model_itself_when_no_part_is_known_to_be_empty(original: ir.Model) -> None:
    done = fold_empty_parts().rewrite(original)
    assert done.model is original
    assert (done.hits, done.refused) == (0, ())
