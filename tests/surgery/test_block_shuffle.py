"""Blocks of an axis in the channels, against the same by numpy."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from contracts.convolution_fields import Axis
from surgery.block_shuffle import to_depth
from surgery.graph_builder import Builder
from surgery.time_blocks import Blocks
from tests.gates.small_graphs import model, tensor
from tests.onnx_runs import Array, run
from tests.surgery.graphs import check
from tests.surgery.interfaces import node


def blocks(size: int, count: int, kept: int) -> Blocks:
    return Blocks(size, count, kept, size * count - kept, Axis(count, 1, 1), ((0, 0),))


def shuffled(shape: tuple[int, ...], spatial: int, cut: Blocks) -> ir.Model:
    made = model([node("Identity", "x", "y")], [tensor("x", shape)], [tensor("y", shape)])
    end = made.graph[0]
    deep = to_depth(Builder(made.graph, end, "deep"), made.graph.inputs[0], spatial, cut)
    end.replace_input_with(0, deep)
    end.outputs[0].shape = deep.shape
    return made


def wanted(x: Array, axis: int, cut: Blocks) -> Array:
    """Channel c * size + p of block b holds step b * size + p of channel c."""
    x = np.moveaxis(x, axis, 2)[:, :, : cut.kept]
    x = np.concatenate([x, np.zeros((*x.shape[:2], cut.added, *x.shape[3:]), x.dtype)], axis=2)
    made = np.zeros((x.shape[0], x.shape[1] * cut.size, cut.count, *x.shape[3:]), x.dtype)
    for channel in range(x.shape[1]):
        for place in range(cut.size):
            made[:, channel * cut.size + place] = x[:, channel, place :: cut.size]
    return np.moveaxis(made, 2, axis)


@pytest.mark.parametrize(
    ("shape", "spatial", "cut"),
    [
        ((1, 3, 24), 0, blocks(4, 6, 24)),
        ((2, 3, 24), 0, blocks(4, 6, 24)),
        ((1, 3, 24), 0, blocks(5, 4, 20)),
        ((1, 3, 24), 0, blocks(5, 5, 24)),
        ((1, 3, 24), 0, blocks(1, 20, 20)),
        ((2, 3, 24, 5), 0, blocks(4, 6, 24)),
        ((2, 3, 5, 24), 1, blocks(7, 4, 24)),
        ((1, 2, 4, 12, 3), 1, blocks(3, 4, 12)),
    ],
)
def test_to_depth_puts_the_place_in_the_block_behind_the_channel_when_an_axis_is_cut(
    shape: tuple[int, ...], spatial: int, cut: Blocks
) -> None:
    made = shuffled(shape, spatial, cut)
    check(made)
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    np.testing.assert_array_equal(run(made, {"x": x})["y"], wanted(x, 2 + spatial, cut))


@pytest.mark.parametrize(("shape", "spatial"), [((2, 3, 24), 0), ((1, 3, 24, 5), 0), ((2, 3, 5, 24), 1)])
def test_to_depth_stays_within_four_axes_when_the_input_does(shape: tuple[int, ...], spatial: int) -> None:
    made = shuffled(shape, spatial, blocks(4, 6, 24))
    assert max(len(value.shape or ()) for one in made.graph for value in one.outputs) <= 4
