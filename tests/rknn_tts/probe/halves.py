"""What an NPU in fp16 would make of a graph, without one: every tensor that a node makes is rounded to a half float."""

from __future__ import annotations

import onnx
import onnx_ir as ir
from onnx import TensorProto, helper


def in_halves(model: ir.Model) -> onnx.ModelProto:
    """`model` with a Cast to fp16 and back behind each node that makes float32."""
    proto = onnx.shape_inference.infer_shapes(ir.to_proto(model), data_prop=True)
    graph = proto.graph
    floats = {
        value.name
        for value in (*graph.value_info, *graph.output)
        if value.type.tensor_type.elem_type == TensorProto.FLOAT
    }
    outputs = {value.name for value in graph.output}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        made = onnx.NodeProto()
        made.CopyFrom(node)
        nodes.append(made)
        for place, name in enumerate(node.output):
            if name not in floats:
                continue
            made.output[place] = f"{name}/whole"
            nodes.append(helper.make_node("Cast", [f"{name}/whole"], [f"{name}/half"], to=TensorProto.FLOAT16))
            nodes.append(helper.make_node("Cast", [f"{name}/half"], [name], to=TensorProto.FLOAT))
    assert outputs <= floats
    del graph.node[:], graph.value_info[:]
    graph.node.extend(nodes)
    return proto
