"""`compile MODEL ALSO...`: the exports of one set become all engines of that set, or none."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import onnx
import pytest

from contracts.errors import EXIT_FAILED, GateFailure, UserInput
from converters.onnx_file import read_onnx
from rknn_tts import onnx_to_engine
from rknn_tts.carried import carried_contract, carried_feeds, carried_originals, carry
from rknn_tts.commands import perform
from rknn_tts.deliver import deliver
from rknn_tts.report import Report
from rknn_tts.request import Request
from tests.gates.small_graphs import scale_proto
from tests.rknn_tts.stand_in_converter import write_converter
from tests.rknn_tts.stand_in_stage import (
    FULL,
    LOG_FULL,
    LOG_SHORT,
    SET,
    SHORT,
    Doubled,
    by_role,
    install,
    write_checkpoint,
)
from tests.rknn_tts.workshop import Heard, Workshop, new_workshop

EXPORTS = "engines/onnx/mini"
FULL_ONNX, SHORT_ONNX = f"{EXPORTS}/twin-net-full.onnx", f"{EXPORTS}/twin-net-short.onnx"
HOST = f"{EXPORTS}/twin-host.onnx"
FOR_RK3588 = "engines/onnx/rk3588/mini"
"""Exports with the target's own cuts stand there."""


@pytest.fixture
def workshop(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A folder that holds the exports of both engines, for no target in particular."""
    made = new_workshop(tmp_path_factory)
    install(monkeypatch, Doubled([], {}).stage())
    monkeypatch.setenv("RKNN_TTS_CONVERTER_PYTHON", str(made.folder.parent / "converter"))
    converter(made, full=2.0, short=2.0)
    export(made)
    return made


def converter(workshop: Workshop, full: float, short: float) -> None:
    write_converter(workshop.folder.parent / "converter", by_role(full, short))


def export(workshop: Workshop, **options: Any) -> None:
    """`export twin --checkpoint mini.json`."""
    workshop.run("export", family="twin", checkpoint=write_checkpoint(workshop.folder.parent), **options)


def another_checkpoint(path: Path) -> str:
    """Another checkpoint in `path`, of the same weights; that file."""
    path.write_text(json.dumps({"factor": 2.0, "name": "another"}), encoding="utf-8")
    return str(path)


def compile_both(workshop: Workshop, said: Heard | None = None, **options: Any) -> Any:
    """`compile twin-net-full.onnx twin-net-short.onnx --target rk3588`."""
    given = {"model": FULL_ONNX, "also": [SHORT_ONNX], "target": "rk3588", **options}
    return workshop.run("compile", said, **given)


def rewritten(path: Path, into: Path, **changes: Any) -> str:
    """The export in `path` with another contract, in the file `into`, its host half beside it; that file."""
    model = read_onnx(path)
    contract = carried_contract(model, str(path))
    assert contract is not None
    feeds, originals = carried_feeds(model, str(path)), carried_originals(model, str(path))
    into.write_bytes(carry(path.read_bytes(), dataclasses.replace(contract, **changes), feeds, originals))
    return str(into)


def written(workshop: Workshop) -> set[str]:
    """What stands in the folder beside the exports and build logs."""
    return {name for name in workshop.files() if not name.startswith(("engines/onnx/", "build-logs/"))}


def test_compile_of_a_set_writes_what_engine_writes(workshop: Workshop) -> None:
    whole = workshop.beside("whole")
    checkpoint = str(workshop.folder.parent / "mini.json")
    built = whole.run("engine", family="twin", checkpoint=checkpoint, target="rk3588")
    export(workshop, target="rk3588")
    names = [f"{FOR_RK3588}/twin-net-{role}.onnx" for role in ("full", "short")]
    done = workshop.run("compile", model=names[0], also=names[1:], target="rk3588")
    assert written(workshop) == {name for name in whole.files() if not name.startswith("build-logs/")}
    assert SET in written(workshop)
    assert {name: workshop.digest(name) for name in written(workshop)} == {
        name: whole.digest(name) for name in written(workshop)
    }
    for field in ("files", "manifest", "verdicts", "log", "aperture"):
        assert getattr(done, field) == getattr(built, field), field
    assert [one.files[0] for one in done.members] == [f"{FULL}.rknn", f"{SHORT}.rknn"]


def test_compile_of_a_set_takes_its_engines_in_the_order_given(workshop: Workshop) -> None:
    done = compile_both(workshop, model=SHORT_ONNX, also=[FULL_ONNX])
    assert workshop.json(SET)["members"] == ["twin-net-short.json", "twin-net-full.json"]
    assert done.files[0] == f"{SHORT}.rknn"


def test_compile_of_a_set_says_once_that_it_was_exported_for_no_target(workshop: Workshop) -> None:
    said = Heard()
    done = compile_both(workshop, said)
    told = [note for note in (*done.notes, *said.notes) if "for no target in particular" in note]
    assert len(told) == 1
    assert "export --target rk3588" in told[0]


def test_compile_of_a_set_says_of_which_engine_its_progress_is(workshop: Workshop) -> None:
    said = Heard()
    compile_both(workshop, said)
    heads = {step.partition(":")[0] for step in said.steps}
    assert {"building for rk3588 (full)", "building for rk3588 (short)"} <= heads


def test_compile_of_a_set_writes_nothing_when_a_gate_fails_on_the_second(workshop: Workshop) -> None:
    converter(workshop, full=2.0, short=2.5)
    with pytest.raises(GateFailure, match=r"^twin-net-short\.rknn was not written: .*\(simulator\)") as caught:
        compile_both(workshop)
    assert caught.value.exit_code == EXIT_FAILED
    assert written(workshop) == set()
    assert (workshop.folder / f"{LOG_SHORT}.failed.json").is_file()
    assert not (workshop.folder / f"{LOG_FULL}.failed.json").exists()
    statuses = {verdict.gate: verdict.status.value for verdict in caught.value.verdicts}
    assert (statuses["full.simulator"], statuses["short.simulator"]) == ("passed", "failed")


def test_compile_of_a_set_leaves_the_older_engines_when_a_gate_fails_on_the_second(workshop: Workshop) -> None:
    compile_both(workshop)
    before = {name: workshop.digest(name) for name in written(workshop)}
    converter(workshop, full=2.0, short=2.5)
    with pytest.raises(GateFailure, match=r"twin-net-short\.rknn was not written"):
        compile_both(workshop, force=True)
    assert {name: workshop.digest(name) for name in written(workshop)} == before


def refused(workshop: Workshop, monkeypatch: pytest.MonkeyPatch, **options: Any) -> str:
    """The sentence with which `compile` of both is refused, before anything is built or written."""
    monkeypatch.setattr(onnx_to_engine, "converter_python", lambda toolkit: pytest.fail("something is built"))
    before = workshop.files()
    with pytest.raises(UserInput) as caught:
        compile_both(workshop, **options)
    assert workshop.files() == before
    return str(caught.value)


@pytest.mark.parametrize("first", [True, False])
def test_compile_of_a_set_is_refused_when_one_was_not_exported(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    onnx.save(scale_proto(2.0), str(workshop.folder / "net.onnx"))
    names = ["net.onnx", FULL_ONNX] if first else [FULL_ONNX, "net.onnx"]
    assert refused(workshop, monkeypatch, model=names[0], also=names[1:]) == (
        "net.onnx: is no part of a set that `export` wrote, as a ladder's windows are; compile it alone."
    )


def test_compile_of_a_set_is_refused_when_one_is_an_engine_of_its_own(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritten(workshop.folder / SHORT_ONNX, workshop.folder / "alone.onnx", role=None)
    told = refused(workshop, monkeypatch, also=["alone.onnx"])
    assert told.startswith("alone.onnx: is no part of a set")


def test_compile_of_a_set_is_refused_when_one_is_of_another_voice(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = workshop.beside("other")
    other.run("export", family="twin", checkpoint=another_checkpoint(other.folder / "joe.json"))
    short = str(other.folder / "engines/onnx/joe/twin-net-short.onnx")
    assert refused(workshop, monkeypatch, also=[short]) == (
        f"{short}: is of twin net of joe.json, and {FULL_ONNX} of twin net of mini.json: compile them by two commands."
    )


def test_compile_of_a_set_is_refused_when_one_is_of_another_stage(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritten(workshop.folder / SHORT_ONNX, workshop.folder / "stage.onnx", stage="vocoder")
    told = refused(workshop, monkeypatch, also=["stage.onnx"])
    assert told.startswith("stage.onnx: is of twin vocoder of mini.json, and ")


def test_compile_of_a_set_is_refused_when_the_checkpoint_was_changed_between_the_exports(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = workshop.folder / "earlier.onnx"
    earlier.write_bytes((workshop.folder / SHORT_ONNX).read_bytes())
    workshop.run("export", family="twin", checkpoint=another_checkpoint(workshop.folder.parent / "mini.json"))
    told = refused(workshop, monkeypatch, also=[earlier.name])
    assert told == (
        f"{earlier.name}: is of another mini.json than {FULL_ONNX}, which was changed in between; export both again."
    )


@pytest.mark.parametrize("copied", [True, False])
def test_compile_of_a_set_is_refused_when_a_role_is_there_twice(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, copied: bool
) -> None:
    other = FULL_ONNX
    if copied:
        other = "copy.onnx"
        (workshop.folder / other).write_bytes((workshop.folder / FULL_ONNX).read_bytes())
    told = refused(workshop, monkeypatch, also=[SHORT_ONNX, other])
    assert told == f"{other}: is the set's full, as {FULL_ONNX} is; leave one out."


def test_compile_of_a_set_is_refused_when_output_names_one_file(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = refused(workshop, monkeypatch, output="out.rknn")
    assert told == "--output out.rknn: several files are written; name a folder."


def test_compile_of_a_set_is_refused_when_an_option_is_for_foreign_files(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "compile takes no --shape for it" in refused(workshop, monkeypatch, shape=["x:1,4"])


def test_compile_of_a_set_writes_into_the_folder_that_output_names(workshop: Workshop) -> None:
    compile_both(workshop, output="out")
    assert "out/twin-net.set.json" in written(workshop)
    assert {Path(name).parent.name for name in written(workshop)} == {"out"}


def test_compile_of_a_set_reads_all_its_files_under_make_too(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(workshop.folder)
    monkeypatch.setenv("RKNN_TTS_CACHE", str(workshop.cache))
    request = Request(command="compile", model=FULL_ONNX, also=[SHORT_ONNX], target="rk3588", json=True)
    report: Report = perform(request, Heard(), lambda option: option.variable)
    assert deliver(report) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["request"]["also"] == [SHORT_ONNX]
    assert [member["manifest"]["role"] for member in data["members"]] == ["full", "short"]
    assert "models" not in data
