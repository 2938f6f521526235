from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from rknn_tts_runtime.backends.engine import Array
from rknn_tts_runtime.backends.host_session import HostSession, HostTensor, open_host
from rknn_tts_runtime.faults import BadInput, RunFault

WEIGHT = np.array([0.5, 0.25, 2.0], np.float32)


def model(weight: onnx.TensorProto | None = None, metadata: Mapping[str, str] | None = None) -> onnx.ModelProto:
    """x [B, 3] times a weight, gathered along axis 0 by ids [K]: y; and the ids again."""
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["x", "w"], ["scaled"]),
            helper.make_node("Gather", ["scaled", "ids"], ["y"], axis=0),
            helper.make_node("Identity", ["ids"], ["again"]),
        ],
        "host",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3]),
            helper.make_tensor_value_info("ids", TensorProto.INT64, ["count"]),
        ],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ["count", 3]),
            helper.make_tensor_value_info("again", TensorProto.INT64, ["count"]),
        ],
        [weight or onnx.numpy_helper.from_array(WEIGHT, "w")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
    helper.set_model_props(made, dict(metadata or {}))
    return made


def external(**entries: str) -> onnx.TensorProto:
    """The weight, as a tensor that stands elsewhere."""
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        weight.external_data.add(key=key, value=value)
    return weight


def written(folder: Path, data: bytes) -> Path:
    path = folder / "piper-host.onnx"
    path.write_bytes(data)
    return path


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> HostSession:
    data = model(metadata={"rknn-tts/voice/1": '{"rate": 22050}'}).SerializeToString()
    return open_host(written(tmp_path_factory.mktemp("host"), data), threads=1)


FEED: Mapping[str, Array] = {"x": np.array([[1, 2, 3], [4, 8, 16]], np.float32), "ids": np.array([1, 0, 1])}


def test_session_tells_its_tensors_and_metadata(session: HostSession) -> None:
    assert session.inputs == (HostTensor("x", (None, 3), "float32"), HostTensor("ids", (None,), "int64"))
    assert session.outputs == (HostTensor("y", (None, 3), "float32"), HostTensor("again", (None,), "int64"))
    assert session.metadata == {"rknn-tts/voice/1": '{"rate": 22050}'}


def test_session_gives_what_was_asked_for(session: HostSession) -> None:
    given = session.run(["y"], FEED)
    assert {name: array.tolist() for name, array in given.items()} == {
        "y": [[2.0, 2.0, 32.0], [0.5, 0.5, 6.0], [2.0, 2.0, 32.0]]
    }
    assert session.run(["again", "y"], FEED)["again"].tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("outputs", "change", "said"),
    [
        (["z"], {}, "has no output 'z'; its outputs are y, again"),
        (["y"], {"g": FEED["x"]}, "has no input 'g'; its inputs are x, ids"),
        (["y"], {"x": None}, "its input 'x' is missing; its inputs are x, ids"),
        (["y"], {"x": FEED["x"].astype(np.float64)}, "its input 'x' is of dtype float32, not float64"),
        (["y"], {"x": FEED["x"][0]}, "its input 'x' has the shape [any, 3], not [3]"),
        (["y"], {"x": FEED["x"][:, :2]}, "its input 'x' has the shape [any, 3], not [2, 2]"),
    ],
)
def test_session_names_the_tensor_when_it_is_asked_wrong(
    session: HostSession, outputs: Sequence[str], change: Mapping[str, Array | None], said: str
) -> None:
    feed = {name: array for name, array in {**FEED, **change}.items() if array is not None}
    with pytest.raises(BadInput) as raised:
        session.run(outputs, feed)
    assert str(raised.value).startswith(f"{session.path}: ")
    assert said in str(raised.value)


def test_session_tells_in_one_line_when_onnxruntime_fails(
    session: HostSession, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RunFault) as raised:
        session.run(["y"], {**FEED, "ids": np.array([7])})
    assert str(raised.value).startswith(f"{session.path}: onnxruntime failed: ")
    assert "\n" not in str(raised.value)
    assert "ONNXRuntimeError" not in str(raised.value)
    assert capfd.readouterr() == ("", "")


def test_session_that_is_closed_is_not_run(tmp_path: Path) -> None:
    closed = open_host(written(tmp_path, model().SerializeToString()))
    closed.close()
    closed.close()
    with pytest.raises(RunFault, match="is closed"):
        closed.run(["y"], FEED)


@pytest.mark.parametrize(
    "data", [b"", b"no ONNX at all", model().SerializeToString()[:-40]], ids=["empty", "other", "cut off"]
)
def test_open_host_refuses_what_onnxruntime_cannot_load(
    tmp_path: Path, data: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadInput) as raised:
        open_host(written(tmp_path, data))
    assert "piper-host.onnx: onnxruntime cannot load it: " in str(raised.value)
    assert "\n" not in str(raised.value)
    assert capfd.readouterr() == ("", "")


def test_open_host_refuses_when_there_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        open_host(tmp_path / "none.onnx")


def test_open_host_refuses_weights_in_other_files_wherever_they_are(tmp_path: Path) -> None:
    """onnxruntime 1.23.2 reads each of the first four, and the last one takes the process with it."""
    folder = tmp_path / "model"
    folder.mkdir()
    for parent in (tmp_path, folder):
        (parent / "weights.bin").write_bytes(WEIGHT.tobytes())
    (folder / "link.bin").symlink_to("../weights.bin")
    places = ["../weights.bin", str(tmp_path / "weights.bin"), "link.bin", "weights.bin", "*/_ORT_MEM_ADDR_/*"]
    for place in places:
        with pytest.raises(BadInput, match="keeps weights in other files, and those are not read here"):
            open_host(written(folder, model(external(location=place)).SerializeToString()))


def test_open_host_refuses_weights_in_other_files_when_the_length_of_the_key_is_written_long(tmp_path: Path) -> None:
    plain = model(external(location="w.bin")).SerializeToString()
    # The lengths of the messages around the key do not fit any more; what counts is that it is refused before parsing.
    with pytest.raises(BadInput, match="keeps weights in other files"):
        open_host(written(tmp_path, plain.replace(b"\x0a\x08location", b"\x0a\x88\x80\x00location")))


def test_open_host_finds_the_key_wherever_blocks_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = model(external(location="w.bin")).SerializeToString()
    for size in range(1, 24):
        monkeypatch.setattr("rknn_tts_runtime.backends.host_session._CHUNK_BYTES", size)
        with pytest.raises(BadInput, match="keeps weights in other files"):
            open_host(written(tmp_path, data))


def test_open_host_finds_the_key_behind_names_that_only_look_like_it(tmp_path: Path) -> None:
    made = model(external(location="w.bin"))
    made.graph.node[0].name = "a location, location, location"
    with pytest.raises(BadInput, match="keeps weights in other files"):
        open_host(written(tmp_path, made.SerializeToString()))


def test_open_host_loads_a_graph_that_names_a_location(tmp_path: Path) -> None:
    made = model()
    made.graph.node[0].name = "attention/location_layer"
    made.graph.node[1].name = "a location"
    assert open_host(written(tmp_path, made.SerializeToString())).run(["again"], FEED)["again"].tolist() == [1, 0, 1]


def test_open_host_tells_how_to_install_onnxruntime_when_it_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "onnxruntime":
            raise ImportError("No module named 'onnxruntime'")
        return real(name, *rest)

    monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(BadInput) as raised:
        open_host(written(tmp_path, model().SerializeToString()))
    assert str(raised.value).endswith(
        "runs in onnxruntime, which cannot be imported (No module named 'onnxruntime'); pip install onnxruntime."
    )
