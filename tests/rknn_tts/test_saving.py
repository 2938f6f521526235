"""`export --save-checkpoint`: the checkpoint appears with the exports, or none does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contracts.errors import GateFailure, NotWritten, UserInput
from converters.stages import Checkpoint, Equality, Evidence, SavedCheckpoint, StageOptions
from rknn_tts.outcome import Outcome
from tests.rknn_tts.stand_in_stage import Doubled, doubled, feed, install, write_checkpoint
from tests.rknn_tts.workshop import Heard, Workshop, new_workshop
from tests.vits_writer.voice import write_voice

EXPORTS = {f"engines/onnx/mini/twin-{name}.onnx" for name in ("net-full", "net-short", "host")}


def save(checkpoint: Checkpoint, options: StageOptions, place: Path) -> SavedCheckpoint:
    files = ((place, checkpoint.path.read_bytes()), (place.with_name("words.json"), b"[]"))
    return SavedCheckpoint(files, ("a note of what was saved",))


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Doubled:
    made = Doubled([], {})
    install(monkeypatch, made.stage(save=save))
    return made


@pytest.fixture
def workshop(tmp_path_factory: pytest.TempPathFactory, stage: Doubled) -> Workshop:
    made = new_workshop(tmp_path_factory)
    write_checkpoint(made.folder.parent)
    return made


def export(workshop: Workshop, place: str, said: Heard | None = None, **options: Any) -> Outcome:
    checkpoint = str(workshop.folder.parent / "mini.json")
    return workshop.run("export", said, family="twin", checkpoint=checkpoint, save_checkpoint=place, **options)


def test_checkpoint_is_saved_with_the_exports_and_told_of(workshop: Workshop) -> None:
    said = Heard()
    done = export(workshop, "deep/saved.json", said)
    saved = {"deep/saved.json", "deep/words.json"}
    assert workshop.files() == EXPORTS | saved
    assert set(done.files) == EXPORTS | saved
    assert done.notes == ("a note", "a note of what was saved")
    assert "reading mini.json to save it" in said.steps
    read = (workshop.folder.parent / "mini.json").read_bytes()
    assert (workshop.folder / "deep/saved.json").read_bytes() == read


def test_checkpoint_is_saved_again_when_every_step_is_at_hand(workshop: Workshop) -> None:
    export(workshop, "saved.json")
    (workshop.folder / "saved.json").unlink()
    assert "export" in export(workshop, "saved.json").reused
    assert (workshop.folder / "saved.json").is_file()


def test_checkpoint_is_not_saved_when_a_gate_fails(workshop: Workshop, stage: Doubled) -> None:
    lower = Evidence((Equality("fp32.cut", doubled(feed(4)), feed(4), 120.0, ""),))
    stage.changes["short"] = {"evidence": lambda: lower}
    with pytest.raises(GateFailure):
        export(workshop, "saved.json")
    assert workshop.files() == {"build-logs/mini-twin-net-short.failed.json"}


def test_checkpoint_and_exports_are_not_written_when_one_cannot_be(workshop: Workshop) -> None:
    (workshop.folder / "words.json").mkdir()
    with pytest.raises(NotWritten, match=r"words\.json: cannot be written .*and so does --save-checkpoint"):
        export(workshop, "saved.json")
    assert workshop.files() == set()


@pytest.mark.parametrize("place", ["../mini.json", "{checkpoint}", "link.json"])
def test_checkpoint_is_not_saved_over_the_one_that_is_read(workshop: Workshop, place: str) -> None:
    (workshop.folder / "link.json").symlink_to("../mini.json")
    named = place.format(checkpoint=workshop.folder.parent / "mini.json")
    with pytest.raises(UserInput, match=r"is an input of this command, and would be replaced; --save-checkpoint names"):
        export(workshop, named)


def test_checkpoint_is_not_saved_when_what_goes_beside_it_would_replace_an_input(workshop: Workshop) -> None:
    (workshop.folder.parent / "words.json").write_text("the user's")
    with pytest.raises(UserInput, match=r"words\.json: is an input of this command"):
        export(workshop, "../saved.json")
    assert (workshop.folder.parent / "words.json").read_text() == "the user's"


def test_checkpoint_is_refused_before_anything_is_opened_when_its_folder_cannot_be(
    workshop: Workshop, stage: Doubled
) -> None:
    (workshop.folder / "file").write_text("")
    with pytest.raises(UserInput, match=r"file: cannot be written .*; --save-checkpoint names another place"):
        export(workshop, "file/saved.json")
    assert stage.opened == []


@pytest.mark.parametrize("place", ["a\nb.json", "n" * 201 + ".json", ".."])
def test_checkpoint_is_refused_when_no_command_could_read_its_name(workshop: Workshop, place: str) -> None:
    with pytest.raises(UserInput, match=r"(?s)--save-checkpoint .*rename it"):
        export(workshop, place)


def test_stage_without_it_has_no_such_option(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    voice = str(write_voice(tmp_path / "voice.onnx"))
    with pytest.raises(UserInput, match=r"^piper decoder has no option --save-checkpoint\.$"):
        new_workshop(tmp_path_factory).run("export", family="piper", checkpoint=voice, save_checkpoint="x.pth")
