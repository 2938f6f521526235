"""The worker's own part: what it reads from the ONNX, asks of a toolkit (here a script in its place) and reports."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from engine.worker import Journal, StepFailed, _describe, _inputs_in_use, _read_graph, _simulate
from tests.engine.graphs import conv_graph, save_graph

F32 = np.dtype(np.float32)


def read(path: Path) -> dict[str, Any]:
    """The JSON object in the file `path`."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_journal_file_holds_all_that_was_noted_when_more_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    journal = Journal(path)
    journal.note(step="config", versions={"numpy": "1"})
    assert read(path) == {"step": "config", "codes": {}, "versions": {"numpy": "1"}}
    journal.code("config", 0)
    journal.note(step="build")
    assert read(path) == {"step": "build", "codes": {"config": 0}, "versions": {"numpy": "1"}}


@pytest.mark.parametrize(("code", "kept"), [(-1, -1), (None, "None"), ("-1", "'-1'")])
def test_journal_keeps_the_code_and_raises_when_it_is_not_0(tmp_path: Path, code: object, kept: object) -> None:
    path = tmp_path / "result.json"
    with pytest.raises(StepFailed, match=rf"^build returned {code!r}$"):
        Journal(path).code("build", code)
    assert read(path)["codes"] == {"build": kept}


def weighted() -> onnx.GraphProto:
    """y = x + w; the weight w is listed as an input too, as old exporters do; ids is put out, and read by no node."""
    tensors = [
        helper.make_tensor_value_info(name, kind, shape)
        for name, kind, shape in (
            ("w", TensorProto.FLOAT, [4]),
            ("x", TensorProto.FLOAT, [1, 4]),
            ("ids", TensorProto.INT64, [2]),
            ("y", TensorProto.FLOAT, [1, 4]),
        )
    ]
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4], [1.0] * 4)
    node = helper.make_node("Add", ["x", "w"], ["y"])
    return helper.make_graph([node], "g", tensors[:3], [tensors[3], tensors[2]], [weight])


def test_inputs_in_use_are_named_in_order_without_weights() -> None:
    assert _inputs_in_use(weighted()) == [("x", F32, [1, 4]), ("ids", np.dtype(np.int64), [2])]


def test_inputs_in_use_count_what_only_a_branch_reads() -> None:
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y", "t", "e")]
    flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
    then = helper.make_graph([helper.make_node("Relu", ["x"], ["t"])], "then", [], [value[2]])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["e"])], "else", [], [value[3]])
    node = helper.make_node("If", ["flag"], ["y"], then_branch=then, else_branch=other)
    graph = helper.make_graph([node], "g", [flag, value[0]], [value[1]])
    assert [name for name, _, _ in _inputs_in_use(graph)] == ["flag", "x"]


def test_inputs_in_use_names_the_input_when_nothing_reads_it(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    path = save_graph(tmp_path / "g.onnx", [node], {"speed": (1,), "x": (1,)}, {"y": (1,)}, {})
    with pytest.raises(StepFailed, match="no node reads the input 'speed'"):
        _inputs_in_use(onnx.load(path).graph)


def test_read_graph_reports_the_outputs_before_it_may_fail(tmp_path: Path) -> None:
    path, journal = conv_graph(tmp_path / "g.onnx"), Journal(tmp_path / "result.json")
    assert _read_graph(str(path), journal) == ([("x", F32, [1, 3, 8, 12])], ["y"])
    assert read(tmp_path / "result.json") == {"step": "read", "codes": {}, "outputs": ["y"]}


class Simulator:
    """Stands for the toolkit's session: gives `outputs` whatever it is fed, and remembers that."""

    def __init__(self, outputs: Sequence[Any] | None) -> None:
        self.outputs = outputs
        self.fed: list[list[float]] = []

    def inference(self, inputs: Sequence[Any], data_format: str) -> Sequence[Any] | None:
        assert data_format == "nchw"
        self.fed.append([float(array[0]) for array in inputs])
        return self.outputs


@pytest.fixture
def simulate(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Runs `_simulate` over two windows of the inputs b and a, [1] each, for an ONNX with the outputs y and z."""

    def run(session: Simulator) -> dict[str, Any]:
        request: dict[str, Any] = {
            "feeds": str(tmp_path / "feeds.npz"),
            "simulated": str(tmp_path / "simulated.npz"),
            "windows": 2,
            "names": ["a", "b"],
        }
        arrays: dict[str, Any] = {f"{w}_{i}": np.full(1, 10 * w + i, np.float32) for w in range(2) for i in range(2)}
        np.savez(request["feeds"], **arrays)
        _simulate(session, request, [("b", F32, [1]), ("a", F32, [1])], ["y", "z"])
        with np.load(request["simulated"]) as simulated:
            return {name: float(simulated[name]) for name in simulated}

    return run


def test_simulate_feeds_by_name_and_keeps_each_output_of_each_window(simulate: Callable[..., dict[str, Any]]) -> None:
    session = Simulator([np.float32(5), np.float32(6)])
    assert simulate(session) == {"0_0": 5, "0_1": 6, "1_0": 5, "1_1": 6}
    assert session.fed == [[1, 0], [11, 10]]


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        (None, "returned nothing for window 0"),
        ([], r"returned 0 arrays for window 0, and the ONNX has 2 outputs \(y, z\)"),
        ([np.float32(5)], "returned 1 arrays"),
        ([np.float32(5)] * 3, "returned 3 arrays"),
    ],
)
def test_simulate_fails_when_there_is_not_an_array_for_each_output(
    outputs: Sequence[Any] | None, words: str, simulate: Callable[..., dict[str, Any]]
) -> None:
    with pytest.raises(StepFailed, match=words):
        simulate(Simulator(outputs))


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (StepFailed("build returned -1"), "build returned -1"),
        (KeyError("cond"), "KeyError: 'cond'"),
        (ValueError(), "ValueError"),
        (SystemExit(-1), "the toolkit called exit(-1)"),
        (RuntimeError("Traceback (most recent call last):\n  File x\r\n\nTypeError: why\n\x1b[0m\n"), "TypeError: why"),
        (ValueError("a\x85b\u2028c"), "ValueError: a\x85b\u2028c"),
        (OSError(28, os.strerror(28)), "OSError: [Errno 28] No space left on device"),
    ],
)
def test_describe_gives_the_line_that_tells_something(error: BaseException, text: str) -> None:
    assert _describe(error) == text
