from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import NodeProto, helper

from surgery.fold_batch_normalization import fold_batch_normalization
from tests.gates.small_graphs import tensor
from tests.surgery.layer_graphs import conv, layers, near_one, node, noise, up
from tests.surgery.one_operator import equal_after, left_alone, operators

PASS = fold_batch_normalization()


def norm(given: str, output: str, **attributes: float) -> NodeProto:
    return node("BatchNormalization", f"{given} scale shift mean variance", output, **attributes)


FOLDED = {
    "conv": layers(conv("x w b", "a"), norm("a", "y")),
    "no bias": layers(conv("x w", "a"), norm("a", "y", epsilon=0.1)),
    "of groups": layers(conv("x w2 b", "a", group=3), norm("a", "y"), w2=noise(6, 2, 3)),
    "transposed": layers(up("x wt", "a"), norm("a", "y", momentum=0.5)),
    "transposed of groups": layers(up("x wt2 b", "a", group=2), norm("a", "y")),
    "two axes": layers(node("Conv", "x k b", "a"), norm("a", "y"), shape=(2, 6, 9, 5), k=noise(6, 6, 3, 3)),
    "gemm": layers(node("Gemm", "x m b", "a"), norm("a", "y"), shape=(10, 6)),
    "opset 9": layers(conv("x w b", "a"), norm("a", "y"), opset=9),
    "opset 15": layers(conv("x w b", "a"), norm("a", "y", training_mode=0), opset=15),
}


@pytest.mark.parametrize("name", FOLDED)
def test_normalisation_goes_into_the_layer_when_it_can(name: str) -> None:
    assert operators(equal_after(PASS, FOLDED[name])) == [FOLDED[name].graph[0].op_type]


def trained() -> ir.Model:
    names = ["y", "running_mean", "running_variance"]
    inputs = ["a", "scale", "shift", "mean", "variance"]
    return layers(conv("x w b", "a"), helper.make_node("BatchNormalization", inputs, names, training_mode=1))


LEFT = {
    "alone": layers(norm("x", "y")),
    "before a layer": layers(norm("x", "a"), conv("a w", "y")),
    "through relu": layers(conv("x w", "a"), node("Relu", "a", "c"), norm("c", "y")),
    "another reader": layers(conv("x w", "a"), norm("a", "c"), node("Add", "a c", "y")),
    "an output": layers(conv("x w", "a"), norm("a", "y"), outputs="a y"),
    "trained": trained(),
    "statistics are fed": layers(conv("x w", "a"), norm("a", "y"), fed=[tensor("mean", [6])]),
    "a product": layers(node("MatMul", "x m", "a"), norm("a", "y"), shape=(2, 6, 6)),
    "gemm with a factor": layers(node("Gemm", "x m b", "a", beta=2.0), norm("a", "y"), shape=(10, 6)),
    "a variance below zero": layers(conv("x w b", "a"), norm("a", "y"), variance=-near_one(6)),
    "past fp16": layers(conv("x w b", "a"), norm("a", "y"), scale=np.full(6, 1e6)),
    "shift past fp16": layers(conv("x w b", "a"), norm("a", "y"), shift=np.full(6, 1e6)),
}


@pytest.mark.parametrize("name", LEFT)
def test_normalisation_stays_when(name: str) -> None:
    left_alone(PASS, LEFT[name])
