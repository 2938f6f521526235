"""Quantised operators give in floats what onnxruntime's own kernels give."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper
from onnxruntime.quantization import QuantType

from surgery.decompose_quantised import decompose_quantised
from surgery.decompose_quantised_operators import decompose_quantised_operators
from tests.gates.small_graphs import constant, proto, tensor
from tests.onnx_runs import run, snr_db
from tests.surgery.graphs import check, serialised
from tests.surgery.quantised_graphs import FLOAT, dynamically, feed, noise, statically
from tests.surgery.test_decompose_quantised import QUANTISED, operators

FEED = {"x": noise(1, 4, 6), "other": noise(1, 4, 6, seed=5)}
RNG = np.random.default_rng(6)


def node(op: str, inputs: Sequence[str], output: str, domain: str = "", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, [output], f"{op}_{output}", domain=domain, **attributes)


def with_microsoft(
    nodes: Sequence[onnx.NodeProto], constants: Sequence[onnx.TensorProto], rank: int = 3, opset: int = 17
) -> ir.Model:
    """`nodes` make y of x and other, both [1, 4, 6]; onnxruntime's operators are known."""
    inputs = [tensor("x", [1, 4, 6]), tensor("other", [1, 4, 6])]
    made = proto(nodes, inputs, [tensor("y", [None] * rank)], constants, opset=opset)  # type: ignore[list-item]
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return ir.from_proto(made)


def through(
    op: str, inputs: str, *more: onnx.TensorProto, domain: str = "com.microsoft", **attributes: Any
) -> ir.Model:
    """x and other, quantised to q and p, through one operator to y: names of `inputs` as in the constants below."""
    nodes = [
        node("QuantizeLinear", ["x", "qs", "qz"], "q"),
        node("QuantizeLinear", ["other", "ps", "pz"], "p"),
        node("Greater", ["x", "other"], "c"),
        node(op, inputs.split(), "r", domain, **attributes),
        node("DequantizeLinear", ["r", "rs", "rz"], "y"),
    ]
    constants = [
        *(constant(name, scale) for name, scale in (("qs", 0.03), ("ps", 0.02), ("rs", 0.025), ("ks", 0.01))),
        *(constant(name, zero, np.uint8) for name, zero in (("qz", 120), ("pz", 131), ("rz", 100), ("kz", 7))),
        constant("k", RNG.integers(0, 255, (1, 4, 6)), np.uint8),
        *more,
    ]
    return with_microsoft(nodes, constants)


Q, P, K, R = "q qs qz", "p ps pz", "k ks kz", "rs rz"
FILTERS = (
    constant("f", RNG.integers(-128, 127, (4, 2, 3)), np.int8),
    constant("fs", [0.01, 0.02, 0.03, 0.04]),
    constant("fz", [0, 0, 0, 0], np.int8),
    constant("b", [10, -20, 30, -40], np.int32),
)
COLUMNS = (
    constant("m", RNG.integers(-128, 127, (6, 5)), np.int8),
    constant("ms", np.linspace(0.005, 0.01, 5)),
    constant("mz", np.zeros(5), np.int8),
)

OPERATORS = [
    pytest.param(through("QLinearAdd", f"{Q} {P} {R}"), "Add", id="sum"),
    pytest.param(through("QLinearAdd", f"{Q} {K} {R}"), "Add", id="sum with a constant"),
    pytest.param(through("QLinearMul", f"{Q} {P} {R}"), "Mul", id="product"),
    pytest.param(through("QLinearLeakyRelu", f"{Q} {R}", alpha=0.3), "LeakyRelu", id="leaky"),
    pytest.param(through("QLinearSigmoid", f"{Q} {R}"), "Sigmoid", id="sigmoid"),
    pytest.param(through("QLinearSoftmax", f"{Q} {R}", axis=1, opset=13), "Softmax", id="softmax of axis 1"),
    pytest.param(through("QLinearSoftmax", f"{Q} {R}", axis=-1, opset=12), "Softmax", id="softmax of the last axis"),
    pytest.param(through("QLinearConcat", f"{R} {Q} {P}", axis=1), "Concat", id="joined"),
    pytest.param(through("QLinearWhere", f"c {Q} {P} {R}"), "Where", id="where"),
    pytest.param(through("QLinearConv", f"{Q} f fs fz {R} b", *FILTERS, domain="", group=2, pads=[1, 1]), "Conv",
                 id="convolution"),
    pytest.param(through("QLinearConv", f"{Q} f ks fz {R}", *FILTERS[:1], constant("fz", 0, np.int8),
                         domain="", group=2, strides=[2], dilations=[2]), "Conv", id="convolution of one scale"),
    pytest.param(through("QLinearMatMul", f"{Q} m ms mz {R}", *COLUMNS, domain=""), "MatMul", id="matmul by columns"),
]  # fmt: skip


