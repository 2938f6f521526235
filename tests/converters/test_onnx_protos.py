"""What is found wrong with a model before a graph is made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, helper, numpy_helper

from converters.onnx_protos import LARGEST_NODES, normalise_proto, proto_fault, sparse_tensor
from converters.onnx_texts import unreadable_text
from tests.gates.small_graphs import proto, tensor

WEIGHT = numpy_helper.from_array(np.ones(4, np.float32), "w")
SHORT = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], raw_data=b"\0" * 7)
ADD = helper.make_node("Add", ["x", "w"], ["y"], "add")


def model(nodes: Sequence[NodeProto] = (ADD,), weights: Sequence[TensorProto] = (WEIGHT,)) -> ModelProto:
    return proto(list(nodes), [tensor("x", [1, 4])], [tensor("y", [1, 4])], list(weights))


def with_functions(*bodies: Sequence[str]) -> ModelProto:
    """A model that calls F0, whose function Fi consists of the operators bodies[i], one after another."""
    made = model([helper.make_node("F0", ["x"], ["y"], domain="local")], [])
    made.opset_import.append(helper.make_opsetid("local", 1))
    for index, operators in enumerate(bodies):
        names = ["a", *(f"t{i}" for i in range(1, len(operators))), "b"]
        nodes = [
            helper.make_node(op, [before], [after], domain="local" if op.startswith("F") and op != "Floor" else "")
            for op, before, after in zip(operators, names, names[1:], strict=False)
        ]
        imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
        made.functions.append(helper.make_function("local", f"F{index}", ["a"], ["b"], nodes, imports))
    return made


def in_branch(weight: TensorProto) -> ModelProto:
    body = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["b"])], "branch", [], [tensor("b", [1, 4])], [weight]
    )
    nodes = [helper.make_node("If", ["c"], ["y"], "if", then_branch=body, else_branch=body)]
    return proto(nodes, [tensor("x", [1, 4]), tensor("c", [], TensorProto.BOOL)], [tensor("y", [1, 4])])


def in_constant(weight: TensorProto) -> ModelProto:
    return model([helper.make_node("Constant", [], ["w"], value=weight), ADD], [])


def in_function(weight: TensorProto) -> ModelProto:
    made = with_functions(["Neg"])
    made.functions[0].node.insert(0, helper.make_node("Constant", [], ["k"], value=weight))
    return made


@pytest.mark.parametrize("place", [lambda weight: model(weights=[weight]), in_branch, in_constant, in_function])
def test_proto_fault_finds_a_tensor_when_its_data_does_not_fit(place: Callable[[TensorProto], ModelProto]) -> None:
    assert proto_fault(place(WEIGHT)) is None
    assert "needs 16 bytes, the file holds 7" in str(proto_fault(place(SHORT)))


def changed(change: Callable[[ModelProto], object]) -> ModelProto:
    made = model()
    change(made)
    return made


FAULTS = {
    "no IR version": (lambda m: m.ClearField("ir_version"), "states no IR version"),
    "a negative IR version": (lambda m: setattr(m, "ir_version", -1), "states no IR version"),
    "two opsets": (lambda m: m.opset_import.append(helper.make_opsetid("", 13)), "states 2 opsets (17, 13)"),
    "two names of one": (lambda m: m.opset_import.append(helper.make_opsetid("ai.onnx", 13)), "2 opsets (17, 13)"),
    "a negative opset": (lambda m: setattr(m.opset_import[0], "version", -3), "states the opset -3"),
    "an input twice": (lambda m: m.graph.input.append(tensor("x", [1, 4])), "two inputs named x"),
    "an output twice": (lambda m: m.graph.output.append(tensor("y", [1, 4])), "two outputs named y"),
    "no output": (lambda m: m.graph.ClearField("output"), "it has no outputs"),
    "an input without a type": (lambda m: m.graph.input[0].ClearField("type"), "the input x has no type"),
    "an input of an unknown type": (
        lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 99),
        "the input x has elements of the type 99",
    ),
    "an input of no type": (
        lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 0),
        "the input x has elements of the type 0",
    ),
    "a node without an operator": (lambda m: setattr(m.graph.node[0], "op_type", ""), "add states no operator"),
}


@pytest.mark.parametrize(("change", "says"), FAULTS.values(), ids=FAULTS)
def test_proto_fault_says_what_is_wrong_when_it_is(change: Callable[[ModelProto], object], says: str) -> None:
    assert says in str(proto_fault(changed(change)))


@pytest.mark.parametrize(
    "bodies",
    [[["Neg", "Abs"]], [["F1", "F1"], ["Neg"]], [["F1", "F2"], ["F2", "Neg"], ["Abs"]]],
    ids=["one", "called twice", "called from two"],
)
def test_proto_fault_is_none_when_functions_call_each_other_in_order(bodies: list[list[str]]) -> None:
    assert proto_fault(with_functions(*bodies)) is None


@pytest.mark.parametrize("bodies", [[["F0"]], [["F1"], ["F2"], ["F0"]]], ids=["itself", "in a circle"])
def test_proto_fault_names_a_function_when_it_calls_itself(bodies: list[list[str]]) -> None:
    assert "calls itself" in str(proto_fault(with_functions(*bodies)))


def test_proto_fault_counts_the_nodes_of_calls_without_making_them() -> None:
    doubling = [*([f"F{index + 1}"] * 2 for index in range(39)), ["Neg"]]  # 2^39 nodes
    assert f"more than {LARGEST_NODES} nodes" in str(proto_fault(with_functions(*doubling)))


def test_proto_fault_looks_into_branches_when_they_call_themselves() -> None:
    made = with_functions(["Neg"])
    call = helper.make_graph(
        [helper.make_node("F0", ["a"], ["i"], domain="local")], "branch", [], [tensor("i", [1, 4])]
    )
    made.functions[0].node.append(helper.make_node("If", ["a"], ["c"], then_branch=call, else_branch=call))
    assert "F0 calls itself" in str(proto_fault(made))


def sparse() -> SparseTensorProto:
    made = SparseTensorProto(dims=[10**9, 10**9])
    made.values.CopyFrom(numpy_helper.from_array(np.ones(1, np.float32), "w"))
    made.indices.CopyFrom(numpy_helper.from_array(np.array([5])))
    return made


def test_sparse_tensor_is_named_when_there_is_one() -> None:
    assert sparse_tensor(model()) is None
    assert sparse_tensor(changed(lambda m: m.graph.sparse_initializer.append(sparse()))) == "w"
    node = helper.make_node("Constant", [], ["w"])
    node.attribute.append(
        AttributeProto(name="sparse_value", type=AttributeProto.SPARSE_TENSOR, sparse_tensor=sparse())
    )
    assert sparse_tensor(model([node, ADD], [])) == "sparse_value"


def test_normalise_proto_writes_the_default_domain_and_unknown_sizes_in_one_way() -> None:
    made = model()
    made.opset_import[0].domain = made.graph.node[0].domain = "ai.onnx"
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    made.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "N"
    normalise_proto(made)
    assert (made.opset_import[0].domain, made.graph.node[0].domain) == ("", "")
    sizes = made.graph.input[0].type.tensor_type.shape.dim
    assert (sizes[0].WhichOneof("value"), sizes[1].dim_value) == (None, 4)
    assert made.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "N"
    again = onnx.load_from_string(made.SerializeToString())
    normalise_proto(again)
    assert again == made


def test_normalise_proto_drops_what_does_not_say_where_external_data_is() -> None:
    weight = TensorProto(name="w", data_type=1, dims=[4], data_location=TensorProto.EXTERNAL)
    for key in ("prepacked_0", "location", "basepath", "offset", "checksum", "length"):
        weight.external_data.add(key=key, value="1")
    made = model(weights=[weight])
    normalise_proto(made)
    assert [entry.key for entry in made.graph.initializer[0].external_data] == ["location", "offset", "length"]


@pytest.mark.parametrize(
    "text", [b"add", b"pytest", b"y_name", b"N_size", b"doc_string", b"F_name"], ids=lambda text: text.decode()
)
def test_unreadable_text_is_found_wherever_it_is(text: bytes) -> None:
    made = with_functions(["Neg"])
    made.graph.node[0].name, made.producer_name, made.graph.doc_string = "add", "pytest", "doc_string"
    made.functions[0].doc_string = "F_name"
    made.graph.value_info.append(tensor("y_name", ["N_size"]))
    whole = made.SerializeToString()
    assert unreadable_text(onnx.load_from_string(whole)) is None
    damaged = whole.replace(text, b"\xff" + text[1:])
    assert unreadable_text(onnx.load_from_string(damaged)) == b"\xff" + text[1:]
    assert "is no text" in str(proto_fault(onnx.load_from_string(damaged)))
