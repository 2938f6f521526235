from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from rknn_tts_runtime.backends.engine import Array, MemoryUse
from rknn_tts_runtime.backends.npu import NpuBackend
from rknn_tts_runtime.faults import BadInput, Mismatch, RunFault
from rknn_tts_runtime.manifest import EngineManifest, read_manifest
from rknn_tts_runtime.window_cover import BEGINNING, BETWEEN, END, place_input

from contracts.contract import short_contract
from tests.docs.pages import ROOT
from tests.runtime.engine_folders import CONTRACT, TRIMMED_CONTRACT, write_engine
from tests.runtime.npu.fake_npu import VERSION, FakeNpu, Run

rng = np.random.default_rng(0)
FEEDS: list[dict[str, Array]] = [
    {"z": rng.standard_normal((1, 2, 1, 6)).astype(np.float32), "lengths": np.array([length])} for length in (3, 6)
]


@pytest.fixture
def manifest(tmp_path: Path) -> EngineManifest:
    return read_manifest(write_engine(tmp_path).manifest)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The files of a board, of which nothing is known."""
    root = tmp_path / "machine"
    root.mkdir()
    return root


def of_chip(machine: Path, chip: str) -> Path:
    folder = machine / "proc/device-tree"
    folder.mkdir(parents=True)
    (folder / "compatible").write_bytes(f"a,board\0rockchip,{chip}\0".encode())
    return machine


def recorded_runs(manifest: EngineManifest) -> list[Run]:
    """What onnxruntime makes of the engine's twin."""
    session = onnxruntime.InferenceSession(str(manifest.twin), providers=["CPUExecutionProvider"])
    return [(feed, {"audio": session.run(["audio"], feed)[0]}) for feed in FEEDS]


def test_engine_gives_what_its_twin_gives(fake_npu: FakeNpu, manifest: EngineManifest, machine: Path) -> None:
    fake_npu.record(manifest, recorded_runs(manifest))
    backend = NpuBackend(fake_npu.library, root=machine)
    assert (backend.name, backend.versions()) == ("librknnrt", {})
    engine = backend.open(manifest)
    for feed in FEEDS:
        audio = engine.run(feed)["audio"]
        # the twin by hand: twice z, its channels side by side, and the length added
        assert audio.tolist() == (2 * feed["z"].reshape(1, 1, 1, 12) + float(feed["lengths"][0])).tolist()
        assert (audio.dtype.name, audio.shape) == ("float32", (1, 1, 1, 12))
    assert backend.versions() == {"api": VERSION, "driver": "0.9.8"}
    assert (engine.inputs, engine.outputs, engine.core_mask) == (manifest.inputs, manifest.outputs, "0_1_2")
    engine.close()
    engine.close()
    with pytest.raises(RunFault, match="was closed"):
        engine.run(FEEDS[0])


def test_a_trimmed_engine_is_told_where_its_window_stands(fake_npu: FakeNpu, tmp_path: Path, machine: Path) -> None:
    manifest = read_manifest(write_engine(tmp_path, TRIMMED_CONTRACT, TRIMMED_CONTRACT).manifest)
    feeds = [{**FEEDS[0], "place": place_input(place)} for place in (BEGINNING, BETWEEN, END)]
    said = [np.full((1, 1, 1, 8), place, np.float32) for place in range(3)]
    fake_npu.record(manifest, [(feed, {"audio": audio}) for feed, audio in zip(feeds, said, strict=True)])
    engine = NpuBackend(fake_npu.library, root=machine).open(manifest)
    for feed, audio in zip(feeds, said, strict=True):
        assert engine.run(feed)["audio"].tolist() == audio.tolist()
    engine.close()
    plain = read_manifest(write_engine(tmp_path, TRIMMED_CONTRACT, replace(TRIMMED_CONTRACT, trim=None)).manifest)
    with pytest.raises(Mismatch, match="its trim is none by the contract inside it, and 4 by its manifest"):
        NpuBackend(fake_npu.library, root=machine).open(plain)


