"""Commands that fail: what they say, and that what was there before stays as it was."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import EXIT_FAILED, GateFailure, UserInput
from converters.onnx_file import read_onnx
from rknn_tts.carried import carried_contract, carried_feeds, carry
from tests.rknn_tts.workshop import ENGINE, LOG, Workshop
from tests.vits_writer.voice import write_voice


@pytest.mark.parametrize(("command", "output"), [("engine", "mini.rknn"), ("export", "mini.onnx")])
def test_command_leaves_the_checkpoint_alone_when_output_names_it(
    workshop: Workshop, command: str, output: str
) -> None:
    place = workshop.beside(f"output-on-input-{command}")
    path = write_voice(place.folder / "mini.onnx")
    before = {name: place.digest(name) for name in place.files()}
    target: dict[str, Any] = {"target": "rk3588"} if command == "engine" else {}
    with pytest.raises(UserInput, match=r"mini\.onnx: is an input of this command, and would be replaced"):
        place.run(command, family="piper", checkpoint=path.name, output=output, **target)
    assert {name: place.digest(name) for name in place.files()} == before


@pytest.mark.parametrize("command", ["engine", "export"])
def test_failing_gate_leaves_the_older_file_and_keeps_all_verdicts(
    workshop: Workshop, voice: str, command: str
) -> None:
    place = workshop.beside(f"failing-{command}")
    older = f"engines/rk3588/mini/piper-decoder-w9-c1.{'rknn' if command == 'engine' else 'onnx'}"
    if command == "export":
        older = older.replace("rk3588", "onnx")
    (place.folder / older).parent.mkdir(parents=True)
    (place.folder / older).write_bytes(b"an older one")
    options: dict[str, Any] = {"family": "piper", "checkpoint": voice, "window": 9, "context": 1}
    if command == "engine":
        options["target"] = "rk3588"
    with pytest.raises(GateFailure, match=r"fp32\.noise_300_frames\.worst_interior") as caught:
        place.run(command, **options)
    assert caught.value.exit_code == EXIT_FAILED
    assert (place.folder / older).read_bytes() == b"an older one"
    suffix = "-rk3588" if command == "engine" else ""
    kept = place.json(f"build-logs/mini-piper-decoder-w9-c1{suffix}.failed.json")
    statuses = {verdict["gate"]: verdict["status"] for verdict in kept["verdicts"]}
    assert statuses["fp32.noise_300_frames.worst_interior"] == "failed"
    assert statuses["fp32.cut"] == statuses["structure.operators"] == "passed"
    assert not any(name.endswith((".rknn", ".onnx", "w9-c1.json")) and name != older for name in place.files())


def _ask_for_more(exported: Path, path: Path, simulator_db: float) -> None:
    """Writes the exported ONNX to `path` with a higher threshold of the simulator in its contract."""
    model = read_onnx(exported)
    contract = carried_contract(model, "exported")
    assert contract is not None
    changed = dataclasses.replace(contract, thresholds={**contract.thresholds, "simulator": simulator_db})
    path.write_bytes(carry(exported.read_bytes(), changed, carried_feeds(model, "exported")))


def test_failing_simulator_leaves_the_older_engine_and_names_the_log(workshop: Workshop, exported: Workshop) -> None:
    place = workshop.beside("failing-simulator")
    name = "piper-decoder-w109.onnx"
    _ask_for_more(exported.folder / "engines/onnx/rk3588/mini" / name, place.folder / name, simulator_db=300.0)
    older = place.folder / f"{ENGINE}.rknn"
    older.parent.mkdir(parents=True)
    older.write_bytes(b"an older one")
    with pytest.raises(GateFailure, match=r"piper-decoder-w109\.rknn was not written: a gate failed \(simulator\)"):
        place.run("compile", model=name, target="rk3588")
    assert older.read_bytes() == b"an older one"
    assert place.files() == {name, f"{ENGINE}.rknn", f"{LOG}.log", f"{LOG}.failed.json"}
    kept = place.json(f"{LOG}.failed.json")
    assert kept["log"] == f"{LOG}.log"
    assert [v["gate"] for v in kept["verdicts"] if v["status"] == "failed"] == ["simulator"]


def test_export_removes_the_verdicts_of_an_earlier_failure(workshop: Workshop, voice: str) -> None:
    place = workshop.beside("export-after-failure")
    failed = place.folder / "build-logs/mini-piper-decoder-w109.failed.json"
    failed.parent.mkdir()
    failed.write_text("{}")
    place.run("export", family="piper", checkpoint=voice)
    assert not failed.exists()


@pytest.mark.parametrize(
    ("command", "options", "says"),
    [
        ("engine", {"target": "rk3588"}, "Which family? There are: piper"),
        ("engine", {"family": "piper"}, "Which SoC?"),
        ("engine", {"family": "piper", "target": "rk9999"}, "rk9999"),
        ("engine", {"family": "pipr", "target": "rk3588"}, "no family 'pipr'"),
        ("engine", {"family": "piper", "stage": "vocoder", "target": "rk3588"}, "no stage 'vocoder'"),
        ("engine", {"family": "piper", "target": "rk3588", "checkpoint": "none.onnx"}, "there is no such file"),
        ("engine", {"family": "piper", "target": "rk3588", "checkpoint": "."}, "is a folder"),
        ("engine", {"family": "piper", "target": "rk3588", "accept_regtask": ["nonsense"]}, "nonsense"),
        ("engine", {"family": "piper", "target": "rk3588", "output": "engine.onnx"}, "ending in .rknn"),
        ("export", {"family": "piper", "output": "voice.rknn"}, "ending in .onnx"),
        ("compile", {"target": "rk3588"}, "Which ONNX?"),
        ("compile", {"target": "rk3588", "model": "none.onnx"}, "there is no such file"),
        ("compile", {"model": "none.onnx"}, "Which SoC?"),
    ],
)
def test_command_is_refused_with_a_sentence_and_writes_nothing(
    workshop: Workshop, voice: str, command: str, options: dict[str, Any], says: str
) -> None:
    place = workshop.beside("refused")
    if options.get("family") == "piper" and "checkpoint" not in options:
        options = {**options, "checkpoint": voice}
    with pytest.raises(UserInput) as caught:
        place.run(command, **options)
    assert says in str(caught.value)
    assert place.files() == set()
