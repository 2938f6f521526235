"""Operators that the board cannot run are named with node and reason; everything else passes."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from contracts.verdicts import Status
from gates.constant_inputs import DECIDES_A_SHAPE, TAKEN_AS_A_WEIGHT
from gates.operators import REFUSED, operators
from tests.gates.small_graphs import chain, constant, model, proto, tensor

X, Y = tensor("x", [1, 4]), tensor("y", [1, 4])


def single(op: str) -> ir.Model:
    return model([helper.make_node(op, ["x"], ["y"], "at")], [X], [Y])


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        # A sample of each kind, as rknn-toolkit2 2.3.2 was seen to behave.
        ("Atan", "no NPU or CPU kernel on the board"),
        ("Ceil", "no NPU or CPU kernel on the board"),
        ("Mish", "no NPU or CPU kernel on the board"),
        ("Trilu", "no NPU or CPU kernel on the board"),
        ("RandomNormalLike", "make the noise an input"),
        ("RandomUniformLike", "make the noise an input"),
        ("Bernoulli", "make the noise an input"),
        ("Loop", "control flow is not compiled"),
        ("Scan", "control flow is not compiled"),
        ("Shape", "computes a shape"),
        ("Size", "computes a shape"),
        ("ConstantOfShape", "input 'x' decides a shape and is an input of the graph"),
        ("Compress", "depends on the data"),
        ("NonMaxSuppression", "depends on the data"),
        ("NonZero", "depends on the data"),
        ("Unique", "depends on the data"),
        ("DynamicQuantizeLinear", "depends on the data"),
        ("GroupNormalization", "the toolkit breaks on it"),
        ("SplitToSequence", "the toolkit breaks on it"),
    ],
)
def test_operators_fails_naming_node_and_reason_when_operator_cannot_run(op: str, reason: str) -> None:
    verdict = operators(single(op))
    assert (verdict.status, verdict.measured, verdict.threshold) == (Status.FAILED, 1.0, 0.0)
    assert f"op {op}, node 'at' (" in verdict.detail
    assert reason in verdict.detail


@pytest.mark.parametrize(
    "op",
    [
        "Abs", "Cos", "CumSum", "Elu", "Erf", "Exp", "Floor", "GatherND", "HardSwish", "InstanceNormalization",
        "LayerNormalization", "LeakyRelu", "Log", "Max", "Pow", "Reciprocal", "ReduceMean", "Round", "Sigmoid", "Sin",
        "Softmax", "Softplus", "Sqrt", "Tanh", "TopK", "Where", "And", "Not", "LSTM", "GRU",
    ],
)  # fmt: skip
def test_operators_passes_when_compiler_was_seen_to_place_the_operator(op: str) -> None:
    verdict = operators(single(op))
    assert verdict.status is Status.PASSED
    assert "1 nodes" in verdict.detail


def test_operators_knows_only_real_operators_of_opset_19_or_lower() -> None:
    schemas = onnx.defs.get_all_schemas_with_history()
    known = {schema.name for schema in schemas if schema.domain == "" and schema.since_version <= 19}
    assert set(REFUSED) <= known


def test_operators_names_the_condition_when_there_is_an_if() -> None:
    def branch(op: str, made: str) -> onnx.GraphProto:
        return helper.make_graph([helper.make_node(op, ["x"], [made], f"in_{op}")], op, [], [tensor(made, [1, 4])])

    node = helper.make_node(
        "If", ["cond"], ["y"], "if0", then_branch=branch("Tanh", "a"), else_branch=branch("Atan", "b")
    )
    verdict = operators(model([node], [X, tensor("cond", [1], TensorProto.BOOL)], [Y]))
    assert "op If, node 'if0' (input 'cond'; control flow" in verdict.detail
    assert "Atan, node 'in_Atan'" in verdict.detail
    assert verdict.measured == 2


def test_operators_lists_five_and_counts_the_rest_when_many_offend() -> None:
    verdict = operators(chain(*["Atan"] * 8))
    assert verdict.measured == 8
    assert "node 'n4'" in verdict.detail
    assert "node 'n5'" not in verdict.detail
    assert "and 3 more (no NPU or CPU kernel on the board" in verdict.detail


@pytest.mark.parametrize("op", ["Ceil", "Trilu", "NonZero"])
def test_operators_passes_when_the_toolkit_folds_a_constant_node(op: str) -> None:
    nodes = [helper.make_node(op, ["k"], ["c"], "folds"), helper.make_node("Add", ["x", "c"], ["y"], "add")]
    assert operators(model(nodes, [X], [Y], [constant("k", [[1.5, 2, 3, 4]])])).status is Status.PASSED


def test_operators_passes_when_a_constant_node_feeds_another_that_folds() -> None:
    nodes = [
        helper.make_node("Constant", [], ["k"], "k", value_floats=[1.5, 2.5]),
        helper.make_node("Ceil", ["k"], ["c"], "first"),
        helper.make_node("Sign", ["c"], ["s"], "second"),
        helper.make_node("Add", ["x", "s"], ["y"], "add"),
    ]
    assert operators(model(nodes, [tensor("x", [1, 2])], [tensor("y", [1, 2])])).status is Status.PASSED


@pytest.mark.parametrize("op", ["RandomNormal", "RandomNormalLike", "Range", "ConstantOfShape"])
def test_operators_fails_on_noise_and_shapes_even_when_inputs_are_constant(op: str) -> None:
    nodes = [helper.make_node(op, ["k"], ["c"], "made"), helper.make_node("Add", ["x", "c"], ["y"], "add")]
    verdict = operators(model(nodes, [X], [Y], [constant("k", [1.0])]))
    assert f"{op}, node 'made'" in verdict.detail


def test_operators_fails_when_an_initializer_is_also_an_input() -> None:
    """Then it is a default that a caller may replace, and nothing folds."""
    nodes = [helper.make_node("Ceil", ["x"], ["y"], "c")]
    made = proto(nodes, [X], [Y], [constant("x", [[1, 2, 3, 4]])])
    assert operators(ir.from_proto(made)).status is Status.FAILED


def test_operators_fails_when_node_is_of_another_domain() -> None:
    made = proto([helper.make_node("FusedMatMul", ["x"], ["y"], "fused", domain="com.microsoft")], [X], [Y])
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    verdict = operators(ir.from_proto(made))
    assert "FusedMatMul, node 'fused' (domain com.microsoft: no NPU or CPU kernel" in verdict.detail


def test_operators_fails_when_there_is_a_local_function() -> None:
    made = proto([helper.make_node("Twice", ["x"], ["y"], "call", domain="local")], [X], [Y])
    body = [helper.make_node("Add", ["a", "a"], ["b"])]
    made.functions.append(helper.make_function("local", "Twice", ["a"], ["b"], body, [helper.make_opsetid("", 17)]))
    made.opset_import.append(helper.make_opsetid("local", 1))
    verdict = operators(ir.from_proto(made))
    assert verdict.status is Status.FAILED
    assert "function 'Twice'" in verdict.detail


def test_operators_names_the_output_when_node_has_no_name() -> None:
    verdict = operators(model([helper.make_node("Atan", ["x"], ["y"])], [X], [Y]))
    assert "the unnamed node that makes 'y'" in verdict.detail


def loop(*inputs: str, name: str = "loop") -> onnx.NodeProto:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["on"], "on"),
            helper.make_node("Tanh", ["carried"], ["next"], "tanh"),
        ],
        "body",
        [tensor("step", [], TensorProto.INT64), tensor("going", [], TensorProto.BOOL), tensor("carried", [1, 4])],
        [tensor("on", [], TensorProto.BOOL), tensor("next", [1, 4])],
    )
    return helper.make_node("Loop", [*inputs, "x"], ["y"], name, body=body)


COUNT = tensor("count", [], TensorProto.INT64)
GOES_ON = tensor("goes_on", [], TensorProto.BOOL)


@pytest.mark.parametrize(
    ("inputs", "wanted"),
    [
        (("count", "goes_on"), "trip count 'count', condition 'goes_on'"),
        (("count", ""), "trip count 'count', no condition"),
        (("", "goes_on"), "no trip count, condition 'goes_on'"),
        (("", ""), "no trip count, no condition"),
    ],
)
def test_operators_names_trip_count_and_condition_when_there_is_a_loop(inputs: tuple[str, str], wanted: str) -> None:
    verdict = operators(model([loop(*inputs)], [X, COUNT, GOES_ON], [Y]))
    assert verdict.measured == 1
    assert f"op Loop, node 'loop' ({wanted}; control flow is not compiled" in verdict.detail


def test_operators_names_what_is_scanned_when_there_is_a_scan() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["sum", "row"], ["next"], "add"), helper.make_node("Tanh", ["next"], ["out"], "tanh")],
        "body",
        [tensor("sum", [4]), tensor("row", [4])],
        [tensor("next", [4]), tensor("out", [4])],
    )
    node = helper.make_node("Scan", ["start", "x"], ["end", "y"], "scan", body=body, num_scan_inputs=1)
    verdict = operators(model([node], [tensor("start", [4]), X], [Y]))
    assert "op Scan, node 'scan' (scans 'x'; control flow is not compiled" in verdict.detail


@pytest.mark.parametrize(
    ("op", "position", "count"),
    [
        *((op, position, position + 1) for op, positions in DECIDES_A_SHAPE.items() for position in positions),
        *((op, position, position + 1) for op, positions in TAKEN_AS_A_WEIGHT.items() for position in positions),
    ],
)
def test_operators_names_the_input_when_it_must_be_constant_and_depends_on_the_data(
    op: str, position: int, count: int
) -> None:
    names = ["k0" if op == "Range" else "x", *(f"k{i}" for i in range(1, count))]
    names[position] = "sizes"
    nodes = [
        helper.make_node("Mul", ["lengths", "k1"], ["scaled"], "mul"),
        helper.make_node("Add", ["scaled", "offsets"], ["sizes"], "add"),
        helper.make_node(op, names, ["y"], "at"),
    ]
    inputs = [X, tensor("lengths", [1], TensorProto.INT64), tensor("offsets", [1], TensorProto.INT64)]
    verdict = operators(model(nodes, inputs, [Y], [constant(f"k{i}", [1]) for i in range(5)]))
    assert verdict.status is Status.FAILED
    assert f"op {op}, node 'at' (input 'sizes' " in verdict.detail
    assert "depends on the inputs 'lengths', 'offsets'; " in verdict.detail


def test_operators_names_the_node_when_a_shape_comes_from_a_random_operator() -> None:
    nodes = [
        helper.make_node("RandomUniform", [], ["r"], "draw", shape=[1]),
        helper.make_node("Cast", ["r"], ["n"], "cast", to=TensorProto.INT64),
        helper.make_node("Expand", ["x", "n"], ["y"], "at"),
    ]
    verdict = operators(model(nodes, [X], [Y]))
    assert "op Expand, node 'at' (input 'n' decides a shape and comes from RandomUniform, node 'draw'" in verdict.detail


@pytest.mark.parametrize("op", ["Reshape", "Expand", "Tile"])
def test_operators_passes_when_a_shape_is_constant_or_computed_of_constants(op: str) -> None:
    nodes = [helper.make_node("Abs", ["k"], ["sizes"], "abs"), helper.make_node(op, ["x", "sizes"], ["y"], "at")]
    assert operators(model(nodes, [X], [Y], [constant("k", [1, -4])])).status is Status.PASSED


def test_operators_passes_when_weights_of_a_convolution_vary() -> None:
    """Measured: right in the simulator."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], "conv")
    assert operators(model([node], [X, tensor("w", [1, 4, 1])], [Y])).status is Status.PASSED


