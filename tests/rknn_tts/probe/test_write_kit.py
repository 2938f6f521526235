"""Kits as the command writes them: one of a small engine that the real toolkit compiles, whose LeakyRelu overflows a
hardware field of rk3566; and those of engines that are no more than files."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from rknn_tts_runtime.backends.twins import TwinBackend
from rknn_tts_runtime.probing.kit_reading import open_kit
from rknn_tts_runtime.probing.result import result_text, signed_off
from rknn_tts_runtime.probing.run import run_kit

from contracts.errors import NotWritten, UserInput
from contracts.files import write_whole
from contracts.manifest import LogSummary, read_manifest
from contracts.verdicts import Status
from rknn_tts import pipeline
from rknn_tts.blocks import plain_text
from rknn_tts.present_probe import kit_blocks
from rknn_tts.probe.write_kit import WrittenKit, write_kit
from rknn_tts.request import Request
from rknn_tts.verify import verify
from rknn_tts.verify_gates import unproven_places
from tests.gates.small_graphs import constant, row, tensor
from tests.gates.small_graphs import proto as small_proto
from tests.rknn_tts.probe.test_engine_case import FEEDS, subject
from tests.rknn_tts.workshop import Heard
from tests.runtime.probing.boards import write_board

FIELDS = {"log.regtask:lite:0x4038:0:0x1fff", "log.regtask:lite:0x4038:16:0x1fff", "log.regtask:lite:0x5048:19:0x1fff"}
"""What rknn-toolkit2 2.3.2 logs of 32 channels of 27904 steps, a Piper decoder's last stage, for rk3566 (measured)."""


def graph() -> onnx.ModelProto:
    """y = tanh(w leaky(x)) over so long an axis."""
    shape = [1, 32, 27904]
    weights = np.random.default_rng(1).standard_normal((32, 32, 1)) / np.sqrt(32)
    nodes = [
        onnx.helper.make_node("LeakyRelu", ["x"], ["bent"], "bend", alpha=-1.0),
        onnx.helper.make_node("Conv", ["bent", "w"], ["h"], "mix"),
        onnx.helper.make_node("Tanh", ["h"], ["y"], "bound"),
    ]
    return small_proto(nodes, [tensor("x", shape)], [tensor("y", shape)], [constant("w", weights)])


@dataclass(frozen=True)
class Made:
    """A kit of it."""

    folder: Path
    kit: WrittenKit
    said: Heard


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder, said = tmp_path_factory.mktemp("kit"), Heard()
    onnx.save(graph(), folder / "net.onnx")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("RKNN_TTS_CACHE", str(folder / "cache"))
        wanted = Request("compile", model="net.onnx", target="rk3566", output="engines/net.rknn")
        pipeline.compile_onnx(wanted, Heard())
        kit = write_kit(Request("probe", model="engines/net.rknn"), said)
    return Made(folder / "engines" / "net.probe", kit, said)


def test_kit_has_the_engine_its_operator_and_the_part_that_overflows(made: Made) -> None:
    cases = {case.name: case for case in made.kit.cases}
    assert list(cases) == ["engine", "absolute_value", "regtask_1"]
    assert set(cases["engine"].proves) == set(cases["regtask_1"].proves) == FIELDS
    assert cases["absolute_value"].bound_db == pytest.approx(61.5, abs=0.5)  # 67.5 dB measured in the simulator
    owed = f"a board owes {cases['absolute_value'].bound_db:.1f}"
    assert cases["absolute_value"].what.endswith(owed)
    assert "LeakyRelu" in cases["regtask_1"].what
    assert any("looking for what overflows" in step for step in made.said.steps)


def test_board_s_own_reader_takes_the_kit_and_every_case_passes_on_the_twins(made: Made) -> None:
    opened = open_kit(made.folder)
    result = run_kit(opened, TwinBackend(), lambda line: None, repeats=1)
    assert result.passed, result.cases
    assert opened.kit.subject.engine_file == "net.rknn"
    assert made.kit.size_bytes == sum(path.stat().st_size for path in made.folder.iterdir())


def test_engine_s_expectation_is_the_formula_s(made: Made) -> None:
    opened = open_kit(made.folder)
    (case,) = (case for case in opened.kit.cases if case.name == "engine")
    (run,) = case.runs
    x = opened.array(run.inputs[0].file).reshape(32, -1).astype(np.float64)
    weights = onnx.numpy_helper.to_array(graph().graph.initializer[0])[:, :, 0].astype(np.float64)
    np.testing.assert_allclose(
        opened.array(run.outputs[0].file).reshape(32, -1), np.tanh(weights @ np.abs(x)), atol=1e-5
    )


