"""Fold permutations of the channels into the weights around them.

Before: y = x[:, p], p constant (a flow flips its channels by a Slice of step -1 or a Gather), between convolutions
After:  y = x, and in the order q that each value has now (before[:, i] = after[:, q[i]]):
        Conv            w'[q_out[m], q_in[c]] = w[m, c], b'[q_out[m]] = b[m]   ConvTranspose: the same, w [C, M, ...]
        elementwise     a constant's c'[q[i]] = c[i]; all operands have one order, and one channel goes with any
        Split           the halves change places where q takes one to the other; with other sizes it stays as it is
        Concat, Slice   the operands change places; the block begins elsewhere

Two flips cancel where they meet. Inputs and outputs of the graph keep their order, and so does what any other operator
reads or makes; a set of permutations is folded only where all of them go, without a new one anywhere else
(`surgery.channel_orders` finds the orders). Left alone: computed indices and weights, sizes of the channels that are
not known, a permutation that a nested graph reads, grouped convolutions unless each group stays within itself or is
one channel.

Why: the compiler has such a flip done by the CPU (measured, 2.3.2: four layers of the Piper decoder, 0.2 ms each; none
of them is left on any target).

Bounded: the same products in the same sums, but the terms of some stand in another order, and a decoder amplifies how
they are rounded (`LEAST_DB`). Equal in every bit where no sum is rounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.targets import EVERY_TARGET
from surgery.channel_orders import Order, inverse, start_of
from surgery.channel_reading import (
    CONCAT,
    CONV,
    CONV_TRANSPOSE,
    READ,
    SLICE,
    SPLIT,
    Reading,
    block_of,
    channel_axis,
    channels_of,
    is_depthwise,
    may_permute,
    read_channels,
)
from surgery.declaration import Bounded, Declaration, Pass, Rewritten
from surgery.elementwise import ELEMENTWISE
from surgery.graph import input_at, input_of
from surgery.graph_constants import add_constant
from surgery.inferred import infer_types, state_again, stated_types
from surgery.matching import is_one_of, opset_of
from surgery.scopes import drop_unused_weights, remove
from surgery.splice import splice
from surgery.weights import tensor_of

BROADCAST_OPSET = 7
"""Since then operands are aligned at their last axes (ONNX operator specification)."""

LEAST_DB = 100.0
"""Output SNR in fp32. Measured on the Piper decoder (window 109, eight latents): 109 to 118 dB, and as much between two
latents that are one unit in the last place apart: 110 to 116 dB. A wrong order of the channels leaves below 20 dB."""

DECLARATION = Declaration(
    name="fold_channel_flips",
    summary="constant permutations of the channels, into the weights around them",
    exactness=Bounded(LEAST_DB, "the same sums with terms in another order, rounded in fp32 and amplified behind them"),
    after=frozenset({"fold_constants", "normalise_static_inputs"}),
    matches=READ,
    pays_on=EVERY_TARGET,
)


@dataclass(frozen=True)
class _Plan:
    """The permutations that go, and the new order of every value that has one."""

    flips: list[ir.Node]
    orders: dict[ir.Value, Order]


def fold_channel_flips() -> Pass:
    """The pass; its hits are the permutations that are gone."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    if opset_of(model) < BROADCAST_OPSET or not any(may_permute(node) for node in model.graph):
        return Rewritten(model, 0)
    changed = model.clone()
    stated = stated_types(changed)
    infer_types(changed)
    plan = _plan(read_channels(changed.graph))
    if plan is None:
        return Rewritten(model, 0)
    writing = _Writing(changed.graph, plan.orders)
    writing.write()
    state_again(stated)  # what takes the place of an output takes over the type that the graph states
    writing.take_out(plan.flips)
    return Rewritten(changed, len(plan.flips))


