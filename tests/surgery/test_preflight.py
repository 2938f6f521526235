"""The passes that every graph goes through, in the order in which they run."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from rknn_tts.rewriting import rewrite, without_skipped
from surgery.cuts import cuts
from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.preflight import preflight, to_hardware, to_operators
from surgery.rewrite_relative_attention import rewrite_relative_attention
from tests.cases import graphs as cases
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import Array, run
from tests.surgery.graphs import check
from tests.surgery.interfaces import node


def prepared(original: ir.Model) -> ir.Model:
    """`original` behind every pass, which must all take it."""
    done = rewrite(original, preflight())
    assert [place for result in done for place in result.refused] == []
    check(done[-1].model)
    return done[-1].model


def operators(made: ir.Model) -> list[str]:
    return [node.op_type for node in made.graph]


def noise(*shape: int) -> Array:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("target", [None, "rk3588", "rk3566"])
def test_preflight_puts_a_stages_own_cuts_between_what_is_owed_and_the_other_cuts(target: str | None) -> None:
    own = [
        Pass(Declaration(name, "", Exact("the same numbers")), lambda model: Rewritten(model, 0))
        for name in ("rewrite_one", "fuse_another")
    ]
    names = [bound.name for bound in preflight(target, own)]
    owed, others, last = ([p.name for p in passes] for passes in (to_operators(), cuts(target), to_hardware()))
    assert names == [*owed, "rewrite_one", "fuse_another", *others, *last]
    assert [bound.name for bound in preflight(target)] == [*owed, *others, *last]


def test_preflight_runs_a_pass_only_in_the_form_that_a_stage_lists() -> None:
    gather = rewrite_relative_attention("gather")
    passes = preflight("rk3588", (gather,))
    assert [bound for bound in passes if bound.name == gather.name] == [gather]
    assert len(passes) == len(preflight("rk3588"))


def test_outputs_stay_apart_when_a_clip_without_bounds_goes() -> None:
    # The toolkit drops an Identity, and with it one of two outputs of the same values; a LeakyRelu it keeps.
    nodes = [helper.make_node("Neg", ["x"], ["z"], "neg"), helper.make_node("Clip", ["z"], ["y"], "clip")]
    original = model(nodes, [tensor("x", [1, 4])], [tensor("z", [1, 4]), tensor("y", [1, 4])])
    made = prepared(original)
    assert operators(made) == ["Neg", "LeakyRelu"]
    assert [node.op_type for node in made.graph if node.outputs[0].is_graph_output()] == ["Neg", "LeakyRelu"]
    feed = {"x": noise(1, 4)}
    for name, wanted in run(original, feed).items():
        np.testing.assert_array_equal(run(made, feed)[name], wanted)


def test_wholly_masked_rows_stay_zero_when_isnan_and_the_mask_are_rewritten() -> None:
    # torch's attention. IsNaN asked of the softmax once the mask is -1e4, in whatever words, finds no row.
    nodes = [
        helper.make_node("Where", ["keep", "x", "far"], ["masked"], "mask"),
        helper.make_node("Softmax", ["masked"], ["p"], "softmax", axis=-1),
        helper.make_node("IsNaN", ["p"], ["nan"], "isnan"),
        helper.make_node("Where", ["nan", "zero", "p"], ["y"], "safe"),
    ]
    keep = np.array([[True, True, False], [False, False, False]])
    weights = [constant("keep", keep, np.bool_), constant("far", -np.inf), constant("zero", 0.0)]
    original = model(nodes, [tensor("x", [2, 3])], [tensor("y", [2, 3])], weights)
    made = prepared(original)
    feed = {"x": noise(2, 3)}
    got = run(made, feed)["y"]
    np.testing.assert_array_equal(got[1], [0, 0, 0])
    np.testing.assert_allclose(got, run(original, feed)["y"], rtol=1e-6)
    assert not {"IsNaN", "Equal"} & set(operators(made))
    # Left out, the pass that asks for such rows in other words leaves NaN the only one that knows them.
    done = rewrite(original, without_skipped(preflight(), ["rewrite_safe_softmax"]))
    assert [place.got for result in done for place in result.refused] == [
        "Equal reads which rows are NaN under the mask 'far'"
    ]
    np.testing.assert_array_equal(run(done[-1].model, feed)["y"], run(original, feed)["y"])


@pytest.mark.parametrize("far", [-np.inf, -1e9, -3.4e38, -1e4])
@pytest.mark.parametrize("twice", [False, True])
def test_choice_of_scores_becomes_a_product_however_far_below_its_mask_lies(far: float, twice: bool) -> None:
    nodes = [
        helper.make_node("Not", ["pad"], ["keep"], "not"),
        helper.make_node("Where", ["keep", "x", "far"], ["a"], "mask"),
        helper.make_node("Where", ["causal", "a", "far"] if twice else ["keep", "a", "far"], ["b"], "again"),
        helper.make_node("Softmax", ["b"], ["y"], "softmax", axis=-1),
    ]
    weights = [constant("far", far), constant("causal", np.tril(np.ones((4, 4))), np.bool_)]
    original = model(
        nodes, [tensor("x", [4, 4]), tensor("pad", [1, 4], TensorProto.BOOL)], [tensor("y", [4, 4])], weights
    )
    made = prepared(original)
    assert not {"Where", "Not"} & set(operators(made))
    pad = np.array([[False, False, False, True]])
    left = ~pad & (np.tril(np.ones((4, 4), bool)) if twice else True)
    powers = np.where(left, np.exp(noise(4, 4).astype(np.float64)), 0)
    fed = pad.astype(made.graph.inputs[1].dtype.numpy())  # type: ignore[union-attr] # typed by the passes
    got = run(made, {"x": noise(4, 4), "pad": fed})["y"]
    np.testing.assert_allclose(got, powers / powers.sum(-1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize(
    ("shape", "reads"),
    [
        ([], helper.make_node("Cast", ["u"], ["f"], "read", to=TensorProto.FLOAT)),
        ([1], helper.make_node("CastLike", ["u", "x"], ["f"], "read")),
    ],
    ids=["rank 0", "CastLike"],
)
def test_uint8_input_becomes_int32_when_other_passes_touch_what_reads_it(
    shape: list[int], reads: onnx.NodeProto
) -> None:
    nodes = [reads, helper.make_node("Mul", ["x", "f"], ["y"], "mul")]
    inputs = [tensor("x", [1, 4]), tensor("u", shape, TensorProto.UINT8)]
    original = model(nodes, inputs, [tensor("y", [1, 4])])
    made = prepared(original)
    assert [(value.name, value.dtype, value.shape) for value in made.graph.inputs][1:] == [
        ("u", ir.DataType.INT32, ir.Shape([1]))
    ]
    x = noise(1, 4)
    wanted = run(original, {"x": x, "u": np.full(shape, 200, np.uint8)})["y"]
    np.testing.assert_array_equal(run(made, {"x": x, "u": np.array([200], np.int32)})["y"], wanted)


X, Y = tensor("x", [1, 4]), tensor("y", [1, 4])
ROW = constant("row", [0.0, 1.0, 2.0, 3.0])
MASK = constant("mask", np.where(np.tril(np.ones((4, 4)), -1) > 0, 0, -np.inf))

TWICE: dict[str, onnx.ModelProto | ir.Model] = {
    **{f"stride {stride}": cases.strided(stride, 2 * stride, stride // 2) for stride in (15, 16, 300)},
    "Clip without min": cases.clip(["e", "", "mx"], constant("mx", 100.0)),
    "Clip without max": cases.clip(["e", "mn"], constant("mn", 0.5)),
    "Clip without bounds": cases.clip(["e"]),
    "Clip past fp16": cases.clip(["e", "mn", "mx"], constant("mn", -3.4e38), constant("mx", 100.0)),
    "If true": cases.branches(constant("cond", True, np.bool_)),
    "If false": cases.branches(constant("cond", False, np.bool_)),
    "If of an input": cases.branches(None),
    "symbolic": cases.symbolic(),
    "noise": cases.noise(mean=0.25, scale=2.0),
    "uniform noise": cases.noise("RandomUniformLike"),
    "LayerNormalization": cases.layer_norm(),
    "LayerNormalization with an axis": cases.layer_norm(axis=-1),
    "LayerNormalization with empty outputs": cases.layer_norm(("y", "", ""), axis=-1, epsilon=1e-5),
    "ConvTranspose SAME": cases.conv_transpose_same(),
    "scalar input": cases.scalar_input(),
    "Atan": cases.atan(),
    "plain": cases.plain(),
    "CastLike of an input that nothing else reads": model(
        [node("CastLike", "x like", "y")], [X, tensor("like", [1])], [Y]
    ),
    "Min of a constant": model([node("Min", "x row", "y")], [X], [Y], [ROW]),
    "length of a sequence": model(
        [
            node("SplitToSequence", "x", "s", axis=0),
            node("SequenceAt", "s first", "a"),
            node("SequenceLength", "s", "n"),
            node("Cast", "n", "f", to=TensorProto.FLOAT),
            node("Add", "a f", "y"),
        ],
        [X],
        [Y],
        [constant("first", 0, np.int64)],
    ),
    "Split with an empty part that no length says": model(
        [node("Split", "x", "a b c", axis=1, num_outputs=3), node("Concat", "c b a", "y", axis=1)], [X], [Y], opset=18
    ),
    "Dropout whose mask is read": model(
        [
            node("Dropout", "x", "d m"),
            node("Cast", "m", "f", to=TensorProto.FLOAT),
            node("Neg", "f", "g"),
            node("Add", "d g", "y"),
        ],
        [X],
        [Y],
    ),
    "constant mask that masks a row": model(
        [
            node("Add", "x mask", "s"),
            node("Softmax", "s", "p", axis=-1),
            node("IsNaN", "p", "nan"),
            node("Where", "nan zero p", "y"),
        ],
        [tensor("x", [4, 4])],
        [tensor("y", [4, 4])],
        [MASK, constant("zero", 0.0)],
    ),
    "scalar output behind an Identity": model(
        [node("ReduceMax", "x", "t", keepdims=0), node("Identity", "t", "y"), node("Neg", "t", "z")],
        [X],
        [tensor("y", []), tensor("z", [])],
    ),
    "two Identities of one tensor": model(
        [node("Tanh", "x", "t"), node("Identity", "t", "y"), node("Identity", "t", "z")], [X], [Y, tensor("z", [1, 4])]
    ),
    "ConvTranspose SAME of opset 11 that grows": model(
        [node("ConvTranspose", "x w", "y", auto_pad="SAME_LOWER", strides=[3], output_padding=[2])],
        [tensor("x", [1, 4, 11])],
        [tensor("y", ["n", "c", "t"])],
        [constant("w", noise(4, 3, 5))],
        opset=11,
    ),
}


@pytest.mark.parametrize("name", TWICE)
def test_preflight_finds_nothing_when_it_has_run_before(name: str) -> None:
    # The toolkit sees what one run leaves; what only a second would find, a pass out of its place has left behind.
    given = TWICE[name]
    passes = preflight()
    once = rewrite(given if isinstance(given, ir.Model) else ir.from_proto(given), passes)
    twice = rewrite(once[-1].model, passes)
    assert [place for result in (*once, *twice) for place in result.refused] == []
    assert [bound.name for bound, result in zip(passes, twice, strict=True) if result.hits] == ["normalise_header"]