@pytest.mark.parametrize(("original", "wanted"), OPERATORS)
def test_operator_is_a_float_one_between_pairs_when_rewritten(original: ir.Model, wanted: str) -> None:
    before = serialised(original)
    done = decompose_quantised_operators().rewrite(original)
    assert (done.hits, done.refused) == (1, ())
    assert serialised(original) == before
    check(done.model)
    assert wanted in operators(done.model)
    assert snr_db(run(original, FEED)["y"], run(done.model, FEED)["y"]) > 40  # steps of one, here and there
    floats = decompose_quantised().rewrite(done.model)
    assert floats.refused == ()
    check(floats.model)
    assert not set(operators(floats.model)) & set(QUANTISED)
    assert snr_db(run(original, FEED)["y"], run(floats.model, FEED)["y"]) > 25


def gemm(read: str, transposed: int = 0) -> ir.Model:
    """QGemm of x as a matrix [4, 6], with floats for output where `read` ends early."""
    flat = [node("Reshape", ["x", "shape"], "x2"), node("QuantizeLinear", ["x2", "qs", "qz"], "q")]
    product = node("QGemm", read.split(), "r", "com.microsoft", alpha=0.5, transB=transposed)
    back = node("DequantizeLinear", ["r", "rs", "rz"], "y") if "rs" in read else node("Identity", ["r"], "y")
    weights = RNG.integers(-128, 127, (5, 6) if transposed else (6, 5))
    constants = [
        constant("shape", [4, 6], np.int64), constant("qs", 0.03), constant("qz", 120, np.uint8),
        constant("m", weights, np.int8), *COLUMNS[1:], constant("rs", 0.05), constant("rz", 128, np.uint8),
        constant("bias", np.arange(5) * 100, np.int32),
    ]  # fmt: skip
    return with_microsoft([*flat, product, back], constants, rank=2)


@pytest.mark.parametrize("read", ["q qs qz m ms mz bias rs rz", "q qs qz m ms mz bias", "q qs qz m ms mz"])
@pytest.mark.parametrize("transposed", [0, 1])
def test_gemm_is_a_float_one_when_its_output_is_a_float_or_not(read: str, transposed: int) -> None:
    original = gemm(read, transposed)
    done = decompose_quantised_operators().rewrite(original)
    assert done.hits == 1
    check(done.model)
    assert snr_db(run(original, FEED)["y"], run(done.model, FEED)["y"]) > 40


@pytest.mark.parametrize("per_channel", [False, True], ids=["per tensor", "per channel"])
@pytest.mark.parametrize("kind", ["QInt8", "QUInt8"])
@pytest.mark.parametrize("name", ["perceptron", "gemm", "convolutions", "embedding"])
def test_graph_computes_in_floats_when_the_quantiser_wrote_operators(
    name: str, kind: str, per_channel: bool, tmp_path: Path
) -> None:
    made = FLOAT[name]()
    original = statically(made, tmp_path, "QOperator", kind, per_channel)
    middle = decompose_quantised_operators().rewrite(original)
    done = decompose_quantised().rewrite(middle.model)
    assert not middle.refused + done.refused
    check(done.model)
    assert all(node.domain == "" and node.op_type not in QUANTISED for node in done.model.graph)
    wanted, got = run(original, feed(made))["y"], run(done.model, feed(made))["y"]
    assert snr_db(wanted, got) >= 30  # measured: 32 to 43 dB
    assert snr_db(run(made, feed(made))["y"], got) >= snr_db(run(made, feed(made))["y"], wanted)


