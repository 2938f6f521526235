"""Which chains of moving operators shift rows, and which do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from contracts.verdicts import Status
from gates.graphs import with_shapes
from gates.relative_shifts import relative_shifts
from tests.gates.small_graphs import chain, constant, model, tensor

Step = tuple[str, list[Any], dict[str, Any]]
"""An operator, the lists it reads behind what it moves, and its attributes."""

END = 2**63 - 1
"""A Slice's "to the end"."""


def moved(shape: Sequence[int], *steps: Step, rank: int = 4, opset: int = 17) -> ir.Model:
    """`x` of that shape through the steps to `y`; a list stands for whole numbers, an array for itself."""
    nodes, weights, value = [], [], "x"
    for number, (op, lists, attributes) in enumerate(steps):
        names = []
        for place, given in enumerate(lists):
            names.append(f"c{number}_{place}")
            kind = np.int64 if isinstance(given, list) else np.float32
            weights.append(constant(names[-1], given, kind))
        output = "y" if number == len(steps) - 1 else f"t{number}"
        read = [*names, value] if attributes.pop("behind", False) else [value, *names]
        outputs = [output, *attributes.pop("more", [])]
        nodes.append(helper.make_node(op, read, outputs, f"n{number}", **attributes))
        value = output
    out = tensor("y", [f"y{axis}" for axis in range(rank)])
    return with_shapes(model(nodes, [tensor("x", shape)], [out], weights, opset=opset))


def pad(*pads: int) -> Step:
    return "Pad", [list(pads)], {}


def reshape(*sizes: int) -> Step:
    return "Reshape", [list(sizes)], {}


def cut(axes: list[int], starts: list[int], ends: list[int]) -> Step:
    return "Slice", [starts, ends, axes], {}


def transpose(*perm: int) -> Step:
    return "Transpose", [], {"perm": list(perm)}


def zeros(*shape: int, axis: int, behind: bool = False) -> Step:
    return "Concat", [np.zeros(shape, np.float32)], {"axis": axis, "behind": behind}


def to_positions(n: int) -> list[Step]:
    """VITS: [1, 2, n, 2n - 1] to [1, 2, n, n]."""
    return [
        pad(0, 0, 0, 0, 0, 0, 0, 1),
        reshape(1, 2, 2 * n * n),
        pad(0, 0, 0, 0, 0, n - 1),
        reshape(1, 2, n + 1, 2 * n - 1),
        cut([2, 3], [0, n - 1], [n, END]),
    ]


def to_distances(n: int) -> list[Step]:
    """VITS: [1, 2, n, n] to [1, 2, n, 2n - 1]."""
    return [
        pad(0, 0, 0, 0, 0, 0, 0, n - 1),
        reshape(1, 2, n * (2 * n - 1)),
        pad(0, 0, n, 0, 0, 0),
        reshape(1, 2, n, 2 * n),
        cut([3], [1], [END]),
    ]


def shifted_to_positions(n: int) -> ir.Model:
    """Logits, shifted."""
    return moved((1, 2, n, 2 * n - 1), *to_positions(n))


def shifted_to_distances(n: int) -> ir.Model:
    """Weights, shifted."""
    return moved((1, 2, n, n), *to_distances(n))


def interleaved(phases: int) -> ir.Model:
    """What a convolution per phase gives, [1, 3 phases, 6], in time, its padding cut off."""
    return moved(
        (1, 3 * phases, 6),
        pad(0, 0, 1, 0, 0, 1),
        reshape(1, 3, phases, 8),
        transpose(0, 1, 3, 2),
        reshape(1, 3, 8 * phases),
        cut([2], [phases], [7 * phases]),
        rank=3,
    )


def split(*sizes: int, axis: int) -> Step:
    return "Split", [list(sizes)], {"axis": axis, "more": [f"rest{i}" for i in range(1, len(sizes))]}


