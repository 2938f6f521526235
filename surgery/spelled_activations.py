"""Activations that are spelled out, of which the compiler makes one layer: Gelu and HardSwish.

    x (erf(x / sqrt 2) + 1) / 2                    exGelu
    x (tanh(a (x + b x^3)) + 1) / 2                exGelu
    x min(max(x + 3, 0), 6) / 6                    HardSwish

The factor (1/2, 1/6) stands behind, beside x or beside the gate; a Conv before takes the layer in (ConvExGelu,
ConvHardSwish). Where a pass folds one of these constants away, or writes a step as another, the compiler no longer
knows the rest: three to seven layers instead of one, and of Gelu the Erf on the CPU. [1, 96, 400] between two
convolutions, rk3588: 0.10 ms modelled, 0.55 without the 1/2 and 0.15 without the 1/6 (measured, 2.3.2).

Which spellings it knows goes by the order of operands, and of nodes too: of x (1/2) (erf(x / sqrt 2) + 1) it makes one
layer where the node of x / 2 stands before that of the gate in the file, and seven where it stands behind. That is not
asked for here, nor are the numbers: what has such a shape and other constants is not known to occur, and loses a cut at
most.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from surgery.graph import input_at
from surgery.matching import Matched, is_one_of
from surgery.weights import tensor_of

_ADD, _POW = Matched("Add"), Matched("Pow")
_SCALES = (Matched("Mul"), Matched("Div"))
_ERF, _TANH, _CLIP = Matched("Erf"), Matched("Tanh"), Matched("Clip")
_GATES = (_ERF, _TANH, _CLIP)

SPELLED = (_ADD, _POW, *_SCALES, *_GATES)
"""What they are made of."""

_FARTHEST = 5
"""Steps from a node to the gate of the same activation: from x^2 by x, b, +, a to the tanh."""


def is_spelled(node: ir.Node) -> bool:
    """Whether `node` is a part of such an activation."""
    return any(node in _activation_of(gate) for gate in _gates_near(node))


def _gates_near(node: ir.Node) -> Iterator[ir.Node]:
    seen, edge = {node}, [node]
    if is_one_of(node, _GATES):
        yield node
    for _ in range(_FARTHEST):
        beside = [one for at in edge for one in _beside(at)]
        edge = [one for one in dict.fromkeys(beside) if one not in seen]
        seen.update(edge)
        yield from (one for one in edge if is_one_of(one, _GATES))


def _beside(node: ir.Node) -> Iterator[ir.Node]:
    """What reads `node`, and what it reads, as far as an activation may be made of it."""
    made = [value.producer() for value in node.inputs if value is not None]
    read = [reader for value in node.outputs for reader, _ in value.uses()]
    return (one for one in (*made, *read) if one is not None and is_one_of(one, SPELLED))


def _activation_of(gate: ir.Node) -> frozenset[ir.Node]:
    """All of the activation that has `gate`; nothing where it has none."""
    found = _before(gate)
    if found is None:
        return frozenset()
    given, nodes = found
    at: ir.Node | None = gate
    if not is_one_of(gate, (_CLIP,)):
        at = _reader(gate)
        if at is None or not _is_by_number(at, (_ADD,)):
            return frozenset()
    assert at is not None
    nodes += [gate, at]
    product, scaled = _reader(at), False
    if product is not None and _is_by_number(product, _SCALES):
        nodes.append(product)
        product, scaled = _reader(product), True
    other = None if product is None else _other(product, nodes[-1])
    if product is None or other is None:
        return frozenset()
    nodes.append(product)
    beside = other.producer()
    if other is not given:
        if beside is None or not _is_by_number(beside, _SCALES) or _data(beside) is not given:
            return frozenset()
        nodes.append(beside)
        scaled = True
    last = _reader(product)
    if not scaled and last is not None and _is_by_number(last, _SCALES):
        nodes.append(last)
    return frozenset(nodes)


def _before(gate: ir.Node) -> tuple[ir.Value, list[ir.Node]] | None:
    """What is activated, and the nodes between it and what `gate` reads."""
    step = _producer(gate)
    if step is None:
        return None
    if is_one_of(gate, (_CLIP,)):
        given = _data(step) if _is_by_number(step, (_ADD,)) else None
        return None if given is None else (given, [step])
    given = _data(step) if _is_by_number(step, _SCALES) else None
    if given is None or is_one_of(gate, (_ERF,)):
        return None if given is None else (given, [step])
    return _with_cube(given, step)


def _with_cube(value: ir.Value, step: ir.Node) -> tuple[ir.Value, list[ir.Node]] | None:
    """x of `value` = x + b x^3, and the nodes between, `step` too."""
    total = value.producer()
    if total is None or not is_one_of(total, (_ADD,)) or len(total.inputs) != 2:
        return None
    for given, cubed in (total.inputs, total.inputs[::-1]):
        scaled = None if cubed is None else cubed.producer()
        if given is None or scaled is None or not _is_by_number(scaled, _SCALES):
            continue
        nodes = [step, total, scaled]
        cube = _producer(scaled)
        if cube is not None and is_one_of(cube, (_POW,)) and cube.inputs[0] is given:
            return given, [*nodes, cube]
        other = None if cube is None or not is_one_of(cube, _SCALES[:1]) else _beside_value(cube, given)
        square = None if other is None else other.producer()
        if cube is not None and square is not None and given in square.inputs and is_one_of(square, (*_SCALES, _POW)):
            return given, [*nodes, cube, square]
    return None


def _reader(node: ir.Node) -> ir.Node | None:
    """The one node that reads `node`, of the same graph."""
    made = node.outputs[0]
    if made.is_graph_output() or len(made.uses()) != 1:
        return None
    ((reader, _),) = made.uses()
    return reader if reader.graph is node.graph else None


def _producer(node: ir.Node) -> ir.Node | None:
    """What makes the data that `node` reads, its first input or what is no constant."""
    data = _data(node)
    return None if data is None else data.producer()


def _data(node: ir.Node) -> ir.Value | None:
    first, second = input_at(node, 0), input_at(node, 1)
    return second if tensor_of(first) is not None and second is not None else first


def _is_by_number(node: ir.Node, operators: tuple[Matched, ...]) -> bool:
    """Whether `node` is one of `operators` on one constant number and a value."""
    if not is_one_of(node, operators) or len(node.inputs) != 2:
        return False
    numbers = [tensor.size == 1 for value in node.inputs if (tensor := tensor_of(value)) is not None]
    return numbers == [True]


def _other(node: ir.Node, made: ir.Node) -> ir.Value | None:
    """What `node`, a product, multiplies what `made` makes with."""
    return _beside_value(node, made.outputs[0]) if is_one_of(node, _SCALES[:1]) else None


def _beside_value(node: ir.Node, value: ir.Value) -> ir.Value | None:
    others = [one for one in node.inputs if one is not value]
    return others[0] if len(others) == 1 and len(node.inputs) == 2 else None
