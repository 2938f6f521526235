"""Softmaxes whose NaN says which rows a mask leaves nothing of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir
from onnx import TensorProto

from surgery.rewrite_mask_constants import UNSEEN_NAN, rewrite_mask_constants
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.interfaces import node
from tests.surgery.refusals import Refusal

_SOFTMAX = [node("Where", "keep x far", "masked"), node("Softmax", "masked", "p", axis=-1)]
_BY_HAND = [
    node("Where", "keep x far", "masked"),
    node("ReduceMax", "masked", "top", axes=[-1], keepdims=1),
    node("Sub", "masked top", "d"),
    node("Exp", "d", "e"),
    node("ReduceSum", "e last", "sum", keepdims=1),
    node("Div", "e sum", "p"),
]
_TWICE = [
    node("Where", "keep zero far", "m"),
    node("Add", "x m", "once"),
    node("Add", "once m", "masked"),
    node("Softmax", "masked", "p", axis=-1),
]
_SELF = [node("Equal", "p p", "same"), node("Not", "same", "nan")]
_CAST = [node("Cast", "p", "wide", to=TensorProto.DOUBLE), node("IsNaN", "wide", "nan")]
_PRODUCT = [node("MatMul", "p v", "mixed"), node("IsNaN", "mixed", "nan")]
_IS_NAN = [node("IsNaN", "p", "nan")]


def _graph(nodes: Sequence[onnx.NodeProto], far: float) -> ir.Model:
    weights = [
        constant("keep", [[True, True, False], [False, False, False]], np.bool_),
        constant("far", far),
        constant("zero", 0.0),
        constant("v", np.eye(3)),
        constant("last", [-1], np.int64),
    ]
    nodes = [*nodes, node("Where", "nan zero p", "y")]
    return model(nodes, [tensor("x", [2, 3])], [tensor("y", [2, 3])], weights)


def _refusal(place: str, asked: str, *nodes: onnx.NodeProto, far: float = -np.inf) -> Refusal:
    got = f"reads which rows are NaN under the mask '{asked}'"
    return Refusal(rewrite_mask_constants(), UNSEEN_NAN, f"node 'n_{place}'", got, lambda: _graph(nodes, far))


REFUSALS: tuple[Refusal, ...] = (
    _refusal("nan", "far", *_SOFTMAX, *_IS_NAN),
    _refusal("same", "far", *_SOFTMAX, *_SELF),
    _refusal("nan", "far", *_SOFTMAX, *_CAST),
    _refusal("nan", "far", *_SOFTMAX, *_PRODUCT),
    _refusal("nan", "far", *_BY_HAND, *_IS_NAN),
    _refusal("nan", "far", *_TWICE, *_IS_NAN, far=float(np.finfo(np.float32).min)),
)
