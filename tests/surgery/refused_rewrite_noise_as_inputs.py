"""Graphs that draw what cannot become an input."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
from onnx import TensorProto, helper

from surgery.interface import LARGEST_TENSOR
from surgery.rewrite_noise_as_inputs import (
    FLOATS,
    KNOWN_SIZES,
    MAIN_GRAPH,
    PLAIN_DRAW,
    REASONABLE,
    rewrite_noise_as_inputs,
)
from tests.gates.small_graphs import model, tensor
from tests.surgery.interfaces import node
from tests.surgery.refusals import Refusal


def _draws(op: str, given: tuple[int | str, ...] = (1, 4), **attributes: Any) -> ir.Model:
    source = "" if op in ("RandomNormal", "RandomUniform") else "x"
    kind = attributes.get("dtype", TensorProto.FLOAT)
    nodes = [node(op, source, "n", **attributes), node("Tanh", "x", "y")]
    return model(nodes, [tensor("x", given)], [tensor("y", given), tensor("n", ["a", "b"], kind)])


def _inside() -> ir.Model:
    """A draw in both branches of an If; one only would be refused as well."""
    branches = {
        name: helper.make_graph([node("RandomNormalLike", "x", name)], name, [], [tensor(name, [1, 4])])
        for name in ("then_branch", "else_branch")
    }
    inputs = [tensor("x", [1, 4]), tensor("cond", [], TensorProto.BOOL)]
    return model([node("If", "cond", "y", **branches)], inputs, [tensor("y", [1, 4])])


def _like_what_the_data_sizes() -> ir.Model:
    nodes = [node("Neg", "x", "m"), node("NonZero", "m", "z"), node("Cast", "z", "f", to=TensorProto.FLOAT)]
    nodes.append(node("RandomNormalLike", "f", "n"))
    return model(nodes, [tensor("x", [1, 4])], [tensor("n", ["a", "b"])])


def _refusal(precondition: str, got: str, op: str, given: tuple[int | str, ...] = (1, 4), **attributes: Any) -> Refusal:
    return Refusal(rewrite_noise_as_inputs(), precondition, "node 'n_n'", got, lambda: _draws(op, given, **attributes))


REFUSALS: tuple[Refusal, ...] = (
    _refusal(PLAIN_DRAW, "Bernoulli draws by", "Bernoulli"),
    _refusal(PLAIN_DRAW, "Multinomial draws by", "Multinomial", dtype=TensorProto.INT32),
    Refusal(rewrite_noise_as_inputs(), MAIN_GRAPH, "node 'n_then_branch'", "inside it", _inside),
    _refusal(FLOATS, "draws INT64", "RandomNormalLike", dtype=TensorProto.INT64),
    _refusal(FLOATS, "draws INT32", "RandomUniform", dtype=TensorProto.INT32, shape=[1, 4]),
    _refusal(KNOWN_SIZES, "not known", "RandomNormalLike", ("n", 4)),
    _refusal(KNOWN_SIZES, "not known", "RandomUniformLike", (1, "t")),
    Refusal(
        rewrite_noise_as_inputs(),
        KNOWN_SIZES,
        "node 'n_n'",
        "follow from those of NonZero, node 'n_z', which no input fixes",
        _like_what_the_data_sizes,
    ),
    _refusal(REASONABLE, "draws [1000000, 1000000]", "RandomNormal", shape=[10**6, 10**6]),
    _refusal(REASONABLE, f"draws [{LARGEST_TENSOR + 1}]", "RandomUniform", shape=[LARGEST_TENSOR + 1]),
    _refusal(REASONABLE, "draws [0, 4]", "RandomNormal", shape=[0, 4]),
)
