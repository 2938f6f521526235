"""The real toolkit on tiny graphs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import helper

from contracts.errors import GateFailure, ToolFailure, UserInput
from contracts.files import sha256_of
from engine.build import build_engine
from engine.request import BuildRequest
from engine.result import read_build
from tests.engine.graphs import conv_graph, random, random_feed, reference, save_graph, snr_db

THRESHOLD_DB = 40.0
"""The simulator's threshold (cases.md): fp16 gives about 70 dB on these graphs."""


@pytest.fixture
def request_of(converter_python: Path, tmp_path: Path) -> Callable[..., BuildRequest]:
    def make(graph: Path, **changes: object) -> BuildRequest:
        values: dict[str, object] = {
            "onnx": graph,
            "target": "rk3588",
            "toolkit": "2.3.2",
            "converter_python": converter_python,
            "result_folder": tmp_path / "result",
            "log": tmp_path / "build.log",
            "timeout_s": 120.0,
        }
        return BuildRequest(**{**values, **changes})  # type: ignore[arg-type] # values of each field's type

    return make


def two_inputs(path: Path) -> Path:
    """Inputs b, a, m in this order; read in another; outputs in another still, one named like np.savez's parameter."""
    nodes = [
        helper.make_node("Mul", ["a", "m"], ["file"]),
        helper.make_node("Conv", ["b", "w"], ["c"], pads=[1, 1]),
        helper.make_node("Add", ["c", "file"], ["y/1"]),
    ]
    inputs = {"b": (1, 3, 16), "a": (1, 4, 16), "m": (1, 1, 16)}
    return save_graph(path, nodes, inputs, {"y/1": (1, 4, 16), "file": (1, 4, 16)}, {"w": random(4, 3, 3)})


def four_dimensional(path: Path) -> Path:
    """Two inputs of rank 4, one of them square in nothing, one that both layouts would take."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Mul", ["c", "g"], ["y"]),
    ]
    inputs = {"g": (1, 4, 4, 4), "x": (1, 4, 4, 4)}
    return save_graph(path, nodes, inputs, {"y": (1, 4, 4, 4)}, {"w": random(4, 4, 3, 3)})


def gathered(path: Path) -> Path:
    """An int64 input."""
    nodes = [helper.make_node("Gather", ["t", "ids"], ["y"], axis=0)]
    return save_graph(path, nodes, {"ids": (9,)}, {"y": (9, 16)}, {"t": random(7, 16)}, integers=["ids"])


def concatenated_inside(path: Path) -> Path:
    """Two inputs of rank 5 joined along their last axis: a fuse rule counts with torch, which is a stand-in here."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], perm=[1, 4, 3, 0, 2]),
        helper.make_node("Concat", ["a", "b"], ["c"], axis=4),
        helper.make_node("Sigmoid", ["c"], ["y"]),
    ]
    inputs = {"x": (2, 6, 6, 4, 3), "b": (6, 3, 4, 2, 6)}
    return save_graph(path, nodes, inputs, {"y": (6, 3, 4, 2, 12)}, {})


@pytest.mark.parametrize(
    "make_graph", [conv_graph, two_inputs, four_dimensional, gathered, concatenated_inside], ids=lambda f: f.__name__
)
def test_simulator_equals_onnxruntime_when_two_windows_are_fed(
    make_graph: Callable[[Path], Path], request_of: Callable[..., BuildRequest], tmp_path: Path
) -> None:
    onnx = make_graph(tmp_path / "graph.onnx")
    feeds = [random_feed(onnx, seed=1), random_feed(onnx, seed=50)]
    backwards = [dict(reversed(feed.items())) for feed in feeds]  # a feed goes by its names, not by its order
    result = build_engine(request_of(onnx, feeds=backwards))
    for feed, simulated in zip(feeds, result.simulated, strict=True):
        wanted = reference(onnx, feed)
        assert list(simulated) == list(wanted)
        for name, array in simulated.items():
            assert snr_db(array, wanted[name]) >= THRESHOLD_DB