def _plan(reading: Reading) -> _Plan | None:
    """What to fold of what was read; None for nothing."""
    flips: list[ir.Node] = []
    orders: dict[ir.Value, Order] = {}
    for tied in reading.orders():
        relations = set(tied.relations)
        members = [node for node, relation in reading.flips if relation in relations]
        found = tied.solve() if _leave_an_output_each(members) else None
        if found is not None:
            flips += members
            orders.update(found)
    return _Plan(flips, orders) if flips else None


def _leave_an_output_each(flips: Sequence[ir.Node]) -> bool:
    """Whether no value would have to be two graph outputs, or an input and an output, when these nodes are gone."""
    source: dict[ir.Value, ir.Value] = {}
    for node in flips:  # in the order of the graph
        given = input_of(node)
        source[node.outputs[0]] = source.get(given, given)
    roots = set(source.values())
    taken = Counter(root for root in roots if root.is_graph_output() or root.producer() is None)
    taken.update(root for made, root in source.items() if made.is_graph_output())
    return not any(made.is_graph_output() and taken[root] > 1 for made, root in source.items())


@dataclass
class _Writing:
    """Writes the new orders into `graph`; a constant that is wanted in one order twice is made once."""

    graph: ir.Graph
    orders: Mapping[ir.Value, Order]
    made: dict[tuple[Any, ...], ir.Value] = field(default_factory=dict)
    replaced: list[ir.Value] = field(default_factory=list)
    splits: list[tuple[ir.Node, list[int]]] = field(default_factory=list)

    def write(self) -> None:
        """Let every node read and make the values that it touches in their new orders, as long as all are there."""
        for node in self.graph:
            if is_one_of(node, (CONV, CONV_TRANSPOSE)):
                self._write_conv(node)
            elif is_one_of(node, (SPLIT,)):
                self._note_split(node)
            elif is_one_of(node, (CONCAT,)):
                self._write_concat(node)
            elif is_one_of(node, (SLICE,)):
                self._write_block(node)
            elif is_one_of(node, ELEMENTWISE):
                self._write_elementwise(node)

    def take_out(self, flips: Iterable[ir.Node]) -> None:
        """Let the parts of every Split change places, and remove `flips` and the constants that nothing reads."""
        for node, places in self.splits:
            _exchange_parts(node, places)
        for node in flips:
            self.replaced += [value for value in node.inputs[1:] if value is not None]
            _remove_flip(node)
        self._drop_replaced()

    def _drop_replaced(self) -> None:
        """Remove the constants that nothing reads any more, weights and Constant nodes."""
        replaced = dict.fromkeys(self.replaced)
        for value in replaced:
            maker = value.producer()
            if maker is not None and maker.op_type == "Constant" and not (value.uses() or value.is_graph_output()):
                remove(maker)
        drop_unused_weights(self.graph, [value for value in replaced if value.is_initializer()])

    def _order(self, value: ir.Value | None) -> Order | None:
        """The new order of `value`; None where it has its old one."""
        order = None if value is None else self.orders.get(value)
        return None if order is None or order == tuple(range(len(order))) else order

    def _exchange(
        self, node: ir.Node, place: int, key: tuple[Any, ...], turn: Callable[[NDArray[Any]], NDArray[Any]]
    ) -> None:
        """Let `node` read the constant at `place` as `turn` leaves it; `key` says what `turn` does."""
        old = input_of(node, place)
        tensor = tensor_of(old)
        assert tensor is not None
        wanted = (old, *key)
        if wanted not in self.made:
            before = tensor.numpy()
            after = np.ascontiguousarray(turn(before)).reshape(before.shape)
            same = after.tobytes() == before.tobytes()
            name = f"{DECLARATION.name}/{old.name}"
            self.made[wanted] = old if same else add_constant(self.graph, name, after, tensor.dtype)
        node.replace_input_with(place, self.made[wanted])
        self.replaced.append(old)

    def _write_conv(self, node: ir.Node) -> None:
        given, made = self._order(input_of(node)), self._order(node.outputs[0])
        rows, columns = (given, made) if node.op_type == "ConvTranspose" else (made, given)
        group = node.attributes.get_int("group", 1)
        if is_depthwise(node):
            columns = None
        if rows is not None or columns is not None:
            self._exchange(node, 1, (rows, columns, group), lambda weight: _turned(weight, rows, columns, group))
        if made is not None and input_at(node, 2) is not None:
            self._exchange(node, 2, (made,), lambda bias: bias[list(inverse(made))])

    def _write_elementwise(self, node: ir.Node) -> None:
        made = node.outputs[0]
        order = self._order(made)
        if order is None or made.shape is None:
            return
        back, rank = list(inverse(order)), len(made.shape)
        for place, value in enumerate(node.inputs):
            tensor = tensor_of(value)
            axis = None if tensor is None else channel_axis(tensor.shape.numpy(), rank)
            if axis is not None:
                self._exchange(node, place, (order, axis), lambda held, axis=axis: held.take(back, axis))  # type: ignore[misc]

    def _note_split(self, node: ir.Node) -> None:
        order = self._order(input_of(node))
        if order is not None:
            starts = _starts(node.outputs)
            places = [starts.index(start) for start in _starts_in(order, node.outputs)]
            if places != list(range(len(places))):
                self.splits.append((node, places))

    def _write_concat(self, node: ir.Node) -> None:
        order = self._order(node.outputs[0])
        if order is None:
            return
        inputs = [value for value in node.inputs if value is not None]
        starts = _starts_in(order, inputs)
        for place, index in enumerate(sorted(range(len(inputs)), key=starts.__getitem__)):
            node.replace_input_with(place, inputs[index])

    def _write_block(self, node: ir.Node) -> None:
        order, block = self._order(input_at(node, 0)), block_of(node)
        start = None if order is None or block is None else start_of(order, block.start, len(block))
        if block is None or start is None or start == block.start:
            return
        for place, bound in ((1, start), (2, start + len(block))):
            self._exchange(node, place, (bound,), lambda held, bound=bound: np.full_like(held, bound))  # type: ignore[misc]