@pytest.mark.parametrize("op", ["Range", "Slice", "TopK", "Pad"])
def test_operators_names_the_graphs_input_when_it_decides_a_shape(op: str) -> None:
    verdict = operators(model([helper.make_node(op, ["x", "n"], ["y"], "at")], [X, tensor("n", [1])], [Y]))
    name = "x" if op == "Range" else "n"
    assert f"op {op}, node 'at' (input '{name}' decides a shape and is an input of the graph; " in verdict.detail
    assert "export with sizes that do not depend on the data" in verdict.detail


def test_operators_names_the_first_of_a_chain_when_sizes_follow_from_one_another() -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["found"], "first"),
        helper.make_node("Shape", ["found"], ["shape"], "second"),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"], "third"),
        helper.make_node("Atan", ["zeros"], ["y"], "at"),
    ]
    verdict = operators(model(nodes, [X], [tensor("y", [2, "n"])]))
    assert verdict.measured == 2
    assert verdict.detail.startswith("op NonZero, node 'first' (")
    assert "op Atan, node 'at' (no NPU" in verdict.detail
    assert "second" not in verdict.detail


def test_operators_lists_nodes_of_one_reason_together() -> None:
    verdict = operators(chain("Atan", "Tan", "NonZero"))
    assert "op Atan, node 'n0', op Tan, node 'n1' (no NPU or CPU kernel" in verdict.detail
    assert verdict.measured == 3