def test_results_of_runs_are_arrays_of_their_own(fake_npu: FakeNpu, manifest: EngineManifest, machine: Path) -> None:
    fake_npu.record(manifest, recorded_runs(manifest))
    engine = NpuBackend(fake_npu.library, root=machine).open(manifest)
    first = engine.run(FEEDS[0])["audio"]
    kept = first.copy()
    engine.run(FEEDS[1])
    assert first.tolist() == kept.tolist()
    engine.close()


def test_feeds_without_axes_of_one_are_taken(fake_npu: FakeNpu, manifest: EngineManifest, machine: Path) -> None:
    fake_npu.record(manifest, recorded_runs(manifest))
    engine = NpuBackend(fake_npu.library, root=machine).open(manifest)
    whole = engine.run(FEEDS[0])["audio"]
    assert engine.run({"z": FEEDS[0]["z"][0, :, 0], "lengths": FEEDS[0]["lengths"]})["audio"].tolist() == whole.tolist()
    engine.close()


def test_feeds_are_taken_however_they_lie_in_memory(fake_npu: FakeNpu, manifest: EngineManifest, machine: Path) -> None:
    fake_npu.record(manifest, recorded_runs(manifest))
    engine = NpuBackend(fake_npu.library, root=machine).open(manifest)
    whole = engine.run(FEEDS[0])["audio"].tolist()
    for order in ((0, 2, 3, 1), (3, 1, 0, 2)):
        lying = np.ascontiguousarray(FEEDS[0]["z"].transpose(order)).transpose(np.argsort(order))
        assert engine.run({**FEEDS[0], "z": lying})["audio"].tolist() == whole
    engine.close()


@pytest.mark.parametrize(
    ("feed", "sentence"),
    [
        ({"z": FEEDS[0]["z"]}, "input 'lengths' is missing"),
        ({**FEEDS[0], "y": FEEDS[0]["z"]}, "has no input 'y'"),
        ({**FEEDS[0], "z": FEEDS[0]["z"].astype(np.float64)}, "float64"),
        ({**FEEDS[0], "z": FEEDS[0]["z"][..., :5]}, "'z' has the shape"),
        ({**FEEDS[0], "lengths": np.array([3], np.int32)}, "int32"),
    ],
)
def test_wrong_feeds_are_bad_input(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path, feed: dict[str, Array], sentence: str
) -> None:
    fake_npu.record(manifest, recorded_runs(manifest))
    engine = NpuBackend(fake_npu.library, root=machine).open(manifest)
    with pytest.raises(BadInput, match=sentence):
        engine.run(feed)
    engine.close()


def test_values_that_are_no_numbers_come_back_as_they_are(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path
) -> None:
    audio = np.array([np.nan, np.inf, -np.inf, 65504, *range(8)], np.float32)
    fake_npu.record(manifest, [(FEEDS[0], {"audio": audio})])
    engine = NpuBackend(fake_npu.library, root=machine).open(manifest)
    np.testing.assert_array_equal(engine.run(FEEDS[0])["audio"].ravel(), audio)
    engine.close()


def test_zero_copy_gives_the_same(fake_npu: FakeNpu, manifest: EngineManifest, machine: Path) -> None:
    runs = recorded_runs(manifest)
    fake_npu.record(manifest, runs)
    engine = NpuBackend(fake_npu.library, zero_copy=True, root=machine).open(manifest)
    assert engine.zero_copy
    for feed, results in runs:
        assert engine.run(feed)["audio"].tolist() == results["audio"].tolist()
    engine.close()
    assert not any(call.startswith("rknn_inputs_set") for call in fake_npu.calls)


