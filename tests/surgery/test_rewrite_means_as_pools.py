"""Means and masked means by pools, against onnxruntime on the graph before."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from surgery.declaration import EXACT_PARITY_DB
from surgery.rewrite_channel_differences import rewrite_channel_differences
from surgery.rewrite_means_as_pools import rewrite_means_as_pools
from tests.onnx_runs import Array, run, snr_db
from tests.surgery.norm_graphs import EPSILON, Steps, masked, normalise
from tests.surgery.one_operator import equal_after, left_alone, operators

PASS = rewrite_means_as_pools()
SHAPE = (2, 6, 10)


def fraction(
    shape: tuple[int | str, ...] = SHAPE,
    mask: tuple[int | str, ...] = (2, 1, 10),
    axes: tuple[int, ...] = (2,),
    opset: int = 15,
    op: str = "ReduceSum",
    keepdims: int = 1,
) -> ir.Model:
    """sum(x m) / sum(m)."""
    steps = Steps(opset)
    above = steps.reduced(op, steps.add("Mul", "x", "mask"), axes, keepdims)
    steps.add("Div", above, steps.reduced(op, "mask", axes, keepdims))
    given: dict[str, tuple[int | str, ...]] = {"x": shape, "mask": mask}
    return steps.model(given, [f"y{axis}" for axis in range(len(shape) if keepdims else len(shape) - len(axes))])


def feed(shape: tuple[int, ...] = SHAPE, scale: float = 1.0) -> dict[str, Array]:
    mask = np.ones((shape[0], *[1] * (len(shape) - 2), shape[-1]), np.float32)
    mask[0, ..., 7:] = 0
    return {"x": (scale * np.random.default_rng(3).standard_normal(shape)).astype(np.float32), "mask": mask}


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean"])
@pytest.mark.parametrize("opset", [7, 11, 13, 18, 19])
def test_fraction_of_sums_is_one_of_pools(opset: int, op: str) -> None:
    made = equal_after(PASS, fraction(opset=opset, op=op), feed=feed())
    assert operators(made) == ["Mul", "GlobalAveragePool", "GlobalAveragePool", "Div"]
    assert not made.graph.initializers


def test_fraction_over_two_axes_is_one_of_pools() -> None:
    original = fraction((2, 6, 3, 10), (2, 1, 3, 10), (-2, -1))
    given = {"x": np.random.default_rng(3).standard_normal((2, 6, 3, 10)), "mask": np.arange(60.0).reshape(2, 1, 3, 10)}
    made = equal_after(PASS, original, feed={name: array.astype(np.float32) for name, array in given.items()})
    assert operators(made).count("GlobalAveragePool") == 2


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean"])
def test_masked_normalisation_is_numpys(op: str, scale: float) -> None:
    steps = Steps()
    masked(steps, "x", "mask", [2], op)
    original = steps.model({"x": SHAPE, "mask": (2, 1, 10)}, SHAPE)
    given = feed(scale=scale)
    made = equal_after(PASS, original, hits=2, feed=given)
    assert operators(made).count("GlobalAveragePool") == 3  # the count of the mask is shared
    wanted = np.zeros(SHAPE)
    for row, length in enumerate([7, 10]):
        x = given["x"][row, :, :length].astype(np.float64)
        wanted[row, :, :length] = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + EPSILON)
    both = equal_after(rewrite_channel_differences(), made, feed=given)
    for model in (made, both):
        assert snr_db(wanted, run(model, given)["y"]) >= EXACT_PARITY_DB
    assert "Sub" not in operators(both)


def test_sum_that_others_read_stays_for_them() -> None:
    steps = Steps()
    count = steps.reduced("ReduceSum", "mask", [2])
    mean = steps.add("Div", steps.reduced("ReduceSum", "x", [2]), count)
    steps.add("Mul", mean, count)
    made = equal_after(PASS, steps.model({"x": SHAPE, "mask": (2, 1, 10)}, (2, 6, 1)), feed=feed())
    assert sorted(operators(made)) == ["Div", "GlobalAveragePool", "GlobalAveragePool", "Mul", "ReduceSum"]


def gated(
    mean: str = "ReduceMean", keepdims: int = 1, axes: tuple[int, ...] = (2,), convolved: bool = True, opset: int = 15
) -> ir.Model:
    """x sigmoid(mean(x)) behind a convolution and a Tanh; the mean alone where its axes do not stay."""
    steps = Steps(opset)
    made = steps.add("Tanh", steps.conv("x", 6) if convolved else "x")
    if mean == "ReduceMean":
        middle = steps.reduced(mean, made, axes, keepdims)
    else:
        middle = steps.add("Div", steps.reduced("ReduceSum", made, axes, keepdims), steps.constant(10.0))
    if not keepdims:
        steps.add("Sigmoid", middle)
        return steps.model({"x": SHAPE}, (2, 6))
    steps.add("Mul", made, steps.add("Sigmoid", middle))
    return steps.model({"x": SHAPE}, SHAPE)


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("mean", ["ReduceMean", "ReduceSum"])
def test_mean_over_steps_is_a_pool(mean: str, opset: int) -> None:
    made = equal_after(PASS, gated(mean, opset=opset))
    assert operators(made) == ["Conv", "Tanh", "GlobalAveragePool", "Sigmoid", "Mul"]


def test_mean_that_does_not_keep_its_axis_is_reshaped() -> None:
    made = equal_after(PASS, gated(keepdims=0))
    assert operators(made) == ["Conv", "Tanh", "GlobalAveragePool", "Reshape", "Sigmoid"]


def test_mean_as_the_graphs_output_keeps_its_name() -> None:
    steps = Steps()
    steps.reduced("ReduceMean", steps.conv("x", 6), [2])
    assert operators(equal_after(PASS, steps.model({"x": SHAPE}, (2, 6, 1)))) == ["Conv", "GlobalAveragePool"]


def _norm(of: str = "steps") -> ir.Model:
    """A normalisation without a mask, of which the toolkit makes one layer."""
    steps = Steps()
    made = steps.conv("x", 6)
    if of == "channels":
        made = steps.add("Transpose", made, perm=[0, 2, 1])
    normalise(steps, made, [2], square="Pow")
    return steps.model({"x": SHAPE}, SHAPE if of == "steps" else (2, 10, 6))


def _rms() -> ir.Model:
    """The mean is over the last axis, and the channels are there."""
    steps = Steps()
    made = steps.add("Transpose", steps.conv("x", 6), perm=[0, 2, 1])
    mean = steps.reduced("ReduceMean", steps.add("Mul", made, made), [-1])
    steps.add("Div", made, steps.add("Sqrt", mean))
    return steps.model({"x": SHAPE}, (2, 10, 6))


def _image() -> ir.Model:
    steps = Steps()
    weight = steps.constant(np.ones((6, 6, 1, 1)))
    made = steps.add("Conv", "x", weight, kernel_shape=[1, 1])
    steps.reduced("ReduceMean", made, [2, 3])
    return steps.model({"x": (2, 6, 3, 4)}, (2, 6, 1, 1))


def _foreign() -> ir.Model:
    original = ir.to_proto(fraction())
    original.opset_import.add(domain="com.example", version=1)
    for node in original.graph.node:
        node.domain = "com.example" if node.op_type == "ReduceSum" else ""
    return ir.from_proto(original)


@pytest.mark.parametrize(
    "original",
    [
        fraction(mask=(2, 1, 1)),
        fraction(("n", 6, "t"), ("n", 1, "t")),
        fraction((2, 6, 3, 10), (2, 1, 3, 10), (3,)),
        fraction(axes=(1,), mask=(2, 6, 10)),
        fraction(keepdims=0),
        _foreign(),
        gated(convolved=False),
        gated(axes=(1,)),
        _norm(),
        _norm("channels"),
        _rms(),
        _image(),
    ],
    ids=[
        "other count", "open", "one of two axes", "channels", "axes do not stay", "other domain", "no convolution",
        "mean of channels", "normalisation", "layer norm", "rms norm", "image",
    ],
)  # fmt: skip
def test_graph_is_left_alone_when_it_is_no_mean_over_steps(original: ir.Model) -> None:
    left_alone(PASS, original)


def test_sum_over_another_number_than_its_count_is_left_alone() -> None:
    steps = Steps()
    steps.add("Div", steps.reduced("ReduceSum", steps.conv("x", 6), [2]), steps.constant(9.0))
    left_alone(PASS, steps.model({"x": SHAPE}, (2, 6, 1)))
