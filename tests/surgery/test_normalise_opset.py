"""Operators of older and newer opsets, written as opsets 13 to 19 write them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, defs, helper

from contracts.onnx_versions import HIGHEST_OPSET
from surgery.declaration import EXACT_PARITY_DB
from surgery.normalise_opset import LOWEST_MADE, LOWEST_READ, normalise_opset
from surgery.opset_lower import LOWERED, NEUTRAL
from surgery.opset_raise import RAISED
from tests.gates.small_graphs import chain, constant, model, tensor
from tests.onnx_runs import Array, run, snr_db
from tests.surgery.graphs import check, serialised

SHAPE = (1, 4, 6, 8)
IMAGE = {"x": np.random.default_rng(3).standard_normal(SHAPE).astype(np.float32)}


def feed_of(made: ir.Model) -> dict[str, Array]:
    """White noise for each float input."""
    rng = np.random.default_rng(3)
    return {
        value.name or "": rng.standard_normal(value.shape.numpy()).astype(np.float32)  # type: ignore[union-attr] # static
        for value in made.graph.inputs
    }


def assert_equal_in(original: ir.Model, opset: int, hits: int) -> ir.Model:
    before = serialised(original)
    done = normalise_opset().rewrite(original)
    assert done.refused == ()
    assert done.hits == hits
    assert serialised(original) == before
    assert dict(done.model.opset_imports) == {"": opset}
    check(done.model)
    wanted, made = run(original, feed_of(original)), run(done.model, feed_of(original))
    for name, array in wanted.items():
        assert made[name].dtype == array.dtype
        assert snr_db(array, made[name]) >= EXACT_PARITY_DB
    return done.model


def one(
    op: str,
    opset: int,
    *weights: onnx.TensorProto,
    shape: Sequence[int] = SHAPE,
    outputs: Sequence[str] = ("y",),
    **attributes: Any,
) -> ir.Model:
    """One node on x and `weights`; its outputs are the graph's."""
    node = helper.make_node(op, ["x", *(weight.name for weight in weights)], outputs, "n", **attributes)
    proto = ir.to_proto(model([node], [tensor("x", shape)], [], weights, opset=opset, ir_version=10))
    inferred = {value.name: value for value in onnx.shape_inference.infer_shapes(proto).graph.value_info}
    proto.graph.output.extend(inferred.get(name, tensor(name, shape)) for name in outputs)
    return ir.from_proto(proto)


def ints(name: str, *values: int) -> onnx.TensorProto:
    return constant(name, values, np.int64)


OLD = [
    one("Softmax", 11),
    one("Softmax", 9, axis=2),
    one("Softmax", 7, axis=3),
    one("Softmax", 11, axis=-1),
    one("Softmax", 11, axis=-3),
    one("Softmax", 12, axis=0),
    one("LogSoftmax", 11, axis=1),
    one("Hardmax", 11, axis=1),
    one("Clip", 7, min=-0.5),
    one("Clip", 10, max=0.5),
    one("Clip", 10, min=-0.25, max=0.5),
    one("Clip", 6 + 1),
    one("Pad", 9, pads=[0, 0, 1, 2, 0, 0, 3, 0], value=0.5),
    one("Pad", 10, pads=[0, 0, 1, 2, 0, 0, 3, 0], mode="reflect"),
    one("Slice", 9, starts=[1], ends=[2**63 - 1], axes=[-1]),
    one("Slice", 7, starts=[0, 1, 3], ends=[1, 3, 5]),
    one("Dropout", 7, ratio=0.3),
    one("Dropout", 11),
    one("TopK", 9, k=3, outputs=("y", "i")),
    one("TopK", 7, k=2, axis=1, outputs=("y", "i")),
    one("ReduceSum", 11, axes=[1, -1], keepdims=0),
    one("ReduceSum", 7),
    one("Squeeze", 11, axes=[0]),
    one("Squeeze", 7),
    one("Unsqueeze", 11, axes=[0, 5]),
    one("Split", 11, axis=1, split=[1, 3], outputs=("a", "y")),
    one("Split", 7, axis=-1, outputs=("a", "y")),
    one("BatchNormalization", 7, *(constant(name, np.linspace(0.1, 2, 4)) for name in "sbmv"), spatial=1, epsilon=0.1),
    one("Upsample", 7, scales=[1.0, 1.0, 2.0, 3.0]),
    one("Upsample", 9, constant("s", [1, 1, 2.5, 1])),
    one("Upsample", 9, constant("s", [1, 1, 2, 2]), mode="linear"),
    one("Resize", 10, constant("s", [1, 1, 2.5, 3])),
    one("Resize", 10, constant("s", [1, 1, 0.4, 0.5])),
    one("Resize", 10, constant("s", [1, 1, 0.4, 2]), mode="linear"),
    one("Resize", 11, constant("r", []), constant("s", [1, 1, 2, 2]), mode="linear"),
    one("Resize", 12, constant("r", []), constant("s", []), ints("z", 1, 4, 9, 8), mode="nearest"),
    one("Scatter", 9, constant("i", np.ones((1, 1, 1, 1)), np.int64), constant("u", np.ones((1, 1, 1, 1))), axis=1),
]


