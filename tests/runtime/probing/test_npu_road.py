"""The whole road on the binding itself: a kit, the stand-in of librknnrt.so, the command, its result."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rknn_tts_runtime.cli import main
from rknn_tts_runtime.manifest import read_manifest
from rknn_tts_runtime.probing.arrays import Array, npy_bytes
from rknn_tts_runtime.probing.kit import KIT_FILE, Case, CaseInput, CaseOutput, CaseRun, Kit, Subject, kit_text

from contracts.manifest import read_manifest as read_whole
from contracts.verdicts import Status
from rknn_tts.verify import verify
from tests.runtime.engine_folders import write_engine
from tests.runtime.npu.fake_npu import VERSION, FakeNpu
from tests.runtime.probing.kits import digests_of

Z = np.arange(12, dtype=np.float32).reshape(1, 2, 1, 6) - 5
LENGTHS = np.array([3], np.int64)
AUDIO = (2 * Z.reshape(1, 1, 1, 12) + 3).astype(np.float32)  # what the engine computes, by hand


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """A kit of a Piper engine: a float input of four axes, and an int64 one."""
    folder = tmp_path / "kit"
    folder.mkdir()
    files = write_engine(folder)
    arrays: dict[str, Array] = {"z": Z, "lengths": LENGTHS, "audio": AUDIO}
    for name, array in arrays.items():
        (folder / f"{name}.npy").write_bytes(npy_bytes(array))
    manifest = read_manifest(files.manifest)
    run = CaseRun(
        (CaseInput("z", "z.npy"), CaseInput("lengths", "lengths.npy")), (CaseOutput("audio", "audio.npy", 40.0),)
    )
    case = Case("engine", "engine", "The engine.", files.manifest.name, (run,))
    subject = Subject("piper", "decoder", None, "rk3588", "2.3.2", manifest.engine_sha256, files.engine.name)
    (folder / KIT_FILE).write_text(kit_text(Kit(subject, (case,), digests_of(folder))), encoding="utf-8")
    return folder


def probed(kit: Path, npu: FakeNpu, given: Array) -> tuple[int, Path]:
    """The exit code of the command on a stand-in that gives `given`, and the result's file."""
    manifest = read_manifest(next(kit.glob("piper*.json")))
    npu.record(manifest, [({"z": Z, "lengths": LENGTHS}, {"audio": given})], memory=(3 << 20, 1 << 20, 4 << 20))
    result = kit.with_name("result.json")
    words = ["probe", str(kit), "--library", str(npu.library), "--out", str(result), "--by", "Ada", "--repeats", "2"]
    return main(words), result


def test_board_gives_what_is_expected_and_the_manifest_says_so(kit: Path, fake_npu: FakeNpu, tmp_path: Path) -> None:
    code, place = probed(kit, fake_npu, AUDIO + 0.001)
    assert code == 0
    data = json.loads(place.read_text(encoding="utf-8"))
    assert (data["backend"], data["versions"]) == ("librknnrt", {"api": VERSION, "driver": "0.9.8"})
    case = data["cases"][0]
    assert (case["core_mask"], case["repeats"]) == ("0_1_2", 2)
    assert case["memory"] == {"weight_bytes": 3 << 20, "internal_bytes": 1 << 20, "measured": True}
    assert case["outputs"][0]["max_abs"] == pytest.approx(0.001, abs=1e-5)
    assert fake_npu.calls.count("rknn_run") == 3

    (tmp_path / "engines").mkdir()
    engine = write_engine(tmp_path / "engines").engine
    assert verify(engine, place).failure is None
    manifest = read_whole(engine.with_suffix(".json"))
    assert manifest.board is not None
    assert manifest.board.conditions.api == VERSION
    assert [(verdict.gate, verdict.status) for verdict in manifest.verdicts] == [("board.engine", Status.PASSED)]


@pytest.mark.parametrize(
    ("variable", "value", "code", "said"),
    [
        ("FAIL", "rknn_init=-13", 1, "-13"),
        ("FAIL", "rknn_run@2=-1", 1, "it could not be run"),
        ("SHORT", "audio=4", 1, "44 bytes"),
        ("CORES", "1", 0, ""),
    ],
)
def test_failures_of_the_library_fail_the_case_with_their_sentence(
    kit: Path,
    fake_npu: FakeNpu,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    code: int,
    said: str,
) -> None:
    monkeypatch.setenv(f"FAKE_RKNN_{variable}", value)
    assert probed(kit, fake_npu, AUDIO)[0] == code
    case = json.loads(kit.with_name("result.json").read_text(encoding="utf-8"))["cases"][0]
    assert said in case["problem"]
    if variable == "CORES":
        assert case["core_mask"] == "auto"


Wrong = Callable[[Array], Array]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (lambda audio: audio * np.nan, "it has 12 of 12 values that are not finite"),
        (lambda audio: np.roll(audio, 1), ""),
        (np.zeros_like, "it is all zero"),
    ],
)
def test_wrong_values_of_a_board_fail(kit: Path, fake_npu: FakeNpu, wrong: Wrong, problem: str) -> None:
    code, place = probed(kit, fake_npu, wrong(AUDIO))
    assert code == 1
    output = json.loads(place.read_text(encoding="utf-8"))["cases"][0]["outputs"][0]
    assert output["problem"].startswith(problem)
