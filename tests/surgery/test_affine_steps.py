"""Rows of affine steps: what they compute, and where they begin and end."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import NodeProto

from surgery.affine_steps import affine_ending_at, is_convolved, would_be_zeroed
from surgery.inferred import infer_types
from tests.onnx_runs import run
from tests.surgery.affine_graphs import SIZES, C, affine_graph, node

ROWS: dict[str, tuple[list[NodeProto], str]] = {
    "scale": ([node("Mul", "h s", "b")], "s"),
    "scale first": ([node("Mul", "s h", "b")], "S"),
    "quotient": ([node("Div", "h k", "b")], "s"),
    "shift": ([node("Add", "h column", "b")], "a"),
    "shift first": ([node("Add", "t h", "b")], "A"),
    "difference": ([node("Sub", "h t", "b")], "a"),
    "turned": ([node("Sub", "t h", "b")], "r"),
    "negative": ([node("Neg", "h", "b")], "s"),
    "nought": ([node("Mul", "h zero", "b")], "s"),
    "row": ([node("Add", "h t", "p"), node("Div", "p s", "q"), node("Sub", "k1 q", "r"), node("Mul", "u r", "b")],
            "asrS"),
}  # fmt: skip

NO_ROWS: dict[str, list[NodeProto]] = {
    "constant divided": [node("Div", "s h", "b")],
    "quotient by zero": [node("Div", "h zero", "b")],
    "two values": [node("Mul", "h h", "b")],
    "along the steps": [node("Mul", "h steps", "b")],
    "other": [node("Sqrt", "h", "b")],
}


STEPS = np.linspace(1.0, 2.0, SIZES[-1])


def typed(*nodes: NodeProto, **options: Any) -> dict[str, ir.Node]:
    """The nodes of the graph by name, their types known."""
    model = affine_graph(*nodes, steps=STEPS, **options)
    infer_types(model)
    return {str(one.name): one for one in model.graph}


def last(*nodes: NodeProto, **options: Any) -> ir.Node:
    """The node that makes b, which is the one output."""
    return typed(*nodes, outputs=("b",), **options)["to_b"]


@pytest.mark.parametrize("name", ROWS)
def test_row_is_a_scale_and_a_shift_for_each_channel(name: str) -> None:
    nodes, kinds = ROWS[name]
    found = affine_ending_at(last(*nodes))
    assert found is not None
    assert (found.kinds, found.value.name, found.output.name) == (kinds, "h", "b")
    assert [one.name for one in found.nodes] == [one.name for one in nodes]
    made = run(affine_graph(*nodes, outputs=("b",)), {"x": np.random.default_rng(0).standard_normal(SIZES, np.float32)})
    expected = made["h"] * found.scale.reshape(1, C, 1) + found.shift.reshape(1, C, 1)
    np.testing.assert_allclose(made["b"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NO_ROWS)
def test_nothing_ends_where_there_is_no_row(name: str) -> None:
    assert affine_ending_at(last(*NO_ROWS[name])) is None


def test_row_ends_where_no_further_step_follows() -> None:
    nodes = typed(node("Mul", "h s", "b"), node("Add", "b t", "y"))
    assert affine_ending_at(nodes["to_b"]) is None
    found = affine_ending_at(nodes["to_y"])
    assert found is not None
    assert found.kinds == "sa"


def test_row_begins_behind_a_value_that_others_read() -> None:
    found = affine_ending_at(last(node("Mul", "h s", "p"), node("Tanh", "p", "y"), node("Add", "p t", "b")))
    assert found is not None
    assert (found.kinds, found.value.name) == ("a", "p")


def test_row_is_the_layers_own_where_nothing_else_reads_that() -> None:
    assert affine_ending_at(last(node("Mul", "h s", "b"), read_once=True)) is None


@pytest.mark.parametrize(
    ("scale", "shift", "fits"),
    [(1.0, 0.0, True), (0.0, 1e-9, True), (6.2e-5, 65504.0, True), (6e-5, 0.0, False), (7e4, 0.0, False),
     (-2.0, -7e4, False)],
)  # fmt: skip
def test_row_fits_fp16_by_its_scale_in_full_precision_and_its_shift(scale: float, shift: float, fits: bool) -> None:
    found = affine_ending_at(last(node("Mul", "h f", "p"), node("Add", "p g", "b"), f=scale, g=shift))
    assert found is not None
    assert found.fits_half is fits


def test_value_is_convolved_when_only_convolutions_read_it_as_data() -> None:
    one = last(node("Mul", "h s", "b"), node("Conv", "b w", "y")).outputs[0]
    assert not is_convolved(one), "an output of the graph"
    nodes = typed(node("Mul", "h s", "b"), node("Conv", "b w", "c"), node("ConvTranspose", "b w", "y"))
    assert is_convolved(nodes["to_b"].outputs[0])
    assert not is_convolved(nodes["before"].outputs[0])


@pytest.mark.parametrize(
    ("reader", "scale", "shift", "zeroed"),
    [
        (node("Abs", "b", "y"), -1.0, -1.0, True),
        (node("LeakyRelu", "b", "y", alpha=-0.5), -1.0, -1.0, True),
        (node("LeakyRelu", "b", "y", alpha=0.5), -1.0, -1.0, False),
        (node("Relu", "b", "y"), -1.0, -1.0, False),
        (node("Abs", "b", "y"), 1.0, -1.0, False),
        (node("Abs", "b", "y"), -1.0, 1.0, False),
    ],
)
def test_row_would_be_zeroed_before_an_absolute_value_when_a_channel_has_neither_above_zero(
    reader: NodeProto, scale: float, shift: float, zeroed: bool
) -> None:
    each = np.ones((1, C, 1))
    scales, shifts = each.copy(), each.copy()
    scales[0, 2], shifts[0, 2] = scale, shift
    row = (node("Mul", "h f", "p"), node("Add", "p g", "b"))
    found = affine_ending_at(typed(*row, reader, f=scales, g=shifts)["to_b"])
    assert found is not None
    assert would_be_zeroed(found) is zeroed
