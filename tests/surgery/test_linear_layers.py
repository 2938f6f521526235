"""What is read of a layer, and whether fp16 holds what becomes of its weights."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from surgery.linear_layers import LARGEST_HALF, Layer, keeps_half, layer_of
from tests.onnx_runs import Array
from tests.surgery.layer_graphs import conv, layers, node, noise, up

SMALLEST_NORMAL = float(np.finfo(np.float16).tiny)
STEP = 2.0**-24
"""Between the subnormal numbers of fp16."""


def layer(made: ir.Model) -> Layer:
    """Of the last node."""
    found = layer_of(made.graph[-1])
    assert found is not None
    return found


CONV = layer(layers(conv("x w b", "y")))
GEMM = layer(layers(node("Gemm", "x k b", "y"), shape=(10, 4), k=noise(4, 6)))
TURNED = layer(layers(node("Gemm", "x k b", "y", transA=1, transB=1), shape=(4, 10), k=noise(6, 4)))


@pytest.mark.parametrize(
    ("made", "taken", "channels"),
    [
        (layers(conv("x k", "y", group=2), k=noise(8, 3, 3)), 6, 8),
        (layers(up("x k", "y", group=2), k=noise(6, 4, 4)), 6, 8),
        (layers(node("Gemm", "x k b", "y"), shape=(10, 4), k=noise(4, 6)), 4, 6),
        (layers(node("Gemm", "x k b", "y", transB=1), shape=(10, 4), k=noise(6, 4)), 4, 6),
    ],
)
def test_layer_counts_its_channels_when_it_has_groups_or_is_turned(made: ir.Model, taken: int, channels: int) -> None:
    found = layer(made)
    assert (found.channels(made=False), found.channels(made=True)) == (taken, channels)


@pytest.mark.parametrize(
    "made",
    [
        layers(node("Tanh", "x", "y")),
        layers(conv("x k", "y", group=4)),
        layers(conv("x z", "y", group=4), z=noise(6, 2, 3)),
        layers(node("Gemm", "x m all", "y"), shape=(10, 6)),
        layers(node("Gemm", "x m steps", "y"), shape=(10, 6)),
        layers(node("MatMul", "m x", "y")),
        layers(node("MatMul", "x k", "y"), k=noise(1, 10, 6)),
        layers(node("MatMul", "x k", "y"), k=noise(10)),
    ],
    ids=["no layer", "not there", "odd groups", "bias of another rank", "of rows", "left", "of rank 3", "of rank 1"],
)
def test_there_is_no_layer_when_its_weights_are_others(made: ir.Model) -> None:
    assert layer_of(made.graph[-1]) is None


@pytest.mark.parametrize(
    ("of", "shape", "fits"),
    [
        (CONV, (), True), (CONV, (1,), True), (CONV, (6, 1), True), (CONV, (1, 6, 1), True), (CONV, (1, 1, 1), True),
        (CONV, (6,), False), (CONV, (1, 6), False), (CONV, (6, 1, 1), False), (CONV, (1, 6, 10), False),
        (CONV, (1, 1, 6, 1), False), (CONV, (3, 1), False), (CONV, (0, 1), False), (GEMM, (6,), True),
        (GEMM, (1, 6), True), (GEMM, (6, 1), False), (GEMM, (4,), False), (TURNED, (6,), True),
    ],
)  # fmt: skip
def test_constant_is_one_number_for_each_channel_when_it_has_that_shape(
    of: Layer, shape: tuple[int, ...], fits: bool
) -> None:
    found = of.per_channel(np.ones(shape, np.float32), made=True)
    assert (found is not None) is fits
    assert found is None or found.shape == (6,)


@pytest.mark.parametrize(("of", "shape", "fits"), [(GEMM, (4,), True), (TURNED, (4, 1), True), (TURNED, (4,), False)])
def test_input_has_its_channels_on_another_axis_when_it_is_turned(
    of: Layer, shape: tuple[int, ...], fits: bool
) -> None:
    assert (of.per_channel(np.ones(shape, np.float32), made=False) is not None) is fits


ORDINARY = np.array([[0.5, -0.25, 3.0]]) * (1 + 2.0**-9)


@pytest.mark.parametrize(
    ("after", "kept"),
    [
        (ORDINARY / 3, True),
        (np.array([[LARGEST_HALF]]), True),
        (np.array([[LARGEST_HALF * 1.001]]), False),
        (np.array([[np.nan]]), False),
        (np.array([[0.0]]), True),
        # One of a channel far below the others: its step is 2^-24, against 0.3 that is nothing.
        (np.array([[0.3, 1.4 * STEP]]), True),
        # All of a channel: 1.4 steps round to one, a loss of 29 %.
        (np.array([[1.4 * STEP]]), False),
        (np.array([[0.3], [1.4 * STEP]]), False),
        # A subnormal that fp16 holds exactly loses nothing.
        (np.array([[2 * STEP, SMALLEST_NORMAL / 2]]), True),
        (np.array([[1e-30]]), False),
    ],
)
def test_weights_keep_their_precision_when_fp16_holds_each_channel(after: Array, kept: bool) -> None:
    assert keeps_half(np.broadcast_to(ORDINARY[:, :1], after.shape), after) is kept


def test_weights_may_change_when_they_were_no_better_before() -> None:
    assert keeps_half(np.array([[1.4 * STEP]]), np.array([[2.4 * STEP]]))
    assert keeps_half(np.array([[2 * LARGEST_HALF]]), np.array([[1.0]]))


def test_layer_has_no_scale_nor_shift_when_a_bias_leaves_fp16() -> None:
    big = layer(layers(conv("x w far", "y"), far=np.full(6, 1e4)))
    assert big.scaled(np.full(6, 2.0), made=True) is not None
    assert big.scaled(np.full(6, 10.0), made=True) is None
    assert big.scaled(np.full(6, 10.0), made=False) is not None
    assert big.shifted(np.full(6, 1e4)) is not None
    assert big.shifted(np.full(6, 6e4)) is None


def test_unscaled_layer_is_itself_when_it_is_written() -> None:
    made = layers(conv("x w2 b", "y", group=2))
    found = layer(made)
    same = found.scaled(np.ones(6), made=False)
    assert same is not None
    np.testing.assert_array_equal(same.weight, found.weight)
    same.write("pass")
    assert sorted(made.graph.initializers) == ["b", "w2"]


def test_layer_reads_constants_of_its_own_when_it_is_written_with_others() -> None:
    made = layers(conv("x w", "a"), conv("a w", "y"))
    found = layer(made)
    changed = found.shifted(np.ones(6))
    assert changed is not None
    scaled = changed.scaled(np.full(6, 2.0), made=True)
    assert scaled is not None
    scaled.write("pass")
    assert [value.name for value in made.graph[-1].inputs if value] == ["a", "w/pass", "y/bias/pass"]
    assert sorted(made.graph.initializers) == ["w", "w/pass", "y/bias/pass"]
    assert layer(made).bias is not None
    np.testing.assert_array_equal(layer(made).weight, 2 * found.weight)
