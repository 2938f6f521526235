"""Bring a model's header to what the toolkit reads, and drop what does not belong into an engine.

Before: any IR version, the exporter's name, doc strings (torch writes stack traces with paths into them), metadata.
After: IR version at most 10, producer "rknn-tts", no doc strings, no metadata, only the opset domains and weights in
use: a rewrite leaves behind what it put something else in the place of, a bound of -3.4e38 for one. Outputs state the
sizes that the passes before have fixed, where the exporter had left them open.
A graph without a name has one. The converter environment's onnx 1.16 reads IR versions up to 10 (onnx release table).

Exact: none of this is computed with. Refused by the structural gate, not here: opsets above 19.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir
from onnx_ir.passes import common

from contracts.onnx_versions import HIGHEST_IR_VERSION
from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.inferred import inferred, static_shape
from surgery.scopes import drop_unused_weights, name_nodes

PRODUCER = "rknn-tts"

GRAPH_NAME = "graph"
"""Of a graph without a name: the toolkit exports none ("failed to run pass: BuildInitializers"; measured, 2.3.2)."""

DECLARATION = Declaration(
    name="normalise_header",
    summary="IR version at most 10, no doc strings, metadata, unused opset domains or weights",
    exactness=Exact("nothing of this is computed with"),
    after=frozenset(
        {
            "decompose_functions",
            "decompose_quantised",
            "decompose_quantised_operators",
            "fold_dequantised_weights",
            "fold_with_onnxslim",
            "mask_decoder",
            "normalise_static_inputs",
            "trim_decoder",
        }
    ),
)


def normalise_header() -> Pass:
    """The pass; its one hit is the header."""

    def rewrite(model: ir.Model) -> Rewritten:
        model = model.clone()
        common.ClearMetadataAndDocStringPass()(model)  # of nodes and graphs; values keep theirs
        for value in _values(model):
            value.doc_string = None
            value.metadata_props.clear()
            weight = value.const_value
            if weight is not None and (weight.doc_string or weight.metadata_props):
                value.const_value = ir.tensor(weight.numpy(), dtype=weight.dtype, name=weight.name)
        common.RemoveUnusedOpsetsPass()(model)
        for graph in model.graphs():
            drop_unused_weights(graph, list(graph.initializers.values()))
        name_nodes(model.graph)
        common.NameFixPass()(model)  # of values
        model.ir_version = min(model.ir_version, HIGHEST_IR_VERSION)
        model.producer_name, model.producer_version = PRODUCER, None
        model.doc_string = model.domain = None
        model.graph.name = model.graph.name or GRAPH_NAME
        _state_outputs(model)
        model.metadata_props.clear()
        return Rewritten(model, hits=1)

    return Pass(DECLARATION, rewrite)


def _state_outputs(model: ir.Model) -> None:
    """Give each output that has open sizes those that inference finds, where it finds all."""
    unstated = [value for value in model.graph.outputs if static_shape(value) is None]
    known = inferred(model) if unstated else {}
    for value in unstated:
        found = static_shape(known.get(str(value.name)))
        if found is not None:
            value.shape = ir.Shape(found)


def _values(model: ir.Model) -> Iterator[ir.Value]:
    """Every value of `model`, nested graphs and functions included."""
    for graph in model.graphs():
        yield from (*graph.inputs, *graph.initializers.values())
        for node in graph:
            yield from node.outputs
    for function in model.functions.values():
        yield from function.inputs
        for node in function.all_nodes():
            yield from node.outputs
