from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from contracts.errors import RknnTtsError, UserInput
from converters.onnx_faults import sort_or_fault
from converters.onnx_file import read_onnx
from converters.piper.voice import open_voice
from tests.gates.small_graphs import proto, tensor
from tests.surgery.graphs import serialised
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import voice_model

VOICE_BYTES = voice_model(Recipe(flows=1, flow_layers=1, strides=(2,))).SerializeToString()


def of(*nodes: onnx.NodeProto) -> ir.Model:
    return ir.from_proto(proto(nodes, [tensor("x", [4])], [tensor("y", [4])]))


NEG, ABS = helper.make_node("Neg", ["x"], ["a"], "neg"), helper.make_node("Abs", ["a"], ["y"], "abs")


def test_whole_graph_has_no_fault_and_stays_as_it_is() -> None:
    model = ir.from_proto(onnx.load_from_string(VOICE_BYTES))
    before = serialised(model)
    assert sort_or_fault(model) is None
    assert serialised(model) == before


def test_nodes_are_put_in_order() -> None:
    model = of(ABS, NEG)
    assert sort_or_fault(model) is None
    assert [node.name for node in model.graph] == ["neg", "abs"]


@pytest.mark.parametrize(
    ("nodes", "fault"),
    [
        ([helper.make_node("Abs", ["gone"], ["y"], "abs")], "the node abs reads gone, which nothing makes"),
        ([helper.make_node("Abs", ["gone"], ["y"])], "the node Abs reads gone, which nothing makes"),
        ([NEG], "nothing makes the output y"),
        (
            [helper.make_node("Add", ["x", "y"], ["a"], "add"), ABS],
            "its nodes depend on each other in a circle",
        ),
    ],
)
def test_fault_is_named(nodes: list[onnx.NodeProto], fault: str) -> None:
    assert sort_or_fault(of(*nodes)) == fault


def test_attribute_without_a_type_is_named() -> None:
    node = helper.make_node("LeakyRelu", ["x"], ["y"], "relu", alpha=0.1)
    node.attribute[0].type = onnx.AttributeProto.UNDEFINED
    assert sort_or_fault(of(node)) == "the attribute alpha of the node relu has no type"


def called(node: onnx.NodeProto) -> ir.Model:
    """A model that calls a function which consists of `node`, from a to b."""
    made = proto([helper.make_node("F", ["x"], ["y"], domain="local")], [tensor("x", [4])], [tensor("y", [4])])
    made.opset_import.append(helper.make_opsetid("local", 1))
    function = helper.make_function("local", "F", ["a"], ["b"], [node], [helper.make_opsetid("", 17)], ["alpha"])
    made.functions.append(function)
    return ir.from_proto(made)


def test_fault_inside_a_function_is_named() -> None:
    assert sort_or_fault(called(helper.make_node("Abs", ["a"], ["b"]))) is None
    fault = sort_or_fault(called(helper.make_node("Abs", ["gone"], ["b"], "inner")))
    assert fault == "the node inner reads gone, which nothing makes"


def referring() -> onnx.NodeProto:
    node = helper.make_node("LeakyRelu", ["a"], ["b"], "relu")
    node.attribute.append(onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="alpha"))
    return node


def test_attribute_may_refer_to_one_of_its_function_and_to_none_elsewhere() -> None:
    assert sort_or_fault(called(referring())) is None
    outside = referring()
    outside.input[0], outside.output[0] = "x", "y"
    assert sort_or_fault(of(outside)) == "the attribute alpha of the node relu refers to no function's"


def test_fault_inside_a_branch_is_named() -> None:
    body = helper.make_graph([helper.make_node("Abs", ["gone"], ["b"], "inner")], "branch", [], [tensor("b", [4])])
    nodes = [helper.make_node("If", ["c"], ["y"], "if", then_branch=body, else_branch=body)]
    made = proto(nodes, [tensor("c", [], onnx.TensorProto.BOOL)], [tensor("y", [4])])
    assert sort_or_fault(ir.from_proto(made)) == "the node inner reads gone, which nothing makes"


def test_branch_may_read_what_its_surroundings_make() -> None:
    body = helper.make_graph([helper.make_node("Abs", ["a"], ["b"], "inner")], "branch", [], [tensor("b", [4])])
    nodes = [NEG, helper.make_node("If", ["c"], ["y"], "if", then_branch=body, else_branch=body)]
    made = proto(nodes, [tensor("x", [4]), tensor("c", [], onnx.TensorProto.BOOL)], [tensor("y", [4])])
    assert sort_or_fault(ir.from_proto(made)) is None


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b"/enc_p/Mul_output_0", b"/enc_p/Mul_\xff\xfetput_0", "is no text"),
        (b"/dec/Tanh_output_0", b"/dec/Tanh_outout_0", "which nothing makes"),
        (b"dec.conv_pre.weight", b"dec.conv_pre.weigh\x9f", "is no text"),
    ],
)
def test_damaged_voice_is_refused_by_what_is_wrong_and_nothing_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], old: bytes, new: bytes, says: str
) -> None:
    path = tmp_path / "voice.onnx"
    path.write_bytes(VOICE_BYTES.replace(old, new, 1))
    with pytest.raises(UserInput, match=r"voice\.onnx: is damaged, or is not valid ONNX: ") as caught:
        read_onnx(path)
    assert says in str(caught.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("seed", range(4))
def test_voice_with_flipped_bytes_ends_in_a_sentence(tmp_path: Path, seed: int) -> None:
    rng, path = random.Random(seed), tmp_path / "voice.onnx"
    graph_bytes = VOICE_BYTES.find(b"torch_jit")  # the nodes come before the graph's name, the weights after it
    for _ in range(100):
        damaged = bytearray(VOICE_BYTES)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(graph_bytes)] ^= rng.randint(1, 255)
        path.write_bytes(bytes(damaged))
        with suppress(RknnTtsError):  # most are refused, some are still a voice; anything else fails the test
            open_voice(path)
