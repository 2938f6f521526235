"""A damaged model of every kind of part ends in a sentence, or can be used and written again: nothing else."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import ModelProto, TensorProto, helper

from contracts.errors import Refusal, UserInput
from converters.onnx_file import external_files, read_onnx
from rknn_tts.carried import carried_contract, carried_feeds, carry
from tests.contracts.samples import CONTRACT
from tests.gates.small_graphs import tensor
from tests.mutations import mutations

DATA = "w.bin"
PIECES = (b"\0", b"\xff", b"\x7f", b"\xff\xff\xff\xff\x0f", b"../", b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01")


def rich() -> ModelProto:
    """A branch, a function, external data, and tensors of several types in their own fields."""
    inner = [helper.make_node("Add", ["a", "w"], ["b"], "inner")]
    branch = helper.make_graph(inner, "branch", [], [tensor("b", [1, 4])])
    constant = TensorProto(name="k", data_type=TensorProto.FLOAT, dims=[4], raw_data=bytes(16))
    body = [helper.make_node("Constant", [], ["k"], value=constant), helper.make_node("Add", ["p", "k"], ["q"])]
    function = helper.make_function("local", "F", ["p"], ["q"], body, [helper.make_opsetid("", 17)])
    external = TensorProto(name="e", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", DATA), ("offset", "4"), ("length", "16")):
        external.external_data.add(key=key, value=value)
    weights = [
        external,
        TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], float_data=[1.0] * 4),
        TensorProto(name="h", data_type=TensorProto.FLOAT16, dims=[3], int32_data=[1, 2, 3]),
        TensorProto(name="i", data_type=TensorProto.INT64, dims=[2], int64_data=[1, 4]),
        TensorProto(name="s", data_type=TensorProto.STRING, dims=[1], string_data=[b"text"]),
        TensorProto(name="n", data_type=TensorProto.INT4, dims=[3], raw_data=b"\x11\x01"),
    ]
    nodes = [
        helper.make_node("Add", ["x", "w"], ["a"], "add"),
        helper.make_node("If", ["c"], ["y0"], "if", then_branch=branch, else_branch=branch),
        helper.make_node("F", ["y0"], ["y1"], "call", domain="local"),
        helper.make_node("LeakyRelu", ["y1"], ["y2"], "relu", alpha=0.1),
        helper.make_node("Add", ["y2", "e"], ["y"], "last"),
    ]
    inputs = [tensor("x", ["N", 4]), tensor("c", [], TensorProto.BOOL)]
    graph = helper.make_graph(nodes, "rich", inputs, [tensor("y", ["N", 4])], weights)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10, functions=[function])


BARE = rich().SerializeToString()
CARRYING = carry(BARE, CONTRACT, [{"x": np.ones((1, 4), np.float32)}])


def use(path: Path) -> None:
    """What the commands do with a graph that could be read."""
    external_files(path)
    model = read_onnx(path)
    for graph in model.graphs():
        for value in graph.initializers.values():
            if value.const_value is not None:
                value.const_value.numpy()
    onnx.load_from_string(ir.to_proto(model).SerializeToString())
    carried_contract(model, path.name)
    carried_feeds(model, path.name)


def test_rich_model_is_used_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "rich.onnx"
    (tmp_path / DATA).write_bytes(bytes(20))
    for whole in (BARE, CARRYING):
        path.write_bytes(whole)
        use(path)


@pytest.mark.parametrize(("whole", "count"), [(BARE, 2000), (CARRYING, 500)], ids=["bare", "carrying"])
def test_damaged_model_ends_in_a_sentence_or_can_be_used(whole: bytes, count: int, tmp_path: Path) -> None:
    path = tmp_path / "rich.onnx"
    (tmp_path / DATA).write_bytes(bytes(20))
    for damaged in mutations(whole, count, PIECES):
        path.write_bytes(damaged)
        with suppress(UserInput, Refusal):  # whatever else is raised fails the test
            use(path)


def test_model_cut_off_anywhere_ends_in_a_sentence_or_can_be_used(tmp_path: Path) -> None:
    path = tmp_path / "rich.onnx"
    (tmp_path / DATA).write_bytes(bytes(20))
    for length in range(len(BARE)):
        path.write_bytes(BARE[:length])
        with suppress(UserInput, Refusal):
            use(path)