@pytest.mark.parametrize("graph", [conv_graph, two_inputs], ids=lambda f: f.__name__)
def test_engine_is_the_same_when_built_twice_from_other_paths(
    graph: Callable[[Path], Path],
    request_of: Callable[..., BuildRequest],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also: spaces and non-ASCII in every path, and a working directory that shadows the toolkit's imports."""
    shadow = tmp_path / "shadow"
    for name in ("onnx", "rknn", "torch"):
        (shadow / name).mkdir(parents=True)
        (shadow / name / "__init__.py").write_text("raise SystemExit('shadowed')")
    for name in ("cv2", "numpy", "build"):
        (shadow / f"{name}.py").write_text("raise SystemExit('shadowed')")
    odd = tmp_path / "Prüf stand 语音"
    odd.mkdir()
    plain, other = graph(tmp_path / "graph.onnx"), graph(odd / "Größe – 'x' $HOME.onnx")
    text = '{"schema":"rknn-tts/contract/1","marker":"Zm9vYmFy"}'

    first = build_engine(request_of(plain, custom_string=text))
    monkeypatch.chdir(shadow)
    monkeypatch.setenv("PYTHONPATH", str(shadow))
    second = build_engine(request_of(other, custom_string=text, result_folder=odd / "res ult", log=odd / "lo g.txt"))

    assert text.encode() in second.engine.read_bytes()
    assert (odd / "lo g.txt").stat().st_size > 0
    assert sorted(path.name for path in shadow.iterdir()) == ["build.py", "cv2.py", "numpy.py", "onnx", "rknn", "torch"]
    assert sha256_of(first.engine) == sha256_of(second.engine) == first.engine_sha256


def test_build_leaves_whole_result_and_reports_stages_when_it_succeeds(
    request_of: Callable[..., BuildRequest], tmp_path: Path
) -> None:
    onnx = conv_graph(tmp_path / "graph.onnx")
    old = tmp_path / "result"
    old.mkdir()
    (old / "of an earlier build").touch()
    stages: list[str] = []
    result = build_engine(request_of(onnx), progress=stages.append)
    assert sorted(path.name for path in old.iterdir()) == ["build.json", "engine.rknn", "lines.log"]
    assert result == read_build(old)
    assert result.engine.read_bytes().startswith(b"RKNN")
    assert "I rknn building done." in result.lines.read_text(encoding="utf-8").splitlines()
    assert result.simulated == ()
    assert result.versions["rknn-toolkit2"] == "2.3.2"
    assert result.versions["torch"] == "stand-in"
    assert 50e6 < result.peak_rss_bytes < 2e9
    assert result.cpu_s > 0
    assert stages[:2] == ["loading", "base optimize"]
    assert "compiling" in stages


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target": "rk9999"}, ["config", "rk9999"]),
        ({"toolkit": "9.9.9"}, ["holds rknn-toolkit2 2.3.2, not 9.9.9", "doctor"]),
    ],
)
def test_build_tells_what_the_toolkit_said_when_it_refuses(
    changes: dict[str, object], words: list[str], request_of: Callable[..., BuildRequest], tmp_path: Path
) -> None:
    request = request_of(conv_graph(tmp_path / "graph.onnx"), **changes)
    with pytest.raises(ToolFailure) as caught:
        build_engine(request)
    for word in [*words, str(request.log)]:
        assert word in str(caught.value)
    assert not request.result_folder.exists()


def test_build_refuses_when_the_toolkit_would_drop_an_input(
    request_of: Callable[..., BuildRequest], tmp_path: Path
) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    onnx = save_graph(tmp_path / "g.onnx", [node], {"speed": (1, 4), "x": (1, 4)}, {"y": (1, 4)}, {})
    with pytest.raises(ToolFailure, match="no node reads the input 'speed'"):
        build_engine(request_of(onnx))


@pytest.mark.parametrize(
    ("feed", "words"),
    [
        ({"x": random(1, 8, 12, 3)}, ["'x'", "[1, 8, 12, 3]", "[1, 3, 8, 12]"]),
        ({"x": random(1, 3, 8, 12).astype("float64")}, ["'x'", "float64", "float32"]),
        ({"z": random(1, 3, 8, 12)}, ["window 0 has no array for 'x'"]),
    ],
)
def test_build_names_the_input_when_its_feed_does_not_fit(
    feed: dict[str, object], words: list[str], request_of: Callable[..., BuildRequest], tmp_path: Path
) -> None:
    with pytest.raises(ToolFailure) as caught:
        build_engine(request_of(conv_graph(tmp_path / "graph.onnx"), feeds=[feed]))
    for word in words:
        assert word in str(caught.value)


def test_build_is_stopped_when_the_log_shows_a_fatal_line(
    request_of: Callable[..., BuildRequest], tmp_path: Path
) -> None:
    """A convolution of stride 15 overflows the stride field (cases.md, stride_15)."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides=[15], kernel_shape=[30])
    onnx = save_graph(tmp_path / "g.onnx", [node], {"x": (1, 1, 3000)}, {"y": (1, 64, 199)}, {"w": random(64, 1, 30)})
    request = request_of(onnx)
    with pytest.raises(GateFailure, match="0x1014") as caught:
        build_engine(request)
    assert caught.value.log == request.log
    assert b"0x1014" in request.log.read_bytes()
    assert not request.result_folder.exists()


def test_build_uses_an_installed_torch_when_asked_and_says_so_when_there_is_none(
    request_of: Callable[..., BuildRequest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RKNN_TTS_TORCH", "real")
    with pytest.raises(ToolFailure, match="RKNN_TTS_TORCH=real asks for an installed torch"):
        build_engine(request_of(conv_graph(tmp_path / "graph.onnx")))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"converter_python": Path("/nowhere/python")}, "/nowhere/python"),
        ({"onnx": Path("/nowhere/a.onnx")}, "/nowhere/a.onnx"),
        ({"custom_string": "x" * 1024}, "under 1024 bytes"),
        ({"custom_string": "ü"}, "ASCII"),
    ],
)
def test_build_starts_nothing_when_the_request_is_wrong(
    changes: dict[str, object], words: str, request_of: Callable[..., BuildRequest], tmp_path: Path
) -> None:
    with pytest.raises(UserInput, match=words):
        build_engine(request_of(conv_graph(tmp_path / "graph.onnx"), **changes))
    assert not (tmp_path / "build.log").exists()
