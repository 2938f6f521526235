"""What onnxruntime (1.23) lacks for new opsets, put in other operators in the graph that is run, and in that alone.

The file's graph and what passes make of it stay as they are; only a session sees this.

- It draws up to opset 21: `Could not find an implementation for RandomNormalLike(22)`. What draws is a tensor from a
  table of drawn numbers, in every graph made of the file: passes lower the opset on the way, and onnxruntime's own draw
  of the same seed would be another.
- Its Attention takes a mask of one row for every query, [1, 1, 1, T], for a wrong one ("inconsistent
  q_sequence_length"), where ONNX lets it broadcast: it is expanded.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from surgery.matching import ONNX_DOMAINS
from surgery.splice import Draft, constant, splice, whole_numbers

DRAWS_UP_TO = 21
"""Highest opset of which onnxruntime 1.23 has the operators that draw (measured)."""

_DRAWN = frozenset({"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"})

_TABLE = 65521
"""Numbers in a table: a prime, so that rows of usual lengths differ."""

_NAME = "session_form"
_MASK = 3
"""Input position, of an Attention."""


def session_form(model: ir.Model, original_opset: int) -> ir.Model:
    """`model`, made of a file of `original_opset`, as onnxruntime runs it; itself where it runs as it is."""
    wanted = frozenset({"Attention"}) | (_DRAWN if original_opset > DRAWS_UP_TO else frozenset())
    if not any(_is_one(node, wanted) for node in model.graph.all_nodes()):
        return model
    copy = model.clone()
    for node in [node for node in copy.graph.all_nodes() if _is_one(node, wanted)]:
        if node.op_type == "Attention":
            _expand_mask(node)
        else:
            _take_from_table(node)
    return copy


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
