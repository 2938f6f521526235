"""What is read as a permutation of the channels, by what numpy makes of the same indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from surgery.channel_reading import block_of, channel_axis, channels_of, permutation_of
from surgery.inferred import infer_types
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.convolutions import the_node

INT64 = np.iinfo(np.int64)


def sliced(start: int, end: int, axis: int, step: int | None, shape: Sequence[int | str] = (1, 6, 4)) -> ir.Node:
    bounds = {"s": start, "e": end, "a": axis} | ({} if step is None else {"t": step})
    node = helper.make_node("Slice", ["x", *bounds], ["y"], name="c")
    weights = [constant(name, [value], np.int64) for name, value in bounds.items()]
    return looked_at(model([node], [tensor("x", shape)], [tensor("y", ["n", "c", "t"])], weights))


def gathered(indices: object, shape: Sequence[int | str] = (1, 6, 4), **attributes: Any) -> ir.Node:
    node = helper.make_node("Gather", ["x", "i"], ["y"], name="c", **attributes)
    weights = [constant("i", indices, np.int64)]
    return looked_at(model([node], [tensor("x", shape)], [tensor("y", list("nctu"[: len(shape)]))], weights))


def looked_at(made: ir.Model) -> ir.Node:
    infer_types(made)
    return the_node(made)


@pytest.mark.parametrize("end", [INT64.min, -INT64.max, -7, -100])
@pytest.mark.parametrize("start", [-1, 5, 100, INT64.max])
@pytest.mark.parametrize("axis", [1, -2])
def test_permutation_of_finds_a_flip_by_slice(start: int, end: int, axis: int) -> None:
    assert permutation_of(sliced(start, end, axis, -1)) == (5, 4, 3, 2, 1, 0)


@pytest.mark.parametrize(
    ("start", "end", "axis", "step", "shape"),
    [
        (-1, INT64.min, 2, -1, (1, 6, 4)),
        (-1, INT64.min, 0, -1, (1, 6, 4)),
        (-2, INT64.min, 1, -1, (1, 6, 4)),
        (-1, 0, 1, -1, (1, 6, 4)),
        (-1, INT64.min, 1, -2, (1, 6, 4)),
        (0, INT64.max, 1, 1, (1, 6, 4)),
        (0, INT64.max, 1, None, (1, 6, 4)),
        (-1, INT64.min, 1, -1, (1, "channels", 4)),
    ],
)
def test_permutation_of_is_none_when_a_slice_turns_no_channels_or_not_all(
    start: int, end: int, axis: int, step: int | None, shape: Sequence[int | str]
) -> None:
    assert permutation_of(sliced(start, end, axis, step, shape)) is None


@pytest.mark.parametrize("indices", [[5, 4, 3, 2, 1, 0], [2, 0, 1, 5, 3, 4], [-1, -2, -3, -4, -5, -6]])
@pytest.mark.parametrize("axis", [1, -2])
def test_permutation_of_finds_a_gather_of_every_channel(indices: list[int], axis: int) -> None:
    assert permutation_of(gathered(indices, axis=axis)) == tuple(np.arange(6)[indices])


@pytest.mark.parametrize(
    ("indices", "shape", "attributes"),
    [
        ([1, 0, 2, 3, 4, 5], (6, 6, 4), {}),
        ([3, 2, 1, 0], (1, 6, 4), {"axis": 2}),
        ([0, 0, 2, 3, 4, 5], (1, 6, 4), {"axis": 1}),
        ([4, 3, 2, 1, 0], (1, 6, 4), {"axis": 1}),
        ([[5, 4, 3, 2, 1, 0]], (1, 6), {"axis": 1}),
        (3, (1, 6, 4, 2), {"axis": 1}),
        ([1, 0], (1, "two", 4), {"axis": 1}),
    ],
)
def test_permutation_of_is_none_when_a_gather_picks_otherwise(
    indices: object, shape: Sequence[int | str], attributes: dict[str, int]
) -> None:
    assert permutation_of(gathered(indices, shape, **attributes)) is None


@pytest.mark.parametrize(
    ("start", "end", "step", "wanted"),
    [(0, 3, 1, range(3)), (-2, INT64.max, None, range(4, 6)), (0, 6, 2, None), (2, 2, 1, None), (-1, -4, -1, None)],
)
def test_block_of_finds_adjacent_channels(start: int, end: int, step: int | None, wanted: range | None) -> None:
    assert block_of(sliced(start, end, 1, step)) == wanted


@pytest.mark.parametrize(
    ("shape", "wanted"), [((1, 6, 4), 6), ((2, 3), 3), ((4,), None), (("n", 6, "t"), 6), ((1, "c", 4), None)]
)
def test_channels_of_is_the_known_size_of_axis_1(shape: Sequence[int | str], wanted: int | None) -> None:
    value = ir.Value(shape=ir.Shape(list(shape)), type=ir.TensorType(ir.DataType.FLOAT))
    assert channels_of(value) == wanted
    value.type = ir.SequenceType(ir.TensorType(ir.DataType.FLOAT))
    assert channels_of(value) is None


@pytest.mark.parametrize(
    ("operand", "rank", "wanted"),
    [((1, 6, 1), 3, 1), ((6, 1), 3, 0), ((4,), 3, None), ((), 3, None), ((1, 1, 4), 3, None), ((6,), 2, 0)],
)
def test_channel_axis_is_the_one_that_broadcasting_lays_on_axis_1(
    operand: tuple[int, ...], rank: int, wanted: int | None
) -> None:
    assert channel_axis(operand, rank) == wanted
    if wanted is not None:
        spread = np.broadcast_to(np.arange(np.prod(operand)).reshape(operand), (2, 6, 4)[:rank])
        assert len(set(spread.reshape(2, 6, -1)[0, :, 0])) > 1
