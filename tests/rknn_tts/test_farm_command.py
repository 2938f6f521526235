"""The whole command `farm`: two small voices and a poisoned one for two targets, with Snakemake and the toolkit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.cache import CACHE_FOLDER
from rknn_tts.cli import run
from tests.farm.tiny_matrix import TINY, TINY_MATRIX
from tests.vits_writer.voice import write_voice


def farm(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    """The command's exit code and its object."""
    code = run(["farm", str(folder / "m.toml"), "--cores=2", "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_farm_builds_all_but_what_is_poisoned_and_does_nothing_the_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "it's a farm"
    (folder / "voices").mkdir(parents=True)
    for number, name in enumerate(("a", "b[1] é")):
        write_voice(folder / f"voices/{name}.onnx", replace(TINY, seed=number))
    (folder / "voices/bad.onnx").write_text("no ONNX")
    (folder / "m.toml").write_text(TINY_MATRIX)
    monkeypatch.setenv(CACHE_FOLDER, str(tmp_path / "cache"))

    code, told = farm(folder, capsys)
    log = (folder / "out/.farm/snakemake.log").read_text()
    assert code == 2, log
    engines = {(entry["voice"], entry["target"]) for entry in told["catalogue"]["engines"]}
    assert engines == {(voice, target) for voice in ("a", "b[1] é") for target in ("rk3588", "rk3566")}
    assert all((folder / "out" / entry["path"]).is_file() for entry in told["catalogue"]["engines"])
    assert {failure["voice"] for failure in told["catalogue"]["failures"]} == {"bad"}
    causes = [failure for failure in told["catalogue"]["failures"] if failure["fault"] != "waiting"]
    assert [cause["kind"] for cause in causes] == ["export"]
    assert "bad.onnx: is not an ONNX model" in causes[0]["sentence"]
    assert json.loads((folder / "out/catalogue.json").read_text()) == told["catalogue"]

    (folder / "voices/bad.onnx").unlink()
    before = {path: path.stat().st_mtime_ns for path in (folder / "out").rglob("*") if path.is_file()}
    code, told = farm(folder, capsys)
    assert code == 0
    assert [(kind["kind"], kind["jobs"], kind["at_hand"]) for kind in told["farm"]["kinds"]] == [
        ("export", 2, 2),
        ("compile", 4, 4),
    ]
    assert told["changes"]["mended"] == []
    after = {path: path.stat().st_mtime_ns for path in (folder / "out").rglob("*") if path.is_file()}
    changed = {path.name for path in before if after.get(path) != before[path]}
    assert changed <= {"catalogue.json", "catalogue.html", "plan.json", "digests.json", "lock"}