@pytest.mark.parametrize("per_channel", [False, True], ids=["per tensor", "per channel"])
@pytest.mark.parametrize("kind", ["QInt8", "QUInt8"])
def test_lstm_is_a_float_one_when_its_weights_are_quantised(kind: str, per_channel: bool, tmp_path: Path) -> None:
    made = FLOAT["lstm"]()
    original = dynamically(made, tmp_path, per_channel=per_channel, weight_type=getattr(QuantType, kind))
    done = decompose_quantised_operators().rewrite(original)
    assert (done.hits, done.refused) == (1, ())
    check(done.model)
    assert operators(done.model) == ["LSTM"]
    assert snr_db(run(original, feed(made))["y"], run(done.model, feed(made))["y"]) > 35


@pytest.mark.parametrize("bias", [False, True])
def test_dynamic_matmul_is_a_float_one_when_rewritten(bias: bool) -> None:
    read = ["x", "m", "ms", "mz", *(["b"] if bias else [])]
    made = [node("DynamicQuantizeMatMul", read, "y", "com.microsoft")]
    original = with_microsoft(made, [*COLUMNS, constant("b", noise(5))])
    done = decompose_quantised_operators().rewrite(original)
    check(done.model)
    assert operators(done.model) == (["Add", "MatMul"] if bias else ["MatMul"])
    assert snr_db(run(original, FEED)["y"], run(done.model, FEED)["y"]) > 35


@pytest.mark.parametrize("bias", [False, True])
def test_integer_matmul_to_floats_is_a_float_one_when_rewritten(bias: bool) -> None:
    quantise = helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "qs", "qz"], "quantise")
    read = ["q", "m", "qs", "ms", "qz", "mz", *(["b"] if bias else [])]
    original = with_microsoft(
        [quantise, node("MatMulIntegerToFloat", read, "y", "com.microsoft")], [*COLUMNS, constant("b", noise(5))]
    )
    done = decompose_quantised().rewrite(decompose_quantised_operators().rewrite(original).model)
    check(done.model)
    assert operators(done.model) == (["Add", "MatMul"] if bias else ["MatMul"])
    assert snr_db(run(original, FEED)["y"], run(done.model, FEED)["y"]) > 35


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zero", [False, True], ids=["centred", "zero points"])
@pytest.mark.parametrize("depth", [32, 40, 20])
def test_matmul_of_few_bits_is_a_float_one_when_rewritten(bits: int, zero: bool, depth: int) -> None:
    blocks, columns = -(-depth // 16), 5
    weights = RNG.integers(0, 255, (columns, blocks, 16 * bits // 8))
    zeros = RNG.integers(0, 255, (columns, -(-blocks * bits // 8)))
    constants = [constant("w", weights, np.uint8), constant("s", np.abs(noise(columns, blocks)))]
    constants.append(constant("z", zeros, np.uint8))
    read = ["x", "w", "s", *(["z"] if zero else [])]
    made = proto(
        [node("MatMulNBits", read, "y", "com.microsoft", bits=bits, K=depth, N=columns, block_size=16)],
        [tensor("x", [3, depth])], [tensor("y", [3, columns])], constants,
    )  # fmt: skip
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    original = ir.from_proto(made)
    done = decompose_quantised_operators().rewrite(original)
    check(done.model)
    assert operators(done.model) == ["MatMul"]
    given = {"x": noise(3, depth)}
    assert snr_db(run(original, given)["y"], run(done.model, given)["y"]) > 100


def test_graph_is_the_very_model_when_no_operator_is_quantised() -> None:
    original = ir.from_proto(FLOAT["lstm"]())
    assert decompose_quantised_operators().rewrite(original).model is original


def test_operator_is_left_when_it_only_has_the_name() -> None:
    made = proto(
        [node("QLinearConv", ["x"], "y", "elsewhere")], [tensor("x", [1])], [tensor("y", [1], TensorProto.FLOAT)]
    )
    original = ir.from_proto(made)
    assert decompose_quantised_operators().rewrite(original).model is original
