"""What `normalise_defaults` refuses."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx import TensorProto, helper

from surgery.normalise_defaults import normalise_defaults
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.one_operator import operator
from tests.surgery.refusals import Refusal


def _pad(reshaped: bool = False, fed: str = "") -> ir.Model:
    """A Pad with axes of x, or of x reshaped by an input; `fed` names the pads or axes that are an input."""
    nodes = [helper.make_node("Reshape", ["x", "s"], ["r"], "reshape")] if reshaped else []
    nodes.append(helper.make_node("Pad", ["r" if reshaped else "x", "p", "", "a"], ["y"], "op"))
    whole = TensorProto.INT64
    inputs = [tensor("x", [4, 4])]
    inputs += [tensor("s", ["n"], whole)] if reshaped else []
    inputs += [tensor(fed, [2 if fed == "p" else 1], whole)] if fed else []
    weights = [constant("p", [1, 1], np.int64), constant("a", [-1], np.int64)]
    return model(nodes, inputs, [tensor("y", ["a0", "a1"])], [one for one in weights if one.name != fed], opset=18)


def _training() -> ir.Model:
    weights = {name: np.ones(4, np.float32) for name in "abcd"}
    made = {"y": (3, TensorProto.FLOAT)}
    return operator("BatchNormalization", "x a b c d", "y mean variance", constants=weights, made=made, training_mode=1)


def _uneven_split() -> ir.Model:
    return operator("Split", "x", "y z", shape=(1, 4, "n"), axis=-1, num_outputs=2, opset=18)


_PADS = "constant pads and axes"

REFUSALS = (
    Refusal(normalise_defaults(), "a known input shape", "node 'op'", "unknown ones", _uneven_split),
    Refusal(normalise_defaults(), "a known input shape", "node 'op'", "unknown ones", lambda: _pad(reshaped=True)),
    Refusal(normalise_defaults(), _PADS, "node 'op'", "'p' is computed", lambda: _pad(fed="p")),
    Refusal(normalise_defaults(), _PADS, "node 'op'", "'a' is computed", lambda: _pad(fed="a")),
    Refusal(normalise_defaults(), "batch normalisation in inference mode", "node 'op'", "export the model", _training),
)
