"""What the operators of a graph ask of the order of their values' channels (axis 1), for `surgery.channel_orders`.

Read are: permutations of the channels, elementwise operators, convolutions with constant weights, which take any order
in and give any out, Split, Concat and Slice along the channels. What any other operator reads or makes is pinned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from surgery.channel_orders import Order, Orders, Parts, Relation, Turned, identity
from surgery.elementwise import ELEMENTWISE
from surgery.graph import input_at, input_of, node_dependencies
from surgery.matching import Matched, is_one_of
from surgery.scopes import graphs_of
from surgery.weights import tensor_of, weight_of

SLICE = Matched("Slice")
GATHER = Matched("Gather", used=frozenset({"axis"}))
SPLIT = Matched(
    "Split",
    used=frozenset({"axis"}),
    irrelevant=dict.fromkeys(("split", "num_outputs"), "the sizes are those of the outputs"),
)
CONCAT = Matched("Concat", used=frozenset({"axis"}))
CONV, CONV_TRANSPOSE = (
    Matched(
        op,
        used=frozenset({"group"}),
        irrelevant=dict.fromkeys(names, "of the axes behind the channels"),
    )
    for op, names in (
        ("Conv", ("auto_pad", "dilations", "kernel_shape", "pads", "strides")),
        (
            "ConvTranspose",
            ("auto_pad", "dilations", "kernel_shape", "output_padding", "output_shape", "pads", "strides"),
        ),
    )
)
SHAPE = Matched("Shape", irrelevant=dict.fromkeys(("start", "end"), "the sizes stay, whatever the order"))
FILLED = Matched("ConstantOfShape", irrelevant={"value": "one number, in any order the same"})

READ = (SLICE, GATHER, SPLIT, CONCAT, CONV, CONV_TRANSPOSE, SHAPE, FILLED, *ELEMENTWISE)


@dataclass
class Reading:
    """What the nodes read so far ask.

    Attributes:
        sizes: how many channels each value has that is tied to another.
        pinned: the values that keep their order.
        relations: in the order of the nodes.
        blocks: as in `Orders`.
        flips: the nodes that permute channels, with what they ask.
    """

    sizes: dict[ir.Value, int] = field(default_factory=dict)
    pinned: set[ir.Value] = field(default_factory=set)
    relations: list[Relation[ir.Value]] = field(default_factory=list)
    blocks: dict[ir.Value, set[int]] = field(default_factory=dict)
    flips: list[tuple[ir.Node, Turned[ir.Value]]] = field(default_factory=list)

    def tie(self, *relations: Relation[ir.Value]) -> None:
        """These hold."""
        self.relations += relations
        for value in (value for relation in relations for value in relation.values):
            size = channels_of(value)
            assert size is not None
            self.sizes[value] = size

    def orders(self) -> list[Orders[ir.Value]]:
        """The sets of relations that hold a permutation."""
        everything = Orders(self.sizes, self.pinned, self.relations, self.blocks)
        return everything.tied_to(relation for _, relation in self.flips)


def read_channels(graph: ir.Graph) -> Reading:
    """What the main graph `graph`, whose values have their types and shapes, asks."""
    reading = Reading()
    captured = {value for node in graph if any(graphs_of(node)) for value in node_dependencies(node)}
    reading.pinned |= {*graph.inputs, *graph.outputs, *graph.initializers.values()}
    sliced: dict[ir.Value, list[tuple[int, ir.Value]]] = {}
    for node in graph:
        if not captured.isdisjoint(node.outputs) or not _read(node, reading, sliced):
            reading.pinned.update(value for value in (*node.inputs, *node.outputs) if value is not None)
    for whole, parts in sliced.items():
        reading.tie(Parts(whole, tuple(parts)))
    return reading


def channels_of(value: ir.Value | None) -> int | None:
    """How many channels `value` [N, C, ...] has; None where that is not known."""
    if value is None or value.shape is None or len(value.shape) < 2 or not isinstance(value.type, ir.TensorType):
        return None
    size = value.shape[1]
    return size if isinstance(size, int) and size > 0 else None


def may_permute(node: ir.Node) -> bool:
    """Whether `node` may be one that `permutation_of` finds, before any shape is known."""
    if is_one_of(node, (SLICE,)):
        steps = weight_of(input_at(node, 4))
        return steps is not None and steps.size == 1 and bool((steps < 0).all())
    if is_one_of(node, (GATHER,)):
        indices = weight_of(input_at(node, 1))
        return _axis_of(node) != 0 and indices is not None and indices.ndim == 1
    return False


def permutation_of(node: ir.Node) -> Order | None:
    """y[:, i] = x[:, order[i]] where `node` is a Slice or Gather that permutes the channels by constants."""
    if not may_permute(node):
        return None
    picked = _sliced(node) if is_one_of(node, (SLICE,)) else _gathered(node)
    size = channels_of(input_at(node, 0))
    if picked is None or size is None or sorted(picked) != list(range(size)):
        return None
    return tuple(picked)


def block_of(node: ir.Node) -> range | None:
    """The channels that `node` cuts out, where it is a Slice of adjacent ones."""
    picked = _sliced(node) if is_one_of(node, (SLICE,)) else None
    return picked if picked and picked.step == 1 else None


def channel_axis(operand: Sequence[int], rank: int) -> int | None:
    """The axis along the channels of a constant of the shape `operand` that is spread to `rank` axes; None for none."""
    axis = 1 - (rank - len(operand))
    return axis if axis >= 0 and operand[axis] != 1 else None


def is_depthwise(node: ir.Node) -> bool:
    """Whether the Conv or ConvTranspose `node` makes each channel of the same one alone."""
    group = node.attributes.get_int("group", 1)
    return group > 1 and channels_of(input_of(node)) == channels_of(node.outputs[0]) == group


def _read(node: ir.Node, reading: Reading, sliced: dict[ir.Value, list[tuple[int, ir.Value]]]) -> bool:
    """Note what `node` asks; False where it is not known."""
    if is_one_of(node, (SHAPE, FILLED)):
        return True
    if not all(channels_of(value) for value in node.outputs):
        return False
    if is_one_of(node, (SLICE, GATHER)):
        return _read_picked(node, reading, sliced)
    if is_one_of(node, (SPLIT,)):
        return _read_split(node, reading)
    if is_one_of(node, (CONCAT,)):
        return _read_concat(node, reading)
    if is_one_of(node, (CONV, CONV_TRANSPOSE)):
        return _read_conv(node, reading)
    return is_one_of(node, ELEMENTWISE) and _read_elementwise(node, reading)


def _read_picked(node: ir.Node, reading: Reading, sliced: dict[ir.Value, list[tuple[int, ir.Value]]]) -> bool:
    given, made = input_at(node, 0), node.outputs[0]
    if given is None or channels_of(given) is None:
        return False
    order, block = permutation_of(node), block_of(node)
    if order is not None:
        turned = Turned(given, made, order)
        reading.flips.append((node, turned))
        reading.tie(turned)
    elif block is not None:
        sliced.setdefault(given, []).append((block.start, made))
    return order is not None or block is not None


def _read_split(node: ir.Node, reading: Reading) -> bool:
    given = input_of(node)
    if channels_of(given) != _summed(node.outputs) or not _is_channel_axis(_axis_of(node), given):
        return False
    reading.tie(Parts(given, _placed(node.outputs), fixed=True))
    return True


def _read_concat(node: ir.Node, reading: Reading) -> bool:
    made = node.outputs[0]
    inputs = [value for value in node.inputs if value is not None and channels_of(value)]
    if len(inputs) != len(node.inputs) or channels_of(made) != _summed(inputs):
        return False
    if not _is_channel_axis(_axis_of(node), made):
        return False
    reading.tie(Parts(made, _placed(inputs)))
    return True


def _read_conv(node: ir.Node, reading: Reading) -> bool:
    given, made = input_of(node), node.outputs[0]
    weight, bias = (tensor_of(input_at(node, place)) for place in (1, 2))
    if weight is None or (bias is None and input_at(node, 2) is not None):
        return False
    group = node.attributes.get_int("group", 1)
    rows, columns = (given, made) if node.op_type == "ConvTranspose" else (made, given)
    shape = weight.shape.numpy()
    if (channels_of(rows), channels_of(columns)) != (shape[0], shape[1] * group):
        return False
    if is_depthwise(node):
        reading.tie(_unchanged(given, made))
    elif group > 1:
        for value in (given, made):
            reading.blocks.setdefault(value, set()).add((channels_of(value) or 0) // group)
    return True


def _read_elementwise(node: ir.Node, reading: Reading) -> bool:
    made = node.outputs[0]
    assert made.shape is not None
    tied: list[Relation[ir.Value]] = []
    for value in node.inputs:
        if value is None or _is_scalar(value):
            continue
        tensor = tensor_of(value)
        if tensor is not None:
            axis = channel_axis(tensor.shape.numpy(), len(made.shape))
            if axis is not None and (tensor.dtype == ir.DataType.STRING or tensor.shape[axis] != channels_of(made)):
                return False
        elif channels_of(value) is None or value.shape is None or len(value.shape) != len(made.shape):
            return False
        elif channels_of(value) == channels_of(made):
            tied.append(_unchanged(value, made))
        elif channels_of(value) != 1:
            return False
    reading.tie(*tied)
    return True


def _unchanged(given: ir.Value, made: ir.Value) -> Turned[ir.Value]:
    return Turned(given, made, identity(channels_of(made) or 0))


def _summed(values: Iterable[ir.Value]) -> int:
    return sum(channels_of(value) or 0 for value in values)


def _placed(values: Iterable[ir.Value]) -> tuple[tuple[int, ir.Value], ...]:
    placed, start = [], 0
    for value in values:
        placed.append((start, value))
        start += channels_of(value) or 0
    return tuple(placed)


def _sliced(node: ir.Node) -> range | None:
    """The channels that a Slice along them takes, by constants alone."""
    given = input_at(node, 0)
    size = channels_of(given)
    bounds = [weight_of(input_at(node, place)) for place in (1, 2, 3)]
    steps = weight_of(input_at(node, 4)) if input_at(node, 4) is not None else None
    if size is None or given is None or any(bound is None or bound.shape != (1,) for bound in bounds):
        return None
    if input_at(node, 4) is not None and (steps is None or steps.shape != (1,)):
        return None
    start, end, axis = (int(bound[0]) for bound in bounds if bound is not None)
    step = 1 if steps is None else int(steps[0])
    if step == 0 or not _is_channel_axis(axis, given):
        return None
    return range(*slice(start, end, step).indices(size))


def _gathered(node: ir.Node) -> list[int] | None:
    """The channels that a Gather along them takes, by constants alone."""
    given, indices = input_of(node), weight_of(input_at(node, 1))
    size = channels_of(given)
    if size is None or indices is None or indices.ndim != 1 or not _is_channel_axis(_axis_of(node), given):
        return None
    return [int(index) + (size if index < 0 else 0) for index in indices]


def _axis_of(node: ir.Node) -> int:
    return node.attributes.get_int("axis", 0)


def _is_channel_axis(axis: int, value: ir.Value) -> bool:
    assert value.shape is not None
    return axis in (1, 1 - len(value.shape))


def _is_scalar(value: ir.Value) -> bool:
    return value.shape is not None and len(value.shape) == 0
