"""Structural gate: chains of Pad, Reshape and Slice that shift each row by one more than the row before.

Relative attention is exported with them. They are right in the toolkit's simulator and garbage on the board: 56 dB and
0.4 dB (reference, Piper duration encoder). Nothing but the graph tells, so no such chain may reach the toolkit.

A chain only moves numbers and adds others, so the gate runs it on the numbers of its own elements and looks where they
come out, whatever its operators are and in whatever order: it is a shift where each row of the result takes, somewhere
in the same column, from the next row of what was padded, one column further on or back. Rows and columns are the last
two axes, or two neighbours ahead of axes that stay (heads behind them). Rows cut into blocks, phases that are
interleaved and padding around a convolution do not: there a row stays a row, or is cut into several.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
_AXES = frozenset({"Unsqueeze", "Squeeze"})
_MOVING = _PADDING | _CUTTING | _FOLDING | _AXES | {"Identity", "Transpose"}
"""Operators that move the numbers of one input, or add others."""

_KEEPING = frozenset({"Add", "Cast", "Div", "Dropout", "Mul", "Neg", "Sub"})
"""Operators that leave each number where it is, beside one number for all of them."""

LARGEST_FOLLOWED = 2**27
"""Elements of a chain's input that it is run on (1 GiB of numbers); the largest tensor of a voice here has 2^22."""

Array = NDArray[np.int64]


@dataclass(frozen=True)
class _Chain:
    """Nodes that move one tensor, `source`, in order."""

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
        chains: dict[ir.Value, tuple[_Chain, ...]] = {}
        for node in graph:
            ending = _chains_to(node, chains)
            may = [chain for chain in ending if chain.may_shift]
            checked += bool(may)
            if any(_shifts(chain) for chain in may):
                found.append(node)  # what is behind it is no news
            elif ending:
                chains.update(dict.fromkeys(node.outputs, ending))
    texts = [f"op {node.op_type}, {node_label(node)}" for node in found]
    detail = f"{listed(texts)} (the end of a chain that shifts rows: {_REMEDY})" if found else _told(checked)
    return at_most(GATE, len(found), 0, "chains", detail)


def _told(checked: int) -> str:
    return f"{checked} places behind Pad, Reshape and Slice, none of which shifts rows"


def _chains_to(node: ir.Node, chains: Mapping[ir.Value, tuple[_Chain, ...]]) -> tuple[_Chain, ...]:
    """The chains that end with `node`: from the first that pads on, and from where rows were put in one before that."""
    moved = _moved(node)
    if moved is None:
        return ()
    before = chains.get(moved, ())
    ending = tuple(_Chain(chain.source, (*chain.nodes, node)) for chain in before)
    padded = any(other.op_type in _PADDING for chain in before for other in chain.nodes)
    begins = node.op_type in _PADDING and not padded
    begins |= node.op_type in _FOLDING | _AXES and not before
    return (*ending, _Chain(moved, (node,))) if begins else ending


def _moved(node: ir.Node) -> ir.Value | None:
    """The input that `node` moves, or leaves as it is; None where it does something else.

    Lists that are computed make a chain that cannot be followed; others are constant.
    """
    if node.domain not in ("", "ai.onnx") or node.op_type not in _MOVING | _KEEPING:
        return None
    varying = [value for value in node.inputs if value is not None and _constant(value) is None]
    if node.op_type == "Concat" or node.op_type in _KEEPING:
        alone = len(varying) == 1 and (node.op_type == "Concat" or _beside_one_number(node))
        return varying[0] if alone else None
    return node.inputs[0] if node.inputs and node.inputs[0] in varying else None


def _beside_one_number(node: ir.Node) -> bool:
    """Whether what `node` computes with is one number."""
    arrays = [_constant(value) for value in node.inputs if value is not None]
    return all(array.size == 1 and array.ndim <= 1 for array in arrays if array is not None)


def _constant(value: ir.Value) -> NDArray[Any] | None:
    """The constant that `value` is, a weight or made by a Constant node."""
    tensor = convenience.get_const_tensor(value)
    return None if tensor is None else tensor.numpy()


def _shifts(chain: _Chain) -> bool:
    """Whether a result of the chain is shifted, or cannot be told, as where its lists are computed."""
    shape = chain.source.shape
    if shape is None or not shape.is_static() or len(shape) < 2:
        return False
    sizes = shape.numpy()
    results = None if math.prod(sizes) > LARGEST_FOLLOWED else _followed(chain, sizes)
    return results is None or any(_is_shifted(numbers, sizes) for numbers in results)


def _is_shifted(numbers: Array, sizes: Sequence[int]) -> bool:
    """Whether rows of `numbers` are shifted, along the last two axes or two ahead of them.

    Args:
        numbers: which element stands at each place, counted from 1; 0 or less for one that was added.
        sizes: of what was moved.
    """
    if not numbers.size:
        return False
    most = min(numbers.ndim, len(sizes))
    return any(_is_shifted_along(numbers, sizes, back) for back in range(2, most + 1))


def _is_shifted_along(numbers: Array, sizes: Sequence[int], back: int) -> bool:
    """Whether each row takes from the next row, one column on or back, than the row before it, where that can be told.

    Args:
        numbers, sizes: see `_is_shifted`.
        back: rows are the axis that stands so far from the end, columns the one behind it.
    """
    axis = numbers.ndim - back
    if min(numbers.shape[axis : axis + 2]) < (2 if back == 2 else _FEWEST_AHEAD):
        return False
    stride = math.prod(sizes[len(sizes) - back + 2 :])
    columns, rows = sizes[len(sizes) - back + 1], sizes[len(sizes) - back]
    column = (numbers - 1) // stride % columns
    row = (numbers - 1) // (stride * columns) % rows
    real = numbers > 0
    pairs = np.delete(real, 0, axis) & np.delete(real, -1, axis)
    diagonal = pairs & (np.diff(row, axis=axis) == 1) & (np.abs(np.diff(column, axis=axis)) == 1)
    told, shifted = pairs.any(axis=axis + 1), diagonal.any(axis=axis + 1)
    return bool(told.any() and (shifted | ~told).all())


_FEWEST_AHEAD = 3
"""Rows and columns of axes ahead of the last two: of two rows one step tells too little."""


def _followed(chain: _Chain, sizes: Sequence[int]) -> list[Array] | None:
    """What the chain makes of the numbers of its elements, counted from 1; None where it cannot be run.

    Surgery follows chains likewise, and by code of its own: a gate does not ask the pass that it judges.
    """
    constants: dict[str, onnx.TensorProto] = {}
    protos = []
    for node in chain.nodes:
        if node.op_type in _KEEPING:
            protos.append(helper.make_node("Identity", [_name_of_moved(node)], [str(node.outputs[0].name)]))
            continue
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


def _name_of_moved(node: ir.Node) -> str:
    moved = _moved(node)
    return "" if moved is None else str(moved.name)


_PAD_VALUE = 2
"""Position of the input constant_value of a Pad (ONNX operator specification)."""
