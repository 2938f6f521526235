"""Structural gate: a graph of the form that the toolkit takes: versions, static shapes, names.

Measured with rknn-toolkit2 2.3.2: opset 20 is refused by name; IR version 11 builds and then does not load in the
toolkit's own onnxruntime; a rank-0 input ends in `'numpy.float32' object is not iterable`; two nodes of one name build
and then fail in the simulator; inputs and outputs with names past 127 characters end in a KeyError; shapes that are not
static are refused or guessed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import onnx_ir as ir

from contracts.onnx_versions import HIGHEST_IR_VERSION, HIGHEST_OPSET, LONGEST_NAME
from contracts.verdicts import Verdict, at_most
from gates.graphs import NO_SHAPES, node_label, shape_fault
from gates.sentences import listed

GATE = "structure.static_shapes"

BYTES_PER_VALUE = 2
"""The NPU computes in fp16."""

MOST_ELEMENTS = 2**32 // BYTES_PER_VALUE
"""Of one tensor: an engine is mapped into 32-bit addresses, and larger mappings are refused (reference, The IOVA
ceiling)."""


def static_shapes(model: ir.Model, shaped: ir.Model | None) -> Verdict:
    """Verdict that `model` has static shapes throughout, a known version, no rank-0 input and unique names.

    Args:
        model: the graph.
        shaped: `gates.graphs.with_shapes(model)`; None where that refuses.
    """
    broken = [*_name_offences(model), *_order_offences(model)]
    offences = [*_version_offences(model), *_length_offences(model), *broken]
    if not broken:
        offences += [NO_SHAPES] if shaped is None else [*_input_offences(shaped), *_value_offences(shaped)]
    opset = model.opset_imports.get("")
    detail = listed(offences) if offences else f"opset {opset}, IR {model.ir_version}, every tensor of a fixed shape"
    return at_most(GATE, len(offences), 0, "offences", detail)


def _version_offences(model: ir.Model) -> Iterator[str]:
    opset = model.opset_imports.get("")
    if opset is None:
        yield "the graph imports no version of the default operator set"
    elif opset > HIGHEST_OPSET:
        yield f"opset {opset} is past {HIGHEST_OPSET}, the highest that the toolkit takes: export with a lower one"
    if model.ir_version > HIGHEST_IR_VERSION:
        yield f"IR version {model.ir_version} is past {HIGHEST_IR_VERSION}, the highest that the toolkit loads"


def _input_offences(model: ir.Model) -> Iterator[str]:
    for value in model.graph.inputs:
        offence = _shape_offence(value)
        if offence:
            yield f"input '{value.name}' {offence}: give it fixed sizes"
        elif value.shape is not None and value.shape.rank() == 0:
            yield f"input '{value.name}' has rank 0, which the toolkit cannot feed: make its shape [1]"


def _value_offences(model: ir.Model) -> Iterator[str]:
    outputs = set(model.graph.outputs)
    nodes = list(model.graph.all_nodes())
    shapeless = any(value.shape is None and value.name for node in nodes for value in node.outputs)
    culprit, why = (shape_fault(model) if shapeless else None) or (None, "")
    for node in nodes:
        for value in node.outputs:
            offence = _shape_offence(value)
            if offence and value.name:
                kind = "output" if value in outputs else "tensor"
                reason = f" ({why})" if node.name == culprit and value.shape is None else ""
                yield f"{kind} '{value.name}' of {node.op_type}, {node_label(node)}, {offence}{reason}"


def _shape_offence(value: ir.Value) -> str | None:
    if value.shape is None:
        return "has no known shape"
    sizes = [size if isinstance(size, int) else str(size.value or "?") for size in value.shape]
    if not all(isinstance(size, int) for size in sizes):
        return f"has the shape [{', '.join(map(str, sizes))}], which is not fixed"
    if 0 in sizes:
        return f"has the shape {sizes}, which holds no values"
    elements = math.prod(size for size in sizes if isinstance(size, int))
    if elements > MOST_ELEMENTS:
        return f"has the shape {sizes}, {elements * BYTES_PER_VALUE / 1e9:.1f} GB, and the NPU can address 4.3 GB"
    return None


def _name_offences(model: ir.Model) -> Iterator[str]:
    values = {*model.graph.inputs, *model.graph.initializers.values()}
    tensors = Counter(value.name for value in values)
    nodes: Counter[str] = Counter()
    for node in model.graph.all_nodes():
        tensors.update(value.name for value in node.outputs if value.name)
        nodes.update([node.name] if node.name else [])
    for what, counts in (("tensor", tensors), ("node", nodes)):
        for name, count in counts.items():
            if count > 1:
                yield f"the {what} name '{name}' is used {count} times"


def _length_offences(model: ir.Model) -> Iterator[str]:
    for kind, values in (("input", model.graph.inputs), ("output", model.graph.outputs)):
        for value in values:
            if value.name and len(value.name) > LONGEST_NAME:
                shown = f"{value.name[:40]}..."
                yield (
                    f"the {kind} '{shown}' has a name of {len(value.name)} characters, and the toolkit takes "
                    f"{LONGEST_NAME}: rename it"
                )


def _order_offences(model: ir.Model) -> Iterator[str]:
    made = {*model.graph.inputs, *model.graph.initializers.values()}
    for node in model.graph:
        for value in node.inputs:
            if value is not None and value not in made:
                yield f"{node.op_type}, {node_label(node)}, uses '{value.name}', which nothing before it makes"
        made.update(node.outputs)
    for value in model.graph.outputs:
        if value not in made:
            yield f"output '{value.name}' is made by no node"
