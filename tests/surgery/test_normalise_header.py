from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from surgery.inferred import static_shape
from surgery.normalise_header import normalise_header
from tests.gates.small_graphs import constant, proto, tensor
from tests.onnx_runs import run
from tests.surgery.graphs import check, decoder, decoder_feed, serialised
from tests.vits_writer.recipe import Recipe

PRIVATE = "/home/somebody/piper/models.py:62"


def documented() -> onnx.ModelProto:
    """A model with a path in every place where one can be written."""
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(op, ["x"], [f"{name}_y"], f"{name}_node", doc_string=PRIVATE)],
            name,
            [],
            [tensor(f"{name}_y", [1, 4])],
            doc_string=PRIVATE,
        )
        for name, op in (("then", "Neg"), ("else", "Abs"))
    }
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["m"], "mul", doc_string=PRIVATE),
        helper.make_node("If", ["c"], ["k"], "if", **branches),
        helper.make_node("Add", ["m", "k"], ["y"], "add"),
    ]
    inputs = [tensor("x", [1, 4]), tensor("c", [], onnx.TensorProto.BOOL)]
    made = proto(nodes, inputs, [tensor("y", [1, 4])], [constant("w", [1, 2, 3, 4])])
    made.graph.initializer[0].doc_string = PRIVATE
    made.graph.value_info.append(tensor("m", [1, 4]))
    for documented in (made, made.graph, made.graph.input[0], made.graph.output[0], made.graph.value_info[0]):
        documented.doc_string = PRIVATE
    for owner in (made, made.graph, made.graph.node[0], made.graph.initializer[0], made.graph.input[0]):
        entry = owner.metadata_props.add()
        entry.key, entry.value = "namespace", PRIVATE
    made.producer_name, made.producer_version, made.domain = PRIVATE, PRIVATE, PRIVATE
    return made


def test_normalise_header_leaves_no_path_when_one_stood_everywhere() -> None:
    original = documented()
    assert original.SerializeToString().count(PRIVATE.encode()) == 19
    done = normalise_header().rewrite(ir.from_proto(original))
    assert b"/home/somebody" not in serialised(done.model)
    check(done.model)


@pytest.mark.parametrize(("given", "wanted"), [(7, 7), (8, 8), (10, 10), (11, 10), (13, 10)])
def test_normalise_header_lowers_the_ir_version_to_what_the_converter_reads(given: int, wanted: int) -> None:
    original = decoder()
    original.ir_version = given
    assert normalise_header().rewrite(original).model.ir_version == wanted
    assert original.ir_version == given


def test_normalise_header_names_nodes_after_what_they_make_when_they_have_no_name() -> None:
    original = documented()
    branches = [attribute.g for attribute in original.graph.node[1].attribute]
    original.graph.node[0].name = "y"  # the name that another node would have
    for node in (*original.graph.node[1:], *(node for branch in branches for node in branch.node)):
        node.ClearField("name")
    done = normalise_header().rewrite(ir.from_proto(original))
    names = [node.name for node in done.model.graph.all_nodes()]
    assert sorted(str(name) for name in names) == ["else_y", "k", "then_y", "y", "y_2"]
    check(done.model)


@pytest.mark.parametrize(("given", "wanted"), [("", "graph"), (None, "graph"), ("torch_jit", "torch_jit")])
def test_normalise_header_names_the_graph_when_it_has_no_name(given: str | None, wanted: str) -> None:
    original = decoder()
    original.graph.name = given
    assert normalise_header().rewrite(original).model.graph.name == wanted


def test_normalise_header_keeps_the_opset_in_use_and_drops_the_others() -> None:
    original = decoder(Recipe(opset=17))
    original.opset_imports.update({"com.microsoft": 1, "ai.onnx.ml": 3})
    assert dict(normalise_header().rewrite(original).model.opset_imports) == {"": 17}


def test_normalise_header_changes_no_bit_of_the_result_nor_the_model_it_was_given() -> None:
    recipe = Recipe()
    original = decoder(recipe)
    original.metadata_props["sample_rate"] = "22050"
    before = serialised(original)
    done = normalise_header().rewrite(original)
    check(done.model)
    assert done.hits == 1
    assert done.model.producer_name == "rknn-tts"
    assert not done.model.metadata_props
    feed = decoder_feed(recipe, 16)
    assert (run(original, feed)["audio"] == run(done.model, feed)["audio"]).all()
    assert serialised(original) == before


def test_normalise_header_drops_weights_that_nothing_reads_and_keeps_outputs() -> None:
    scaled = helper.make_node("Mul", ["x", "w"], ["y"], "mul")
    weights = [constant("w", 2.0), constant("bound", -3.4e38), constant("k", [1.0])]
    original = ir.from_proto(proto([scaled], [tensor("x", [1, 4])], [tensor("y", [1, 4]), tensor("k", [1])], weights))
    done = normalise_header().rewrite(original)
    check(done.model)
    assert list(done.model.graph.initializers) == ["w", "k"]
    assert len(original.graph.initializers) == 3


@pytest.mark.parametrize("stated", [["N", 4], None])
def test_outputs_state_the_sizes_that_are_known_by_now(stated: list[int | str] | None) -> None:
    made = ir.from_proto(
        proto([helper.make_node("Neg", ["x"], ["y"], "neg")], [tensor("x", [1, 4])], [tensor("y", [1, 4])])
    )
    made.graph.outputs[0].shape = None if stated is None else ir.Shape(stated)
    done = normalise_header().rewrite(made).model
    assert list(done.graph.outputs[0].shape or ()) == [1, 4]
    made.graph.inputs[0].shape = ir.Shape(["M", 4])
    still = normalise_header().rewrite(made).model
    assert static_shape(still.graph.outputs[0]) is None, "what nothing gives stays open"
