from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto

from surgery.rewrite_recurrent_outputs import rewrite_recurrent_outputs
from tests.onnx_runs import Array
from tests.surgery.one_operator import equal_after, left_alone, only, operator, operators

PASS = rewrite_recurrent_outputs()

H, STEPS, INPUTS = 5, 7, 3
FLOAT = TensorProto.FLOAT


def noise(*shape: int) -> Array:
    return np.random.default_rng(9).standard_normal(shape).astype(np.float32)


def recurrent(
    op: str, outputs: str, inputs: str = "x w r b", direction: str = "forward", batch: int = 1, **options: Any
) -> ir.Model:
    """An LSTM or GRU of x [7, batch, 3], hidden size 5; the outputs in capitals are not outputs of the graph."""
    gates, directions = {"LSTM": 4, "GRU": 3}[op], 2 if direction == "bidirectional" else 1
    every = {
        "w": noise(directions, gates * H, INPUTS),
        "r": noise(directions, gates * H, H),
        "b": noise(directions, 2 * gates * H),
        "s": noise(directions, batch, H),
        "n": np.full(batch, STEPS, np.int32),
        "short": np.full(batch, STEPS - 2, np.int32),
    }
    made = {name: (4 if name == "y" else 3, FLOAT) for name in outputs.split() if name.islower()}
    taken = {name: every[name] for name in inputs.split() if name in every}
    return operator(
        op, inputs, outputs, shape=(STEPS, batch, INPUTS), constants=taken, made=made,
        hidden_size=H, direction=direction, **options,
    )  # fmt: skip


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("outputs", ["Y h", "- h"])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("opset", [11, 17, 22])
def test_last_state_of_a_gru_is_taken_from_every_step(direction: str, outputs: str, batch: int, opset: int) -> None:
    made = equal_after(PASS, recurrent("GRU", outputs, direction=direction, batch=batch, opset=opset))
    assert len(only(made, "GRU").outputs) == 1
    assert all("rewrite_recurrent_outputs" in str(node.name) for node in made.graph)


@pytest.mark.parametrize(
    ("inputs", "options"),
    [
        ("x w r b n s", {}),
        ("x w r b - s", {"linear_before_reset": 1}),
        ("x w r", {"clip": 0.5}),
        ("x w r b", {"activations": ["HardSigmoid", "Softsign"], "activation_alpha": [0.3], "activation_beta": [0.4]}),
    ],
)
def test_gru_keeps_its_inputs_and_attributes(inputs: str, options: dict[str, Any]) -> None:
    equal_after(PASS, recurrent("GRU", "Y h", inputs, **options))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("outputs", ["Y H c", "y H c", "y - c", "- - c"])
@pytest.mark.parametrize("opset", [11, 17, 18, 22])
def test_cell_of_an_lstm_is_read_together_with_its_state(direction: str, outputs: str, opset: int) -> None:
    made = equal_after(PASS, recurrent("LSTM", outputs, "x w r b - s s", direction, opset=opset))
    assert operators(made) == ["LSTM", "Concat", "Split"]


@pytest.mark.parametrize(
    "original",
    [
        recurrent("GRU", "y h"),
        recurrent("GRU", "y H"),
        recurrent("GRU", "y"),
        recurrent("LSTM", "y h c"),
        recurrent("LSTM", "Y h"),
        recurrent("LSTM", "Y h c"),
        recurrent("LSTM", "y H C"),
        operator("Relu"),
    ],
)
def test_graph_is_left_alone_when_the_toolkit_takes_what_is_read(original: ir.Model) -> None:
    left_alone(PASS, original)


def test_graph_is_left_alone_when_the_batch_comes_first() -> None:
    left_alone(PASS, recurrent("GRU", "Y h", layout=1))
