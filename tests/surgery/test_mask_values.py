"""What masks are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto

from surgery.mask_values import FAR, HUGE, MASK, array_of, is_mask, is_plain, is_zero_or_one
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.interfaces import node


def value(nodes: Sequence[onnx.NodeProto], name: str = "m") -> ir.Value:
    """The value `name` of a graph of `nodes`."""
    weights = [constant(key, number) for key, number in (("zero", 0), ("one", 1), ("two", 2), ("far", -1e9))]
    weights += [constant("signs", [-1, 0, 1]), constant("axes", [0], np.int64)]
    inputs = [tensor("x", [3]), tensor("given", [3]), tensor("c", [3], TensorProto.BOOL)]
    made = model([*nodes, node("Identity", name, "y")], inputs, [tensor("y", [3])], weights)
    last = made.graph[-1].inputs[0]
    assert last is not None
    return last


def test_mask_is_far_from_scores_and_stays_within_fp16_when_six_are_added() -> None:
    assert np.exp(np.float32(-FAR)) == 0
    assert float(np.finfo(np.float16).max) > 6 * MASK
    assert float(np.finfo(np.float16).max) == 2 * HUGE


def test_array_of_is_the_numbers_when_a_value_is_constant() -> None:
    got = array_of(value([], "signs"))
    assert got is not None
    assert got.dtype == np.float64
    assert got.tolist() == [-1, 0, 1]
    assert array_of(value([], "x")) is None
    assert array_of(None) is None
    text = ir.Value(name="t", const_value=ir.StringTensor([b"a"], shape=ir.Shape([1])))
    assert array_of(text) is None


@pytest.mark.parametrize(("domain", "wanted"), [("", True), ("ai.onnx", True), ("com.microsoft", False)])
def test_is_plain_asks_for_onnxs_own_domain(domain: str, wanted: bool) -> None:
    assert is_plain(ir.node("Softmax", [], domain=domain), {"Softmax"}) is wanted
    assert not is_plain(ir.node("Exp", [], domain=domain), {"Softmax"})


ZERO_OR_ONE = {
    "signs": ([], "signs", True),
    "two": ([], "two", False),
    "far": ([], "far", False),
    "boolean input": ([], "c", True),
    "comparison": ([node("Less", "x zero", "m")], "m", True),
    "comparison as a number": ([node("Less", "x zero", "l"), node("Cast", "l", "m", to=TensorProto.FLOAT)], "m", True),
    "one minus an input": ([node("Sub", "one given", "m")], "m", True),
    "an input minus one": ([node("Sub", "given one", "m")], "m", True),
    "two minus an input": ([node("Sub", "two given", "m")], "m", False),
    "product": ([node("Less", "x zero", "l"), node("Cast", "l", "f", to=1), node("Mul", "f signs", "m")], "m", True),
    "product with two": ([node("Cast", "c", "f", to=1), node("Mul", "f two", "m")], "m", False),
    "chosen": ([node("Where", "c zero one", "m")], "m", True),
    "chosen from scores": ([node("Where", "c zero x", "m")], "m", False),
    "sum": ([node("Cast", "c", "f", to=1), node("Add", "f f", "m")], "m", False),
    "turned": ([node("Cast", "c", "f", to=1), node("Unsqueeze", "f axes", "m")], "m", True),
}


@pytest.mark.parametrize("name", ZERO_OR_ONE)
def test_is_zero_or_one_when_it_can_hold_nothing_else(name: str) -> None:
    nodes, read, wanted = ZERO_OR_ONE[name]
    assert is_zero_or_one(value(nodes, read), trusting=False) is wanted


def test_is_zero_or_one_takes_an_input_at_its_word_when_trusting() -> None:
    assert is_zero_or_one(value([], "x"))
    assert not is_zero_or_one(value([], "x"), trusting=False)
    assert not is_zero_or_one(value([node("Tanh", "x", "m")]))
    assert not is_zero_or_one(None)


MASKS = {
    "constant": ([], "far", True),
    "input": ([], "x", False),
    "chosen": ([node("Where", "c zero far", "m")], "m", True),
    "chosen from scores": ([node("Where", "c x far", "m")], "m", False),
    "two": ([node("Where", "c zero far", "a"), node("Where", "c far zero", "b"), node("Add", "a b", "m")], "m", True),
    "with scores": ([node("Where", "c zero far", "a"), node("Add", "a x", "m")], "m", False),
    "inverted": ([node("Sub", "one given", "i"), node("Mul", "i far", "m")], "m", True),
    "scaled by scores": ([node("Tanh", "x", "t"), node("Mul", "t far", "m")], "m", False),
    "shaped": ([node("Where", "c zero far", "a"), node("Unsqueeze", "a axes", "m")], "m", True),
}


@pytest.mark.parametrize("name", MASKS)
def test_is_mask_when_it_is_made_of_constants_and_choices(name: str) -> None:
    nodes, read, wanted = MASKS[name]
    assert is_mask(value(nodes, read)) is wanted
