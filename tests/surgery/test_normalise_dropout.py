from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto

from surgery.normalise_dropout import normalise_dropout
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.interfaces import applied, left_alone, node, noise, operators, same

SHAPE = [1, 4, 9]
X, Y = tensor("x", SHAPE), tensor("y", SHAPE)
RATIO, ZERO = constant("ratio", 0.3), constant("ratio", 0.0)
YES, NO = constant("training", True, np.bool_), constant("training", False, np.bool_)


def dropout(inputs: str, made: str, *after: onnx.NodeProto, constants: Any = (), **options: Any) -> ir.Model:
    """tanh(x) through a Dropout, and `after` to y."""
    attributes = {"ratio": 0.3} if options.get("opset", 17) < 12 and "attribute" in options.pop("with_", "") else {}
    nodes = [node("Tanh", "x", "t"), node("Dropout", inputs, made, **attributes), *after]
    return model(nodes, [X], [Y], constants, **options)


READS_MASK = (node("Cast", "m", "f", to=TensorProto.FLOAT), node("Add", "d f", "y"))
READS_DATA = (node("Neg", "d", "y"),)

GOES = {
    "mask is read": (dropout("t", "d m", *READS_MASK), ["Tanh", "Add"]),
    "mask is read, with a ratio": (dropout("t ratio", "d m", *READS_MASK, constants=[RATIO]), ["Tanh", "Add"]),
    "mask is read, no training": (
        dropout("t ratio training", "d m", *READS_MASK, constants=[RATIO, NO]),
        ["Tanh", "Add"],
    ),
    "training at ratio 0": (dropout("t ratio training", "d", *READS_DATA, constants=[ZERO, YES]), ["Tanh", "Neg"]),
    "training at ratio 0, an output": (dropout("t ratio training", "y", constants=[ZERO, YES]), ["Tanh", "Identity"]),
    "training at ratio 0, mask is read": (
        dropout("t ratio training", "d m", *READS_MASK, constants=[ZERO, YES]),
        ["Tanh", "Add"],
    ),
}


@pytest.mark.parametrize("name", GOES)
def test_normalise_dropout_takes_a_dropout_out_when_the_toolkit_breaks_on_it(name: str) -> None:
    original, wanted = GOES[name]
    done = applied(normalise_dropout(), original)
    assert (done.hits, operators(done.model)) == (1, wanted)
    same(original, done.model, {"x": noise(*SHAPE)})


def test_normalise_dropout_gives_the_mask_as_output_when_it_is_one() -> None:
    nodes = [node("Dropout", "x", "d m"), node("Neg", "d", "y")]
    original = model(nodes, [X], [Y, tensor("m", SHAPE, TensorProto.BOOL)])
    done = applied(normalise_dropout(), original)
    assert done.hits == 1
    same(original, done.model, {"x": noise(*SHAPE)})


STAYS = {
    "bare": dropout("t", "d", *READS_DATA),
    "attribute": dropout("t", "d", *READS_DATA, opset=11, with_="attribute"),
    "opset 7": dropout("t", "d", *READS_DATA, opset=7, with_="attribute"),
    "ratio": dropout("t ratio", "d", *READS_DATA, constants=[RATIO]),
    "no training": dropout("t ratio training", "d", *READS_DATA, constants=[RATIO, NO]),
    "empty slots": dropout("t - -", "d", *READS_DATA),
    "mask that nobody reads": dropout("t", "d m", *READS_DATA),
    "output": dropout("t", "y"),
}


@pytest.mark.parametrize("name", STAYS)
def test_normalise_dropout_leaves_a_dropout_alone_when_the_toolkit_takes_it(name: str) -> None:
    left_alone(normalise_dropout(), STAYS[name])
