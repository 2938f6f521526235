from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from surgery.fold_shifts import fold_shifts
from tests.gates.small_graphs import model, tensor
from tests.surgery.layer_graphs import conv, layers, node, noise, up
from tests.surgery.one_operator import equal_after, left_alone, only, operators, weight

PASS = fold_shifts()

FOLDED = {
    "behind a conv": layers(conv("x w b", "a"), node("Add", "a t", "y")),
    "constant first": layers(conv("x w b", "a"), node("Add", "t2 a", "y")),
    "no bias": layers(conv("x w", "a"), node("Add", "a half", "y")),
    "subtracted": layers(conv("x w b", "a"), node("Sub", "a t", "y")),
    "as large as the tensor": layers(conv("x w b", "a"), node("Add", "a wide", "y")),
    "of groups": layers(conv("x w2 b", "a", group=2), node("Add", "a t", "y")),
    "behind a transposed": layers(up("x wt", "a"), node("Add", "a t", "y")),
    "behind one of groups": layers(up("x wt2 b", "a", group=2), node("Sub", "a t2", "y")),
    "with output padding": layers(
        node("ConvTranspose", "x wt b", "a", strides=[3], output_padding=[2]), node("Add", "a t", "y")
    ),
    "beyond a sum": layers(conv("x w", "a"), node("Add", "x a", "c"), node("Add", "c t", "y")),
    "beyond a difference": layers(conv("x w", "a"), node("Sub", "x a", "c"), node("Add", "c t", "y")),
    "subtracted beyond a difference": layers(conv("x w", "a"), node("Sub", "x a", "c"), node("Sub", "c t", "y")),
    "gemm": layers(node("Gemm", "x m b", "a", alpha=0.5), node("Add", "a row", "y"), shape=(10, 6)),
    "gemm of one bias": layers(node("Gemm", "x m half", "a"), node("Add", "a last", "y"), shape=(10, 6)),
    "gemm without bias": layers(node("Gemm", "x m", "a", transB=1), node("Sub", "a last", "y"), shape=(10, 6)),
    "opset 7": layers(conv("x w b", "a"), node("Add", "a t", "y"), opset=7),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDED)
def test_shift_goes_into_the_bias_when_it_can(name: str) -> None:
    made = equal_after(PASS, FOLDED[name])
    assert made.graph.num_nodes() == FOLDED[name].graph.num_nodes() - 1


def test_bias_is_the_sum_when_both_are_constants() -> None:
    original = FOLDED["behind a conv"]
    parts = [weight(original.graph.initializers[name]) for name in ("b", "t")]
    layer = only(equal_after(PASS, original), "Conv")
    np.testing.assert_allclose(weight(layer.inputs[2]), parts[0] + parts[1].reshape(6), rtol=1e-6)


def test_several_shifts_fold_when_they_stand_in_a_row() -> None:
    original = layers(conv("x w", "a"), node("Add", "a t", "c"), node("Sub", "half c", "d"), node("Sub", "d t2", "y"))
    assert operators(equal_after(PASS, original, hits=2)) == ["Conv", "Sub"]
    row = layers(conv("x w", "a"), node("Add", "a t", "c"), node("Sub", "c half", "y"))
    assert operators(equal_after(PASS, row, hits=2)) == ["Conv"]


LEFT = {
    "before a padded conv": layers(node("Add", "x t", "a"), conv("a w", "y")),
    "subtracted from": layers(conv("x w", "a"), node("Sub", "t a", "y")),
    "along time": layers(conv("x w", "a"), node("Add", "a steps", "y")),
    "makes more channels": layers(conv("x one", "a"), node("Add", "a t", "y"), one=noise(1, 6, 3)),
    "past fp16": layers(conv("x w b", "a"), node("Add", "a far", "y")),
    "a product": layers(node("MatMul", "x m", "a"), node("Add", "a last", "y"), shape=(2, 10, 6)),
    "gemm with a factor": layers(node("Gemm", "x m b", "a", beta=2.0), node("Add", "a last", "y"), shape=(10, 6)),
    "through relu": layers(conv("x w", "a"), node("Relu", "a", "c"), node("Add", "c t", "y")),
    "another reader": layers(conv("x w", "a"), node("Add", "a t", "c"), node("Mul", "a c", "y")),
    "an output": layers(conv("x w", "a"), node("Add", "a t", "y"), outputs="a y"),
    "a sum of others": layers(node("Tanh", "x", "a"), node("Add", "x a", "c"), node("Add", "c t", "y")),
    "a sum with itself": layers(conv("x w", "a"), node("Add", "a a", "c"), node("Add", "c t", "y")),
    "two of data": layers(conv("x w", "a"), node("Add", "a x", "y")),
    "computed bias": layers(conv("x w z", "a"), node("Add", "a t", "y"), fed=[tensor("z", [6])]),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_shift_stays_when(name: str) -> None:
    left_alone(PASS, LEFT[name])


def test_shift_stays_when_the_type_is_not_float32() -> None:
    kind = TensorProto.FLOAT16
    nodes = [conv("x w", "a"), node("Add", "a k", "y")]
    constants = [helper.make_tensor("w", kind, [2, 2, 3], np.ones(12)), helper.make_tensor("k", kind, [], [0.5])]
    left_alone(PASS, model(nodes, [tensor("x", [1, 2, 8], kind)], [tensor("y", [1, 2, 8], kind)], constants))


def test_shift_stays_when_its_layer_is_thousands_of_nodes_away() -> None:
    count = 3000
    sums = [node("Add", f"s{number} x", f"s{number + 1}") for number in range(count)]
    left_alone(PASS, layers(conv("x w", "s0"), *sums, node("Add", f"s{count} t", "y")))