def several(*conditions: str) -> ir.Model:
    """An If on each of `conditions`."""
    branch = helper.make_graph([helper.make_node("Neg", ["x"], ["b"])], "branch", [], [tensor("b", [1, 4])])
    nodes = [
        helper.make_node("If", [condition], [f"y{n}"], f"if{n}", then_branch=branch, else_branch=branch)
        for n, condition in enumerate(conditions)
    ]
    inputs = [tensor("x", [1, 4]), *(tensor(name, [], TensorProto.BOOL) for name in sorted(set(conditions)))]
    return model(nodes, inputs, [tensor(f"y{n}", [1, 4]) for n in range(len(conditions))])


REASON = "control flow is not compiled: choose the branch or unroll it"


@pytest.mark.parametrize(
    ("conditions", "says"),
    [
        ("a", f"op If, node 'if0' (input 'a'; {REASON})"),
        ("aa", f"op If, node 'if0', op If, node 'if1' (input 'a'; {REASON})"),
        ("ab", f"op If, node 'if0', input 'a'; op If, node 'if1', input 'b' ({REASON})"),
        (
            "abcdefg",
            "; ".join(f"op If, node 'if{n}', input '{name}'" for n, name in enumerate("abcde"))
            + f" and 2 more ({REASON})",
        ),
    ],
)
def test_operators_tells_a_reason_once_when_nodes_share_it(conditions: str, says: str) -> None:
    verdict = operators(several(*conditions))
    assert (verdict.measured, verdict.detail) == (len(conditions), says)


def test_operators_tells_a_remedy_once_when_inputs_that_decide_shapes_differ() -> None:
    nodes = [helper.make_node("Reshape", ["x", name], [f"y{name}"], f"to_{name}") for name in "ab"]
    inputs = [tensor("x", [1, 4]), *(tensor(name, [1], TensorProto.INT64) for name in "ab")]
    verdict = operators(model(nodes, inputs, [tensor(f"y{name}", ["n"]) for name in "ab"]))
    assert verdict.detail.count("an engine's shapes are fixed") == 1
    for name in "ab":
        assert f"op Reshape, node 'to_{name}', input '{name}' decides a shape and is an input" in verdict.detail