@pytest.mark.parametrize("original", OLD, ids=lambda made: f"{made.graph[0].op_type} {made.opset_imports['']}")
def test_normalise_opset_writes_the_operator_of_13_when_it_is_older(original: ir.Model) -> None:
    assert_equal_in(original, LOWEST_MADE, hits=1)


def attention(*names: str, q: Sequence[int] = (1, 2, 8, 16), **attributes: Any) -> ir.Model:
    """Attention of opset 23 on x, k and v; further inputs by name."""
    shapes = {"x": q, "k": q, "v": q, "pk": (1, 2, 3, 16), "pv": (1, 2, 3, 16), "m": (8, 8)}
    if len(q) == 3:
        shapes["k"] = shapes["v"] = (1, 6, 8)
    outputs = {"y": q, "nk": (1, 2, 11, 16), "nv": (1, 2, 11, 16)}
    node = helper.make_node("Attention", ["x", "k", "v", *names], list(outputs)[: 3 if "pk" in names else 1], "n")
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    inputs = [tensor(name, shapes[name]) for name in ("x", "k", "v", *names) if name]
    made = [tensor(name, outputs[name]) for name in node.output]
    return model([node], inputs, made, opset=23, ir_version=10)


def rotary() -> ir.Model:
    weights = [constant("c", np.random.default_rng(1).random((10, 8))), constant("s", np.ones((10, 8)))]
    return one("RotaryEmbedding", 23, *weights, constant("p", [range(8)], np.int64), shape=(1, 2, 8, 16))


def any_above() -> ir.Model:
    """ReduceMax of bools."""
    nodes = [
        helper.make_node("Greater", ["x", "k"], ["b"], "above"),
        helper.make_node("ReduceMax", ["b", "a"], ["y"], "any"),
    ]
    weights = [constant("k", [0.3]), ints("a", 1)]
    y = tensor("y", [1, 1, 6, 8], TensorProto.BOOL)
    return model(nodes, [tensor("x", SHAPE)], [y], weights, opset=20, ir_version=10)


def _grid() -> onnx.TensorProto:
    return constant("g", np.random.default_rng(0).uniform(-1.2, 1.2, (1, 3, 3, 2)))


def group_factors() -> list[onnx.TensorProto]:
    return [constant("s", np.linspace(0.5, 2, 4)), constant("b", np.linspace(-1, 1, 4))]


NEW = [
    one("Gelu", 20),
    one("Gelu", 22, approximate="tanh"),
    one("RMSNormalization", 23, constant("s", np.linspace(0.5, 2, 8)), axis=-1, epsilon=1e-6),
    one("RMSNormalization", 23, constant("s", np.ones((6, 8))), axis=2),
    attention(is_causal=1),
    attention("m"),
    attention("", "pk", "pv"),
    attention(q=(1, 8, 16), q_num_heads=4, kv_num_heads=2, scale=0.3),
    attention(softcap=2.0),
    rotary(),
    one("GroupNormalization", 21, *group_factors(), num_groups=2),
    one("GroupNormalization", 22, *group_factors(), num_groups=4, epsilon=0.1, shape=(2, 4, 5)),
    one("GridSample", 20, _grid()),
    one("GridSample", 22, _grid(), mode="nearest", padding_mode="border"),
    one("GridSample", 22, _grid(), mode="cubic", align_corners=1),
    one("DFT", 20, shape=(1, 2, 8, 1)),
    any_above(),
]


@pytest.mark.parametrize("original", NEW, ids=lambda made: f"{made.graph[-1].op_type} {made.opset_imports['']}")
def test_normalise_opset_writes_the_operator_of_19_when_it_is_newer(original: ir.Model) -> None:
    made = assert_equal_in(original, HIGHEST_OPSET, hits=1)
    assert all("normalise_opset" in (node.name or "") for node in made.graph if node.name != "above")


def test_normalise_opset_states_the_axis_when_dft_takes_it_as_an_input() -> None:
    node = helper.make_node("DFT", ["x", "", "a"], ["y"], "n")
    made = model([node], [tensor("x", [1, 2, 8, 1])], [tensor("y", [1, 2, 8, 2])], [ints("a")], opset=20)
    made.graph.initializers["a"].const_value = ir.tensor(np.array(2, np.int64), name="a")
    made.graph.initializers["a"].shape = ir.Shape([])
    assert assert_equal_in(made, HIGHEST_OPSET, hits=1).graph[0].attributes["axis"].as_int() == 2


def test_normalise_opset_drops_round_mode_when_no_float8_is_cast() -> None:
    node = helper.make_node("Cast", ["x"], ["y"], "n", to=TensorProto.INT32, round_mode="down")
    made = model([node], [tensor("x", [1, 4])], [tensor("y", [1, 4], TensorProto.INT32)], opset=24, ir_version=10)
    done = normalise_opset().rewrite(made)
    assert list(done.model.graph[0].attributes) == ["to"]


