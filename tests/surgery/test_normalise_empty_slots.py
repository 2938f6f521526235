from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto

from surgery.normalise_empty_slots import normalise_empty_slots
from tests.onnx_runs import Array, run
from tests.surgery.graphs import check
from tests.surgery.one_operator import equal_after, feed_of, left_alone, operator, weight

PASS = normalise_empty_slots()

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def whole(*values: int) -> Array:
    return np.array(values, np.int64)


def noise(*shape: int) -> Array:
    return np.random.default_rng(9).standard_normal(shape).astype(np.float32)


def names(made: ir.Model) -> tuple[list[str | None], list[str | None]]:
    """Of the inputs and outputs of the one node."""
    (node,) = made.graph
    inputs = [None if value is None else value.name for value in node.inputs]
    return inputs, [value.name for value in node.outputs]


CUT: dict[str, tuple[ir.Model, int, int]] = {
    "bias": (operator("Conv", "x w -", constants={"w": noise(3, 4, 3)}), 2, 1),
    "bias of a transposed": (operator("ConvTranspose", "x w -", constants={"w": noise(4, 3, 3)}), 2, 1),
    "several": (operator("Slice", "x s e - -", constants={"s": whole(0, 1), "e": whole(1, 3)}), 3, 1),
    "old opset": (operator("Slice", "x s e - -", constants={"s": whole(0), "e": whole(1)}, opset=10), 3, 1),
    "new opset": (operator("Pad", "x p - -", constants={"p": whole(0, 0, 1, 0, 0, 1)}, opset=21), 2, 1),
    "third matrix": (operator("Gemm", "x w -", shape=(3, 4), constants={"w": noise(4, 5)}), 2, 1),
    "high": (operator("Clip", "x low -", constants={"low": np.array(0.1, np.float32)}), 2, 1),
    "lengths": (operator("Split", "x -", "y z", axis=1), 1, 2),
    "mask": (operator("Dropout", "x - -", "y -"), 1, 1),
    "indices": (operator("MaxPool", "x", "y -", kernel_shape=[2]), 1, 1),
    "statistics": (operator("LayerNormalization", "x w", "y - -", constants={"w": noise(12)}), 2, 1),
    "input and outputs": (operator("LayerNormalization", "x w -", "y - -", constants={"w": noise(12)}), 2, 1),
    "one statistic": (operator("LayerNormalization", "x w", "y m -", constants={"w": noise(12)}), 2, 2),
}


@pytest.mark.parametrize("name", CUT)
def test_empty_slots_behind_are_cut_off(name: str) -> None:
    original, inputs, outputs = CUT[name]
    after = names(equal_after(PASS, original))
    before = names(original)
    assert after == (before[0][:inputs], before[1][:outputs])
    assert all(after[0])


def slices(starts: Array, ends: Array, steps: Array, **options: Any) -> ir.Model:
    return operator("Slice", "x s e - t", constants={"s": starts, "e": ends, "t": steps}, **options)


@pytest.mark.parametrize(
    ("starts", "ends", "steps"),
    [
        ((0, 1, 2), (1, 3, 12), (1, 1, 2)),
        ((0, 1), (1, 4), (1, 2)),
        ((0,), (1,), (1,)),
        ((0, 3, 11), (1, 0, 0), (1, -1, -3)),
    ],
)
@pytest.mark.parametrize("opset", [10, 13, 19])
def test_axes_of_a_slice_are_written_out(
    starts: tuple[int, ...], ends: tuple[int, ...], steps: tuple[int, ...], opset: int
) -> None:
    made = equal_after(PASS, slices(whole(*starts), whole(*ends), whole(*steps), opset=opset))
    np.testing.assert_array_equal(weight(made.graph[0].inputs[3]), np.arange(len(starts)))


H, STEPS, INPUTS = 5, 7, 3


