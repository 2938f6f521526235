"""Other names for the same graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import onnx


def renamed(model: onnx.ModelProto, names: Mapping[str, str]) -> onnx.ModelProto:
    """A copy of `model` whose values have the new names in `names`."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    for node in graph.node:
        for values in (node.input, node.output):
            values[:] = [names.get(name, name) for name in values]
    for named in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        named.name = names.get(named.name, named.name)
    return copy


def numbers(model: onnx.ModelProto) -> dict[str, str]:
    """A number for the name of every value in `model`."""
    values = [value.name for value in (*model.graph.input, *model.graph.initializer)]
    values += [name for node in model.graph.node for name in node.output if name]
    return {name: str(number) for number, name in enumerate(values)}


def numbered(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of `model` whose every value is called by its number, and whose nodes have no name."""
    copy = renamed(model, numbers(model))
    for node in copy.graph.node:
        node.name = ""
    return copy


_TORCH_NAMES = {
    "Conv": "conv1d",
    "ConvTranspose": "convolution",
    "Gather": "select",
    "Reshape": "view",
    "LeakyRelu": "leaky_relu",
    "LayerNormalization": "layer_norm",
    "RandomNormalLike": "randn_like",
    "Cast": "type_as",
    "Less": "lt",
    "Where": "masked_fill",
    "ReduceSum": "sum_1",
    "Clip": "clamp_min",
    "Split": "split",
    "Expand": "zeros_like",
    "Squeeze": "sym_size_int",
    **{
        op: op.lower()
        for op in (
            *("Add", "Sub", "Mul", "Div", "Exp", "Neg", "Ceil", "Pow", "Tanh", "Sigmoid", "Relu", "Softmax"),
            *("MatMul", "Transpose", "Unsqueeze", "Slice", "Pad", "CumSum"),
        )
    },
}
"""What torch's newer exporter calls the outputs of these operators; those of others are `val_N`."""


def dynamo_names(model: onnx.ModelProto) -> dict[str, str]:
    """Names as torch's newer exporter gives them: `conv1d_3`, `mul_12`, `val_7`; not of weights."""
    kept = {value.name for value in (*model.graph.input, *model.graph.output)}
    count: Counter[str] = Counter()
    names: dict[str, str] = {}

    def give(name: str, torch_name: str) -> None:
        number = count[torch_name]
        count[torch_name] += 1
        names[name] = torch_name if number == 0 and torch_name != "val" else f"{torch_name}_{number}"

    for weight in model.graph.initializer:
        if weight.name.startswith("/"):
            give(weight.name, "val")
    for node in model.graph.node:
        for number, name in enumerate(node.output):
            torch_name = _TORCH_NAMES.get(node.op_type, "val")
            if node.op_type == "Split":
                torch_name = f"split_split_{number}"
            if name and name not in kept:
                give(name, torch_name)
    return names


def name_nodes(model: onnx.ModelProto) -> None:
    """Names the nodes as torch's newer exporter does: `node_conv1d_3` after their output, or `node_Concat_7`."""
    for number, node in enumerate(model.graph.node):
        output = node.output[0]
        node.name = f"node_{node.op_type}_{number}" if output.startswith("val_") else f"node_{output}"
