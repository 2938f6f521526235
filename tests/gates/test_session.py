"""Running graphs: what comes out, what is refused, and in which words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

import gates.session
from contracts.errors import Refusal, ToolFailure, UserInput
from gates.session import Session
from tests.gates.small_graphs import constant, proto, row, scale_proto, tensor

X = row(1, 2, 3, 4)


def in_form(form: str, folder: Path) -> Any:
    made = scale_proto(3.0)
    if form == "path":
        onnx.save(made, folder / "m.onnx")
        return folder / "m.onnx"
    return {"proto": made, "bytes": made.SerializeToString(), "ir": ir.from_proto(made)}[form]


@pytest.mark.parametrize("form", ["path", "proto", "bytes", "ir"])
def test_session_runs_every_form_when_given_a_graph(form: str, tmp_path: Path) -> None:
    outputs = Session(in_form(form, tmp_path)).run({"x": X})
    assert list(outputs) == ["y"]
    np.testing.assert_array_equal(outputs["y"], row(3, 6, 9, 12))


def test_session_takes_external_data_when_given_a_loaded_ir_model(tmp_path: Path) -> None:
    onnx.save(scale_proto(3.0), tmp_path / "m.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    loaded = ir.load(tmp_path / "m.onnx")
    np.testing.assert_array_equal(Session(loaded).run({"x": X})["y"], row(3, 6, 9, 12))
    assert isinstance(loaded.graph.initializers["k"].const_value, ir.ExternalTensor)


def test_session_goes_through_a_file_when_weights_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates.session, "IN_MEMORY_BYTES", 0)
    model = ir.from_proto(scale_proto(3.0))
    np.testing.assert_array_equal(Session(model).run({"x": X})["y"], row(3, 6, 9, 12))


def test_session_runs_again_equal_when_reused() -> None:
    session = Session(scale_proto(1 / 3))
    first = session.run({"x": X})
    np.testing.assert_array_equal(first["y"], session.run({"x": X})["y"])
    assert (session.inputs, session.outputs) == (("x",), ("y",))


@pytest.mark.parametrize(
    ("feeds", "says"),
    [
        ({}, "the input 'x' is missing; its inputs are x."),
        ({"x": X, "q": X}, "there is no input 'q'; its inputs are x."),
        ({"x": X.astype(np.float64)}, "the input 'x' needs float32 values, not float64."),
        ({"x": X.astype(np.int64)}, "the input 'x' needs float32 values, not int64."),
        ({"x": X[0]}, "the input 'x' needs the shape [1, 4], not [4]."),
        ({"x": row(1, 2)}, "the input 'x' needs the shape [1, 4], not [1, 2]."),
    ],
)
def test_session_refuses_feeds_when_they_do_not_fit(feeds: dict[str, Any], says: str) -> None:
    with pytest.raises(UserInput) as caught:
        Session(scale_proto(1.0)).run(feeds)
    assert says in str(caught.value)


def test_session_takes_any_length_when_an_axis_is_symbolic() -> None:
    made = proto([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", [1, "T"])], [tensor("y", [1, "T"])])
    session = Session(made)
    assert [session.run({"x": np.ones((1, n), np.float32)})["y"].shape for n in (2, 5)] == [(1, 2), (1, 5)]
    with pytest.raises(UserInput, match=r"needs the shape \[1, 'T'\], not \[2, 5\]"):
        session.run({"x": np.ones((2, 5), np.float32)})


def test_session_refuses_in_one_sentence_when_graph_does_not_load(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"not a graph")
    unknown = proto([helper.make_node("Blorp", ["x"], ["y"])], [tensor("x", [1])], [tensor("y", [1])])
    late = scale_proto(1.0)
    late.ir_version = 99
    models: list[tuple[Any, str]] = [
        (path, "broken.onnx"), (tmp_path / "absent.onnx", "absent.onnx"), (unknown, "Blorp"), (late, "IR version")
    ]  # fmt: skip
    for model, named in models:
        with pytest.raises(Refusal) as caught:
            Session(model)
        text = str(caught.value)
        assert named in text
        assert "onnxruntime cannot load it" in text
        assert "\n" not in text
        assert "onnxruntime_src" not in text
        assert "[ONNXRuntimeError]" not in text


def test_session_refuses_when_external_weights_are_missing(tmp_path: Path) -> None:
    onnx.save(scale_proto(3.0), tmp_path / "m.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    loaded = ir.load(tmp_path / "m.onnx")
    (tmp_path / "w.data").unlink()
    for model in (loaded, tmp_path / "m.onnx"):
        with pytest.raises(Refusal, match=r"w\.data"):
            Session(model)


def test_session_fails_in_one_sentence_when_running_breaks() -> None:
    made = proto(
        [helper.make_node("Gather", ["k", "x"], ["y"], "look_up")],
        [tensor("x", [1], TensorProto.INT64)],
        [tensor("y", [1])],
        [constant("k", [1.0, 2.0])],
    )
    with pytest.raises(ToolFailure) as caught:
        Session(made).run({"x": np.array([7], np.int64)})
    text = str(caught.value)
    assert "look_up" in text
    assert "\n" not in text
    assert "onnxruntime_src" not in text


def test_session_prints_nothing_when_it_loads_runs_and_fails(pytestconfig: pytest.Config) -> None:
    program = (
        "import numpy as np\n"
        "from gates.session import Session\n"
        "from contracts.errors import RknnTtsError\n"
        "from tests.gates.small_graphs import scale_proto\n"
        "session = Session(scale_proto(2.0))\n"
        "session.run({'x': np.ones((1, 4), np.float32)})\n"
        "try:\n"
        "    Session(b'broken')\n"
        "except RknnTtsError:\n"
        "    pass\n"
    )
    root = pytestconfig.rootpath
    paths = {"PYTHONPATH": f"{root}:{root / 'runtime'}"}
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=paths, check=True)
    assert result.stdout + result.stderr == ""
