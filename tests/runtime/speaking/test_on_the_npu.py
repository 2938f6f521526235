"""A voice on the binding itself: `say` by a plan, its decoder on the stand-in of librknnrt.so."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from rknn_tts_runtime.backends.twins import TwinBackend, TwinEngine
from rknn_tts_runtime.cli import main
from rknn_tts_runtime.manifest import EngineManifest, read_manifest

from contracts.contract import Contract, Source, TensorSpec, Window, short_contract
from tests.onnx_runs import Array
from tests.rknn_tts.engines import engine_bytes
from tests.runtime.npu.fake_npu import FakeNpu, Run
from tests.runtime.speaking.small_voices import edited, piper_engines, plan_of
from tests.vits_writer.recipe import Recipe

IDS = ",".join(["1", "0", *["12", "0", "25", "0"] * 16, "2"])
"""Some sentence, of several windows."""


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small voice whose engine carries its contract, and a plan of it."""
    folder = piper_engines(tmp_path_factory.mktemp("voice"), Recipe(), windows=(80,))
    manifest = read_manifest(next(folder.glob("piper-decoder*.json")))
    assert manifest.window is not None
    contract = Contract(
        family=manifest.family,
        stage=manifest.stage,
        source=Source(manifest.source_name, manifest.source_sha256, "checkpoint"),
        inputs=tuple(TensorSpec(*info) for info in manifest.inputs),
        outputs=tuple(TensorSpec(*info) for info in manifest.outputs),
        window=Window(*manifest.window),
    )
    data = engine_bytes(short_contract(contract, "rk3588", "2.3.2").encode())
    manifest.engine.write_bytes(data)
    told = {"file": manifest.engine.name, "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    edited(manifest.path, engine=told)
    plan_of(folder, decoder={"main": manifest.engine.name, "host": "piper-host.onnx"})
    return folder


def said(voice: Path, out: Path, *options: str) -> int:
    """The exit code of `say`."""
    return main(["say", "--plan", str(voice / "plan.json"), "--ids", IDS, "--out", str(out), *options])


@pytest.fixture
def by_twins(voice: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, list[Run]]:
    """The WAV that twins give, and what the decoder took and gave for it."""
    runs: list[Run] = []
    through = TwinEngine.run

    def recording(self: TwinEngine, feed: Mapping[str, Array]) -> dict[str, Array]:
        given = through(self, feed)
        runs.append((dict(feed), given))
        return given

    with monkeypatch.context() as patched:
        patched.setattr(TwinEngine, "run", recording)
        assert said(voice, tmp_path / "twins.wav", "--backend", TwinBackend.name) == 0
    assert len(runs) > 2
    return (tmp_path / "twins.wav").read_bytes(), runs


def manifest_in(voice: Path) -> EngineManifest:
    return read_manifest(next(voice.glob("piper-decoder*.json")))


def test_say_writes_what_the_npu_gives_window_by_window(
    voice: Path,
    by_twins: tuple[bytes, list[Run]],
    fake_npu: FakeNpu,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    expected, runs = by_twins
    fake_npu.record(manifest_in(voice), runs)
    capsys.readouterr()
    assert said(voice, tmp_path / "npu.wav", "--library", str(fake_npu.library)) == 0
    assert (tmp_path / "npu.wav").read_bytes() == expected
    assert fake_npu.calls.count("rknn_run") == len(runs)
    told = capsys.readouterr().out
    assert "on librknnrt" in told
    assert "twins" not in told


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        ("rknn_init=-4", "code -4"),
        ("rknn_init=-13", "code -13"),
        ("rknn_run@2=-1", "rknn_run failed with code -1"),
        ("rknn_outputs_get@3=-8", "rknn_outputs_get failed with code -8"),
    ],
)
def test_what_the_npu_refuses_ends_say_and_leaves_an_earlier_file(
    failure: str,
    sentence: str,
    voice: Path,
    by_twins: tuple[bytes, list[Run]],
    fake_npu: FakeNpu,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    earlier, runs = by_twins
    fake_npu.record(manifest_in(voice), runs)
    monkeypatch.setenv("FAKE_RKNN_FAIL", failure)
    out = tmp_path / "twins.wav"
    capsys.readouterr()
    assert said(voice, out, "--library", str(fake_npu.library)) == 1
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert sentence in told
    assert told.count("\n") == 1
    assert out.read_bytes() == earlier


def test_bench_tells_the_versions_of_library_and_driver(
    voice: Path, by_twins: tuple[bytes, list[Run]], fake_npu: FakeNpu, capsys: pytest.CaptureFixture[str]
) -> None:
    _, runs = by_twins
    fake_npu.record(manifest_in(voice), runs)
    capsys.readouterr()
    words = ["bench", str(voice / "plan.json"), "--ids", IDS, "--repeats", "1", "--format", "json"]
    assert main([*words, "--library", str(fake_npu.library)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["backend"], report["versions"]["driver"]) == ("librknnrt", "0.9.8")
    assert report["chunks"] == len(runs)
    assert {stage["name"]: stage["runs"] for stage in report["stages"]}["decoder"] == len(runs)
