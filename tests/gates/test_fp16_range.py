"""What leaves fp16 is named: weights, constants, attributes, and activations of a run."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from contracts.verdicts import Status
from gates.fp16_range import activation_range, weight_range
from gates.session import Session
from tests.gates.small_graphs import chain, constant, model, proto, row, scale_proto, tensor

X, Y = tensor("x", [1, 4]), tensor("y", [1, 4])
FEED = {"x": row(1, -2, 3, 4)}
ROOT = Path(__file__).resolve().parents[2]


def with_weight(*values: float, dtype: Any = np.float32) -> ir.Model:
    return model([helper.make_node("Mul", ["x", "k"], ["y"], "m")], [X], [Y], [constant("k", values, dtype)])


def multiplied(*factors: float) -> ir.Model:
    """x times one factor after the other: tensors t0, t1, ..., y of nodes m0, m1, ..."""
    names = ["x", *(f"t{i}" for i in range(len(factors) - 1)), "y"]
    nodes = [helper.make_node("Mul", [names[i], f"k{i}"], [names[i + 1]], f"m{i}") for i in range(len(factors))]
    return model(nodes, [X], [Y], [constant(f"k{i}", [factor]) for i, factor in enumerate(factors)])


@pytest.mark.parametrize("value", [65504.0, -65504.0, 1.0])
def test_weight_range_passes_when_weights_fit(value: float) -> None:
    verdict, _ = weight_range(with_weight(0.5, value))
    assert (verdict.status, verdict.measured, verdict.threshold) == (Status.PASSED, abs(value), 65504.0)
    assert "weight 'k'" in verdict.detail


@pytest.mark.parametrize(
    ("value", "shown"), [(65505.0, "65505"), (-70000.0, "-70000"), (-3.4e38, "-3.4e+38"), (math.inf, "inf")]
)
def test_weight_range_fails_naming_tensor_and_value_when_weight_is_too_large(value: float, shown: str) -> None:
    verdict, _ = weight_range(with_weight(0.5, value))
    assert verdict.status is Status.FAILED
    assert verdict.measured == pytest.approx(abs(value))
    remedy = "the NPU makes infinity of it: scale the model so that it fits, or write a mask as -1e4"
    assert verdict.detail == f"past fp16's 65504, first: weight 'k': {shown}; {remedy}"


def test_weight_range_fails_when_weight_is_nan() -> None:
    verdict, _ = weight_range(with_weight(0.5, math.nan, 1.0))
    assert verdict.status is Status.FAILED
    assert "weight 'k': nan" in verdict.detail


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_weight_range_looks_into_every_float_type(dtype: Any) -> None:
    assert weight_range(with_weight(1e6, dtype=dtype))[0].status is Status.FAILED


def test_weight_range_skips_integers_when_they_are_large() -> None:
    nodes = [helper.make_node("Gather", ["x", "i"], ["y"], "g", axis=1)]
    verdict, _ = weight_range(model(nodes, [X], [Y], [constant("i", [2**40], np.int64)]))
    assert verdict.status is Status.PASSED
    assert "no values" in verdict.detail


@pytest.mark.parametrize(
    ("node", "named"),
    [
        (helper.make_node("Constant", [], ["k"], "c", value=constant("v", [1e5])), "attribute 'value' of Constant"),
        (helper.make_node("Constant", [], ["k"], "c", value_float=-1e5), "attribute 'value_float' of Constant"),
        (helper.make_node("Constant", [], ["k"], "c", value_floats=[0.0, 1e5]), "attribute 'value_floats'"),
        (helper.make_node("LeakyRelu", ["x"], ["k"], "c", alpha=1e5), "attribute 'alpha' of LeakyRelu, node 'c'"),
    ],
)
def test_weight_range_fails_when_a_constant_or_attribute_is_too_large(node: onnx.NodeProto, named: str) -> None:
    verdict, _ = weight_range(model([node, helper.make_node("Add", ["x", "k"], ["y"], "a")], [X], [Y]))
    assert verdict.status is Status.FAILED
    assert named in verdict.detail


def test_weight_range_counts_subnormal_weights_when_they_are_small() -> None:
    # Normal: 1, 2^-14. Subnormal: 2^-15, -2^-24. Zero in fp16: 2^-25, 1e-30. A true zero counts as neither.
    values = (1.0, 2.0**-14, 2.0**-15, -(2.0**-24), 2.0**-25, 1e-30, 0.0)
    verdict, measurement = weight_range(with_weight(*values))
    assert verdict.status is Status.PASSED
    assert (measurement.name, measurement.measured, measurement.unit) == ("range.subnormal_weights", 4.0, "values")
    assert "of 7 weights" in measurement.reason
    assert "2 of them round to zero" in measurement.reason


def test_weight_range_fails_with_reason_when_weights_cannot_be_read(tmp_path: Path) -> None:
    onnx.save(scale_proto(3.0), tmp_path / "m.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    loaded = ir.load(tmp_path / "m.onnx")
    (tmp_path / "w.data").unlink()
    verdict, measurement = weight_range(loaded)
    assert verdict.status is Status.FAILED
    assert "could not be read" in verdict.detail
    assert measurement.measured is None


def test_activation_range_passes_with_the_largest_when_everything_fits() -> None:
    verdict = activation_range(multiplied(10.0, -100.0, 0.001), [FEED])
    assert (verdict.status, verdict.measured, verdict.threshold) == (Status.PASSED, 4000.0, 65504.0)
    assert verdict.detail == "the largest activation: 't1' of Mul, node 'm1': -4000"


def test_activation_range_names_the_first_tensor_in_graph_order_when_several_are_past() -> None:
    verdict = activation_range(multiplied(10.0, -1e5, 10.0, 1e-9), [FEED])
    assert verdict.status is Status.FAILED
    assert verdict.measured == pytest.approx(4e7)
    first = "past fp16's 65504, first: 't1' of Mul, node 'm1': -4e+06, 't2' of Mul, node 'm2': -4e+07"
    assert verdict.detail == first


def test_activation_range_sees_an_overflow_inside_when_the_output_is_small() -> None:
    made = chain("Exp", "Neg", "Exp")
    verdict = activation_range(made, [{"x": row(0, 0, 0, 12)}])
    assert verdict.status is Status.FAILED
    assert "'t0' of Exp, node 'n0': 162755" in verdict.detail


def test_activation_range_counts_every_feed_when_only_one_overflows() -> None:
    verdict = activation_range(multiplied(100.0), [FEED, {"x": row(0, 0, 0, 700)}, FEED])
    assert verdict.status is Status.FAILED
    assert verdict.measured == 70000.0


def test_activation_range_looks_at_inputs_too() -> None:
    verdict = activation_range(multiplied(1e-3), [{"x": row(0, 0, 0, 1e6)}])
    assert "first: input 'x': 1e+06" in verdict.detail


@pytest.mark.parametrize(("value", "shown"), [(math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf")])
def test_activation_range_fails_when_a_tensor_is_not_finite(value: float, shown: str) -> None:
    nodes = [helper.make_node("Mul", ["x", "k"], ["t"], "m"), helper.make_node("Clip", ["t", "lo", "hi"], ["y"], "c")]
    made = model(nodes, [X], [Y], [constant("k", value), constant("lo", 0.0), constant("hi", 1.0)])
    verdict = activation_range(made, [{"x": row(1, 1, 1, 1)}])
    assert verdict.status is Status.FAILED
    assert f"first: 't' of Mul, node 'm': {shown}" in verdict.detail


def test_activation_range_finds_nan_when_it_is_one_value_of_many() -> None:
    nodes = [helper.make_node("Sqrt", ["x"], ["y"], "root")]
    made = model(nodes, [tensor("x", [1, 100_000])], [tensor("y", [1, 100_000])])
    values = np.ones((1, 100_000), np.float32)
    values[0, 77_777] = -1
    verdict = activation_range(made, [{"x": values}])
    assert (verdict.status, math.isnan(float(verdict.measured or 0))) == (Status.FAILED, True)
    assert "'y' of Sqrt, node 'root': nan" in verdict.detail


def test_activation_range_measures_half_tensors_when_the_graph_has_them() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], "down", to=TensorProto.FLOAT16),
        helper.make_node("Add", ["h", "h"], ["d"], "twice"),
        helper.make_node("Cast", ["d"], ["y"], "up", to=TensorProto.FLOAT),
    ]
    verdict = activation_range(model(nodes, [X], [Y]), [{"x": row(1, 2, 3, 40000)}])
    assert verdict.status is Status.FAILED
    # 80000 or inf: onnxruntime keeps such a sum in fp32 where it has no fp16 kernel.
    assert "first: 'd' of Add, node 'twice': " in verdict.detail


def test_activation_range_passes_over_integer_tensors() -> None:
    nodes = [
        helper.make_node("ArgMax", ["x"], ["i"], "arg", axis=1),
        helper.make_node("Mul", ["i", "k"], ["b"], "big"),
        helper.make_node("Tanh", ["x"], ["y"], "t"),
    ]
    made = model(nodes, [X], [Y], [constant("k", [10**9], np.int64)])
    assert activation_range(made, [FEED]).status is Status.PASSED


INTEGERS = tensor("x", [1, 4], TensorProto.INT32)


def test_activation_range_fails_when_no_tensor_can_be_judged() -> None:
    made = model([helper.make_node("Abs", ["x"], ["y"], "abs")], [INTEGERS], [tensor("y", [1, 4], TensorProto.INT32)])
    verdict = activation_range(made, [{"x": np.ones((1, 4), np.int32)}])
    assert verdict.status is Status.FAILED
    assert verdict.detail == "there is no tensor of a floating-point type that could be judged"


def test_activation_range_names_a_tensor_when_its_type_is_not_judged() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["b"], "down", to=TensorProto.BFLOAT16),
        helper.make_node("Cast", ["b"], ["y"], "up", to=TensorProto.FLOAT),
    ]
    verdict = activation_range(model(nodes, [X], [Y]), [FEED])
    assert verdict.status is Status.PASSED
    assert verdict.detail.endswith("; not judged: 'b' of Cast, node 'down' (BFLOAT16)")


def test_activation_range_names_a_tensor_when_its_type_is_not_known() -> None:
    nodes = [
        helper.make_node("BiasGelu", ["x", "k"], ["u"], "other", domain="com.microsoft"),
        helper.make_node("Tanh", ["x"], ["y"], "tanh"),
    ]
    made = proto(nodes, [X], [Y], [constant("k", [0.0] * 4)])
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    verdict = activation_range(ir.from_proto(made), [FEED])
    assert verdict.detail.endswith("; not judged: 'u' of BiasGelu, node 'other' (type not known)")


def test_activation_range_measures_scalars_and_all_opsets() -> None:
    for opset in (11, 13, 17, 18, 19):
        node = helper.make_node("ReduceMax", ["x"], ["y"], "r", keepdims=0)
        verdict = activation_range(model([node], [X], [tensor("y", [])], opset=opset), [FEED])
        assert (verdict.status, verdict.measured) == (Status.PASSED, 4.0)


@pytest.mark.parametrize(
    ("feeds", "reason"), [([], "no inputs to run"), ([{}], "the input 'x' is missing"), ([{"x": row(1)}], "[1, 4]")]
)
def test_activation_range_fails_with_reason_when_it_cannot_run(feeds: list[Any], reason: str) -> None:
    verdict = activation_range(multiplied(1.0), feeds)
    assert verdict.status is Status.FAILED
    assert reason in verdict.detail


def test_activation_range_leaves_the_graph_unchanged_when_it_measures() -> None:
    made = multiplied(2.0, 3.0)
    activation_range(made, [FEED])
    assert [node.op_type for node in made.graph] == ["Mul", "Mul"]
    np.testing.assert_array_equal(Session(made).run(FEED)["y"], row(6, -12, 18, 24))


_MEASURED = """
import resource
import numpy as np
import onnx_ir as ir
from onnx import helper
from gates.fp16_range import activation_range
from tests.gates.small_graphs import proto, tensor

SIZE, COUNT = 1 << 21, 100
names = ["x", *(f"t{number}" for number in range(COUNT))]
nodes = [helper.make_node("Sin", [a], [b], f"n{b}") for a, b in zip(names, names[1:])]
model = ir.from_proto(proto(nodes, [tensor("x", [1, SIZE])], [tensor(names[-1], [1, SIZE])]))
feed = {"x": np.ones((1, SIZE), np.float32)}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
verdict = activation_range(model, [feed, feed])
print(verdict.status.value, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_activation_range_keeps_no_tensor_when_it_has_looked_at_it() -> None:
    done = subprocess.run([sys.executable, "-c", _MEASURED], capture_output=True, text=True, check=True, cwd=ROOT)
    status, grown_kb = done.stdout.split()
    assert status == "passed"
    # 100 tensors of 8 MB would be 800 MB; a plain run has two at a time.
    assert int(grown_kb) < 200_000
