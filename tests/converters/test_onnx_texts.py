"""Texts of an ONNX file that are none, wherever they stand."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from converters.onnx_texts import unreadable_text
from tests.gates.small_graphs import constant, proto, tensor

MARK = "REPLACE_ME"
"""Has no byte in common with what replaces it."""


def everywhere() -> dict[str, onnx.ModelProto]:
    """One graph for each place that a text may stand in."""

    def graph(
        name: str = "n", attribute: object = "nearest", weight: str = "k", size: int | str = 4, inner: str = "b"
    ) -> onnx.ModelProto:
        branch = helper.make_graph(
            [helper.make_node("Identity", ["x"], ["z"], inner)], "branch", [], [tensor("z", [1, 4])]
        )
        nodes = [
            helper.make_node("Resize", ["x", "", weight], ["r"], name, mode=attribute),
            helper.make_node("If", ["c"], ["y"], "if", then_branch=branch, else_branch=branch),
        ]
        inputs = [tensor("x", [1, size]), tensor("c", [], TensorProto.BOOL)]
        return proto(nodes, inputs, [tensor("y", [1, 4])], [constant(weight, [1.0, 1.0])])

    described = graph()
    described.metadata_props.add(key="author", value=MARK)
    producer = graph()
    producer.producer_name = MARK
    return {
        "node": graph(name=MARK),
        "weight": graph(weight=MARK),
        "size": graph(size=MARK),
        "node of a branch": graph(inner=MARK),
        "metadata": described,
        "producer": producer,
    }


@pytest.mark.parametrize("place", everywhere())
def test_unreadable_text_is_found_wherever_it_stands(place: str) -> None:
    made = everywhere()[place]
    assert unreadable_text(made) is None
    damaged = made.SerializeToString().replace(MARK.encode(), b"\xff" * len(MARK))
    read = onnx.load_model_from_string(damaged)
    assert unreadable_text(read) == b"\xff" * len(MARK)


def test_bytes_that_may_be_any_are_no_text() -> None:
    """A weight's data, and an attribute of texts, which ONNX calls bytes."""
    node = helper.make_node("Resize", ["x"], ["y"], "n", mode=b"\xff\xfe")
    weight = helper.make_tensor("k", TensorProto.UINT8, [2], b"\xff\xfe", raw=True)
    assert unreadable_text(proto([node], [tensor("x", [1])], [tensor("y", [1])], [weight])) is None


@pytest.mark.parametrize("text", ["", "naïve", "日本語", "\x00", "\U0001f600"])
def test_text_of_any_alphabet_is_readable(text: str) -> None:
    made = proto([helper.make_node("Neg", ["x"], ["y"], text)], [tensor("x", [1])], [tensor("y", [1])])
    assert unreadable_text(onnx.load_model_from_string(made.SerializeToString())) is None
