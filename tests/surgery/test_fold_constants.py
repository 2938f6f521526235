"""What is constant is folded, everything else stays, and the numbers are onnxruntime's."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from surgery.declaration import Rewritten
from surgery.fold_constants import fold_constants
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import Array, run
from tests.surgery import branches
from tests.surgery.branches import (
    FAILS,
    HOLDS,
    OUT,
    SHAPE,
    C,
    K,
    X,
    Y,
    chosen,
    computed_condition,
    graph,
    if_node,
    node,
    one,
)
from tests.surgery.graphs import check, serialised

FEED = {"x": np.array([[0.5, -1.25, 2, -3]], np.float32)}


def fold(original: ir.Model, feed: dict[str, Array] | None = None) -> Rewritten:
    """Fold `original`, check the result and its values, that a second time does nothing, and that names stay."""
    before = serialised(original)
    done = fold_constants().rewrite(original)
    assert serialised(original) == before
    assert not done.refused
    assert done.hits
    check(done.model)
    for values in ("inputs", "outputs"):
        assert [one.name for one in getattr(done.model.graph, values)] == [
            one.name for one in getattr(original.graph, values)
        ]
    wanted, got = run(original, feed or FEED), run(done.model, feed or FEED)
    for name, array in wanted.items():
        assert got[name].dtype == array.dtype
        np.testing.assert_array_equal(got[name], array)
    assert serialised(fold_constants().rewrite(original.clone()).model) == serialised(done.model)
    again = fold_constants().rewrite(done.model)
    assert again.hits == 0
    assert again.model is done.model
    return done


def operators(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph]


@pytest.mark.parametrize(
    "condition", [HOLDS, FAILS, constant("holds", [True], np.bool_), constant("fails", [False], np.bool_)]
)
def test_fold_constants_inlines_the_branch_when_a_condition_is_a_weight(condition: object) -> None:
    name = condition.name  # type: ignore[attr-defined]
    done = fold(graph([C, if_node(name, *chosen()), OUT], [condition, K]))  # type: ignore[list-item]
    assert operators(done.model) == (["Tanh", "Mul", "Neg"] if name == "holds" else ["Tanh", "Neg"])
    assert list(done.model.graph.initializers) == (["k"] if name == "holds" else [])


@pytest.mark.parametrize(("size", "kept"), [(4, ["Tanh", "Mul", "Neg"]), (1, ["Tanh", "Neg"])])
def test_fold_constants_inlines_the_branch_when_a_condition_follows_from_a_shape(size: int, kept: list[str]) -> None:
    done = fold(graph([*computed_condition(size), C, if_node("cond", *chosen()), OUT], [K]))
    assert operators(done.model) == kept


def test_fold_constants_gives_what_the_branch_makes_the_name_of_the_if() -> None:
    done = fold(graph([C, if_node("holds", *chosen()), OUT], [HOLDS, K]))
    assert [value.name for node in done.model.graph for value in node.outputs] == ["c", "i", "y"]
    assert [node.name for node in done.model.graph] == ["make_c", "in_Mul", "make_y"]


def test_fold_constants_inlines_an_if_in_an_if_when_they_read_values_of_both_graphs_around() -> None:
    assert operators(fold(branches.nested()).model) == ["Tanh", "Exp", "Mul", "Neg"]


def test_fold_constants_renames_what_a_branch_brings_when_the_name_is_taken() -> None:
    done = fold(branches.weights_of_one_name()).model
    assert operators(done) == ["Tanh", "Mul", "Mul", "Add"]
    weights = [value.const_value for value in done.graph.initializers.values()]
    assert sorted(weight.numpy().item() for weight in weights if weight is not None) == [2, 7, 11]
    assert [node.name for node in done.graph] == ["make_c", "if0/mul", "if1/mul", "mul"]


def test_fold_constants_passes_values_on_when_a_branch_puts_out_what_is_outside() -> None:
    done = fold(branches.captured_outputs()).model
    assert Counter(operators(done)) == Counter({"Identity": 5, "Tanh": 1, "Exp": 1})


def test_fold_constants_needs_no_identity_when_what_is_outside_is_read_inside_only() -> None:
    passing = branches.branch([], ["c"])
    done = fold(graph([C, if_node("fails", one("Exp", ["c"], "t"), passing), OUT], [FAILS]))
    assert operators(done.model) == ["Tanh", "Neg"]


@pytest.mark.parametrize("build", [branches.dynamic, branches.in_loop])
def test_fold_constants_leaves_control_flow_alone_when_it_depends_on_data(build: object) -> None:
    original: ir.Model = build()  # type: ignore[operator]
    done = fold_constants().rewrite(original)
    assert done.hits == 0
    assert done.model is original


@pytest.mark.parametrize(
    "condition",
    [constant("cond", [True, False], np.bool_), constant("cond", 1, np.int64)],
    ids=["two", "integer"],
)
def test_fold_constants_leaves_an_if_alone_when_its_condition_is_no_single_bool(condition: object) -> None:
    original = graph([C, if_node("cond", *chosen()), OUT], [condition, K])  # type: ignore[list-item]
    assert fold_constants().rewrite(original).hits == 0


def test_fold_constants_leaves_an_if_alone_when_a_caller_may_give_the_condition() -> None:
    inputs = [X, tensor("holds", [], TensorProto.BOOL)]
    original = graph([C, if_node("holds", *chosen()), OUT], [HOLDS, K], inputs)
    assert fold_constants().rewrite(original).hits == 0


@pytest.mark.parametrize(
    ("attributes", "wanted"),
    [
        ({"value": numpy_helper.from_array(np.array([1.5, 2], np.float32))}, np.array([1.5, 2], np.float32)),
        ({"value_float": 2.5}, np.array(2.5, np.float32)),
        ({"value_floats": [2.5, 1]}, np.array([2.5, 1], np.float32)),
        ({"value_int": 3}, np.array(3)),
        ({"value_ints": [3, -1]}, np.array([3, -1])),
        ({"value_ints": np.zeros(0, np.int64)}, np.zeros(0, np.int64)),
    ],
    ids=["value", "float", "floats", "int", "ints", "no ints"],
)
def test_fold_constants_makes_a_constant_a_weight_when_stated_in_any_way(
    attributes: dict[str, object], wanted: Array
) -> None:
    if attributes.get("value_ints") is not None and not len(attributes["value_ints"]):  # type: ignore[arg-type]
        made = helper.make_node("Constant", [], ["made"], "made")
        attribute = made.attribute.add(name="value_ints", type=7)
        assert not attribute.ints
    else:
        made = node("Constant", [], "made", **attributes)
    kind = helper.np_dtype_to_tensor_dtype(wanted.dtype)
    shape = tensor("z", wanted.shape, kind)
    done = fold(graph([C, OUT_OF_C, made, node("Abs", ["made"], "z")], outputs=[Y, shape]))
    np.testing.assert_array_equal(run(done.model, FEED)["z"], np.abs(wanted))
    assert operators(done.model) == ["Tanh", "Neg", "Identity"]


OUT_OF_C = node("Neg", ["c"], "y")


@pytest.mark.parametrize("attributes", [{"value_string": "a"}, {"value_strings": ["a", "bc"]}], ids=["one", "two"])
def test_fold_constants_makes_a_constant_of_text_a_weight(attributes: dict[str, object]) -> None:
    shape = tensor("z", [2] if "value_strings" in attributes else [], TensorProto.STRING)
    done = fold(graph([C, OUT_OF_C, node("Constant", [], "z", **attributes)], outputs=[Y, shape]))
    assert operators(done.model) == ["Tanh", "Neg", "Identity"]


def test_fold_constants_removes_identities_but_those_that_name_an_output() -> None:
    nodes = [
        C,
        node("Identity", ["c"], "d"),
        node("Identity", ["d"], "e"),
        node("Neg", ["e"], "n"),
        node("Identity", ["n"], "y"),
    ]
    assert operators(fold(graph(nodes)).model) == ["Tanh", "Neg", "Identity"]


def test_fold_constants_drops_dead_nodes_and_weights() -> None:
    nodes = [C, node("RandomNormalLike", ["x"], "r"), node("Mul", ["r", "k"], "dead"), OUT_OF_C]
    done = fold(graph(nodes, [K, constant("unused", [1.0])]))
    assert done.hits == 4
    assert not done.model.graph.initializers


@pytest.mark.parametrize(
    "op", ["RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"]
)
def test_fold_constants_keeps_random_operators_when_their_inputs_are_constant(op: str) -> None:
    inputs = [] if op in ("RandomNormal", "RandomUniform") else ["k"]
    attributes = {"dtype": TensorProto.INT32} if op == "Multinomial" else {} if inputs else {"shape": list(SHAPE)}
    made = node(op, inputs, "r", **attributes)
    cast = node("Cast", ["r"], "s", to=TensorProto.FLOAT)
    weights = [constant("k", [[0.5, 0.5, 0.5, 0.5]])] if inputs else []
    original = graph([C, made, cast, node("Mul", ["c", "s"], "y")], weights)
    assert fold_constants().rewrite(original).hits == 0


def f_pad() -> ir.Model:
    """torch's F.pad(x, (1, 2)) as exported: pads by ConstantOfShape, Concat, Reshape, Slice, Transpose, Cast."""
    nodes = [
        node("Constant", [], "given", value_ints=[1, 2]),
        node("Shape", ["given"], "count"),
        node("Shape", ["x"], "shape"),
        node("Size", ["shape"], "rank"),
        node("Constant", [], "two", value_int=2),
        node("Mul", ["rank", "two"], "all"),
        node("Sub", ["all", "count"], "missing"),
        node("ConstantOfShape", ["missing"], "zeros", value=numpy_helper.from_array(np.array([0]))),
        node("Concat", ["given", "zeros"], "flat", axis=0),
        node("Constant", [], "pairs", value_ints=[-1, 2]),
        node("Reshape", ["flat", "pairs"], "table"),
        node("Constant", [], "axis0", value_ints=[0]),
        node("Constant", [], "last", value_ints=[-1]),
        node("Constant", [], "lowest", value_ints=[-(2**63) + 1]),
        node("Slice", ["table", "last", "lowest", "axis0", "last"], "reversed"),
        node("Transpose", ["reversed"], "turned", perm=[1, 0]),
        node("Reshape", ["turned", "last"], "row"),
        node("Cast", ["row"], "pads", to=TensorProto.INT64),
        node("Pad", ["x", "pads", ""], "y", mode="constant"),
    ]
    return graph(nodes, outputs=[tensor("y", [1, 7])])