SHIFTS: dict[str, Callable[[], ir.Model]] = {
    **{f"to positions, {n}": partial(shifted_to_positions, n) for n in (2, 3, 8)},
    **{f"to distances, {n}": partial(shifted_to_distances, n) for n in (2, 3, 8)},
    "zeros that are concatenated": lambda: moved(
        (1, 2, 4, 7),
        zeros(1, 2, 4, 1, axis=3),
        reshape(1, 2, 32),
        zeros(1, 2, 3, axis=2),
        reshape(1, 2, 5, 7),
        cut([2, 3], [0, 3], [4, 7]),
    ),
    "two slices, an Identity and an Unsqueeze between": lambda: moved(
        (1, 2, 4, 7),
        pad(0, 0, 0, 0, 0, 0, 0, 1),
        ("Identity", [], {}),
        ("Unsqueeze", [[0]], {}),
        ("Flatten", [], {"axis": 3}),
        pad(0, 0, 0, 6),
        reshape(1, 2, 5, 7),
        cut([2], [0], [4]),
        cut([3], [3], [END]),
    ),
    "a Split where a Slice was": lambda: moved((1, 2, 4, 4), *to_distances(4)[:-1], split(1, 7, axis=3)),
    "Transformer-XL: a column before, one row less": lambda: moved(
        (1, 2, 4, 4), pad(0, 0, 0, 1, 0, 0, 0, 0), reshape(1, 2, 5, 4), cut([2], [1], [END]), reshape(1, 2, 4, 4)
    ),
    "Transformer-XL's own order of axes, the heads last": lambda: moved(
        (4, 4, 1, 2),
        zeros(4, 1, 1, 2, axis=1, behind=True),
        reshape(5, 4, 1, 2),
        cut([0], [1], [END]),
        reshape(4, 4, 1, 2),
    ),
    "rows in one already before they are padded": lambda: moved(
        (1, 2, 4, 7), reshape(1, 2, 28), pad(0, 0, 0, 0, 0, 4), reshape(1, 2, 4, 8), cut([3], [0], [7])
    ),
    "a scale and a Cast between": lambda: moved(
        (1, 2, 4, 4),
        *to_distances(4)[:1],
        ("Mul", [np.array(0.125, np.float32)], {}),
        *to_distances(4)[1:3],
        ("Cast", [], {"to": TensorProto.FLOAT}),
        *to_distances(4)[3:],
    ),
    "rows that are scaled each by its own": lambda: moved(
        (1, 2, 4, 4), *to_distances(4)[:1], ("Mul", [np.ones((4, 7), np.float32)], {}), *to_distances(4)[1:]
    ),
    "conformer: a column before, distances halved": lambda: moved(
        (1, 2, 4, 7),
        zeros(1, 2, 4, 1, axis=3, behind=True),
        reshape(1, 2, 8, 4),
        cut([2], [1], [END]),
        reshape(1, 2, 4, 7),
        cut([3], [0], [4]),
    ),
}


@pytest.mark.parametrize("name", SHIFTS)
def test_gate_fails_naming_the_end_of_the_chain_when_rows_are_shifted(name: str) -> None:
    verdict = relative_shifts(SHIFTS[name]())
    assert (verdict.gate, verdict.status, verdict.measured) == ("structure.relative_shifts", Status.FAILED, 1)
    assert "node 'n" in verdict.detail
    assert "garbage on the board" in verdict.detail
    assert "rewrite_relative_attention" in verdict.detail


INNOCENT: dict[str, Callable[[], ir.Model]] = {
    "a reflect pad": lambda: moved((1, 2, 8), ("Pad", [[0, 0, 1, 0, 0, 0]], {"mode": "reflect"}), rank=3),
    "rows cut into blocks": lambda: moved(
        (1, 4, 10), pad(0, 0, 0, 0, 0, 2), reshape(1, 4, 3, 4), cut([2], [0], [2]), rank=4
    ),
    "blocks turned": lambda: moved(
        (1, 4, 10),
        pad(0, 0, 1, 0, 0, 1),
        reshape(1, 4, 3, 4),
        transpose(0, 1, 3, 2),
        reshape(1, 16, 3),
        cut([2], [0], [2]),
        rank=3,
    ),
    "blocks beside the channels": lambda: moved(
        (1, 4, 10), pad(0, 0, 1, 0, 0, 1), reshape(1, 4, 3, 4), transpose(0, 2, 1, 3), cut([3], [0], [2])
    ),
    "two phases of a transposed convolution": partial(interleaved, 2),
    "three phases of a transposed convolution": partial(interleaved, 3),
    "phases of a strided convolution": lambda: moved(
        (1, 4, 10), pad(0, 0, 0, 0, 0, 2), reshape(1, 4, 6, 2), transpose(0, 1, 3, 2), reshape(1, 8, 6), rank=3
    ),
    "heads beside one another": lambda: moved(
        (1, 2, 6, 4), pad(0, 0, 0, 0, 0, 0, 0, 4), transpose(0, 2, 1, 3), reshape(1, 6, 16), cut([2], [0], [8]), rank=3
    ),
    "a causal convolution": lambda: moved((1, 4, 10), pad(0, 0, 2, 0, 0, 0), cut([2], [0], [10]), rank=3),
    "one position": partial(shifted_to_positions, 1),
    "a chain without zeros": lambda: moved((1, 2, 4, 6), reshape(1, 2, 6, 4), cut([2], [0], [4])),
    "no moving operator": lambda: chain("Tanh", "Relu"),
    "two rows ahead of the columns, whose one step tells nothing": lambda: moved(
        (1, 5, 3, 4), pad(0, 0, 1, 0, 0, 0, 0, 0), reshape(4, 2, 10), cut([0], [0], [3]), rank=3
    ),
    "windows of an image": lambda: moved(
        (1, 6, 6, 2),
        pad(0, 0, 0, 0, 0, 2, 2, 0),
        reshape(1, 2, 4, 2, 4, 2),
        transpose(0, 1, 3, 2, 4, 5),
        reshape(4, 16, 2),
        cut([1], [0], [15]),
        rank=3,
    ),
}


