from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto

from surgery.normalise_defaults import normalise_defaults
from tests.onnx_runs import Array
from tests.surgery.one_operator import equal_after, left_alone, only, operator, weight

PASS = normalise_defaults()

FLOAT = TensorProto.FLOAT


def whole(*values: int) -> Array:
    return np.array(values, np.int64)


def noise(*shape: int) -> Array:
    return np.random.default_rng(9).standard_normal(shape).astype(np.float32)


def split(parts: int, **options: Any) -> ir.Model:
    return operator("Split", "x", " ".join(f"y{part}" for part in range(parts)), num_outputs=parts, **options)


@pytest.mark.parametrize(
    ("parts", "axis", "lengths"), [(5, 2, [3, 3, 3, 3, 0]), (5, -1, [3, 3, 3, 3, 0]), (3, 1, [2, 2, 0]), (7, -1, None)]
)
def test_lengths_of_an_uneven_split_are_written_out(parts: int, axis: int, lengths: list[int] | None) -> None:
    done = PASS.rewrite(split(parts, axis=axis, opset=18))
    assert done.hits == 1
    written = weight(only(done.model, "Split").inputs[1]).tolist()
    assert lengths is None or written == lengths
    assert sum(written) == 12 if axis != 1 else 4


@pytest.mark.parametrize(
    ("parts", "shape", "axis"), [(5, (1, 4, 13), 2), (3, (1, 4, 13), -1), (3, (5, 2), 0), (3, (8, 2), 0)]
)
@pytest.mark.parametrize("opset", [18, 19, 23])
def test_uneven_split_gives_the_same(parts: int, shape: tuple[int, ...], axis: int, opset: int) -> None:
    made = equal_after(PASS, split(parts, shape=shape, axis=axis, opset=opset))
    assert "num_outputs" not in only(made, "Split").attributes


def test_axis_of_a_split_is_0_when_it_is_not_stated() -> None:
    made = equal_after(PASS, split(2, shape=(5, 3), opset=18))
    assert weight(only(made, "Split").inputs[1]).tolist() == [3, 2]


def pad(pads: Array, axes: Array, value: bool = False, **options: Any) -> ir.Model:
    constants = {"p": pads, "a": axes, **({"v": np.array(1.5, np.float32)} if value else {})}
    return operator("Pad", "x p v a" if value else "x p - a", constants=constants, **{"opset": 18, **options})


@pytest.mark.parametrize(
    ("pads", "axes", "written"),
    [
        (whole(1, 2), whole(2), [0, 0, 1, 0, 0, 2]),
        (whole(1, 2), whole(-1), [0, 0, 1, 0, 0, 2]),
        (whole(1, 2, 3, 4), whole(2, 1), [0, 2, 1, 0, 4, 3]),
        (whole(-1, 2), whole(1), [0, -1, 0, 0, 2, 0]),
        (whole(), whole(), [0] * 6),
    ],
)
@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("opset", [18, 21])
def test_pads_of_every_axis_are_written_out(
    pads: Array, axes: Array, written: list[int], value: bool, opset: int
) -> None:
    made = equal_after(PASS, pad(pads, axes, value, opset=opset))
    node = only(made, "Pad")
    assert weight(node.inputs[1]).tolist() == written
    assert len(node.inputs) == 2 + value


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_mode_of_a_pad_is_kept(mode: str) -> None:
    equal_after(PASS, pad(whole(1, 2, 3, 4), whole(-2, 2), mode=mode, opset=19))


def test_rank_is_enough_for_a_pad() -> None:
    original = pad(whole(1, 2), whole(-1), shape=("n", 4, 12))
    feed = {"x": noise(2, 4, 12)}
    equal_after(PASS, original, feed=feed)


@pytest.mark.parametrize(
    ("equation", "written", "shape", "other"),
    [
        ("bij,jk", "bij,jk->bik", (1, 4, 12), (12, 3)),
        (" b i j , j k -> b i k ", "bij,jk->bik", (1, 4, 12), (12, 3)),
        ("zij,ja", "zij,ja->aiz", (2, 4, 12), (12, 3)),
        ("...ij,jk", "...ij,jk->...ik", (2, 4, 12), (12, 3)),
        ("ij,ji", "ij,ji->", (4, 12), (12, 4)),
    ],
)
def test_output_of_an_einsum_is_written_out(
    equation: str, written: str, shape: tuple[int, ...], other: tuple[int, ...]
) -> None:
    rank = len(written.partition("->")[2].replace("...", "b"))
    original = operator(
        "Einsum", "x w", shape=shape, constants={"w": noise(*other)}, equation=equation, made={"y": (rank, FLOAT)}
    )
    made = equal_after(PASS, original)
    assert only(made, "Einsum").attributes["equation"].as_string() == written


def test_letters_that_stand_twice_in_a_term_are_summed() -> None:
    equal_after(PASS, operator("Einsum", shape=(4, 4), equation="ii", made={"y": (0, FLOAT)}))


KEPT = {
    "even split": split(3, axis=-1, opset=18),
    "lengths": operator("Split", "x l", "y z", constants={"l": whole(5, 7)}, axis=-1, opset=18),
    "old split": operator("Split", "x", "y z", axis=-1, opset=13),
    "older split": operator("Split", "x", "y z", axis=-1, split=[5, 7], opset=11),
    "pads": operator("Pad", "x p", constants={"p": whole(0, 0, 1, 0, 0, 2)}),
    "old pads": operator("Pad", pads=[0, 0, 1, 0, 0, 2], opset=10),
    "einsum": operator("Einsum", shape=(4, 4), equation="ij->ji"),
    "softmax": operator("Softmax"),
    "batch normalisation": operator(
        "BatchNormalization", "x a b c d", constants={name: np.ones(4, np.float32) for name in "abcd"}
    ),
    "in inference": operator(
        "BatchNormalization", "x a b c d", constants={name: np.ones(4, np.float32) for name in "abcd"}, training_mode=0
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_graph_is_left_alone_when_the_toolkit_takes_it(name: str) -> None:
    left_alone(PASS, KEPT[name])


@pytest.mark.parametrize(
    "original",
    [
        split(3, axis=7, opset=18),
        operator("Split", "x", "y z", axis=-1, num_outputs=0, opset=18),
        pad(whole(1, 2, 3), whole(2)),
        pad(whole(1, 2), whole(3)),
    ],
)
def test_graph_is_left_alone_when_it_is_no_valid_onnx(original: ir.Model) -> None:
    left_alone(PASS, original)


def recurrent(op: str, opset: int = 17, **attributes: int) -> ir.Model:
    gates = {"LSTM": 4, "GRU": 3}[op]
    weights = {"w": noise(2, gates * 5, 12), "r": noise(2, gates * 5, 5)}
    options: dict[str, Any] = {"hidden_size": 5, "direction": "bidirectional", **attributes}
    return operator(op, "x w r", constants=weights, made={"y": (4, FLOAT)}, opset=opset, **options)


@pytest.mark.parametrize("op", ["LSTM", "GRU"])
@pytest.mark.parametrize("opset", [14, 17, 22])
def test_layout_of_the_default_is_left_out(op: str, opset: int) -> None:
    assert "layout" not in only(equal_after(PASS, recurrent(op, opset, layout=0)), op).attributes


@pytest.mark.parametrize("op", ["LSTM", "GRU"])
def test_recurrent_node_without_a_layout_is_left_alone(op: str) -> None:
    left_alone(PASS, recurrent(op))
