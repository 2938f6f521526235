"""Whole commands for a folder of voices, with a stand-in for the toolkit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from engine.cache import CACHE_FOLDER
from engine.environment import CONVERTER_PYTHON
from engine.processes import descendants
from tests.rknn_tts.stand_in_converter import GOOD_LOG, UNTIL_STOPPED, write_converter
from tests.rknn_tts.test_many_processes import is_gone
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import write_voice

ROOT = Path(__file__).resolve().parents[2]

AS_ONNXRUNTIME = f"""
print({GOOD_LOG!r}, end="", flush=True)
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
names = [put.name for put in session.get_inputs()]
simulated = {{}}
with np.load(folder / "feeds.npz") as feeds:
    for window in range(len(feeds.files) // len(names)):
        given = {{name: feeds[f"{{window}}_{{index}}"] for index, name in enumerate(names)}}
        simulated[f"{{window}}_0"] = session.run(None, given)[0]
np.savez(folder / "simulated.npz", **simulated)
compile()
outputs = [put.name for put in session.get_outputs()]
(folder / "result.json").write_text(json.dumps({{"step": "done", "outputs": outputs}}))
"""
"""A good build of a graph of one output, whose simulator is exact."""


TINY = Recipe(flows=1, flow_layers=1, strides=(2, 2), decoder=4, resblock_kernels=(3,))
"""A voice whose gates take a moment: each command opens it anew, in a process of its own."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two good voices, one whose weights hold a NaN, and a file that is no ONNX."""
    made = tmp_path_factory.mktemp("many")
    voices = made / "voices"
    voices.mkdir()
    for number, name in enumerate(("a[1]", "b")):
        write_voice(voices / f"{name}.onnx", replace(TINY, seed=number + 1))
    model = onnx.load(write_voice(voices / "nan.onnx", TINY))
    weight = next(tensor for tensor in model.graph.initializer if tensor.name == "dec.conv_post.weight")
    values = numpy_helper.to_array(weight).copy()
    values.flat[0] = np.nan
    weight.CopyFrom(numpy_helper.from_array(values, weight.name))
    onnx.save(model, voices / "nan.onnx")
    (voices / "text.onnx").write_text("no ONNX")
    return made


def command(folder: Path, converter: str, *words: str) -> subprocess.Popen[str]:
    """The command in `folder`, in a session of its own."""
    python = write_converter(folder / "converter", converter)
    variables = {
        CONVERTER_PYTHON: str(python),
        CACHE_FOLDER: str(folder / "cache"),
        "TMPDIR": str(folder),  # what a command that is killed leaves there goes with the test
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "runtime"))),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "rknn_tts", "engine", "piper", "--target", "rk3588", "--window", "109", *words],
        cwd=folder,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_hear_interrupts,
    )


def _hear_interrupts() -> None:
    """A job in the background of a shell ignores Ctrl-C, and hands that down."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_engine_builds_every_voice_that_it_can(folder: Path) -> None:
    words = ["--checkpoint", "voices/*", "--json", "--junit", "report.xml", "--output", "out", "--jobs", "2"]
    with command(folder, AS_ONNXRUNTIME, *words) as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 2, out
    told = json.loads(out)
    assert (told["exit_code"], told["error"]) == (2, "Of 4 voices, 2 refused; 2 done.")
    results = told["results"]
    assert [result["voice"] for result in results] == ["a[1]", "b", "nan", "text"]
    assert [result["exit_code"] for result in results] == [0, 0, 2, 2]
    assert "holds NaN" in results[2]["error"]
    assert "is not an ONNX model" in results[3]["error"]
    for result in results[:2]:
        voice = result["voice"]
        assert result["schema"] == "rknn-tts/result/1"
        assert result["request"]["checkpoint"] == f"voices/{voice}.onnx"
        assert result["manifest"]["source"]["name"] == f"{voice}.onnx"
        assert result["files"][0] == f"out/{voice}/piper-decoder-w109.rknn"
        assert all((folder / file).is_file() for file in result["files"])
        assert result["peak_memory_bytes"] > 50 * 10**6  # Python with numpy and onnx
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["a[1]", "b"]
    suites = ET.parse(folder / "report.xml").getroot()
    assert [suite.get("name") for suite in suites] == [
        f"rknn-tts engine voices/{name}.onnx" for name in ("a[1]", "b", "nan", "text")
    ]
    assert (suites.get("errors"), suites.get("failures")) == ("2", "0")
    assert err.startswith("note: voices/*: 4 checkpoints, 3 other files left out.\n0 of 4 done, at work on a[1], b\n")
    assert err.endswith("error: Of 4 voices, 2 refused; 2 done.\n")


@pytest.fixture
def building(folder: Path) -> Iterator[Callable[[], tuple[subprocess.Popen[str], list[int]]]]:
    """Starts a command for two voices; it and all processes below it, once both are inside the toolkit."""
    ups = f"import os\nPath({str(folder)!r}, 'up-' + str(os.getpid())).touch()"
    started: list[subprocess.Popen[str]] = []

    def start() -> tuple[subprocess.Popen[str], list[int]]:
        # Another toolkit: the graphs that another test exported are found again, and its engines are not.
        words = ["--checkpoint", "voices/[ab]*.onnx", "--toolkit", "2.5.0", "--jobs", "2", "--output", "never"]
        process = command(folder, f"{ups}\n{UNTIL_STOPPED}", *words)
        started.append(process)
        while len(list(folder.glob("up-*"))) < 2:
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        return process, [one.pid for one in descendants(process.pid)]

    yield start
    for process in started:
        process.kill()
        process.communicate()
    for path in folder.glob("up-*"):
        path.unlink()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_engine_leaves_no_process_when_it_is_ended(
    folder: Path, building: Callable[[], tuple[subprocess.Popen[str], list[int]]], number: signal.Signals
) -> None:
    process, below = building()
    assert len(below) >= 6  # two commands, two wardens, two converters
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    if number is signal.SIGKILL:
        assert process.returncode == -9
        deadline = time.monotonic() + 60
        while not all(map(is_gone, below)) and time.monotonic() < deadline:
            time.sleep(0.02)
    else:
        assert process.returncode == 130
        assert err.endswith("error: Interrupted: the command was stopped before it was done.\n")
    assert [pid for pid in below if not is_gone(pid)] == []
    assert not list((folder / "never").rglob("*.*"))
