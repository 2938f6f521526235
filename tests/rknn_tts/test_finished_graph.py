"""The graph behind all passes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from contracts.contract import Contract, Noise, Source, TensorSpec
from contracts.errors import Refusal
from rknn_tts import finished_graph
from rknn_tts.finished_graph import UNKNOWN_SIZE, check_size, described, fed_inputs, serialised
from surgery.declaration import AddedInput, Interface, Rewritten
from tests.gates.small_graphs import constant, model, tensor

OLD = Noise("old", "normal", 0.0, 1.0)
NEW = Noise("new", "uniform", -1.0, 1.0)
GONE = Noise("gone", "normal", 0.0, 1.0)
CONTRACT = Contract(
    family="f",
    stage="s",
    source=Source("voice.onnx", "ab" * 32, "checkpoint"),
    inputs=(TensorSpec("gone", (1, 4)),),
    outputs=(TensorSpec("y", ()),),
    noise=(OLD, GONE),
)


def graph() -> ir.Model:
    """y = old + new + w, and i, of which the file lists w among its inputs."""
    nodes = [
        helper.make_node("Sum", ["old", "new", "w"], ["y"], "sum"),
        helper.make_node("Identity", ["i"], ["z"], "n"),
    ]
    inputs = [tensor("old", [1, 4]), tensor("new", [1, 4]), tensor("i", [1], TensorProto.INT64), tensor("w", [4])]
    outputs = [tensor("y", [1, "n"]), tensor("z", [1], TensorProto.INT64)]
    return model(nodes, inputs, outputs, [constant("w", np.ones(4))])


def test_described_states_what_the_graph_takes_and_gives_and_which_inputs_are_noise() -> None:
    made = graph()
    rewritten = [
        Rewritten(made, 1, interface=Interface(added=(AddedInput("new", "drawn", NEW),))),
        Rewritten(made, 1, interface=Interface(removed=("gone",))),
    ]
    contract = described(CONTRACT, made, rewritten)
    assert contract.inputs == (TensorSpec("old", (1, 4)), TensorSpec("new", (1, 4)), TensorSpec("i", (1,), "int64"))
    assert contract.outputs == (TensorSpec("y", (1, UNKNOWN_SIZE)), TensorSpec("z", (1,), "int64"))
    assert contract.noise == (OLD, NEW)
    assert (contract.family, contract.source) == (CONTRACT.family, CONTRACT.source)


def test_fed_inputs_leave_out_weights_that_are_listed() -> None:
    assert [value.name for value in fed_inputs(graph())] == ["old", "new", "i"]


def test_serialised_is_the_same_for_the_same_graph() -> None:
    made = graph()
    assert serialised(made) == serialised(made.clone()) == serialised(graph())


def test_check_size_refuses_when_the_weights_are_as_large_as_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finished_graph, "MESSAGE_LIMIT_BYTES", 17)
    check_size("net.onnx", graph())
    monkeypatch.setattr(finished_graph, "MESSAGE_LIMIT_BYTES", 16)  # four float32
    with pytest.raises(Refusal, match=r"^net\.onnx: has 0\.0 GB of weights"):
        check_size("net.onnx", graph())
