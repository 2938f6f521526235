"""What `decompose_layer_norm_statistics` refuses."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx import TensorProto, helper

from surgery.decompose_layer_norm_statistics import decompose_layer_norm_statistics
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.one_operator import operator
from tests.surgery.refusals import Refusal


def _of_unknown_rank() -> ir.Model:
    """The input of the node is reshaped to a shape that is an input."""
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["r"], "reshape"),
        helper.make_node("LayerNormalization", ["r", "g"], ["y", "mean"], "op"),
    ]
    inputs = [tensor("x", [1, 12]), tensor("shape", ["n"], TensorProto.INT64)]
    return model(nodes, inputs, [tensor("mean", [1, 1])], [constant("g", np.ones(12))])


REFUSALS = (
    Refusal(
        decompose_layer_norm_statistics(),
        "an input of known rank where Mean or InvStdDev is read",
        "node 'op'",
        "none",
        _of_unknown_rank,
    ),
    Refusal(
        decompose_layer_norm_statistics(),
        "an input of float32 where Mean or InvStdDev is read",
        "node 'op'",
        "FLOAT16",
        lambda: operator(
            "LayerNormalization",
            "x g",
            "y mean",
            dtype=TensorProto.FLOAT16,
            constants={"g": np.ones(12, np.float16)},
            made={"y": (3, TensorProto.FLOAT16), "mean": (3, TensorProto.FLOAT)},
        ),
    ),
)