def test_kit_tells_what_it_holds(made: Made) -> None:
    text = plain_text(kit_blocks(made.kit))
    assert "absolute_value" in text
    assert "for:           rk3566" in text
    assert "python -m rknn_tts_runtime probe engines/net.probe" in text
    assert "log.regtask:lite:0x4038:0:0x1fff" in text
    assert "carries no real inputs" not in text  # compile puts those that it judged on into the twin


class TwinsForABoard(TwinBackend):
    """Twins under the name of a board's backend: the road of a result, without a board."""

    name = "librknnrt"


def test_kit_that_a_board_passes_proves_every_field_of_the_manifest(made: Made, tmp_path: Path) -> None:
    board = write_board(tmp_path / "board", soc="rk3566")
    result = run_kit(open_kit(made.folder), TwinsForABoard(), lambda line: None, repeats=1, root=board)
    at = "2026-11-30T12:00:00+00:00"
    (tmp_path / "result.json").write_text(result_text(signed_off(result, "Ada", at)), encoding="utf-8")
    for path in made.folder.parent.glob("net.*"):
        if path.is_file():
            shutil.copy(path, tmp_path / path.name)
    before = unproven_places(read_manifest(tmp_path / "net.json"))
    assert set(before) == FIELDS
    done = verify(tmp_path / "net.rknn", tmp_path / "result.json")
    assert done.failure is None
    manifest = read_manifest(tmp_path / "net.json")
    assert {manifest.verdicts[place].status for place in before.values()} == {Status.PASSED}
    assert manifest.board is not None


def kit_of(folder: Path, **options: Any) -> WrittenKit:
    """The kit of an engine that is no more than files, and overflows nothing."""
    subject(folder, FEEDS, log=LogSummary(), verdicts=())
    return write_kit(Request("probe", model=str(folder / "net.rknn"), **options), Heard())


def test_kit_replaces_an_earlier_one_and_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "net.probe").mkdir()
    first = kit_of(tmp_path)
    (tmp_path / "net.probe" / "old.npy").write_bytes(b"old")
    assert kit_of(tmp_path) == first
    assert sorted(path.name for path in (tmp_path / "net.probe").iterdir()) == [
        *(f"engine.{run}.{side}0.npy" for run in (1, 2) for side in ("in", "out")),
        *(f"net.{ending}" for ending in ("json", "onnx", "rknn")),
        "probe.json",
    ]
    open_kit(tmp_path / "net.probe")


def test_kit_keeps_its_engine_when_another_is_put_in_its_place(tmp_path: Path) -> None:
    kit_of(tmp_path)
    write_whole(tmp_path / "net.rknn", b"RKNN the next one")
    open_kit(tmp_path / "net.probe")


@pytest.mark.parametrize("content", [None, "{}", "no JSON", json.dumps({"schema": "rknn-tts/engine/1"})])
def test_kit_replaces_nothing_that_is_no_kit(tmp_path: Path, content: str | None) -> None:
    there = tmp_path / "mine"
    there.mkdir()
    (there / "letter.txt").write_text("dear", encoding="utf-8")
    if content is not None:
        (there / "probe.json").write_text(content, encoding="utf-8")
    with pytest.raises(UserInput, match=r"mine: stands there already, and is no probe kit; --output names another"):
        kit_of(tmp_path, output=str(there))
    assert (there / "letter.txt").read_text("utf-8") == "dear"


def test_kit_is_refused_when_a_file_or_the_engine_s_own_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UserInput, match=r"file: stands there already"):
        kit_of(tmp_path, output=str(tmp_path / "file"))
    with pytest.raises(UserInput, match="stands there already"):
        kit_of(tmp_path, output=str(tmp_path))
    made = kit_of(tmp_path).folder  # a kit as well, whose engine may be probed in its turn
    with pytest.raises(UserInput, match=r"net\.probe: holds the engine itself; --output names another"):
        write_kit(Request("probe", model=f"{made}/net.rknn", output=made), Heard())


def test_choice_of_operators_is_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match=r"--operators al: auto, all, none is expected\. Did you mean all\?"):
        kit_of(tmp_path, operators="al")


def test_earlier_kit_stays_when_the_next_fails(tmp_path: Path) -> None:
    kit_of(tmp_path)
    before = (tmp_path / "net.probe" / "probe.json").read_bytes()
    subject(tmp_path, ({"x": row(0, 0, 0, 0)},))
    with pytest.raises(UserInput, match="every output is zero"):
        write_kit(Request("probe", model=str(tmp_path / "net.rknn")), Heard())
    assert (tmp_path / "net.probe" / "probe.json").read_bytes() == before
    assert not list(tmp_path.glob(".partial*"))


def test_disk_that_is_full_is_told_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rknn_tts.probe.kit_files.KitFolder.finish", full)
    with pytest.raises(NotWritten, match=r"net\.probe: cannot be written \(No space left on device\)"):
        kit_of(tmp_path)
    assert not (tmp_path / "net.probe").exists()
