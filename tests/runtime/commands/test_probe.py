from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from rknn_tts_runtime.commands import probe
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.probing.result import sign_off_digest

from tests.runtime.probing.boards import BoardBackend
from tests.runtime.probing.kits import write_kit


def run(*words: object) -> int:
    parser = argparse.ArgumentParser()
    probe.add_arguments(parser)
    return probe.run(parser.parse_args([str(word) for word in words]))


def test_kit_passes_on_its_twins_and_the_result_stands_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_kit(tmp_path / "kit")
    assert run(tmp_path / "kit", "--backend", "onnx", "--by", " Ada ", "--repeats", "2") == 0
    shown = capsys.readouterr()
    assert "2 of 2 cases passed." in shown.out
    assert shown.out.endswith(f"written: {tmp_path / 'kit.result.json'}\n")
    assert "1 of 2: net" in shown.err
    data = json.loads((tmp_path / "kit.result.json").read_text(encoding="utf-8"))
    assert (data["schema"], data["backend"], data["signed_off"]["by"]) == ("rknn-tts/probe/1", "onnx", "Ada")
    assert data["signed_off"]["sha256"] == sign_off_digest(data)


def test_nobody_signs_off_as_unnamed(tmp_path: Path) -> None:
    write_kit(tmp_path / "kit")
    assert run(tmp_path / "kit", "--backend", "onnx", "--out", tmp_path / "r.json") == 0
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["signed_off"]["by"] == "unnamed"


def test_failed_case_ends_with_1_and_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_kit(tmp_path / "kit", part_factor=2.1)
    assert run(tmp_path / "kit", "--backend", "onnx", "--out", tmp_path / "r.json") == 1
    assert "FAILED field: output 'y': 26.0 dB, at least 40.0 are asked" in capsys.readouterr().out
    cases = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["cases"]
    assert [case["passed"] for case in cases] == [True, False]


def test_folder_may_be_the_working_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_kit(tmp_path / "kit")
    monkeypatch.chdir(tmp_path / "kit")
    assert run(".", "--backend", "onnx") == 0
    assert (tmp_path / "kit.result.json").is_file()


def test_chosen_backend_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_kit(tmp_path / "kit")
    monkeypatch.setattr(probe, "chosen_backend", lambda arguments: BoardBackend())
    assert run(tmp_path / "kit") == 0
    assert json.loads((tmp_path / "kit.result.json").read_text(encoding="utf-8"))["backend"] == "librknnrt"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--repeats", "0"], "--repeats 0: expected from 1 to 1000"),
        (["--by", ""], "--by: a name"),
        (["--by", "a\nb"], "--by: a name"),
        (["--by", "x" * 201], "--by: a name"),
        (["--out", "gone/r.json"], "there is no folder"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(tmp_path: Path, words: list[str], said: str) -> None:
    write_kit(tmp_path / "kit")
    with pytest.raises(BadInput, match=said):
        run(tmp_path / "kit", "--backend", "onnx", *words)
    assert not (tmp_path / "kit.result.json").exists()


def test_folder_that_is_no_kit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is no probe kit"):
        run(tmp_path)


def test_folder_that_cannot_be_a_kits_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for folder in ("/", tmp_path / "a", tmp_path / ("a" * 256), tmp_path / "gone"):
        with pytest.raises(BadInput, match=r"is no probe kit|is no folder of a kit"):
            run(folder, "--backend", "onnx")
