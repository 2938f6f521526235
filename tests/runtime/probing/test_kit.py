from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.probing.arrays import npy_bytes
from rknn_tts_runtime.probing.kit import KIT_FILE, Kit
from rknn_tts_runtime.probing.kit_reading import open_kit

from contracts.files import sha256_of
from tests.runtime.probing.kits import DOUBLED, digests_of, replace_array, write_engine, write_kit, write_kit_file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kit"


@pytest.fixture
def kit(folder: Path) -> Kit:
    return write_kit(folder)


def test_kit_is_read_as_it_was_written(folder: Path, kit: Kit) -> None:
    found = open_kit(folder)
    assert found.kit == kit
    assert found.sha256 == sha256_of(folder / KIT_FILE)
    assert found.manifests["field"].engine == folder / "part.rknn"
    np.testing.assert_array_equal(found.array("y0.npy"), DOUBLED)


def test_keys_of_a_newer_kit_are_left_alone(folder: Path, kit: Kit) -> None:
    changed(folder, lambda data: data["cases"][0].update(newer=1))
    assert open_kit(folder).kit == kit


def test_kit_without_twins_can_be_read(folder: Path, kit: Kit) -> None:
    for twin in folder.glob("*.onnx"):
        twin.unlink()
    write_kit_file(folder, kit)
    assert "net.onnx" not in open_kit(folder).kit.files


def changed(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    data = json.loads((folder / KIT_FILE).read_text(encoding="utf-8"))
    change(data)
    (folder / KIT_FILE).write_text(json.dumps(data), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(schema="rknn-tts/probe-kit/2"), "schema is 'rknn-tts/probe-kit/2'"),
        (lambda d: d.update(cases=[]), r"kit.cases is \[\], expected a list of 1"),
        (lambda d: d["cases"].append(d["cases"][0]), "expected each name once"),
        (lambda d: d["cases"][0].update(name="../net"), r"cases\[0\].name is '../net'"),
        (lambda d: d["cases"][0].update(kind="magic"), r"cases\[0\].kind is 'magic'"),
        (lambda d: d["cases"][0].update(what="a\x1b[2J"), r"cases\[0\].what"),
        (lambda d: d["cases"][0].update(proves=[3]), r"cases\[0\].proves is 3"),
        (lambda d: d["cases"][0].update(manifest="gone.json"), "one of the kit's files"),
        (lambda d: d["cases"][0].update(runs=[7]), "expected an object"),
        (lambda d: d["cases"][0]["runs"][0].update(inputs=[]), "inputs is"),
        (lambda d: d["cases"][0]["runs"][0]["inputs"][0].update(name="z"), r"gives \['z'\], the engine takes \['x'\]"),
        (lambda d: d["cases"][0]["runs"][0]["outputs"][0].update(name="z"), r"expects \['z'\], the engine gives"),
        (lambda d: d["cases"][0]["runs"][0]["outputs"].append(d["cases"][0]["runs"][0]["outputs"][0]), "expects"),
        (lambda d: d["cases"][0]["runs"][0]["inputs"].append(d["cases"][0]["runs"][0]["inputs"][0]), "gives"),
        (lambda d: d["cases"][0]["runs"][0]["outputs"][0].update(bound_db="40"), "bound_db is '40'"),
        (lambda d: d["cases"][0]["runs"][0]["outputs"][0].update(bound_db=True), "bound_db is True"),
        (lambda d: d["cases"][0]["runs"][0]["outputs"][0].update(bound_db=1e9), "bound_db"),
        (lambda d: d["files"].update({"../../etc/passwd": "0" * 64}), "no path"),
        (lambda d: d["files"].update({"/etc/passwd": "0" * 64}), "no path"),
        (lambda d: d["files"].update({".hidden": "0" * 64}), "no path"),
        (lambda d: d["files"].update({"net.rknn": "f"}), "64 hex digits"),
        (lambda d: d["files"].update({"gone.bin": "0" * 64}), "gone.bin: is missing"),
        (lambda d: d.update(files=[]), "files is"),
        (lambda d: d.update(subject=None), "subject is None"),
        (lambda d: d["subject"].update(engine_sha256="0" * 64), "kit's subject"),
        (lambda d: d["subject"].update(engine_file="part.rknn"), "not the file of that digest"),
        (lambda d: d["cases"][0].update(manifest="part.json"), "is of part.rknn, and the kit's subject is net.rknn"),
    ],
)
def test_kit_that_is_none_is_refused_by_name(folder: Path, kit: Kit, change: Any, said: str) -> None:
    changed(folder, change)
    with pytest.raises(BadInput, match=said):
        open_kit(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, '{"schema": NaN}', "\udcff"])
