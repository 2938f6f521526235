"""Half floats become float32, inputs and outputs too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, defs, helper

from surgery.declaration import Bounded, Recast
from surgery.normalise_float32 import DECLARATION, normalise_float32
from surgery.typed_values import TYPE_ATTRIBUTES
from tests.gates.small_graphs import chain, proto, tensor
from tests.onnx_runs import run, snr_db
from tests.surgery.float_graphs import GRAPHS, between_casts, cast_out, feed_of, followed, scaled, types_of, weight
from tests.surgery.graphs import check, decoder, decoder_feed, serialised
from tests.vits_writer.recipe import Recipe

HALF = TensorProto.FLOAT16


@pytest.mark.parametrize("build", GRAPHS, ids=lambda build: build.__name__)
def test_normalise_float32_computes_the_same_when_a_graph_is_of_halves(build: Callable[[int], onnx.ModelProto]) -> None:
    original = ir.from_proto(build(HALF))
    before = serialised(original)
    done = normalise_float32().rewrite(original)
    assert done.hits > 0
    assert serialised(original) == before
    check(done.model)
    feed = feed_of(build(HALF))
    wanted, made = run(original, feed), run(done.model, followed(feed, done.interface))
    exactness = DECLARATION.exactness
    assert isinstance(exactness, Bounded)
    for name, array in wanted.items():
        assert made[name].dtype != np.float16
        assert snr_db(array, made[name]) >= exactness.minimum_db


@pytest.mark.parametrize("kind", [HALF, TensorProto.BFLOAT16])
def test_normalise_float32_takes_the_casts_out_when_they_only_round(kind: int) -> None:
    done = normalise_float32().rewrite(ir.from_proto(between_casts(kind)))
    assert [node.op_type for node in done.model.graph] == ["MatMul", "Softmax", "Identity"]
    assert types_of(done.model) == {ir.DataType.FLOAT}
    assert done.interface.inputs == done.interface.outputs == ()


def test_normalise_float32_equals_float32_arithmetic_when_bfloat16_cannot_be_run() -> None:
    done = normalise_float32().rewrite(ir.from_proto(scaled(TensorProto.BFLOAT16)))
    x = np.array([[0.5, 1.0, -2.0, 0.25]], np.float32)
    factors = onnx.numpy_helper.to_array(weight("k", [[1.5, -2.0, 0.3, 4.0]], TensorProto.BFLOAT16)).astype(np.float32)
    wanted = np.tanh(x * factors)
    assert snr_db(wanted, run(done.model, {"x": x})["y"]) >= 120


def test_normalise_float32_states_inputs_and_outputs_when_they_change() -> None:
    done = normalise_float32().rewrite(ir.from_proto(scaled(HALF)))
    assert done.interface.inputs == (Recast("x", (1, 4), "float32"),)
    assert done.interface.outputs == (Recast("y", (1, 4), "float32"),)
    assert not done.interface.added
    assert not done.interface.removed


def test_normalise_float32_keeps_the_outputs_name_when_a_cast_made_it() -> None:
    done = normalise_float32().rewrite(ir.from_proto(cast_out(HALF)))
    assert [(node.op_type, node.outputs[0].name) for node in done.model.graph] == [("Identity", "y"), ("Abs", "z")]
    assert done.interface.outputs == (Recast("y", (2, 4), "float32"),)


def test_normalise_float32_keeps_infinities_and_the_largest_half_when_a_mask_holds_them() -> None:
    values = [-np.inf, np.inf, -65504.0, 0.0]
    nodes = [helper.make_node("Add", ["x", "k"], ["y"], "mask")]
    made = proto(nodes, [tensor("x", [4], HALF)], [tensor("y", [4], HALF)], [weight("k", values, HALF)])
    done = normalise_float32().rewrite(ir.from_proto(made))
    held = done.model.graph.initializers["k"].const_value
    assert held is not None
    assert held.numpy().tolist() == values


def test_normalise_float32_keeps_integer_casts_when_a_half_is_cut() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["i"], "cut", to=TensorProto.INT32),
        helper.make_node("Cast", ["i"], ["y"], "back", to=HALF),
    ]
    made = proto(nodes, [tensor("x", [1, 4], HALF)], [tensor("y", [1, 4], HALF)])
    done = normalise_float32().rewrite(ir.from_proto(made))
    x = np.array([[1.75, -2.5, 0.5, 3.0]], np.float32)
    assert run(done.model, {"x": x})["y"].tolist() == [[1.0, -2.0, 0.0, 3.0]]


def test_normalise_float32_holds_its_bound_when_a_whole_decoder_is_of_halves() -> None:
    recipe = Recipe()
    whole = ir.to_proto(decoder(recipe))
    for value in (*whole.graph.input, *whole.graph.output):
        value.type.tensor_type.elem_type = HALF
    for node in whole.graph.node:
        if node.op_type == "ConstantOfShape" and not node.attribute:
            node.attribute.append(helper.make_attribute("value", weight("", [0], TensorProto.FLOAT)))
    in_nodes = [attribute.t for node in whole.graph.node for attribute in node.attribute if attribute.HasField("t")]
    for held in [*whole.graph.initializer, *in_nodes]:
        array = onnx.numpy_helper.to_array(held)
        if array.dtype == np.float32:
            held.CopyFrom(onnx.numpy_helper.from_array(array.astype(np.float16), held.name))
    feed = {name: array.astype(np.float16) for name, array in decoder_feed(recipe, 24).items()}
    for value in whole.graph.input:
        for size, number in zip(value.type.tensor_type.shape.dim, feed[value.name].shape, strict=True):
            size.dim_value = number
    del whole.graph.value_info[:]
    done = normalise_float32().rewrite(ir.from_proto(whole))
    assert done.refused == ()
    wanted, made = run(whole, feed), run(done.model, followed(feed, done.interface))
    for name, array in wanted.items():
        assert snr_db(array, made[name]) >= 40


@pytest.mark.parametrize("made", [chain("Relu", "Tanh"), ir.from_proto(scaled(TensorProto.DOUBLE))])
def test_normalise_float32_returns_the_model_itself_when_nothing_is_of_halves(made: ir.Model) -> None:
    done = normalise_float32().rewrite(made)
    assert done.model is made
    assert (done.hits, done.refused) == (0, ())


def test_normalise_float32_leaves_constants_when_nothing_varying_reads_them() -> None:
    nodes = [
        helper.make_node("Cast", ["h"], ["i"], "whole", to=TensorProto.INT64),
        helper.make_node("Reshape", ["x", "i"], ["y"], "shape"),
    ]
    made = ir.from_proto(proto(nodes, [tensor("x", [4])], [tensor("y", [2, 2])], [weight("h", [2, 2], HALF)]))
    assert normalise_float32().rewrite(made).model is made


def test_normalise_float32_names_float32_when_an_attribute_named_the_type() -> None:
    nodes = [helper.make_node("EyeLike", ["x"], ["e"], "one", dtype=HALF), helper.make_node("Add", ["x", "e"], ["y"])]
    made = proto(nodes, [tensor("x", [3, 3], HALF)], [tensor("y", [3, 3], HALF)])
    done = normalise_float32().rewrite(ir.from_proto(made))
    assert run(done.model, {"x": np.ones((3, 3), np.float32)})["y"].tolist() == [[2, 1, 1], [1, 2, 1], [1, 1, 2]]


def test_type_attributes_are_all_that_name_a_data_type() -> None:
    words = ("data type", "datatype", "type of", "stash", "precision")
    named = {
        name
        for schema in defs.get_all_schemas_with_history()
        for name, attribute in schema.attributes.items()
        if schema.domain == "" and attribute.type == defs.OpSchema.AttrType.INT
        if any(word in attribute.description.lower() for word in words)
    }
    assert named - {"qk_matmul_output_mode"} == set(TYPE_ATTRIBUTES)
