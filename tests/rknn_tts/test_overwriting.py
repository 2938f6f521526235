"""No command replaces an input of its own, a file of the user's, or another engine."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from contracts.contract import Contract, HostHalf, Source, TensorSpec
from contracts.errors import UserInput
from contracts.files import sha256_of_bytes
from contracts.manifest import Manifest, manifest_text
from rknn_tts.carried import carry, feeds_to_npz
from rknn_tts.export_step import Proof
from rknn_tts.graph_at_hand import OnnxSource
from rknn_tts.overwriting import check_engine_places, check_export_places
from rknn_tts.places import engine_places, export_place
from tests.contracts.samples import MANIFEST
from tests.gates.small_graphs import row, scale_proto

GRAPH, HOST, STEM = scale_proto(2.0).SerializeToString(), b"the host half", "piper-decoder-w109"
FEEDS = ({"x": row(1, 2, 3, 4)},)
CONTRACT = Contract(
    "piper",
    "decoder",
    Source("voice.onnx", "ab" * 32, "checkpoint"),
    (TensorSpec("x", (1, 4)),),
    (TensorSpec("y", (1, 4)),),
    host=HostHalf("piper-host.onnx", sha256_of_bytes(HOST)),
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.fixture
def source(tmp_path: Path) -> OnnxSource:
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "model.onnx").write_bytes(GRAPH)
    (cache / "host.onnx").write_bytes(HOST)
    return OnnxSource(
        graph=cache / "model.onnx",
        stem=STEM,
        contract=CONTRACT,
        host=cache / "host.onnx",
        make_feeds=lambda: feeds_to_npz(FEEDS),
        prove=lambda: Proof((), (), ()),
        notes=(),
        inputs=(Path("voice.onnx"), Path("voice.onnx.json")),
    )


def check_engine(source: OnnxSource, output: str | None, target: str = "rk3588") -> None:
    places = engine_places(source.contract, source.stem, target, output)
    check_engine_places(source, target, places, output is not None)


def check_export(source: OnnxSource, output: str | None) -> None:
    check_export_places(source, export_place(source.contract, source.stem, None, output), output is not None)


@pytest.mark.parametrize("output", ["voice.rknn", "./voice.rknn", "../work/voice.rknn"])
def test_engine_is_refused_when_its_twin_would_replace_the_checkpoint(source: OnnxSource, output: str) -> None:
    Path("voice.onnx").write_bytes(b"the user's voice")
    with pytest.raises(UserInput, match=r"voice\.onnx: is an input of this command, and would be replaced"):
        check_engine(source, output)


def test_engine_is_refused_when_its_twin_would_replace_what_a_link_names(source: OnnxSource) -> None:
    Path("real.onnx").write_bytes(b"the user's voice")
    Path("voice.onnx").symlink_to("real.onnx")
    with pytest.raises(UserInput, match=r"real\.onnx: is an input"):
        check_engine(source, "real.rknn")


def test_engine_is_refused_when_its_manifest_would_replace_a_companion(source: OnnxSource) -> None:
    with pytest.raises(UserInput, match=r"voice\.onnx\.json: is an input"):
        check_engine(source, "voice.onnx.rknn")


def test_engine_is_refused_when_its_host_half_would_replace_the_checkpoint(source: OnnxSource) -> None:
    with pytest.raises(UserInput, match=r"piper-host\.onnx: is an input"):
        check_engine(dataclasses.replace(source, inputs=(Path("piper-host.onnx"),)), "a.rknn")


@pytest.mark.parametrize("output", ["voice.onnx", "piper-host.onnx"])
def test_export_is_refused_when_it_would_replace_the_checkpoint(source: OnnxSource, output: str) -> None:
    with pytest.raises(UserInput, match=r"\.onnx: (is an input|would be written twice)"):
        check_export(source, output)


def test_engine_is_refused_when_twin_and_host_half_have_one_name(source: OnnxSource) -> None:
    with pytest.raises(UserInput, match=r"piper-host\.onnx: would be written twice"):
        check_engine(source, "piper-host.rknn")


def test_names_that_no_file_system_takes_are_refused(source: OnnxSource) -> None:
    with pytest.raises(UserInput, match="a file's name has at most 255 bytes"):
        check_engine(source, "n" * 250 + ".rknn")


@pytest.mark.parametrize(("edited", "refused"), [(False, False), (True, True)])
def test_exported_onnx_may_be_compiled_in_its_own_folder_where_its_twin_is_the_same(
    source: OnnxSource, edited: bool, refused: bool
) -> None:
    exported = carry(GRAPH, CONTRACT, FEEDS)
    Path(f"{STEM}.onnx").write_bytes(exported + b"\x1a\x00" * edited)
    given = dataclasses.replace(source, inputs=(Path(f"{STEM}.onnx"),), exported=True)
    if refused:
        with pytest.raises(UserInput, match=r"piper-decoder-w109\.onnx: is an input"):
            check_engine(given, ".")
    else:
        check_engine(given, ".")


@pytest.mark.parametrize("name", ["a.onnx", "a.json"])
def test_engine_is_refused_when_a_file_of_the_users_has_a_name_that_fits(source: OnnxSource, name: str) -> None:
    Path(name).write_bytes(b"{}")
    with pytest.raises(UserInput, match=rf"{name}: is no file of rknn-tts, and would be replaced"):
        check_engine(source, "a.rknn")


def _built(place: str, **changes: Any) -> None:
    """What an earlier command left in `place`."""
    manifest: Manifest = dataclasses.replace(MANIFEST, source=CONTRACT.source, host=CONTRACT.host, **changes)
    path = Path(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"RKNN")
    path.with_suffix(".onnx").write_bytes(carry(GRAPH, CONTRACT, FEEDS))
    path.with_suffix(".json").write_text(manifest_text(manifest))
    path.with_name("piper-host.onnx").write_bytes(HOST)


@pytest.mark.parametrize("output", ["out", "out/piper-decoder-w109.rknn"])
def test_engine_is_replaced_by_the_same_stage_of_the_same_voice(source: OnnxSource, output: str) -> None:
    _built(f"out/{STEM}.rknn")
    check_engine(source, output)
    newer = dataclasses.replace(CONTRACT.source, sha256="cd" * 32)
    check_engine(dataclasses.replace(source, contract=dataclasses.replace(CONTRACT, source=newer)), output)


@pytest.mark.parametrize("output", ["out", "out/piper-decoder-w109.rknn"])
def test_engine_is_refused_in_the_place_of_another_target_or_voice(source: OnnxSource, output: str) -> None:
    _built(f"out/{STEM}.rknn")
    with pytest.raises(UserInput, match=r"piper-decoder-w109\.rknn: is an engine for rk3588, and would be replaced"):
        check_engine(source, output, target="rk3566")
    other = dataclasses.replace(CONTRACT, source=dataclasses.replace(CONTRACT.source, name="other.onnx"))
    with pytest.raises(UserInput, match=r"is an engine of voice\.onnx, and would be replaced"):
        check_engine(dataclasses.replace(source, contract=other), output)


def test_engine_replaces_what_it_finds_in_a_place_of_our_own_naming(source: OnnxSource) -> None:
    place = f"engines/rk3588/voice/{STEM}.rknn"
    _built(place, target="rk3566")
    Path(place).with_suffix(".json").write_text("spoilt")
    check_engine(source, None)


@pytest.mark.parametrize("ours", [False, True])
def test_host_half_of_another_voice_stays_and_ones_own_older_one_does_not(source: OnnxSource, ours: bool) -> None:
    _built("out/a.rknn")
    older = HostHalf("piper-host.onnx", sha256_of_bytes(b"an older half"))
    Path("out/piper-host.onnx").write_bytes(b"an older half")
    if ours:
        Path("out/a.json").write_text(manifest_text(dataclasses.replace(MANIFEST, source=CONTRACT.source, host=older)))
        Path("out/a.onnx").write_bytes(carry(GRAPH, dataclasses.replace(CONTRACT, host=older), FEEDS))
        check_engine(source, "out/a.rknn")
        check_export(source, "out/a.onnx")
        return
    for check, output in ((check_engine, "out/b.rknn"), (check_export, "out/b.onnx")):
        with pytest.raises(UserInput, match=r"piper-host\.onnx: is another host half than this one"):
            check(source, output)
