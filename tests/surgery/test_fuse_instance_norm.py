"""Instance normalisations, against numpy and onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto

from surgery.declaration import EXACT_PARITY_DB
from surgery.fuse_instance_norm import fuse_instance_norm
from surgery.fuse_layer_norm import fuse_layer_norm
from tests.onnx_runs import run, snr_db
from tests.surgery.norm_graphs import DIVISIONS, MEANS, SQUARES, Steps, affine, masked, normalise, normalised
from tests.surgery.one_operator import equal_after, left_alone, operators

PASS = fuse_instance_norm()
POOLED = ["GlobalAveragePool", "Neg", "Add", "Mul", "GlobalAveragePool", "Add", "Sqrt", "Div"]
SHAPE = (2, 6, 9)


def chain(
    sizes: Sequence[int] | None = (6, 1),
    shape: tuple[int, ...] = SHAPE,
    scaled: bool = True,
    shifted: bool = True,
    opset: int = 15,
    **spelling: str,
) -> ir.Model:
    steps = Steps(opset)
    made = normalise(steps, "x", range(2, len(shape)), int(np.prod(shape[2:])), **spelling)  # type: ignore[arg-type]
    if sizes is not None:
        affine(steps, made, sizes, scaled, shifted)
    return steps.model({"x": shape}, shape)


def operator(scale: object, bias: object, epsilon: float | None = 1e-3, shape: tuple[int, ...] = SHAPE) -> ir.Model:
    steps = Steps()
    stated = {} if epsilon is None else {"epsilon": epsilon}
    steps.add("InstanceNormalization", "x", steps.constant(scale), steps.constant(bias), **stated)
    return steps.model({"x": shape}, shape)


@pytest.mark.parametrize("mean", [*MEANS, "GlobalAveragePool"])
@pytest.mark.parametrize("square", SQUARES)
@pytest.mark.parametrize("division", DIVISIONS)
def test_every_spelling_is_the_operator(division: str, square: str, mean: str) -> None:
    made = equal_after(PASS, chain(None, division=division, square=square, mean=mean))
    assert operators(made) == ["InstanceNormalization"]
    assert list(made.graph.initializers) == [value.name for value in made.graph[0].inputs[1:] if value is not None]


@pytest.mark.parametrize("opset", [7, 12, 13, 18, 19])
@pytest.mark.parametrize("shape", [(1, 3, 4), (2, 6, 9), (1, 2, 3, 4), (1, 2, 2, 3, 2)])
def test_it_is_numpys(shape: tuple[int, ...], opset: int) -> None:
    original = chain((shape[1], *[1] * (len(shape) - 2)), shape, opset=opset)
    weights = [value.const_value.numpy() for value in original.graph.initializers.values() if value.const_value]
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    wanted = normalised(x, tuple(range(2, len(shape)))) * weights[-2] + weights[-1]
    done = PASS.rewrite(original)
    assert (done.hits, operators(done.model)) == (1, ["InstanceNormalization", "BatchNormalization"])
    assert snr_db(wanted, run(done.model, {"x": x})["y"]) >= EXACT_PARITY_DB


@pytest.mark.parametrize("sizes", [(6, 1), (1, 6, 1), (1,), ()])
def test_scale_and_shift_are_one_batch_normalization(sizes: tuple[int, ...]) -> None:
    assert operators(equal_after(PASS, chain(sizes))) == ["InstanceNormalization", "BatchNormalization"]


@pytest.mark.parametrize(("scaled", "behind"), [(True, "Mul"), (False, "Add")])
def test_one_of_scale_and_shift_stays_what_it_is(scaled: bool, behind: str) -> None:
    made = equal_after(PASS, chain(scaled=scaled, shifted=not scaled))
    assert operators(made) == ["InstanceNormalization", behind]


def test_computed_scale_and_shift_stay() -> None:
    steps = Steps()
    made = normalise(steps, "x", [2])
    steps.add("Add", steps.add("Mul", made, "s"), "s")
    original = steps.model({"x": SHAPE, "s": (2, 6, 1)}, SHAPE)
    assert operators(equal_after(PASS, original)) == ["InstanceNormalization", "Mul", "Add"]


@pytest.mark.parametrize("epsilon", [None, 1e-3])
def test_operators_scale_and_shift_are_parted_from_it(epsilon: float | None) -> None:
    original = operator(np.arange(6) - 2.0, np.arange(6.0), epsilon)
    assert operators(equal_after(PASS, original)) == ["InstanceNormalization", "BatchNormalization"]


def test_open_steps_are_no_hindrance() -> None:
    steps = Steps()
    affine(steps, normalise(steps, "x", [2]), (6, 1))
    original = steps.model({"x": ("n", 6, "t")}, ("n", 6, "t"))
    done = PASS.rewrite(original)
    assert done.hits == 1
    for shape in [(1, 6, 4), (2, 6, 7)]:
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        assert snr_db(run(original, {"x": x})["y"], run(done.model, {"x": x})["y"]) >= EXACT_PARITY_DB


@pytest.mark.parametrize("target", ["rk3566", "rk3568"])
@pytest.mark.parametrize(
    "original", [chain(), operator(np.arange(6.0), np.arange(6.0))], ids=["chain", "operator"]
)  # fmt: skip
def test_pools_do_it_where_the_transposes_would_fall_to_the_cpu(original: ir.Model, target: str) -> None:
    made = equal_after(fuse_instance_norm(target), original)
    assert operators(made) == [*POOLED, "BatchNormalization"]


def test_neutral_operator_is_pools_too() -> None:
    assert operators(equal_after(fuse_instance_norm("rk3566"), operator(np.ones(6), np.zeros(6)))) == POOLED


@pytest.mark.parametrize(("target", "steps"), [("rk3566", 8), ("rk3588", 9), ("rk3576", 9), ("rk3562", 9), (None, 9)])
def test_pools_do_it_nowhere_else(target: str | None, steps: int) -> None:
    made = equal_after(fuse_instance_norm(target), chain(None, (2, 6, steps)))
    assert operators(made) == ["InstanceNormalization"]


@pytest.mark.parametrize(
    ("target", "longest"), [("rk3588", 8192), ("rk3566", 8192), ("rk3568", 8192), ("rk3562", 16384), (None, 8192)]
)
def test_pools_do_it_beyond_what_the_transposes_can_have(target: str | None, longest: int) -> None:
    bound = fuse_instance_norm(target)
    made = equal_after(bound, chain(None, (1, 2, longest + 4)))
    assert operators(made) == POOLED
    neutral = operator(np.ones(2), np.zeros(2), shape=(1, 2, longest + 4))
    assert operators(equal_after(bound, neutral)) == POOLED
    assert operators(equal_after(bound, chain(None, (1, 2, longest)))) == ["InstanceNormalization"]


def test_operator_stays_however_long_on_rk3576() -> None:
    bound = fuse_instance_norm("rk3576")
    assert operators(equal_after(bound, chain(None, (1, 2, 40000)))) == ["InstanceNormalization"]
    left_alone(bound, operator(np.ones(2), np.zeros(2), shape=(1, 2, 40000)))


@pytest.mark.parametrize("deviations", [10, 100])
def test_mean_of_many_deviations_keeps_the_bound(deviations: float) -> None:
    x = np.random.default_rng(2).standard_normal((1, 6, 1200)).astype(np.float32) + deviations
    equal_after(PASS, chain(shape=(1, 6, 1200)), feed={"x": x.astype(np.float32)})


def test_pools_are_left_alone_where_they_are_the_better_form() -> None:
    left_alone(fuse_instance_norm("rk3566"), chain(mean="GlobalAveragePool"))


def _open_channels() -> ir.Model:
    steps = Steps()
    normalise(steps, "x", [2])
    return steps.model({"x": (2, "c", 9)}, (2, "c", 9))


def _masked() -> ir.Model:
    steps = Steps()
    masked(steps, "x", "mask", [2])
    return steps.model({"x": SHAPE, "mask": (1, 1, 9)}, SHAPE)


def _read_elsewhere() -> ir.Model:
    steps = Steps()
    steps.add("Add", normalise(steps, "x", [2]), "t0")
    return steps.model({"x": SHAPE}, SHAPE)


def _axes(*axes: int) -> ir.Model:
    steps = Steps()
    normalise(steps, "x", axes)
    return steps.model({"x": (2, 6, 3, 4)}, (2, 6, 3, 4))


def _computed() -> ir.Model:
    steps = Steps()
    steps.add("InstanceNormalization", "x", "s", "s")
    return steps.model({"x": SHAPE, "s": (6,)}, SHAPE)


def _double() -> ir.Model:
    steps = Steps()
    normalise(steps, "x", [2])
    original = steps.proto({"x": SHAPE}, SHAPE, dtype=TensorProto.DOUBLE)
    for weight in original.graph.initializer:
        if weight.data_type == TensorProto.FLOAT:
            weight.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weight).astype(float), weight.name))
    return ir.from_proto(original)


@pytest.mark.parametrize(
    "original",
    [
        _open_channels(),
        _masked(),
        _read_elsewhere(),
        _axes(3),
        _axes(1, 2, 3),
        _computed(),
        _double(),
        chain((9,)),
        operator(np.ones(6), np.zeros(6)),
        operator(np.ones(6), np.arange(6.0)),
        operator(np.arange(6.0), np.zeros(6)),
        chain(shape=(2, 6, 1)),
        chain((6, 1, 1), (2, 6, 1, 1)),
    ],
    ids=[
        "open channels", "mask", "read elsewhere", "last axis", "channels too", "computed", "double",
        "layer norm", "neutral", "shift alone", "scale alone", "one step", "one pixel",
    ],
)  # fmt: skip
def test_graph_is_left_alone_when_it_is_no_instance_norm_or_gains_nothing(original: ir.Model) -> None:
    left_alone(PASS, original)


def test_layer_norms_are_left_to_the_other_pass() -> None:
    original = chain((9,))
    left_alone(PASS, original)
    assert operators(equal_after(fuse_layer_norm(), original)) == ["LayerNormalization"]


def test_factory_raises_when_nothing_is_known_of_the_target() -> None:
    with pytest.raises(ValueError, match="nothing is known of the target rv1106"):
        fuse_instance_norm("rv1106")