def test_fold_constants_keeps_the_order_of_pads_when_torch_wrote_them() -> None:
    done = fold(f_pad()).model
    assert operators(done) == ["Pad"]
    pads = done.graph.initializers["pads"].const_value
    assert pads is not None
    assert pads.numpy().tolist() == [0, 1, 0, 2]


def test_fold_constants_folds_a_mask_made_of_shapes() -> None:
    """A causal mask: ConstantOfShape, Trilu, Where, Range, Less, Expand on the sizes of the input."""
    nodes = [
        node("Shape", ["x"], "n", start=1),
        node("Concat", ["n", "n"], "square", axis=0),
        node("ConstantOfShape", ["square"], "ones", value=numpy_helper.from_array(np.array([1], np.float32))),
        node("Trilu", ["ones"], "upper", upper=1),
        node("Cast", ["upper"], "is_upper", to=TensorProto.BOOL),
        node("Where", ["is_upper", "k", "zero"], "mask"),
        node("Squeeze", ["n"], "scalar"),
        node("Range", ["start", "scalar", "one"], "row"),
        node("Cast", ["row"], "real", to=TensorProto.FLOAT),
        node("Unsqueeze", ["real", "axes"], "grid"),
        node("Expand", ["grid", "square"], "wide"),
        node("Add", ["mask", "wide"], "bias"),
        node("MatMul", ["x", "bias"], "y"),
    ]
    weights = [
        K,
        constant("zero", [0.0]),
        constant("start", 0, np.int64),
        constant("one", 1, np.int64),
        constant("axes", [0], np.int64),
    ]
    assert operators(fold(graph(nodes, weights)).model) == ["MatMul"]