def test_cores_that_the_driver_refuses_are_told(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_npu.record(manifest, [])
    monkeypatch.setenv("FAKE_RKNN_CORES", "1")
    engine = NpuBackend(fake_npu.library, root=machine).open(manifest)
    assert engine.core_mask == "auto"
    engine.close()


def test_core_mask_that_there_is_not_is_bad_input(fake_npu: FakeNpu) -> None:
    with pytest.raises(BadInput, match="no core mask '0_2'; there are auto, 0, 1, 2, 0_1, 0_1_2, all"):
        NpuBackend(fake_npu.library, core_mask="0_2")


def test_engine_whose_text_is_of_another_stage_is_a_mismatch(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path
) -> None:
    other = short_contract(replace(CONTRACT, stage="duration_encoder"), "rk3588", "2.3.2")
    fake_npu.record(manifest, [], custom=other)
    with pytest.raises(Mismatch, match=r"stage is duration_encoder .* and decoder"):
        NpuBackend(fake_npu.library, root=machine).open(manifest)
    assert fake_npu.live_contexts == 0


@pytest.mark.parametrize("text", ["RGB", "[1, 2]", "{", "[" * 900])
def test_engine_whose_text_is_no_contract_is_a_mismatch(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path, text: str
) -> None:
    fake_npu.record(manifest, [], custom=text)
    with pytest.raises(Mismatch, match="no contract of rknn-tts"):
        NpuBackend(fake_npu.library, root=machine).open(manifest)


def test_engine_without_a_text_is_taken_by_its_file(fake_npu: FakeNpu, manifest: EngineManifest, machine: Path) -> None:
    fake_npu.record(manifest, [], custom="")
    NpuBackend(fake_npu.library, root=machine).open(manifest).close()


def test_engine_for_another_chip_is_refused_before_the_driver_is_asked(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path
) -> None:
    fake_npu.record(manifest, [])
    with pytest.raises(Mismatch, match=r"is for rk3588, and this board .* rk3566.*TARGET=rk3566"):
        NpuBackend(fake_npu.library, root=of_chip(machine, "rk3566")).open(manifest)
    assert fake_npu.calls == []


def test_engine_for_this_chip_is_taken(fake_npu: FakeNpu, manifest: EngineManifest, machine: Path) -> None:
    fake_npu.record(manifest, [])
    NpuBackend(fake_npu.library, root=of_chip(machine, "rk3588s")).open(manifest).close()


def test_tensors_that_are_not_the_manifests_are_a_mismatch(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path
) -> None:
    fake_npu.record(manifest, [], shapes={"z": (1, 1, 6, 4)})
    with pytest.raises(Mismatch, match=r"it tells of 'z' \[1, 1, 6, 4\] NHWC float16 with 24 elements"):
        NpuBackend(fake_npu.library, root=machine).open(manifest)


def test_names_that_are_not_the_manifests_are_a_mismatch(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path
) -> None:
    fake_npu.record(manifest, [], names={"audio": "waveform"})
    with pytest.raises(Mismatch, match=r"its outputs are 'waveform' .*manifest tells of 'audio'"):
        NpuBackend(fake_npu.library, root=machine).open(manifest)


def test_first_engine_that_is_refused_carries_the_versions_that_files_name(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine / "sys/kernel/debug/rknpu").mkdir(parents=True)
    (machine / "sys/kernel/debug/rknpu/version").write_text("RKNPU driver: v0.9.6\n")
    backend = NpuBackend(fake_npu.library, root=machine)
    for code in range(-13, 0):
        monkeypatch.setenv("FAKE_RKNN_FAIL", f"rknn_init={code}")
        with pytest.raises(RunFault, match=f"rknn_init failed with code {code} ") as caught:
            backend.open(manifest)
        assert caught.value.code == code
        assert str(caught.value).endswith(f" (driver 0.9.6, api {VERSION})")


def test_output_that_was_not_written_is_no_silence(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_npu.record(manifest, [(FEEDS[0], {"audio": np.ones(12, np.float32)})])
    monkeypatch.setenv("FAKE_RKNN_UNWRITTEN", "1")
    engine = NpuBackend(fake_npu.library, root=machine).open(manifest)
    assert np.isnan(engine.run(FEEDS[0])["audio"]).all()
    engine.close()


def test_versions_that_were_told_are_kept_when_a_later_context_tells_none(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_npu.record(manifest, [(FEEDS[0], {"audio": np.ones(12, np.float32)})])
    monkeypatch.setenv("FAKE_RKNN_FAIL", "rknn_query:5@2=-1;rknn_init@3=-4;rknn_run=-2")  # 5: RKNN_QUERY_SDK_VERSION
    monkeypatch.setenv("FAKE_RKNN_DRIVER", "0.9.7")
    backend = NpuBackend(fake_npu.library, root=machine)
    engines = [backend.open(manifest), backend.open(manifest)]
    with pytest.raises(RunFault, match=re.escape(f" (driver 0.9.7, api {VERSION})")):
        backend.open(manifest)
    assert backend.versions() == {"api": VERSION, "driver": "0.9.7"}
    with pytest.raises(RunFault, match=rf"rknn_run failed with code -2 .*driver 0\.9\.7, api {re.escape(VERSION)}"):
        engines[1].run(FEEDS[0])
    for engine in engines:
        engine.close()


def test_later_refusals_carry_the_versions_of_the_first_context(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_npu.record(manifest, [])
    monkeypatch.setenv("FAKE_RKNN_API", "2.3.0 (c949ad889d@2024-11-07T11:35:33)")
    monkeypatch.setenv("FAKE_RKNN_DRIVER", "0.9.7")
    monkeypatch.setenv("FAKE_RKNN_FAIL", "rknn_init@2=-4")
    backend = NpuBackend(fake_npu.library, root=machine)
    engine = backend.open(manifest)
    with pytest.raises(RunFault) as caught:
        backend.open(manifest)
    # 33316864 bytes by the manifest are 31.8 MiB
    assert "Loaded are piper-decoder-w6.rknn 32 MiB, together 32 MiB; this one takes 32 MiB" in str(caught.value)
    assert str(caught.value).endswith(" (driver 0.9.7, api 2.3.0 (c949ad889d@2024-11-07T11:35:33))")
    engine.close()
    backend.open(manifest).close()


def test_engines_that_were_closed_are_not_counted(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_npu.record(manifest, [])
    backend = NpuBackend(fake_npu.library, root=machine)
    backend.open(manifest).close()
    monkeypatch.setenv("FAKE_RKNN_FAIL", "rknn_init=-6")
    with pytest.raises(RunFault, match="No other engine of this process is loaded; this one takes 32 MiB"):
        backend.open(manifest)


def test_engine_that_an_older_library_refuses_is_a_version_skew(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_npu.record(manifest, [])
    monkeypatch.setenv("FAKE_RKNN_API", "1.5.0 (e6fe0c678@2023-05-25T08:09:20)")
    monkeypatch.setenv("FAKE_RKNN_FAIL", "rknn_init@2=-6")
    backend = NpuBackend(fake_npu.library, root=machine)
    backend.open(manifest).close()
    with pytest.raises(RunFault, match=r"this librknnrt is 1\.5\.0, older than the 2\.3\.2 of the toolkit"):
        backend.open(manifest)


def test_engine_that_is_damaged_is_told_from_a_skew(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytearray(manifest.engine.read_bytes())
    data[66] ^= 1  # in the model, before the contract
    manifest.engine.write_bytes(data)
    monkeypatch.setenv("FAKE_RKNN_API", "1.5.0")
    with pytest.raises(RunFault, match=r"code -6 .*The file is bad: .*its digest is") as caught:
        NpuBackend(fake_npu.library, root=machine).open(manifest)
    assert "older" not in str(caught.value)


def test_engine_that_is_cut_off_is_refused_before_it_is_loaded(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path
) -> None:
    manifest.engine.write_bytes(manifest.engine.read_bytes()[:-10])
    with pytest.raises(BadInput, match="10 bytes"):
        NpuBackend(fake_npu.library, root=machine).open(manifest)
    assert fake_npu.calls == []


@pytest.mark.parametrize(
    "failure",
    ["rknn_query:7=-7", "rknn_query:0=-5", "rknn_query:1@2=-1", "rknn_query:2=-1"],
)
def test_engine_that_cannot_be_asked_is_given_back(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    fake_npu.record(manifest, [])
    monkeypatch.setenv("FAKE_RKNN_FAIL", failure)
    with pytest.raises(RunFault, match="rknn_query"):
        NpuBackend(fake_npu.library, root=machine).open(manifest)
    assert fake_npu.live_contexts == 0


def test_zero_copy_that_is_refused_gives_the_engine_back(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_npu.record(manifest, [])
    monkeypatch.setenv("FAKE_RKNN_FAIL", "rknn_set_io_mem@2=-5")
    with pytest.raises(RunFault, match="rknn_set_io_mem"):
        NpuBackend(fake_npu.library, zero_copy=True, root=machine).open(manifest)
    assert (fake_npu.live_contexts, fake_npu.live_memories) == (0, 0)


@pytest.mark.parametrize("failure", ["rknn_inputs_set=-5", "rknn_run=-2", "rknn_outputs_get=-9"])
def test_run_that_fails_leaves_an_engine_that_runs_again(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    fake_npu.record(manifest, recorded_runs(manifest))
    engine = NpuBackend(fake_npu.library, root=machine).open(manifest)
    monkeypatch.setenv("FAKE_RKNN_FAIL", failure)
    with pytest.raises(RunFault, match=failure.replace("=", " failed with code ")):
        engine.run(FEEDS[0])
    monkeypatch.delenv("FAKE_RKNN_FAIL")
    assert engine.run(FEEDS[0])["audio"].size == 12
    engine.close()


def test_memory_is_told_by_the_library_without_a_network(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path
) -> None:
    fake_npu.record(manifest, [], memory=(786 << 20, 12 << 20, 800 << 20))
    backend = NpuBackend(fake_npu.library, root=machine)
    assert backend.memory(manifest) == MemoryUse(786 << 20, 12 << 20, measured=True)
    assert fake_npu.calls[0].endswith("flags=0x100")
    assert backend.versions()["driver"] == "0.9.8"


def test_memory_is_told_by_a_library_that_tells_no_versions_of_it(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_npu.record(manifest, [], memory=(30, 5, 40))
    monkeypatch.setenv("FAKE_RKNN_FAIL", "rknn_query:5=-7")
    backend = NpuBackend(fake_npu.library, root=machine)
    assert backend.memory(manifest) == MemoryUse(30, 5, measured=True)
    assert backend.versions() == {}


@pytest.mark.parametrize("failure", ["rknn_init=-4", "rknn_query:6=-7", ""])
def test_memory_that_is_not_told_is_the_manifests_estimate(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    fake_npu.record(manifest, [], memory=(0, 0, 0))
    monkeypatch.setenv("FAKE_RKNN_FAIL", failure)
    backend = NpuBackend(fake_npu.library, root=machine)
    assert backend.memory(manifest) == MemoryUse(33316864, 0, measured=False)
    assert backend.memory(replace(manifest, context_bytes=None)) is None


CHILD = """
import sys
from pathlib import Path
import numpy as np
from rknn_tts_runtime.backends.npu import NpuBackend
from rknn_tts_runtime.manifest import manifest_of

library, engine, root, zero_copy = sys.argv[1:]
backend = NpuBackend(Path(library), zero_copy=zero_copy == "zero-copy", root=Path(root))
loaded = backend.open(manifest_of(Path(engine)))
z = np.arange(12, dtype=np.float32).reshape(1, 2, 1, 6)
for _ in range(50):
    audio = loaded.run({"z": z, "lengths": np.array([3])})["audio"]
loaded.close()
print(audio.ravel().tolist())
"""


def in_a_child(fake_npu: FakeNpu, manifest: EngineManifest, machine: Path, kind: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a process that runs the engine 50 times."""
    command = [sys.executable, "-c", CHILD, str(fake_npu.library), str(manifest.engine), str(machine), kind]
    settings = {**os.environ, "PYTHONPATH": str(ROOT / "runtime"), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=settings)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize("kind", ["copies", "zero-copy"])
def test_process_of_its_own_runs_and_ends_well(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path, kind: str
) -> None:
    z = np.arange(12, dtype=np.float32)
    fake_npu.record(manifest, [({"z": z, "lengths": np.array([3])}, {"audio": z * 2 + 3})])
    code, told, errors = in_a_child(fake_npu, manifest, machine, kind)
    assert (code, errors) == (0, "")
    assert json.loads(told) == [3.0 + 2 * number for number in range(12)]
    assert fake_npu.calls.count(f"rknn_init size={manifest.engine_bytes} flags=0x0") == 1
    assert fake_npu.calls.count("rknn_destroy") == 1


def test_library_that_crashes_ends_the_process_that_it_is_in(
    fake_npu: FakeNpu, manifest: EngineManifest, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_RKNN_FAIL", "rknn_init=crash")
    assert in_a_child(fake_npu, manifest, machine, "copies")[0] < 0
