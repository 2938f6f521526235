from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from contracts.errors import UserInput
from converters.inflect.checkpoint import Kind, find_files, locate
from tests.converters.hubs import Hub, fetched, no_hub

SOME = b"some bytes"


def lay(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(SOME)
    return folder


@pytest.mark.parametrize(
    ("names", "given", "kind", "files"),
    [
        (("onnx/decode.onnx", "onnx/duration.onnx"), "", Kind.GRAPHS, ("onnx/decode.onnx", "onnx/duration.onnx")),
        (("decode.onnx", "duration.onnx"), "", Kind.GRAPHS, ("decode.onnx", "duration.onnx")),
        (
            ("onnx/decode.onnx", "onnx/duration.onnx", "config.json", "model.pth"),
            "",
            Kind.GRAPHS,
            ("onnx/decode.onnx", "onnx/duration.onnx", "config.json"),
        ),
        (
            ("onnx/decode.onnx", "onnx/duration.onnx", "config.json"),
            "onnx",
            Kind.GRAPHS,
            ("onnx/decode.onnx", "onnx/duration.onnx", "config.json"),
        ),
        (
            ("onnx/decode.onnx", "onnx/duration.onnx"),
            "onnx/decode.onnx",
            Kind.GRAPHS,
            ("onnx/decode.onnx", "onnx/duration.onnx"),
        ),
        (("decode.onnx", "duration.onnx"), "duration.onnx", Kind.GRAPHS, ("decode.onnx", "duration.onnx")),
        (("model.pth", "config.json"), "", Kind.WEIGHTS, ("model.pth", "config.json")),
        (("model.pth", "config.json"), "model.pth", Kind.WEIGHTS, ("model.pth", "config.json")),
        (("model.pth", "config.json", "onnx/decode.onnx"), "", Kind.WEIGHTS, ("model.pth", "config.json")),
        (("decoder_z.onnx",), "", Kind.SLICE, ("decoder_z.onnx",)),
        (("my-slice.onnx",), "my-slice.onnx", Kind.SLICE, ("my-slice.onnx",)),
    ],
)
def test_find_files_knows_a_release_by_its_files(
    tmp_path: Path, names: tuple[str, ...], given: str, kind: Kind, files: tuple[str, ...]
) -> None:
    folder = lay(tmp_path / "Inflect-Micro-v2", *names)
    found = find_files(folder / given)
    assert (found.kind, found.files) == (kind, tuple(folder / name for name in files))
    if kind is not Kind.SLICE:
        assert found.name == "Inflect-Micro-v2"


@pytest.mark.parametrize(
    ("names", "given", "told"),
    [
        ((), "nowhere", "nowhere: there is no such file or folder; a folder of Inflect v2 holds onnx/decode.onnx and"),
        (("other.txt",), "", "lacks its files; a folder of Inflect v2 holds"),
        (("onnx/decode.onnx",), "", "lacks duration.onnx beside decode.onnx"),
        (("onnx/duration.onnx",), "", "lacks decode.onnx beside duration.onnx"),
        (("decode.onnx",), "decode.onnx", "lacks duration.onnx beside decode.onnx"),
        (("model.pth",), "", "lacks config.json beside model.pth"),
        (("config.json",), "", "lacks model.pth beside config.json"),
        (("voice.txt",), "voice.txt", "is no checkpoint of Inflect v2; a folder"),
    ],
)
def test_find_files_names_what_is_missing(tmp_path: Path, names: tuple[str, ...], given: str, told: str) -> None:
    lay(tmp_path, *names)
    with pytest.raises(UserInput, match=re.escape(told)):
        find_files(tmp_path / given)


def test_locate_has_the_releases_name_and_a_digest_of_its_files(tmp_path: Path) -> None:
    folder = lay(tmp_path / "Inflect-Nano-v2", "onnx/decode.onnx", "onnx/duration.onnx", "config.json")
    made = locate(str(folder), no_hub)
    one = hashlib.sha256(SOME).hexdigest()
    told = "".join(f"{one}  {name}\n" for name in ("decode.onnx", "duration.onnx", "config.json"))
    assert made.source.name == "Inflect-Nano-v2.onnx"
    assert made.source.sha256 == hashlib.sha256(told.encode()).hexdigest()
    assert made.source.kind == "checkpoint"
    assert made.read == (folder / "onnx/decode.onnx", folder / "onnx/duration.onnx", folder / "config.json")
    assert made.note == ""


def test_locate_calls_a_slice_by_its_file(tmp_path: Path) -> None:
    lay(tmp_path, "decoder_z.onnx")
    made = locate(str(tmp_path / "decoder_z.onnx"), no_hub)
    assert (made.source.name, made.source.sha256) == ("decoder_z.onnx", hashlib.sha256(SOME).hexdigest())


def test_locate_tells_stand_ins_apart_and_calls_them_so() -> None:
    micro, nano = locate("random", no_hub), locate("random-nano", no_hub)
    assert (micro.source.kind, nano.source.kind) == ("random", "random")
    assert (micro.source.name, nano.source.name) == ("random", "random-nano")
    assert micro.source.sha256 != nano.source.sha256
    assert micro.read == nano.read == ()
    assert "Inflect-Micro-v2's sizes: a stand-in" in micro.note
    assert "Inflect-Nano-v2's sizes: a stand-in" in nano.note


GRAPHS = {"onnx/decode.onnx": SOME, "onnx/duration.onnx": SOME, "config.json": b"{}"}


@pytest.mark.parametrize(
    ("files", "got", "suffix"),
    [
        (GRAPHS, ["config.json", "onnx/decode.onnx", "onnx/duration.onnx"], ".onnx"),
        ({"decode.onnx": SOME, "duration.onnx": SOME}, ["decode.onnx", "duration.onnx"], ".onnx"),
        (
            {**GRAPHS, "model.pth": SOME, "onnx/other.onnx": SOME},
            ["config.json", "onnx/decode.onnx", "onnx/duration.onnx"],
            ".onnx",
        ),
        (
            {"config.json": b"{}", "model.pth": SOME, "README.md": SOME, "runtime/models.py": SOME},
            ["config.json", "model.pth"],
            ".pth",
        ),
    ],
)
def test_locate_fetches_the_graphs_of_a_repository_or_else_its_weights(
    tmp_path: Path, files: dict[str, bytes], got: list[str], suffix: str
) -> None:
    hub = Hub(tmp_path, files)
    made = locate("hf://owner/Inflect-Micro-v2@v1", hub)
    assert set(hub.asked) == {"hf://owner/Inflect-Micro-v2@v1"}
    assert fetched(made.path) == got
    assert made.source.name == f"Inflect-Micro-v2{suffix}"
    assert made.source.kind == "checkpoint"


@pytest.mark.parametrize("files", [{}, {"model.pth": SOME}, {"onnx/decode.onnx": SOME}, {"decoder_z.onnx": SOME}])
def test_locate_refuses_a_repository_of_another_model(tmp_path: Path, files: dict[str, bytes]) -> None:
    with pytest.raises(UserInput, match=r"^hf://owner/other: is no repository of Inflect v2; a folder of Inflect v2 "):
        locate("hf://owner/other", Hub(tmp_path, files))


def test_locate_asks_for_torch_only_where_graphs_are_traced_of_weights(tmp_path: Path) -> None:
    graphs = lay(tmp_path / "graphs", "onnx/decode.onnx", "onnx/duration.onnx", "config.json", "model.pth")
    weights = lay(tmp_path / "weights", "model.pth", "config.json")
    cut = lay(tmp_path / "cut", "decoder_z.onnx")
    needed = {given: locate(str(given), no_hub).extras for given in (graphs, weights, cut, "random", "random-nano")}
    assert needed == {graphs: set(), weights: {"torch"}, cut: set(), "random": {"torch"}, "random-nano": {"torch"}}