@pytest.mark.parametrize("name", INNOCENT)
def test_gate_passes_when_rows_stay_rows(name: str) -> None:
    verdict = relative_shifts(INNOCENT[name]())
    assert (verdict.status, verdict.measured) == (Status.PASSED, 0)


def test_gate_counts_each_chain_once_when_more_nodes_move_its_end() -> None:
    made = moved((1, 2, 4, 4), *to_distances(4), ("Identity", [], {}), transpose(0, 1, 3, 2))
    assert relative_shifts(made).measured == 1


def test_gate_finds_a_chain_when_its_lists_are_made_by_nodes() -> None:
    made = moved((1, 2, 4, 4), *to_distances(4))
    for value in list(made.graph.initializers.values()):
        node = ir.node("Constant", [], attributes={"value": value.const_value})
        made.graph.insert_before(made.graph[0], node)
        value.replace_all_uses_with(node.outputs[0])
        del made.graph.initializers[str(value.name)]
        node.outputs[0].name = value.name
    assert relative_shifts(made).status is Status.FAILED


def test_gate_fails_when_the_lists_of_a_chain_are_computed() -> None:
    made = moved((1, 2, 4, 4), *to_distances(4))
    for name in ("c1_0", "c3_0"):
        sizes = made.graph.initializers[name]
        halves = np.split(sizes.const_value.numpy(), [2])  # type: ignore[union-attr]
        parts = [
            ir.val(f"{name}/{i}", const_value=ir.tensor(half, name=f"{name}/{i}")) for i, half in enumerate(halves)
        ]
        for part in parts:
            made.graph.register_initializer(part)
        node = ir.node("Concat", parts, attributes={"axis": ir.AttrInt64("axis", 0)})
        sizes.replace_all_uses_with(node.outputs[0])
        made.graph.insert_before(made.graph[0], node)
    assert relative_shifts(made).status is Status.FAILED


RANDOM_CHAINS = 60


def drawn_chain(rng: np.random.Generator) -> tuple[tuple[int, ...], list[Step], bool]:
    """Rows that are padded, put in one, cut to others and cut again: of the padded length, or one more or less.

    Returns:
        The shape, the steps, and whether rows are shifted: whether the length of rows changes by one.
    """
    heads, rows = int(rng.integers(1, 3)), int(rng.integers(3, 6))
    columns, before, behind = int(rng.integers(4, 8)), int(rng.integers(0, 2)), int(rng.integers(1, 4))
    wide = columns + before + behind
    change = int(rng.integers(-1, 2))
    flat = rows * wide
    short = -flat % (wide + change)
    steps = [
        pad(0, 0, 0, before, 0, 0, 0, behind),
        reshape(1, heads, flat),
        pad(0, 0, 0, 0, 0, short),
        reshape(1, heads, (flat + short) // (wide + change), wide + change),
        cut([2, 3], [0, before], [rows - 1, before + columns - 1]),
    ]
    return (1, heads, rows, columns), steps, change != 0


@pytest.mark.parametrize("seed", range(RANDOM_CHAINS))
def test_gate_tells_shifted_rows_from_others_whatever_their_sizes(seed: int) -> None:
    shape, steps, shifted = drawn_chain(np.random.default_rng(seed))
    assert relative_shifts(moved(shape, *steps)).measured == int(shifted)


def test_gate_fails_when_a_chain_cannot_be_followed() -> None:
    made = moved((1, 2, 4, 4), *to_distances(4))
    made.graph.initializers["c1_0"].const_value = ir.tensor(np.array([1, 2, 27]), name="c1_0")  # one element less
    assert relative_shifts(made).status is Status.FAILED


def test_gate_leaves_chains_of_unknown_sizes_to_the_gate_on_shapes() -> None:
    shape: Sequence[Any] = (1, "heads", 4, 4)
    assert relative_shifts(moved(shape, *to_distances(4))).status is Status.PASSED
