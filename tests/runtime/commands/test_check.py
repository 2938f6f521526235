"""What `check` finds in a plan's files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rknn_tts_runtime.cli import main
from rknn_tts_runtime.commands import check
from rknn_tts_runtime.faults import BadInput, Fault, RunFault
from rknn_tts_runtime.identity import check_host
from rknn_tts_runtime.manifest import EngineManifest

from contracts.contract import PassRecord
from tests.runtime.engine_folders import (
    CONTRACT,
    HOST_FILE,
    STEM,
    STEP_CONTRACT,
    TRIMMED_CONTRACT,
    WINDOW,
    write_engine,
)


def plan_in(folder: Path, **other: object) -> str:
    decoder = {"impl": "rknn", "artifacts": {"main": f"{STEM}.rknn", "host": HOST_FILE}}
    (folder / "plan.json").write_text(json.dumps({"piper_tts.exec_plan": {"decoder": decoder, **other}}))
    return str(folder / "plan.json")


def test_check_tells_what_a_whole_folder_is_for_and_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_engine(tmp_path)
    assert main(["check", "--backend", "onnx", plan_in(tmp_path, duration_flows={"impl": "ggml"})]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"piper decoder main: {STEM}.rknn",
        "  for rk3588, toolkit 2.3.2, window of 6 frames, 2 emitted",
        "  takes 32 MiB (estimated)",  # 33316864 bytes
        "  not measured on a board",
        "piper duration_flows (ggml): is the host application's",
        "together: 32 MiB of 3900 MiB: they fit into one process",
    ]


def test_check_tells_what_is_trimmed_and_what_speaks_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    contract = replace(TRIMMED_CONTRACT, role="w6", window=replace(WINDOW, sample_rate=20))
    write_engine(tmp_path, contract, contract)
    assert main(["check", "--backend", "onnx", plan_in(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[1:9] == [
        "  for rk3588, toolkit 2.3.2, window of 6 frames, 2 emitted, trimmed to 4",
        "  takes 32 MiB (estimated)",
        "  not measured on a board",
        "piper decoder: what speaks utterances of",
        "  0.5 s (5 frames): too short for every window: add an engine with a masked one",
        "  1.0 s (10 frames): 4 x w6",  # 3 + 2 + 2 + 3
        "  2.0 s (20 frames): 9 x w6",
        "  5.0 s (50 frames): 24 x w6",
    ]


def test_check_tells_of_a_masked_window(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    contract = replace(CONTRACT, passes=(PassRecord("mask_decoder", 3, exact=True),))
    write_engine(tmp_path, contract, contract)
    assert main(["check", "--backend", "onnx", plan_in(tmp_path)]) == 0
    assert "window of 6 frames, 2 emitted, masked\n" in capsys.readouterr().out


@pytest.mark.parametrize("damaged", ["engine", "twin", "host"])
def test_check_finds_a_file_that_is_not_the_manifests(
    damaged: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path: Path = getattr(write_engine(tmp_path), damaged)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1  # of the same size, so that the digest alone tells
    path.write_bytes(bytes(data))
    assert main(["check", "--backend", "onnx", plan_in(tmp_path)]) == 2
    said = capsys.readouterr()
    assert "refused: " in said.out
    assert path.name in said.out
    assert "together:" not in said.out
    assert said.err == f"refused: 1 of what {tmp_path}/plan.json places: see above\n"


def test_check_finds_an_engine_of_another_stage_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_engine(tmp_path, replace(CONTRACT, stage="duration_encoder"), replace(CONTRACT, stage="duration_encoder"))
    assert main(["check", "--backend", "onnx", plan_in(tmp_path)]) == 2
    said = capsys.readouterr().out
    assert "piper decoder" in said
    assert "make engine FAMILY=piper STAGE=decoder TARGET=rk3588" in said


def kokoro_plan(folder: Path, **artifacts: str) -> str:
    plan = {"generator": {"impl": "rknn", "artifacts": artifacts}}
    (folder / "plan.json").write_text(json.dumps({"kokoro_tts.exec_plan": plan}))
    return str(folder / "plan.json")


def test_check_finds_an_engine_in_the_place_of_another_role(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = replace(CONTRACT, family="kokoro", stage="generator", role="short", window=None, host=None)
    write_engine(tmp_path, short, short)
    assert main(["check", "--backend", "onnx", kokoro_plan(tmp_path, main=f"{STEM}.rknn")]) == 2
    assert "made for the role short, and the plan names it as main; name it as short." in capsys.readouterr().out


def test_check_leaves_files_that_are_no_engines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    full = replace(CONTRACT, family="kokoro", stage="generator", role="full", window=None, host=None)
    write_engine(tmp_path, full, full)
    (tmp_path / "whole.onnx").write_bytes(b"an ONNX")
    plan = kokoro_plan(tmp_path, main=f"{STEM}.rknn", full_length="whole.onnx", host="whole.onnx")
    assert main(["check", "--backend", "onnx", plan]) == 0
    assert "whole.onnx" not in capsys.readouterr().out


def test_check_counts_an_engine_of_two_roles_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = replace(STEP_CONTRACT, role="main")
    write_engine(tmp_path, step, step)
    both = {"impl": "rknn", "artifacts": {"main": f"{STEM}.rknn", "window": f"./{STEM}.rknn"}}
    (tmp_path / "plan.json").write_text(json.dumps({"qwen3_tts.exec_plan": {"speech_decoder": both}}))
    assert main(["check", "--backend", "onnx", str(tmp_path / "plan.json")]) == 0
    out = capsys.readouterr().out
    assert out.count("takes 32 MiB (estimated)") == 2
    assert out.endswith("together: 32 MiB of 3900 MiB: they fit into one process\n")


def test_check_of_one_family_leaves_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_engine(tmp_path)
    plan = json.loads(Path(plan_in(tmp_path)).read_text())
    plan["kokoro_tts.exec_plan"] = {"generator": {"impl": "ggml"}}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    assert main(["check", "--backend", "onnx", str(tmp_path / "plan.json"), "--family", "kokoro"]) == 0
    assert capsys.readouterr().out == "kokoro generator (ggml): is the host application's\n"


@pytest.mark.parametrize("faults", [[BadInput("a"), RunFault("b")], [RunFault("b"), BadInput("a")]])
def test_check_ends_with_the_code_of_the_worst(
    faults: list[Fault], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_engine(tmp_path)
    (tmp_path / "second.rknn").touch()
    given = iter(faults)

    def broken(file: Path) -> None:
        raise next(given)

    monkeypatch.setattr(check, "manifest_of", broken)
    decoder = {"impl": "rknn", "artifacts": {"main": f"{STEM}.rknn,second.rknn"}}
    (tmp_path / "plan.json").write_text(json.dumps({"piper_tts.exec_plan": {"decoder": decoder}}))
    assert main(["check", "--backend", "onnx", str(tmp_path / "plan.json")]) == 2


@pytest.mark.parametrize("plans", ["{}", '{"piper_tts.exec_plan": {}}'])
def test_check_says_that_a_plan_places_nothing(plans: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan.json").write_text(plans)
    assert main(["check", "--backend", "onnx", str(tmp_path / "plan.json")]) == 0
    assert "places no component" in capsys.readouterr().out


def test_load_opens_the_whole_voice_as_say_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_engine(tmp_path)  # as its manifest and contract have it, but no decoder that Piper's walk can run
    assert main(["check", "--backend", "onnx", "--load", plan_in(tmp_path)]) == 2
    said = capsys.readouterr()
    assert f"\npiper as a voice: refused: {tmp_path}/{STEM}.json: " in said.out
    assert said.err.startswith("refused: 1 of what ")


@pytest.mark.parametrize("board", [7, [1], "yes"])
def test_what_is_no_record_of_a_board_measured_nothing(
    board: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = write_engine(tmp_path).manifest
    place.write_text(json.dumps({**json.loads(place.read_text("utf-8")), "board": board}), encoding="utf-8")
    main(["check", "--backend", "onnx", plan_in(tmp_path)])
    assert "not measured on a board" in capsys.readouterr().out


def test_what_a_board_measured_stands_in_the_place_of_what_is_modelled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = write_engine(tmp_path).manifest
    place.write_text(json.dumps({**json.loads(place.read_text("utf-8")), "board": {"ms": 20.74}}), encoding="utf-8")
    assert main(["check", "--backend", "onnx", plan_in(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "20.7 ms a run (measured on a board)" in told
    assert "not measured" not in told


def test_a_host_half_of_several_engines_is_read_through_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write_engine(tmp_path)
    for path in (first.engine, first.twin):
        path.with_name(f"b{path.suffix}").write_bytes(path.read_bytes())
    told = json.loads(first.manifest.read_text("utf-8"))
    told["engine"]["file"], told["onnx"]["file"] = "b.rknn", "b.onnx"
    (tmp_path / "b.json").write_text(json.dumps(told), encoding="utf-8")
    seen: list[Path] = []

    def checked(manifest: EngineManifest, host: Path) -> None:
        seen.append(host)
        check_host(manifest, host)

    monkeypatch.setattr(check, "check_host", checked)
    ladder = {"impl": "rknn", "artifacts": {"main": f"{STEM}.rknn,b.rknn", "host": HOST_FILE}}
    (tmp_path / "plan.json").write_text(json.dumps({"piper_tts.exec_plan": {"decoder": ladder}}), encoding="utf-8")
    assert main(["check", "--backend", "onnx", str(tmp_path / "plan.json")]) == 0
    assert seen == [first.host]
