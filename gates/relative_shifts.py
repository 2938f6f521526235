"""Structural gate: chains of Pad, Reshape and Slice that shift each row by one more than the row before.

Relative attention is exported with them. They are right in the toolkit's simulator and garbage on the board: 56 dB and
0.4 dB (reference, Piper duration encoder). Nothing but the graph tells, so no such chain may reach the toolkit.

A chain only moves numbers and adds others, so the gate runs it on the numbers of its own elements and looks where they
come out, whatever its operators are and in whatever order: it is a shift where each row of the result takes, somewhere
in the same column, from the next row of what was padded, one column further on or back. Rows cut into blocks, phases
that are interleaved and padding around a convolution do not: there a row stays a row, or is cut into several.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_ir import convenience

from contracts.verdicts import Verdict, at_most
from gates.graphs import node_label
from gates.sentences import listed

GATE = "structure.relative_shifts"

_REMEDY = (
    "right in the simulator and garbage on the board: leave the pass rewrite_relative_attention in, or, where it does "
    "not know the chain, shift by a Gather with constant indices"
)

_PADDING = frozenset({"Pad", "Concat"})
_CUTTING = frozenset({"Slice", "Split"})
_FOLDING = frozenset({"Reshape", "Flatten"})
_MOVING = _PADDING | _CUTTING | _FOLDING | {"Identity", "Unsqueeze", "Squeeze", "Transpose"}
"""Operators that move the numbers of one input, or add others."""

LARGEST_FOLLOWED = 2**27
"""Elements of a chain's input that it is run on (1 GiB of numbers); the largest tensor of a voice here has 2^22."""

Array = NDArray[np.int64]


@dataclass(frozen=True)
class _Chain:
    """Nodes that move one tensor, `source`, in order; the first pads it."""

    source: ir.Value
    nodes: tuple[ir.Node, ...]

    @property
    def may_shift(self) -> bool:
        """Whether it pads, folds rows into one another, and cuts."""
        kinds = {node.op_type for node in self.nodes}
        return bool(kinds & _PADDING and kinds & _FOLDING and kinds & _CUTTING)


def relative_shifts(shaped: ir.Model) -> Verdict:
    """Verdict that no chain of `shaped`, a graph with its shapes inferred, shifts its rows.

    A chain whose sizes are not known, which `structure.static_shapes` names, is passed over.
    """
    found: list[ir.Node] = []
    checked = 0
    for graph in shaped.graphs():
        chains: dict[ir.Value, _Chain] = {}
        for node in graph:
            chain = _chain_to(node, chains)
            if chain is None:
                continue
            checked += chain.may_shift
            if chain.may_shift and _shifts(chain):
                found.append(node)  # what is behind it is no news
            else:
                chains.update(dict.fromkeys(node.outputs, chain))
    texts = [f"op {node.op_type}, {node_label(node)}" for node in found]
    detail = f"{listed(texts)} (the end of a chain that shifts rows: {_REMEDY})" if found else _told(checked)
    return at_most(GATE, len(found), 0, "chains", detail)


def _told(checked: int) -> str:
    return f"{checked} places behind Pad, Reshape and Slice, none of which shifts rows"


def _chain_to(node: ir.Node, chains: dict[ir.Value, _Chain]) -> _Chain | None:
    """The chain that ends with `node`; None where it moves nothing that was padded."""
    moved = _moved(node)
    if moved is None:
        return None
    before = chains.get(moved)
    if before is not None:
        return _Chain(before.source, (*before.nodes, node))
    return _Chain(moved, (node,)) if node.op_type in _PADDING else None


def _moved(node: ir.Node) -> ir.Value | None:
    """The input that `node` moves, where all others are constant; None where it does something else."""
    if node.domain not in ("", "ai.onnx") or node.op_type not in _MOVING:
        return None
    varying = [value for value in node.inputs if value is not None and _constant(value) is None]
    if len(varying) != 1 or (node.op_type != "Concat" and varying[0] is not node.inputs[0]):
        return None
    return varying[0]


def _constant(value: ir.Value) -> NDArray[Any] | None:
    """The constant that `value` is, a weight or made by a Constant node."""
    tensor = convenience.get_const_tensor(value)
    return None if tensor is None else tensor.numpy()


def _shifts(chain: _Chain) -> bool:
    """Whether a result of the chain is shifted, or cannot be told."""
    shape = chain.source.shape
    if shape is None or not shape.is_static() or len(shape) < 2:
        return False
    sizes = shape.numpy()
    results = None if math.prod(sizes) > LARGEST_FOLLOWED else _followed(chain, sizes)
    return results is None or any(_is_shifted(numbers, sizes[-1]) for numbers in results)


def _is_shifted(numbers: Array, columns: int) -> bool:
    """Whether each row of `numbers` takes from the next row, one column on or back, than the row before it.

    Args:
        numbers: which element stands at each place, counted from 1; 0 or less for one that was added.
        columns: how many the rows had.
    """
    if numbers.ndim < 2 or min(numbers.shape[-2:]) < 2 or not numbers.size:
        return False
    row, column = (numbers - 1) // columns, (numbers - 1) % columns
    real = numbers > 0
    pairs = real[..., 1:, :] & real[..., :-1, :]
    next_row = np.diff(row, axis=-2) == 1
    beside = np.abs(np.diff(column, axis=-2)) == 1
    return bool((pairs & next_row & beside).any(axis=-1).all())


def _followed(chain: _Chain, sizes: Sequence[int]) -> list[Array] | None:
    """What the chain makes of the numbers of its elements, counted from 1; None where it cannot be run."""
    constants: dict[str, onnx.TensorProto] = {}
    protos = []
    for node in chain.nodes:
        proto = ir.to_proto(node)
        proto.domain = ""
        protos.append(proto)
        for place, value in enumerate(node.inputs):
            array = None if value is None else _constant(value)
            if value is None or array is None or value.name is None:
                continue
            added = node.op_type == "Concat" or (node.op_type == "Pad" and place == _PAD_VALUE)
            whole = np.zeros(array.shape, np.int64) if added else array.astype(np.int64)
            constants[value.name] = numpy_helper.from_array(whole, value.name)
    names = [value.name for value in chain.nodes[-1].outputs if value.name]
    source = str(chain.source.name)
    graph = helper.make_graph(
        protos,
        "chain",
        [helper.make_value_info(source, onnx.TypeProto())],
        [helper.make_value_info(name, onnx.TypeProto()) for name in names],
        list(constants.values()),
    )
    holder = chain.nodes[0].graph
    assert holder is not None
    opset = max(holder.opset_imports.get(domain, 0) for domain in ("", "ai.onnx"))
    numbers = np.arange(1, math.prod(sizes) + 1).reshape(sizes)
    try:
        evaluator = ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]))
        return [np.asarray(made) for made in evaluator.run(None, {source: numbers})]
    except Exception:  # noqa: BLE001 - whatever a graph that is no valid ONNX makes the evaluator raise
        return None


_PAD_VALUE = 2
"""Position of the input constant_value of a Pad (ONNX operator specification)."""
