"""8-bit graphs that onnxruntime's quantisers made compute in floats, near enough and with the saturation kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper
from onnx_ir.convenience import get_const_tensor
from onnxruntime.quantization import QuantType

from surgery.declaration import Pass
from surgery.decompose_quantised import decompose_quantised
from surgery.fold_dequantised_weights import fold_dequantised_weights
from surgery.quantised import EIGHT_BITS
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import Array, run, snr_db
from tests.surgery.graphs import check, serialised
from tests.surgery.quantised_graphs import FLOAT, LAYERS, dynamically, feed, noise, statically

QUANTISED = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger")


def after(*passes: Pass, original: ir.Model) -> ir.Model:
    """`original` after `passes`, each of which must find something."""
    for bound in passes:
        before = serialised(original)
        done = bound.rewrite(original)
        assert done.refused == ()
        assert done.hits
        assert serialised(original) == before
        check(done.model)
        original = done.model
    return original


def operators(model: ir.Model) -> list[str]:
    return sorted(node.op_type for node in model.graph)


def node(op: str, inputs: Sequence[str], *outputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs, f"{op}_{outputs[0]}", **attributes)


@pytest.mark.parametrize("per_channel", [False, True], ids=["per tensor", "per channel"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("perceptron", "QInt8"),
        ("perceptron", "QUInt8"),
        ("gemm", "QInt8"),
        ("gemm", "QUInt8"),
        ("convolutions", "QUInt8"),
    ],
)
def test_dynamic_graph_computes_in_floats_when_rewritten(
    name: str, kind: str, per_channel: bool, tmp_path: Path
) -> None:
    made = FLOAT[name]()
    original = dynamically(made, tmp_path, per_channel=per_channel, weight_type=getattr(QuantType, kind))
    done = after(decompose_quantised(), original=original)
    assert not set(operators(done)) & {*QUANTISED, "Cast", "Mul"}
    wanted, got = run(original, feed(made))["y"], run(done, feed(made))["y"]
    assert snr_db(wanted, got) >= 30  # measured: 38 to 51 dB
    # Nearer to the model before quantisation than the quantised one is, or as near.
    assert snr_db(run(made, feed(made))["y"], got) >= snr_db(run(made, feed(made))["y"], wanted)


@pytest.mark.parametrize("kind", ["QInt8", "QUInt8"])
def test_dynamic_graph_computes_in_floats_when_a_factor_is_chosen_from_a_table(kind: str, tmp_path: Path) -> None:
    made = FLOAT["embedding"]()
    original = dynamically(made, tmp_path, weight_type=getattr(QuantType, kind))
    assert "DynamicQuantizeLinear" not in operators(original)
    done = after(decompose_quantised(), original=original)
    assert operators(done) == ["Cast", "Gather", "MatMul"]  # with the scales in the weight
    assert snr_db(run(original, feed(made))["y"], run(done, feed(made))["y"]) > 120  # nothing was rounded before


@pytest.mark.parametrize("per_channel", [False, True], ids=["per tensor", "per channel"])
@pytest.mark.parametrize("kind", ["QInt8", "QUInt8"])
@pytest.mark.parametrize("name", ["perceptron", "gemm", "convolutions"])
def test_static_graph_computes_in_floats_when_rewritten(
    name: str, kind: str, per_channel: bool, tmp_path: Path
) -> None:
    made = FLOAT[name]()
    original = statically(made, tmp_path, "QDQ", kind, per_channel)
    done = after(fold_dequantised_weights(), decompose_quantised(), original=original)
    assert not set(operators(done)) & set(QUANTISED)
    wanted, got = run(original, feed(made))["y"], run(done, feed(made))["y"]
    assert snr_db(wanted, got) >= 30  # measured: 32 to 43 dB
    assert snr_db(run(made, feed(made))["y"], got) >= snr_db(run(made, feed(made))["y"], wanted)


def test_static_graph_keeps_the_relu_when_the_quantiser_made_it_a_saturation(tmp_path: Path) -> None:
    original = statically(FLOAT["perceptron"](), tmp_path, "QDQ", "QUInt8", per_channel=False)
    assert "Relu" not in operators(original)
    done = after(fold_dequantised_weights(), decompose_quantised(), original=original)
    lowest = [get_const_tensor(clip.inputs[1]) for clip in done.graph if clip.op_type == "Clip" and clip.inputs[1]]
    assert sum(float(low.numpy()) == 0 for low in lowest if low is not None) >= LAYERS - 1


def quantised(*steps: onnx.NodeProto, scale: Any = 0.05, zero: Any = 3, kind: Any = np.int8, **more: Any) -> ir.Model:
    """x [1, 4, 6], quantised to q; `steps` make y of it."""
    nodes = [node("QuantizeLinear", ["x", "s", "z"], "q"), *steps]
    constants = [constant("s", scale), constant("z", zero, kind), *more.pop("constants", ())]
    return model(nodes, [tensor("x", [1, 4, 6])], [tensor("y", more.pop("shape", [1, 4, 6]))], constants, **more)


X = {"x": noise(1, 4, 6, scale=10)}


@pytest.mark.parametrize(
    ("scale", "zero", "kind", "opset"),
    [(0.05, 3, np.int8, 10), (0.05, 3, np.int8, 13), (0.03, 131, np.uint8, 17), (0.5, 0, np.uint8, 19),
     (0.0001, 7, np.int16, 21), ([0.05], [3], np.int8, 17)],
)  # fmt: skip
def test_pair_is_a_clip_when_it_quantises_and_dequantises(scale: Any, zero: Any, kind: Any, opset: int) -> None:
    original = quantised(
        node("DequantizeLinear", ["q", "s", "z"], "d"),
        node("Identity", ["d"], "y"),
        scale=scale, zero=zero, kind=kind, opset=opset,
    )  # fmt: skip
    done = after(decompose_quantised(), original=original)
    assert operators(done) == ["Clip", "Identity"]
    wanted, got = run(original, X)["y"], run(done, X)["y"]
    step = float(np.max(scale))
    assert np.abs(wanted - got).max() <= step / 2 * 1.001
    limits = np.iinfo(kind)
    assert got.min() >= (limits.min - int(np.max(zero))) * step * 1.001
    np.testing.assert_allclose(got.max(), min(X["x"].max(), (limits.max - int(np.max(zero))) * step), rtol=1e-6)


def test_pair_keeps_an_output_when_it_makes_one_and_another_reads_it_too() -> None:
    original = quantised(
        node("DequantizeLinear", ["q", "s", "z"], "y"),
        node("DequantizeLinear", ["q", "s", "z"], "again"),
        node("Tanh", ["again"], "unread"),
    )
    done = after(decompose_quantised(), original=original)
    assert [value.name for value in done.graph.outputs] == ["y"]
    assert snr_db(run(original, X)["y"], run(done, X)["y"]) > 35


MOVES = [
    pytest.param([node("Transpose", ["q"], "m", perm=[0, 2, 1])], [1, 6, 4], id="transposed"),
    pytest.param([node("MaxPool", ["q"], "m", kernel_shape=[2], pads=[1, 0])], [1, 4, 6], id="largest of two"),
    pytest.param([node("Split", ["q"], "m", "rest", axis=2)], [1, 4, 3], id="one half"),
    pytest.param(
        [node("Reshape", ["q", "shape"], "r"), node("Unsqueeze", ["r", "axes"], "m")], [1, 6, 4], id="reshaped"
    ),
    pytest.param([node("Resize", ["q", "", "sizes"], "m", mode="nearest")], [1, 4, 12], id="repeated"),
]


@pytest.mark.parametrize(("steps", "shape"), MOVES)
def test_pair_is_rewritten_when_the_integers_are_moved_in_between(
    steps: list[onnx.NodeProto], shape: list[int]
) -> None:
    constants = [constant("shape", [6, 4], np.int64), constant("axes", [0], np.int64), constant("sizes", [1, 1, 2])]
    original = quantised(
        *steps, node("DequantizeLinear", ["m", "s", "z"], "y"), constants=constants, shape=shape, opset=13
    )
    done = after(decompose_quantised(), original=original)
    assert not set(operators(done)) & set(QUANTISED)
    assert snr_db(run(original, X)["y"], run(done, X)["y"]) > 35


def integer_product(
    *steps: onnx.NodeProto, op: str = "MatMulInteger", weight: Any = None, zero: Any = 3, **more: Any
) -> ir.Model:
    """x quantised dynamically, an integer product `i` of it with `w`; `steps` make y of it."""
    weight = np.random.default_rng(1).integers(0, 255, (6, 5)).astype(np.uint8) if weight is None else weight
    nodes = [
        node("DynamicQuantizeLinear", ["x"], "q", "s", "z"),
        *more.pop("before", ()),
        node(op, [more.pop("read", "q"), "w", "z", "wz"], "i", **more.pop("attributes", {})),
        *steps,
    ]
    constants = [constant("w", weight, weight.dtype), constant("wz", zero, weight.dtype), *more.pop("constants", ())]
    return model(nodes, [tensor("x", [1, 4, 6])], [tensor("y", more.pop("shape", [1, 4, 5]))], constants, **more)


CAST = node("Cast", ["i"], "f", to=TensorProto.FLOAT)
SCALES = node("Mul", ["s", "ws"], "sw")
RESCALE = [CAST, SCALES, node("Mul", ["f", "sw"], "y")]
ONE_BY_ONE = [CAST, node("Mul", ["ws", "f"], "g"), node("Mul", ["g", "s"], "y")]
BIASED = [
    SCALES,
    node("Div", ["b", "sw"], "b0"),
    node("Floor", ["b0"], "b1"),
    node("Cast", ["b1"], "b2", to=TensorProto.INT32),
]
FILTERS = np.random.default_rng(1).integers(0, 255, (4, 2, 3)).astype(np.uint8)
SMALL = constant("ws", 0.002)

PRODUCTS = [
    pytest.param(integer_product(*RESCALE, constants=[SMALL]), ["MatMul"], id="scales first"),
    pytest.param(integer_product(*ONE_BY_ONE, constants=[SMALL]), ["MatMul"], id="one scale after the other"),
    pytest.param(integer_product(*RESCALE, constants=[constant("ws", np.linspace(0.001, 0.003, 5))],
                                 zero=[1, 2, 3, 4, 5]), ["MatMul"], id="columns"),
    pytest.param(integer_product(*RESCALE, constants=[constant("ws", 0.002 + noise(4, 1, scale=1e-4))]),
                 ["MatMul", "Mul"], id="a scale for each row of the output"),
    pytest.param(
        integer_product(*BIASED, node("Add", ["i", "b2"], "j"), node("Cast", ["j"], "f", to=1),
                        node("Mul", ["f", "sw"], "y"), constants=[SMALL, constant("b", noise(5))]),
        ["Add", "MatMul"], id="bias among the integers",
    ),
    pytest.param(
        integer_product(*BIASED, node("Reshape", ["b2", "shape"], "b3"), node("Add", ["b3", "i"], "j"),
                        node("Cast", ["j"], "f", to=1), node("Mul", ["sw", "f"], "y"),
                        op="ConvInteger", weight=FILTERS, attributes={"group": 2, "pads": [1, 1]}, shape=[1, 4, 6],
                        constants=[SMALL, constant("b", noise(4)), constant("shape", [1, 4, 1], np.int64)]),
        ["Conv"], id="bias of a convolution",
    ),
    pytest.param(
        integer_product(*RESCALE, op="ConvInteger", weight=FILTERS, attributes={"group": 2, "strides": [2]},
                        shape=[1, 4, 2], constants=[constant("ws", [[0.001], [0.002], [0.003], [0.004]])]),
        ["Conv"], id="filters",
    ),
    pytest.param(
        integer_product(*RESCALE, before=[node("Transpose", ["q"], "t", perm=[0, 2, 1])], read="t", shape=[1, 6, 5],
                        weight=np.arange(20).reshape(4, 5).astype(np.int8), constants=[SMALL]),
        ["MatMul", "Transpose"], id="transposed integers",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("original", "wanted"), PRODUCTS)
def test_integer_product_is_a_float_one_when_its_scales_follow(original: ir.Model, wanted: list[str]) -> None:
    done = after(decompose_quantised(), original=original)
    assert operators(done) == wanted
    assert snr_db(run(original, X)["y"], run(done, X)["y"]) > 30


def test_integer_product_is_a_float_one_when_both_factors_are_dynamic() -> None:
    nodes = [
        node("DynamicQuantizeLinear", ["x"], "q", "s", "z"),
        node("Transpose", ["x"], "t", perm=[0, 2, 1]),
        node("DynamicQuantizeLinear", ["t"], "tq", "ts", "tz"),
        node("MatMulInteger", ["q", "tq", "z", "tz"], "i"),
        CAST,
        node("Mul", ["s", "ts"], "st"),
        node("Mul", ["f", "st"], "y"),
    ]
    original = model(nodes, [tensor("x", [1, 4, 6])], [tensor("y", [1, 4, 4])])
    done = after(decompose_quantised(), original=original)
    assert operators(done) == ["MatMul", "Transpose"]
    assert snr_db(run(original, X)["y"], run(done, X)["y"]) > 30


def test_dynamic_tensor_is_itself_when_it_is_dequantised() -> None:
    nodes = [
        node("DynamicQuantizeLinear", ["x"], "q", "s", "z"),
        node("DequantizeLinear", ["q", "s", "z"], "d"),
        node("Tanh", ["d"], "y"),
    ]
    original = model(nodes, [tensor("x", [1, 4, 6])], [tensor("y", [1, 4, 6])])
    done = after(decompose_quantised(), original=original)
    assert operators(done) == ["Tanh"]
    assert snr_db(run(original, X)["y"], run(done, X)["y"]) > 30


def test_float_graph_is_the_very_model_when_nothing_is_quantised() -> None:
    original = ir.from_proto(FLOAT["convolutions"]())
    assert decompose_quantised().rewrite(original).model is original


def test_bound_is_above_what_a_wrong_scale_gives() -> None:
    x: Array = noise(1000)
    assert max(snr_db(x, x / 2), snr_db(x, 2 * x)) < EIGHT_BITS.minimum_db