def test_fold_constants_folds_slices_and_reshapes_with_computed_ends() -> None:
    nodes = [
        node("Shape", ["x"], "shape"),
        node("Gather", ["shape", "minus"], "n", axis=0),
        node("Div", ["n", "two"], "half"),
        node("Concat", ["zero", "half"], "ends", axis=0),
        node("Slice", ["x", "half", "n", "minus"], "right"),
        node("Slice", ["x", "zero", "half", "minus"], "left"),
        node("Concat", ["right", "left"], "turned", axis=1),
        node("Concat", ["half", "minus"], "by", axis=0),
        node("Reshape", ["turned", "by"], "table"),
        node("Reshape", ["table", "shape"], "y"),
    ]
    weights = [constant(name, value, np.int64) for name, value in (("minus", [-1]), ("two", [2]), ("zero", [0]))]
    assert operators(fold(graph(nodes, weights)).model) == ["Slice", "Slice", "Concat", "Reshape", "Reshape"]


def test_fold_constants_follows_a_shape_through_operators_when_files_state_wrong_ones() -> None:
    """What the file says of an inner tensor may be stale; only what follows from the inputs counts."""
    nodes = [
        C,
        node("Shape", ["c"], "shape"),
        node("ConstantOfShape", ["shape"], "zeros"),
        node("Add", ["c", "zeros"], "y"),
    ]
    original = graph(nodes)
    stale = next(value for made in original.graph for value in made.outputs if value.name == "c")
    stale.shape = ir.Shape([1, 9])
    done = fold(original).model
    assert run(done, FEED)["y"].shape == SHAPE
    assert next(value.shape for made in done.graph for value in made.outputs if value.name == "c") == ir.Shape(SHAPE)


