"""What a pattern stands for, and the command of each voice."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.contract import Source
from contracts.errors import UserInput
from converters.stages import Checkpoint
from rknn_tts.cli import run
from rknn_tts.many_voices import (
    Locate,
    Voice,
    check_many,
    find_voices,
    found_note,
    is_pattern,
    request_for,
    size_bytes,
    words_of,
)
from rknn_tts.outcome import Outcome
from rknn_tts.progress import Say
from rknn_tts.request import Request
from tests.rknn_tts.samples import OUTCOME


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def touch(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(name.encode())


def locate(text: str) -> Checkpoint:
    """A stage's whose voices are a file, or a folder of `left.pth` and `right.pth`, and go by the folder's name."""
    path = Path(text)
    folder = path if path.is_dir() else path.parent
    halves = (folder / "left.pth", folder / "right.pth")
    if path not in (folder, *halves):
        return Checkpoint(path, Source(path.name, "ab" * 32, "checkpoint"))
    if not all(half.is_file() for half in halves):
        raise UserInput(f"--checkpoint {path}: a half is missing.")
    return Checkpoint(path, Source(folder.name, "ab" * 32, "checkpoint"), files=halves, extras=frozenset({"torch"}))


def found_names(pattern: str, locate: Locate | None = None) -> list[str]:
    return [str(voice.path) for voice in find_voices(pattern, locate).voices]


@pytest.mark.parametrize(
    ("checkpoint", "expected"),
    [
        ("voices/*.onnx", True),
        ("voices/?.onnx", True),
        ("voices/[ab].onnx", True),
        ("voices/**", True),
        ("voices/a.onnx", False),
        ("a[1].onnx", False),  # a file is called so
        ("a*", False),  # and so is a folder
        ("a[2].onnx", True),
        ("random", False),
        ("hf://OWNER/*", False),
        (None, False),
    ],
)
def test_is_pattern_when_it_stands_for_several(checkpoint: str | None, expected: bool) -> None:
    touch("a[1].onnx", "a*/x")
    assert is_pattern(checkpoint) is expected


def test_find_voices_takes_checkpoints_only_and_counts_the_others() -> None:
    touch("v/b.onnx", "v/b.onnx.json", "v/a.onnx", "v/a.onnx.json", "v/k.pth", "v/README.md", "v/sub/c.onnx")
    found = find_voices("v/*", locate=None)
    assert found.voices == (
        Voice("a", Path("v/a.onnx")),
        Voice("b", Path("v/b.onnx")),
        Voice("k", Path("v/k.pth")),
    )
    assert (found.others, found.twins) == (4, 0)  # two JSONs, README, the folder
    assert found_note("v/*", found) == "v/*: 3 checkpoints, 4 other files left out."
    assert found_names("v/**/*.onnx") == ["v/a.onnx", "v/b.onnx", "v/sub/c.onnx"]
    assert found_names("v/[!a].onnx") == ["v/b.onnx"]


def test_find_voices_takes_folders_where_a_stage_does() -> None:
    touch("v/one/left.pth", "v/one/right.pth", "v/two/left.pth", "v/notes.txt")
    # Where all are folders, each is told by its own command what it lacks.
    assert found_names("v/*", locate) == ["v/one", "v/two"]
    assert found_names("v/on*/**", locate) == ["v/one/left.pth"]


def test_find_voices_takes_all_files_of_one_voice_once_and_calls_it_as_it_is_called_alone() -> None:
    touch("v/one/left.pth", "v/one/right.pth", "v/two/left.pth", "v/two/right.pth", "v/two/three.pth")
    found = find_voices("v/*/*", locate)
    assert found.voices == (
        Voice("one", Path("v/one/left.pth")),
        Voice("two", Path("v/two/left.pth")),
        Voice("three", Path("v/two/three.pth")),
    )
    assert (found.others, found.twins) == (0, 2)


def test_find_voices_leaves_out_folders_beside_voices_that_are_none() -> None:
    touch("v/a.onnx", "v/one/left.pth", "v/one/right.pth", "v/more/b.onnx", "v/more/c.onnx", "v/moved/x")
    found = find_voices("v/*", locate)
    assert [voice.name for voice in found.voices] == ["a", "one"]
    assert found.extras == {"torch"}
    assert not find_voices("v/*.onnx", locate).extras
    assert (found.others, found.folders[0]) == (0, "--checkpoint v/more: a half is missing.")
    assert found_note("v/*", found) == (
        "v/*: 2 checkpoints, 2 folders left out (--checkpoint v/more: a half is missing and so on)."
    )


def test_find_voices_knows_the_users_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch("home/v/a.onnx")
    monkeypatch.setenv("HOME", str(folder / "home"))
    assert found_names("~/v/*.onnx") == [str(folder / "home/v/a.onnx")]


def test_find_voices_keeps_a_file_in_a_folder_that_lets_nobody_look(monkeypatch: pytest.MonkeyPatch) -> None:
    touch("v/a.onnx", "v/b.onnx", "v/c.txt")
    for name in ("is_file", "is_symlink", "is_dir", "stat"):
        monkeypatch.setattr(Path, name, refusing(getattr(Path, name), "b.onnx"))
    assert found_names("v/*", lambda text: Checkpoint(Path(text), Source(text, "ab" * 32, "checkpoint"))) == [
        "v/a.onnx",
        "v/b.onnx",
    ]


def refusing(look: Callable[..., Any], name: str) -> Callable[..., Any]:
    """`look`, which is not let near `name`; root, who may run the tests, is let near everything."""

    def refuse(path: Path, **options: Any) -> Any:
        if path.name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return look(path, **options)

    return refuse


def test_find_voices_keeps_a_file_that_cannot_be_read_or_has_gone() -> None:
    touch("v/a.onnx")

    def unreadable(text: str) -> Checkpoint:
        Path(text).unlink()
        raise PermissionError(13, "Permission denied", text)

    assert found_names("v/*.onnx", unreadable) == ["v/a.onnx"]  # its own command tells


def test_find_voices_takes_each_file_once_by_its_own_name() -> None:
    touch("v/z.onnx", "v/y.onnx")
    Path("v/a.onnx").symlink_to("z.onnx")
    os.link("v/y.onnx", "v/yy.onnx")
    Path("v/gone.onnx").symlink_to("nowhere")
    found = find_voices("v/*.onnx", locate=None)
    assert [voice.path.name for voice in found.voices] == ["y.onnx", "z.onnx"]
    assert (found.others, found.twins) == (1, 2)
    assert found_note("p", found).endswith("1 other file left out, 2 further names of the same voices left out.")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("none/*.onnx", "--checkpoint none/*.onnx: there is no checkpoint: it matches nothing"),
        ("v/*.json", "--checkpoint v/*.json: there is no checkpoint: none of the 1 it matches is one"),
    ],
)
def test_find_voices_refuses_when_there_is_none(pattern: str, said: str) -> None:
    touch("v/a.onnx.json")
    with pytest.raises(UserInput) as refused:
        find_voices(pattern, locate=None)
    assert str(refused.value).startswith(said)


def test_find_voices_refuses_when_two_would_be_called_alike() -> None:
    touch("a/x.onnx", "b/x.onnx")
    with pytest.raises(UserInput) as refused:
        find_voices("*/x.onnx", locate=None)
    assert str(refused.value) == (
        "a/x.onnx and b/x.onnx would both go to a folder x; rename one, or build them by two commands with an --output "
        "each."
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"output": "out/one.rknn"},
            "--output out/one.rknn: each voice gets a folder of its own there; name a folder.",
        ),
        ({"output": "file"}, "--output file: each voice"),
        ({"sample": "file"}, "--sample file: each voice"),
        ({"output": "/proc/new"}, "/proc: cannot be written ("),
        ({"sample": "/proc/new"}, "/proc: cannot be written ("),
        ({"save_checkpoint": "x.pth"}, "--save-checkpoint names one file"),
    ],
)
def test_check_many_refuses_when_one_file_is_named(options: dict[str, str], said: str) -> None:
    touch("file")
    with pytest.raises(UserInput) as refused:
        check_many(Request("engine", **options))  # type: ignore[arg-type]
    assert str(refused.value).startswith(said)


def test_check_many_lets_folders_pass() -> None:
    Path("v1.0").mkdir()
    check_many(Request("engine", output="v1.0", sample="s.new"))
    check_many(Request("engine", output="new.d/"))
    check_many(Request("engine"))
    assert not Path("s.new").exists()


def test_request_for_gives_each_voice_its_own_folders() -> None:
    asked = Request(
        "engine", family="piper", checkpoint="v/*", output="out", sample="wav", jobs=3, junit="j.xml", memory_gb=4.0
    )
    made = request_for(asked, Voice("a.b", Path("v/a.b.onnx")))
    assert made == Request(
        "engine",
        family="piper",
        checkpoint="v/a.b.onnx",
        output="out/a.b/",
        sample="wav/a.b/",
        memory_gb=4.0,
        json=True,
    )


def test_words_of_mean_the_same_request_when_they_are_read_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    heard: list[Request] = []

    def take(request: Request, say: Say) -> Outcome:
        heard.append(request)
        return OUTCOME

    monkeypatch.setattr("rknn_tts.pipeline.engine", take)
    asked = Request(
        "engine",
        family="piper",
        target="rk3588",
        checkpoint="-odd name.onnx",
        window=93,
        decoder_mask=True,
        no_pass=["one", "two"],
        memory_gb=0.1,
        timeout_s=1e8,
        text="- a 'text'",
        json=True,
    )
    assert run(words_of(asked)) == 0
    assert heard == [asked]


def test_size_bytes_is_of_a_file_or_of_all_in_a_folder() -> None:
    touch("v/12", "v/w/1234")  # each holds its own name
    assert (size_bytes(Path("v/12")), size_bytes(Path("v")), size_bytes(Path("none"))) == (4, 12, 0)
