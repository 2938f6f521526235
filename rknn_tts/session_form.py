"""What onnxruntime (1.23) lacks for new opsets, put in other operators in the graph that is run, and in that alone.

The file's graph and what passes make of it stay as they are; only a session sees this.

- It draws up to opset 21: `Could not find an implementation for RandomNormalLike(22)`. What draws is a tensor from a
  table of drawn numbers, in every graph made of the file: passes lower the opset on the way, and onnxruntime's own draw
  of the same seed would be another.
- Its Attention takes a mask of one row for every query, [1, 1, 1, T], for a wrong one ("inconsistent
  q_sequence_length"), where ONNX lets it broadcast: it is expanded.
- It reads up to opset 23 ("Current official support for domain ai.onnx is till opset 23"). Where opset 23 has every
  operator of the graph with the inputs and attributes that it has, the copy states that: up to opset 27 such an
  operator got further types at most (compared, onnx 1.23). Swish, new in opset 24, is x * sigmoid(alpha * x).
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnx import defs

from surgery.matching import ONNX_DOMAINS, opset_of
from surgery.splice import Draft, constant, splice, whole_numbers

DRAWS_UP_TO = 21
"""Highest opset of which onnxruntime 1.23 has the operators that draw (measured)."""

READS_UP_TO = 23
"""Highest opset that onnxruntime 1.23 reads."""

_DRAWN = frozenset({"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"})

_TABLE = 65521
"""Numbers in a table: a prime, so that rows of usual lengths differ."""

_NAME = "session_form"
_MASK = 3
"""Input position, of an Attention."""


def session_form(model: ir.Model, original_opset: int) -> ir.Model:
    """`model`, made of a file of `original_opset`, as onnxruntime runs it; itself where it runs as it is."""
    wanted = frozenset({"Attention"}) | (_DRAWN if original_opset > DRAWS_UP_TO else frozenset())
    lowered = opset_of(model) > READS_UP_TO and _is_read(model)
    wanted |= {"Swish"} if lowered else frozenset()
    if not lowered and not any(_is_one(node, wanted) for node in model.graph.all_nodes()):
        return model
    copy = model.clone()
    for node in [node for node in copy.graph.all_nodes() if _is_one(node, wanted)]:
        if node.op_type == "Attention":
            _expand_mask(node)
        elif node.op_type == "Swish":
            _write_out_swish(node)
        else:
            _take_from_table(node)
    if lowered:
        for imports in (copy.opset_imports, *(function.opset_imports for function in copy.functions.values())):
            imports.update({domain: READS_UP_TO for domain in ONNX_DOMAINS if imports.get(domain, 0) > READS_UP_TO})
    return copy


def _is_read(model: ir.Model) -> bool:
    """Whether the highest opset that onnxruntime reads has every node of `model` as it stands, or as it is replaced."""
    inner = (node for function in model.functions.values() for node in function.all_nodes())
    return all(_stands(node) or _is_one(node, frozenset({"Swish"})) for node in model.graph.all_nodes()) and all(
        map(_stands, inner)
    )


def _stands(node: ir.Node) -> bool:
    if node.domain not in ONNX_DOMAINS:
        return True
    if not defs.has(node.op_type, READS_UP_TO, ""):
        return False
    schema = defs.get_schema(node.op_type, READS_UP_TO, "")
    return len(node.inputs) <= schema.max_input and set(node.attributes) <= set(schema.attributes)


def _is_one(node: ir.Node, wanted: frozenset[str]) -> bool:
    if node.domain not in ONNX_DOMAINS or node.op_type not in wanted:
        return False
    return node.op_type != "Attention" or (len(node.inputs) > _MASK and node.inputs[_MASK] is not None)


def _expand_mask(node: ir.Node) -> None:
    draft = Draft()
    queries = draft.add("Shape", node.inputs[0], start=-2, end=-1)
    sizes = draft.add("Concat", queries, whole_numbers([1]), axis=0)
    inputs = list(node.inputs)
    inputs[_MASK] = draft.add("Expand", inputs[_MASK], sizes)
    draft.add("Attention", *inputs, outputs=len(node.outputs), copied=node.attributes)
    made = list(zip(draft.nodes[-1].outputs, node.outputs, strict=True))
    left_out = [new for new, old in made if not old.name]
    splice(node, draft.nodes, [new for new, old in made if old.name], _NAME)
    for value in left_out:  # given a name, it would be asked for
        value.name = ""


def _write_out_swish(node: ir.Node) -> None:
    draft, x = Draft(), node.inputs[0]
    assert x is not None
    alpha = node.attributes.get_float("alpha", 1.0)
    scale = draft.add("CastLike", constant(np.array(alpha, np.float32)), x)
    product = draft.add("Mul", x, draft.add("Sigmoid", draft.add("Mul", x, scale)))
    splice(node, draft.nodes, [product], _NAME)


def _take_from_table(node: ir.Node) -> None:
    draft, like = Draft(), node.inputs[0] if node.inputs else None
    sizes = whole_numbers(node.attributes["shape"].as_ints()) if like is None else draft.add("Shape", like)
    count = draft.add("ReduceProd", sizes, keepdims=0)
    steps = draft.add("Range", _whole(0), count, _whole(1))
    places = draft.add("Mod", steps, _whole(_TABLE))
    drawn = draft.add("Reshape", draft.add("Gather", constant(_drawn(node)), places), sizes)
    stated = node.attributes.get("dtype")
    if stated is not None:
        drawn = draft.add("Cast", drawn, to=stated.as_int())
    elif like is not None:
        drawn = draft.add("CastLike", drawn, like)
    splice(node, draft.nodes, [drawn], _NAME)


def _whole(number: int) -> ir.Value:
    return constant(np.array(number, np.int64), ir.DataType.INT64)


def _drawn(node: ir.Node) -> NDArray[np.float32]:
    def number(name: str, default: float) -> float:
        return node.attributes[name].as_float() if name in node.attributes else default

    rng = np.random.default_rng(np.float32(number("seed", 0)).view(np.uint32).item())
    if "Normal" in node.op_type:
        return rng.normal(number("mean", 0), number("scale", 1), _TABLE).astype(np.float32)
    return rng.uniform(number("low", 0), number("high", 1), _TABLE).astype(np.float32)