@pytest.mark.parametrize("opset", [20, 21, 22, 23])
def test_normalise_opset_keeps_every_node_when_none_has_changed(opset: int) -> None:
    made = assert_equal_in(chain("Relu", "Tanh", "Softsign", "Identity", opset=opset, ir_version=10), 19, hits=1)
    assert [node.name for node in made.graph] == ["n0", "n1", "n2", "n3"]


@pytest.mark.parametrize("opset", range(LOWEST_MADE, HIGHEST_OPSET + 1))
def test_normalise_opset_returns_the_model_itself_when_its_opset_is_read(opset: int) -> None:
    made = chain("Softmax", "Relu", opset=opset)
    done = normalise_opset().rewrite(made)
    assert done.model is made
    assert (done.hits, done.refused) == (0, ())


@pytest.mark.parametrize("opset", [11, 17, 20])
def test_normalise_opset_respells_the_domain_when_it_is_written_out(opset: int) -> None:
    wanted = chain("Relu", "Softmax", opset=opset)
    spelled = ir.to_proto(wanted)
    spelled.opset_import[0].domain = "ai.onnx"
    for node in spelled.graph.node:
        node.domain = "ai.onnx"
    done = normalise_opset().rewrite(ir.from_proto(spelled))
    made = ir.to_proto(done.model)
    assert done.hits == 1
    assert [(entry.domain, entry.version) for entry in made.opset_import] == [("", min(max(opset, 13), 19))]
    assert {node.domain for node in made.graph.node} == {""}
    row = {"x": np.array([[1, -2, 3, 0.5]], np.float32)}
    assert np.array_equal(run(made, row)["y"], run(wanted, row)["y"])


def test_normalise_opset_leaves_operators_of_other_domains_when_the_opset_falls() -> None:
    made = chain("Relu", "Gelu", opset=22)
    made.graph[1].domain = "com.microsoft"
    made.opset_imports["com.microsoft"] = 1
    done = normalise_opset().rewrite(made)
    assert [node.op_type for node in done.model.graph] == ["Relu", "Gelu"]


def test_normalise_opset_serves_every_reader_when_a_value_is_read_twice_and_is_an_output() -> None:
    nodes = [
        helper.make_node("Gelu", ["x"], ["g"], "first"),
        helper.make_node("Gelu", ["g"], ["h"], "second"),
        helper.make_node("Add", ["g", "h"], ["y"], "sum"),
    ]
    outputs = [tensor("y", [1, 4]), tensor("g", [1, 4])]
    assert_equal_in(model(nodes, [tensor("x", [1, 4])], outputs, opset=20, ir_version=10), HIGHEST_OPSET, hits=2)


def test_normalise_opset_converts_the_branches_when_a_graph_is_nested() -> None:
    branches = {
        name: helper.make_graph([helper.make_node(op, ["x"], [name], f"n_{name}")], name, [], [tensor(name, [1, 4])])
        for name, op in (("then", "Gelu"), ("else", "Mish"))
    }
    node = helper.make_node("If", ["c"], ["y"], then_branch=branches["then"], else_branch=branches["else"])
    condition = constant("c", True, np.bool_)
    made = model([node], [tensor("x", [1, 4])], [tensor("y", [1, 4])], [condition], opset=22, ir_version=10)
    assert_equal_in(made, HIGHEST_OPSET, hits=1)


SIGNATURES: dict[str, dict[int, defs.OpSchema]] = defaultdict(dict)
for _schema in defs.get_all_schemas_with_history():
    if _schema.domain == "":
        SIGNATURES[_schema.name][_schema.since_version] = _schema


def differs(one: defs.OpSchema, other: defs.OpSchema) -> bool:
    """Whether two versions of an operator differ in more than types."""
    return _signature(one) != _signature(other)


def _signature(schema: defs.OpSchema) -> object:
    defaults = {name: str(attribute.default_value) for name, attribute in schema.attributes.items()}
    return [value.name for value in schema.inputs], [value.name for value in schema.outputs], defaults


def test_lowered_and_neutral_cover_every_operator_that_changed_after_19() -> None:
    changed = set()
    for op, versions in SIGNATURES.items():
        old = [version for version in versions if version <= HIGHEST_OPSET]
        new = [version for version in versions if version > HIGHEST_OPSET]
        if old and any(differs(versions[max(old)], versions[version]) for version in new):
            changed.add(op)
    assert changed <= {*LOWERED, *NEUTRAL}


ADDED_ONLY = {
    "ArgMax", "ArgMin", "AveragePool", "Constant", "DepthToSpace", "DequantizeLinear", "GatherND", "MaxPool",
    "QuantizeLinear",
}  # fmt: skip
"""Attributes were added, with defaults that mean what there was (ONNX operator changelog)."""


def test_raised_covers_every_operator_that_changed_from_7_to_13() -> None:
    changed = set()
    for op, versions in SIGNATURES.items():
        old = [version for version in versions if version <= LOWEST_READ]
        new = [version for version in versions if max(old, default=LOWEST_READ) < version <= LOWEST_MADE]
        first = max(old) if old else min(versions)
        if any(differs(versions[first], versions[version]) for version in new):
            changed.add(op)
    assert changed == {*RAISED, *ADDED_ONLY} - {"Scatter"}
