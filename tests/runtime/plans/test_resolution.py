"""Where names of a plan may lead."""

from __future__ import annotations

from pathlib import Path

import pytest
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.plans.resolution import model_folder, resolve_artifact

WHERE = "plan.json: piper_tts.exec_plan: decoder: artifacts.main"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder, with a secret beside it."""
    (tmp_path / "secret.rknn").write_bytes(b"RKNN")
    made = tmp_path / "model"
    (made / "more").mkdir(parents=True)
    for name in ("a.rknn", "b.rknn", "more/c.rknn", "a,b.rknn"):
        (made / name).write_bytes(b"RKNN")
    return made


def resolved(text: str, folder: Path, ladder: bool = True) -> list[str]:
    return [str(file.relative_to(folder)) for file in resolve_artifact(text, ladder, folder, WHERE)]


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("a.rknn", ["a.rknn"]),
        ("more/c.rknn", ["more/c.rknn"]),
        ("more/../a.rknn", ["a.rknn"]),
        ("./a.rknn", ["a.rknn"]),
        ("b.rknn,a.rknn", ["b.rknn", "a.rknn"]),
        (" b.rknn ,  a.rknn ", ["b.rknn", "a.rknn"]),
    ],
)
def test_names_are_found_under_the_folder(folder: Path, text: str, files: list[str]) -> None:
    assert resolved(text, folder) == files


def test_commas_part_names_when_the_role_is_a_ladder_and_only_then(folder: Path) -> None:
    assert resolved("a,b.rknn", folder, ladder=False) == ["a,b.rknn"]
    with pytest.raises(BadInput, match="names 'a', and there is no file"):
        resolved("a,b.rknn", folder)
    with pytest.raises(BadInput, match="takes one file: commas part no names here"):
        resolved("a.rknn,b.rknn", folder, ladder=False)


def test_absolute_paths_are_taken_as_they_are_given(folder: Path) -> None:
    outside = folder.parent / "secret.rknn"
    assert resolve_artifact(str(outside), False, folder, WHERE) == (outside,)
    linked = folder.parent / "link.rknn"
    linked.symlink_to(outside)
    assert resolve_artifact(f"{linked},a.rknn", True, folder, WHERE) == (linked, folder / "a.rknn")
    with pytest.raises(BadInput, match=r"there is no file /nowhere/x\.rknn"):
        resolve_artifact("/nowhere/x.rknn", False, folder, WHERE)


@pytest.mark.parametrize("name", ["../secret.rknn", "more/../../secret.rknn", "..", "link.rknn", "linked/secret.rknn"])
def test_a_name_is_refused_when_it_leads_out_of_the_folder(folder: Path, name: str) -> None:
    (folder / "link.rknn").symlink_to(folder.parent / "secret.rknn")
    (folder / "linked").symlink_to(folder.parent)
    with pytest.raises(BadInput, match=r"leads out of .*by its absolute path") as caught:
        resolved(name, folder)
    assert str(caught.value).startswith(f"{WHERE} names {name!r}")


def test_links_within_the_folder_are_followed(folder: Path) -> None:
    (folder / "link.rknn").symlink_to("more/c.rknn")
    assert resolved("link.rknn", folder) == ["more/c.rknn"]


def test_the_folder_itself_may_be_a_link(folder: Path) -> None:
    link = folder.parent / "current"
    link.symlink_to(folder)
    assert resolve_artifact("a.rknn", False, link, WHERE) == (folder / "a.rknn",)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "has an empty name"),
        (" , ", "has an empty name in ' , '; name a file, or several."),
        ("a.rknn,,b.rknn", "has an empty name"),
        ("a.rknn,./a.rknn", "twice"),
        ("gone.rknn", "there is no file"),
        ("more", "is no file but something else"),
        (".", "is no file but something else"),
        ("a\0b", "is no file's name"),
        ("\ud800", "is no file's name"),
        ("/\ud800", "is no file's name"),
        ("/" + "x" * 5000, "names '/xxx"),
        ("x" * 5000, "names 'xxx"),
        ("loop", "names 'loop'"),
    ],
)
def test_a_name_is_refused_when_it_is_no_file(folder: Path, name: str, words: str) -> None:
    (folder / "loop").symlink_to("loop")
    with pytest.raises(BadInput) as caught:
        resolved(name, folder)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600


def test_model_is_a_folder_or_a_file_in_it_or_the_plans_own(folder: Path) -> None:
    plan = folder.parent / "plan.json"
    assert model_folder(plan, None) == folder.parent
    assert model_folder(plan, folder) == model_folder(plan, folder / "a.rknn") == folder
    with pytest.raises(BadInput, match="gone: there is no such model"):
        model_folder(plan, folder / "gone")
    with pytest.raises(BadInput, match=r"--model a+: cannot be looked at \(File name too long\)"):
        model_folder(plan, Path("a" * 256))
