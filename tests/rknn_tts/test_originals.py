"""A stage that says what the unpatched original gives: the simulator is judged by that, from checkpoint or export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from contracts.errors import GateFailure, Refusal
from converters.onnx_file import read_onnx
from rknn_tts.carried import ORIGINALS_KEY, carried_feeds, carried_originals, feeds_from_npz
from rknn_tts.checkpoint_to_onnx import ORIGINALS_FILE, export_graph, open_conversions
from rknn_tts.graph_at_hand import twin_of
from rknn_tts.request import Request
from tests.gates.small_graphs import row
from tests.rknn_tts.sources import PROOF, doubling
from tests.rknn_tts.stand_in_converter import write_converter
from tests.rknn_tts.stand_in_stage import SHORT, Doubled, by_role, install, write_checkpoint
from tests.rknn_tts.workshop import Heard, Workshop, fresh_steps, new_workshop

REFERENCES = ({"y": row(3, 6, 9)},)
"""On 1, 2, 3, 4: three times as much, whose last value is padding. The graph gives twice as much."""

EXPORT = "engines/onnx/rk3588/mini/twin-net-short.onnx"


@pytest.fixture
def workshop(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    install(monkeypatch, Doubled([], {"short": {"references": REFERENCES}}).stage())
    made = new_workshop(tmp_path_factory)
    write_checkpoint(made.folder.parent)
    monkeypatch.setenv("RKNN_TTS_CONVERTER_PYTHON", str(made.folder.parent / "converter"))
    return made


def options(workshop: Workshop) -> dict[str, Any]:
    checkpoint = str(workshop.folder.parent / "mini.json")
    return {"family": "twin", "checkpoint": checkpoint, "target": "rk3588", "member": "short"}


def simulating(workshop: Workshop, factor: float) -> None:
    write_converter(workshop.folder.parent / "converter", by_role(0.0, factor))


@pytest.mark.parametrize("command", ["engine", "compile"])
def test_engine_is_written_when_the_simulator_gives_what_the_original_does(workshop: Workshop, command: str) -> None:
    if command == "compile":
        workshop.run("export", **options(workshop))
    simulating(workshop, 3.0)
    given = options(workshop) if command == "engine" else {"model": EXPORT, "target": "rk3588"}
    done = workshop.run(command, **given)
    assert done.files[0] == f"{SHORT}.rknn"
    verdict = next(verdict for verdict in done.verdicts if verdict.gate == "simulator")
    assert verdict.measured == np.inf
    assert "the unpatched original" in verdict.detail
    assert carried_originals(read_onnx(workshop.folder / f"{SHORT}.onnx"), "twin")[0]["y"].tolist() == [[3, 6, 9]]


@pytest.mark.parametrize("command", ["engine", "compile"])
def test_engine_is_not_written_when_the_simulator_gives_what_only_the_graph_does(
    workshop: Workshop, command: str
) -> None:
    if command == "compile":
        workshop.run("export", **options(workshop))
    simulating(workshop, 2.0)
    given = options(workshop) if command == "engine" else {"model": EXPORT, "target": "rk3588"}
    with pytest.raises(GateFailure, match=r"^twin-net-short\.rknn was not written: a gate failed \(simulator\)"):
        workshop.run(command, **given)
    assert not (workshop.folder / f"{SHORT}.rknn").exists()


def test_export_whose_originals_were_edited_is_refused(workshop: Workshop) -> None:
    workshop.run("export", **options(workshop))
    path = workshop.folder / EXPORT
    model = onnx.load(path)
    kept = [entry for entry in model.metadata_props if entry.key != ORIGINALS_KEY]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(Refusal, match=r"twin-net-short\.onnx: was changed after it was exported"):
        workshop.run("compile", model=EXPORT, target="rk3588")


def test_engine_is_judged_again_when_the_original_gives_something_else(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulating(workshop, 3.0)
    workshop.run("engine", **options(workshop))
    other = {"y": row(3, 6, 9.9)}
    install(monkeypatch, Doubled([], {"short": {"references": (other,)}}).stage())
    (workshop.folder.parent / "words.json").write_text("[]")  # belongs to the checkpoint, so that is exported again
    said = Heard()
    with pytest.raises(GateFailure, match="simulator"):
        workshop.run("engine", said, **options(workshop))
    assert not any(step.startswith("building") for step in said.steps)


@pytest.mark.parametrize(("references", "wanted"), [((), ()), (REFERENCES, ([[3, 6, 9]],))])
def test_export_folder_holds_what_the_original_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, references: Any, wanted: Any
) -> None:
    install(monkeypatch, Doubled([], {"short": {"references": references}}).stage())
    request = Request(command="export", family="twin", checkpoint=write_checkpoint(tmp_path), member="short")
    (conversion,) = open_conversions(request, None, Heard())
    folder = export_graph(conversion, fresh_steps()).folder
    found = feeds_from_npz((folder / ORIGINALS_FILE).read_bytes())
    assert tuple(outputs["y"].tolist() for outputs in found) == wanted


def test_source_that_says_no_originals_has_a_twin_that_carries_none(tmp_path: Path) -> None:
    made = doubling(tmp_path)
    assert feeds_from_npz(made.originals) == ()
    keys = {entry.key for entry in onnx.load_model_from_string(b"".join(twin_of(made, PROOF).chunks())).metadata_props}
    assert ORIGINALS_KEY not in keys


def test_feeds_of_an_export_with_originals_are_its_feeds_alone(workshop: Workshop) -> None:
    workshop.run("export", **options(workshop))
    (feed,) = carried_feeds(read_onnx(workshop.folder / EXPORT), "export")
    assert {name: array.tolist() for name, array in feed.items()} == {"x": [[1, 2, 3, 4]]}