def recurrent(op: str, inputs: str, outputs: str, directions: int = 1, **options: Any) -> ir.Model:
    """An LSTM or GRU of x [7, 1, 3], hidden size 5, with the named weights."""
    gates = {"LSTM": 4, "GRU": 3}[op]
    every = {
        "w": noise(directions, gates * H, INPUTS),
        "r": noise(directions, gates * H, H),
        "b": noise(directions, 2 * gates * H),
        "h": noise(directions, 1, H),
        "c": noise(directions, 1, H) / 2,
        "n": np.array([STEPS - 2], np.int32),
    }
    direction = {1: "forward", 2: "bidirectional"}[directions]
    made = {name: (4 if name == "y" else 3, FLOAT) for name in outputs.split() if name != "-"}
    taken = {name: every[name] for name in inputs.split() if name in every}
    return operator(
        op, inputs, outputs, shape=(STEPS, 1, INPUTS), constants=taken, made=made,
        hidden_size=H, direction=direction, **options,
    )  # fmt: skip


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("LSTM", "x w r - - h c"),
        ("LSTM", "x w r - n"),
        ("LSTM", "x w r - n h"),
        ("LSTM", "x w r - - - c"),
        ("GRU", "x w r - - h"),
        ("GRU", "x w r - n -"),
    ],
)
def test_bias_of_a_recurrent_layer_is_written_out(op: str, inputs: str, directions: int) -> None:
    made = equal_after(PASS, recurrent(op, inputs, "y", directions))
    bias = weight(made.graph[0].inputs[3])
    assert bias.shape == (directions, {"LSTM": 8, "GRU": 6}[op] * H)
    assert not bias.any()


@pytest.mark.parametrize(("op", "outputs"), [("LSTM", "- h"), ("LSTM", "- - c"), ("LSTM", "y - c"), ("GRU", "- h")])
def test_nameless_output_before_a_named_one_gets_a_name(op: str, outputs: str) -> None:
    made = equal_after(PASS, recurrent(op, "x w r b", outputs))
    after = names(made)[1]
    assert all(after)
    assert [name for name in after if "normalise_empty_slots" not in str(name)] == outputs.replace("- ", "").split()


def test_nameless_parts_of_a_split_get_names() -> None:
    """onnxruntime crashes on the original, so the same graph with names is run in its place."""

    def split(outputs: str) -> ir.Model:
        made = {"a": (3, FLOAT), "c": (3, FLOAT)}
        return operator("Split", "x l", outputs, constants={"l": whole(3, 4, 4, 1)}, axis=-1, made=made)

    done = PASS.rewrite(split("a - c -"))
    assert (done.hits, done.refused) == (1, ())
    check(done.model)
    assert len(names(done.model)[1]) == 4
    wanted, got = run(split("a b c d"), feed_of(split("a b c d"))), run(done.model, feed_of(done.model))
    for name in ("a", "c"):
        np.testing.assert_array_equal(got[name], wanted[name])


def test_new_name_is_no_others_when_it_is_taken() -> None:
    original = recurrent("LSTM", "x w r b", "- h")
    original.graph.initializers["b"].name = "h.normalise_empty_slots.0"
    made = equal_after(PASS, original)
    assert names(made)[1] == ["h.normalise_empty_slots.0_", "h"]


KEPT = {
    "nothing empty": operator("Conv", "x w", constants={"w": noise(3, 4, 3)}),
    "scales of a Resize": operator("Resize", "x - s", constants={"s": np.array([1, 1, 2], np.float32)}, mode="nearest"),
    "sizes of a Resize": operator("Resize", "x - - s", constants={"s": whole(1, 4, 24)}, mode="nearest"),
    "low of a Clip": operator("Clip", "x - high", constants={"high": np.array(0.1, np.float32)}),
    "ratio of a Dropout": operator("Dropout", "x - t", constants={"t": np.array(False)}),
    "value of a Pad": operator("Pad", "x p - a", constants={"p": whole(1, 1), "a": whole(2)}, opset=18),
    "lengths of an LSTM": recurrent("LSTM", "x w r b - h c", "y"),
    "state of an LSTM": recurrent("LSTM", "x w r b - - c", "y"),
    "lengths of a GRU": recurrent("GRU", "x w r b - h", "y h1"),
}


@pytest.mark.parametrize("name", KEPT)
def test_graph_is_left_alone_when_the_toolkit_takes_the_gap(name: str) -> None:
    left_alone(PASS, KEPT[name])


def test_node_is_left_alone_when_none_of_its_outputs_has_a_name() -> None:
    original = operator("Relu")
    dead = ir.node("Dropout", [original.graph.inputs[0]], name="dead", num_outputs=2)
    for value in dead.outputs:
        value.name = ""
    original.graph.append(dead)
    left_alone(PASS, original)


def test_output_without_a_name_is_cut_or_named_never_both() -> None:
    """Behind the last named output of an operator of another domain nothing is known to be optional."""
    original = operator("Other", "x -", "y -", domain="com.example")
    done = PASS.rewrite(original)
    assert done.hits == 1
    assert names(done.model)[0] == ["x"]
    assert len(names(done.model)[1]) == 2
    assert all(names(done.model)[1])
