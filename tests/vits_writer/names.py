"""Other names for the same graph."""

from __future__ import annotations

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
