from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import UserInput
from farm.catalogue import Fault
from farm.plain_folder import engines_below, gather_folder
from tests.rknn_tts.built_engines import write_engine, write_set


def test_folder_gives_engines_by_where_they_stand(tmp_path: Path) -> None:
    engines = [
        write_engine(tmp_path / "rk3588" / "amy" / "wide", "one", "piper.decoder", source="amy.onnx"),
        write_engine(tmp_path, "two", "", source="folder/net.onnx"),
    ]
    write_set(tmp_path, "both", *engines)
    (tmp_path / "two.html").write_text("<!DOCTYPE html>")
    found, failures = gather_folder(tmp_path)
    assert [(e.path, e.voice, e.width, e.page, e.job, e.language) for e in found] == [
        ("rk3588/amy/wide/one.rknn", "amy/wide", "", None, None, None),
        ("two.rknn", "net", "", "two.html", None, None),
    ]
    assert failures == []


def test_page_of_several_engines_is_that_of_each(tmp_path: Path) -> None:
    write_engine(tmp_path / "rk3588", "one", "piper.decoder")
    (tmp_path / "rk3588" / "report.html").write_text("<!DOCTYPE html>")
    assert gather_folder(tmp_path)[0][0].page == "rk3588/report.html"


def test_engine_whose_bytes_are_not_the_manifests_is_a_failure(tmp_path: Path) -> None:
    write_engine(tmp_path / "a", "one", "piper.decoder").write_bytes(b"RKNN")
    engines, (failed,) = gather_folder(tmp_path)
    assert (engines, failed.fault, failed.path, failed.voice, failed.kind) == (
        [],
        Fault.DAMAGED,
        "a/one.rknn",
        "a",
        "engine",
    )
    assert "is not the engine that its manifest tells of" in failed.sentence


def test_engine_without_a_manifest_and_manifest_without_an_engine_are_failures(tmp_path: Path) -> None:
    write_engine(tmp_path, "one", "piper.decoder").with_suffix(".json").unlink()
    write_engine(tmp_path, "two", "piper.decoder").unlink()
    engines, failures = gather_folder(tmp_path)
    assert engines == []
    assert [failure.sentence.partition(": ")[0] for failure in failures] == ["one.json", "two.rknn"]


def test_manifest_of_another_engine_is_a_failure(tmp_path: Path) -> None:
    one, two = write_engine(tmp_path, "one", "piper.decoder"), write_engine(tmp_path, "two", "piper.decoder")
    one.with_suffix(".json").write_bytes(two.with_suffix(".json").read_bytes())
    engines, (failed,) = gather_folder(tmp_path)
    assert ([entry.path for entry in engines], failed.path) == (["two.rknn"], "one.rknn")
    assert "its manifest is of another engine (two.rknn)" in failed.sentence


def test_folder_without_engines_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text("{}")
    with pytest.raises(UserInput, match="there is no engine in this folder"):
        gather_folder(tmp_path)


def test_hidden_folders_are_left_out(tmp_path: Path) -> None:
    write_engine(tmp_path / ".farm" / "twice", "one", "piper.decoder")
    write_engine(tmp_path / "seen", "one", "piper.decoder")
    assert list(engines_below(tmp_path)) == ["seen/one.rknn"]
