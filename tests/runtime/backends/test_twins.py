from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from rknn_tts_runtime.backends.engine import Backend, Engine, MemoryUse
from rknn_tts_runtime.backends.twins import TwinBackend
from rknn_tts_runtime.faults import BadInput, Mismatch, RunFault
from rknn_tts_runtime.manifest import EngineManifest, manifest_of

from contracts.contract import TensorSpec
from tests.runtime.engine_folders import CONTRACT, STEM, twin_model, write_engine

RUNTIME = Path(__file__).resolve().parents[3] / "runtime"
Z = np.arange(12, dtype=np.float32).reshape(1, 2, 6)
LENGTHS = np.array([5])
AUDIO = [5.0, 7.0, 9.0, 11.0, 13.0, 15.0, 17.0, 19.0, 21.0, 23.0, 25.0, 27.0]
"""2 * z + 5, z from 0 to 11."""


@pytest.fixture
def manifest(tmp_path: Path) -> EngineManifest:
    return manifest_of(write_engine(tmp_path).engine)


@pytest.fixture
def engine(manifest: EngineManifest) -> Iterator[Engine]:
    opened = TwinBackend(threads=1).open(manifest)
    yield opened
    opened.close()


def test_backend_is_one() -> None:
    backend: Backend = TwinBackend()
    assert backend.name == "onnx"


def test_engine_runs_as_its_manifest_tells(engine: Engine, manifest: EngineManifest) -> None:
    assert (engine.inputs, engine.outputs) == (manifest.inputs, manifest.outputs)
    given = engine.run({"lengths": LENGTHS, "z": Z})
    assert list(given) == ["audio"]
    assert (given["audio"].shape, str(given["audio"].dtype)) == ((1, 1, 1, 12), "float32")
    assert given["audio"].ravel().tolist() == AUDIO


def test_engine_takes_arrays_however_they_lie_in_memory(engine: Engine) -> None:
    channels_last = np.ascontiguousarray(Z.transpose(0, 2, 1)).transpose(0, 2, 1)
    assert engine.run({"lengths": LENGTHS, "z": channels_last})["audio"].ravel().tolist() == AUDIO


def test_engine_gives_arrays_of_its_own(engine: Engine) -> None:
    first = engine.run({"z": Z, "lengths": LENGTHS})["audio"]
    engine.run({"z": -Z, "lengths": LENGTHS})
    assert first.ravel().tolist() == AUDIO
    first[:] = 0
    assert engine.run({"z": Z, "lengths": LENGTHS})["audio"].ravel().tolist() == AUDIO


def test_engine_refuses_a_feed_that_is_not_its_own(engine: Engine) -> None:
    with pytest.raises(BadInput, match=rf"{STEM}\.onnx: its input 'z' has the shape \[1, 2, 1, 6\], not \[1, 6, 2\]"):
        engine.run({"z": Z.reshape(1, 6, 2), "lengths": LENGTHS})


def test_engine_that_is_closed_is_not_run(engine: Engine) -> None:
    engine.close()
    engine.close()
    with pytest.raises(RunFault, match="is closed"):
        engine.run({"z": Z, "lengths": LENGTHS})


def test_open_needs_no_engine_file(manifest: EngineManifest) -> None:
    manifest.engine.unlink()
    TwinBackend().open(manifest).close()


def test_open_refuses_a_twin_of_another_export(manifest: EngineManifest) -> None:
    model = twin_model()
    model.producer_name = "another"
    manifest.twin.write_bytes(model.SerializeToString())
    with pytest.raises(Mismatch, match=rf"{STEM}\.onnx: its digest is .* of its twin: they are of two exports\."):
        TwinBackend().open(manifest)


def test_open_refuses_when_the_twin_is_not_there(manifest: EngineManifest) -> None:
    manifest.twin.unlink()
    with pytest.raises(BadInput, match=rf"{STEM}\.onnx: cannot be read"):
        TwinBackend().open(manifest)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"inputs": CONTRACT.inputs[:1]},
            r"its inputs are z \[1, 2, 1, 6\] float32, lengths \[1\] int64; those of",
        ),
        ({"outputs": (TensorSpec("wave", (1, 1, 1, 12)),)}, r"tells, are wave \[1, 1, 1, 12\] float32\. Copy"),
        ({"outputs": (TensorSpec("audio", (1, 1, 1, 24)),)}, r"its outputs are audio \[1, 1, 1, 12\] float32; those"),
    ],
)
def test_open_refuses_a_twin_of_other_tensors(tmp_path: Path, change: dict[str, tuple[TensorSpec]], said: str) -> None:
    files = write_engine(tmp_path, replace(CONTRACT, **change))  # type: ignore[arg-type]  # one field of two types
    with pytest.raises(Mismatch, match=said):
        TwinBackend().open(manifest_of(files.engine))


def test_run_refuses_an_output_that_came_short(tmp_path: Path) -> None:
    model = twin_model()
    del model.graph.node[1:]  # the first makes a line of z, of which the second gives as much as the length says
    model.graph.node.append(onnx.helper.make_node("Slice", ["line", "start", "lengths", "axis"], ["audio"]))
    for name, number in (("start", 0), ("axis", 3)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([number]), name))
    engine = TwinBackend().open(manifest_of(write_engine(tmp_path, twin=model).engine))
    assert engine.run({"z": Z, "lengths": np.array([12])})["audio"].ravel().tolist() == list(range(12))
    with pytest.raises(RunFault, match=r"its output 'audio' came in the shape \[1, 1, 1, 5\], not \[1, 1, 1, 12\]"):
        engine.run({"z": Z, "lengths": LENGTHS})


def test_memory_is_the_manifests_estimate(manifest: EngineManifest) -> None:
    assert TwinBackend().memory(manifest) == MemoryUse(33316864, 0, measured=False)
    assert TwinBackend().memory(replace(manifest, context_bytes=None)) is None


def test_versions_are_told_once_something_was_opened(manifest: EngineManifest) -> None:
    backend = TwinBackend()
    assert backend.versions() == {}
    backend.open(manifest).close()
    assert backend.versions() == {"onnxruntime": onnxruntime.__version__}


def test_onnxruntime_is_imported_only_where_a_file_is_opened() -> None:
    code = "import rknn_tts_runtime.backends.twins, sys; sys.exit('onnxruntime' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(RUNTIME)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