def test_file_that_is_no_kit_is_refused(folder: Path, kit: Kit, text: str) -> None:
    (folder / KIT_FILE).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadInput, match=r"probe\.json"):
        open_kit(folder)


def test_folder_without_a_kit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"is no probe kit, there is no probe\.json"):
        open_kit(tmp_path)


def test_huge_kit_file_is_refused_unread(folder: Path, kit: Kit) -> None:
    with (folder / KIT_FILE).open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(BadInput, match="too many for a kit"):
        open_kit(folder)


@pytest.mark.parametrize("name", ["net.rknn", "net.onnx", "net.json", "x0.npy"])
def test_damaged_file_is_refused_by_name(folder: Path, kit: Kit, name: str) -> None:
    (folder / name).write_bytes((folder / name).read_bytes() + b" ")
    with pytest.raises(BadInput, match=rf"{name}: is damaged"):
        open_kit(folder)


def test_missing_file_is_refused_by_name(folder: Path, kit: Kit) -> None:
    (folder / "y1.npy").unlink()
    with pytest.raises(BadInput, match=r"y1\.npy: is missing"):
        open_kit(folder)


def test_link_out_of_the_folder_is_refused(folder: Path, kit: Kit, tmp_path: Path) -> None:
    (folder / "y1.npy").replace(tmp_path / "outside.npy")
    (folder / "y1.npy").symlink_to(tmp_path / "outside.npy")
    with pytest.raises(BadInput, match=r"y1\.npy: is missing, or no plain file"):
        open_kit(folder)


def test_pipe_is_refused_unread(folder: Path, kit: Kit) -> None:
    (folder / "y1.npy").unlink()
    os.mkfifo(folder / "y1.npy")
    with pytest.raises(BadInput, match="no plain file"):
        open_kit(folder)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((1, 5), np.float32), r"holds float32 \[1, 5\], and x is float32 \[1, 4\]"),
        (np.zeros((1, 4), np.int64), r"holds int64 \[1, 4\], and x is float32"),
    ],
)
def test_array_of_another_shape_or_kind_is_refused(folder: Path, kit: Kit, array: Any, said: str) -> None:
    replace_array(folder, "x0.npy", array, kit)
    with pytest.raises(BadInput, match=said):
        open_kit(folder)


def test_engine_of_another_digest_than_its_manifests_is_refused(folder: Path, kit: Kit) -> None:
    (folder / "part.rknn").write_bytes(b"RKNN another")
    write_kit_file(folder, kit)
    with pytest.raises(BadInput, match=r"part\.rknn is not the engine of its manifest"):
        open_kit(folder)


def test_manifest_that_leaves_the_folder_is_refused(folder: Path, kit: Kit) -> None:
    data = json.loads((folder / "part.json").read_text(encoding="utf-8"))
    data["engine"]["file"] = "../part.rknn"
    (folder / "part.json").write_text(json.dumps(data), encoding="utf-8")
    write_kit_file(folder, kit)
    with pytest.raises(BadInput, match=r"engine\.file"):
        open_kit(folder)


def test_twin_that_no_digest_tells_of_is_refused(folder: Path, kit: Kit) -> None:
    changed(folder, lambda data: data["files"].pop("part.onnx"))
    with pytest.raises(BadInput, match=r"part\.onnx is in the folder and not among the kit's files"):
        open_kit(folder)


def test_case_may_have_an_engine_of_other_tensors(folder: Path, kit: Kit) -> None:
    write_engine(folder, "third", b"RKNN third")
    case = dataclasses.replace(kit.cases[1], name="third", kind="operator", manifest="third.json")
    write_kit_file(folder, kit, cases=(*kit.cases, case))
    assert set(open_kit(folder).manifests) == {"net", "field", "third"}
    assert digests_of(folder).keys() == open_kit(folder).kit.files.keys()


def test_array_files_are_plain_npy(folder: Path, kit: Kit) -> None:
    assert (folder / "y0.npy").read_bytes() == npy_bytes(DOUBLED)