def _exchange_parts(node: ir.Node, places: Sequence[int]) -> None:
    """Put a Split in the place of `node` whose output `places[n]` stands for output n."""
    split = ir.node("Split", list(node.inputs), node.attributes, num_outputs=len(places))
    parts = [split.outputs[place] for place in places]
    for part, old in zip(parts, node.outputs, strict=True):
        part.shape, part.type = old.shape, old.type
    splice(node, [split], parts, DECLARATION.name)


def _remove_flip(flip: ir.Node) -> None:
    """Let what `flip` reads stand for what it makes, under that name where this is an output of the graph."""
    given, made = input_of(flip), flip.outputs[0]
    is_output, name, graph = made.is_graph_output(), made.name, flip.graph
    made.replace_all_uses_with(given, replace_graph_outputs=True)
    assert isinstance(graph, ir.Graph)
    graph.remove(flip, safe=True)
    if is_output:
        given.name, given.shape, given.type = name, made.shape, made.type


def _turned(weight: NDArray[Any], rows: Order | None, columns: Order | None, group: int) -> NDArray[Any]:
    """`weight` [rows, columns / group, ...] in those orders."""
    if rows is not None:
        weight = weight[list(inverse(rows))]
    if columns is None:
        return weight
    each = weight.shape[1]
    back = np.asarray(inverse(columns)).reshape(group, each) % each
    groups = weight.reshape(group, -1, *weight.shape[1:])
    return np.stack([part.take(order, axis=1) for part, order in zip(groups, back, strict=True)])


def _starts(parts: Iterable[ir.Value]) -> list[int]:
    """The first channel of each of `parts`, one behind the other."""
    sizes = [channels_of(part) or 0 for part in parts]
    return [sum(sizes[:place]) for place in range(len(sizes))]


def _starts_in(order: Order, parts: Sequence[ir.Value]) -> list[int]:
    """The first channel that each of `parts` has in `order`; each is a block there."""
    return [
        min(order[start : start + (channels_of(part) or 0)]) for start, part in zip(_starts(parts), parts, strict=True)
    ]