def test_fold_constants_keeps_what_a_file_states_when_it_is_open() -> None:
    original = model([C, OUT_OF_C], [X], [tensor("y", ["n", 4])])
    assert fold_constants().rewrite(original).model is original


def test_fold_constants_keeps_shape_when_the_input_is_open() -> None:
    nodes = [node("Shape", ["x"], "shape"), node("Reshape", ["x", "shape"], "y")]
    original = model(nodes, [tensor("x", ["n", 4])], [tensor("y", ["n", 4])])
    assert fold_constants().rewrite(original).model is original


@pytest.mark.parametrize("opset", [11, 13, 17, 19])
def test_fold_constants_folds_shapes_when_the_opset_is(opset: int) -> None:
    nodes = [node("Shape", ["x"], "shape"), node("Reshape", ["x", "shape"], "z"), node("Neg", ["z"], "y")]
    assert operators(fold(graph(nodes, opset=opset)).model) == ["Reshape", "Neg"]


def test_fold_constants_leaves_another_domains_operator_alone() -> None:
    made = helper.make_node("Add", ["k", "k"], ["s"], "foreign", domain="com.microsoft")
    original = graph([C, made, node("Mul", ["c", "s"], "y")], [K])
    assert fold_constants().rewrite(original).model is original


def test_fold_constants_folds_a_weight_that_is_used_twice_and_is_an_output() -> None:
    nodes = [node("Neg", ["k"], "z"), node("Mul", ["x", "z"], "a"), node("Add", ["a", "z"], "y")]
    done = fold(graph(nodes, [K], outputs=[Y, tensor("z", SHAPE)])).model
    assert Counter(operators(done)) == Counter(["Mul", "Add", "Identity"])
    assert len(done.graph.initializers) == 1


def test_fold_constants_folds_bfloat16_weights_that_are_cast() -> None:
    weight = helper.make_tensor("h", TensorProto.BFLOAT16, [1, 4], [0.5, 1, -2, 3])
    nodes = [node("Cast", ["h"], "w", to=TensorProto.FLOAT), node("Mul", ["x", "w"], "y")]
    done = fold_constants().rewrite(graph(nodes, [weight])).model
    assert operators(done) == ["Mul"]
    np.testing.assert_array_equal(run(done, FEED)["y"], FEED["x"] * np.array([0.5, 1, -2, 3], np.float32))
