"""The file of every layer: what is read of it, where it is looked for, and what is said where it cannot be used."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from contracts.manifest import Layers, Manifest
from contracts.serial import to_json
from logs.layer_table import Layer
from rknn_tts.layer_file import layers_of, read_layers, sums_of
from tests.cost.layers import PIPER_W93, layer
from tests.rknn_tts.samples import MANIFEST

FILE = "build-logs/net.layers.json"
LAYERS = (
    layer("InputOperator", target="CPU", rw_kb=8.0),
    layer("Conv", cycles=1000, rw_kb=100.0, name="Conv:c"),
    layer("Slice", target="CPU", rw_kb=40.0, name="Slice:s"),
)


def changed(one: Layer, **figures: Any) -> dict[str, Any]:
    return {**asdict(one), **figures}


def write(path: Path, data: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), "utf-8")
    return path


def manifest_of(file: str | None, **figures: Any) -> Manifest:
    """A manifest of `LAYERS`, but for `figures`, that names `file`."""
    return replace(MANIFEST, layers=replace(sums_of(LAYERS), file=file, **figures))


def looked_for(manifest: Manifest | None, folder: Path) -> tuple[Any, str]:
    """In the working directory `folder / "here"`, and from the manifest `folder / "made/engines/net.json"` upwards."""
    return layers_of(manifest, folder / "made" / "engines" / "net.json", folder / "here")


def test_layers_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert read_layers(write(tmp_path / "x.json", to_json(PIPER_W93))) == PIPER_W93


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "a list of layers was expected"),
        (3, "a list of layers was expected"),
        ([{}], "layer 0"),
        ([to_json(LAYERS[0]), changed(LAYERS[1], cycles="many")], "layer 1"),
    ],
)
def test_file_is_refused_when_it_holds_no_layers(tmp_path: Path, data: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_layers(write(tmp_path / "x.json", data))


@pytest.mark.parametrize("key", ["cycles", "cycles_ddr", "cycles_npu", "rw_kb"])
def test_file_is_refused_when_a_figure_is_that_of_no_build(tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError, match=r"layer 1: .* are no figures of a build"):
        read_layers(write(tmp_path / "x.json", [to_json(LAYERS[0]), changed(LAYERS[1], **{key: -1})]))


@pytest.mark.parametrize("text", ["", "[", '[{"id": 1}', "\x00"])
def test_file_is_refused_when_it_is_cut_off(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ValueError):  # noqa: PT011 - whatever the parser says
        read_layers(tmp_path / "x.json")


def test_sums_are_those_of_the_cost_model() -> None:
    # By hand: 1000 cycles at 1 GHz, 0.148 MB at 5 GB/s, 0.04 MB on the CPU at 5 ms a MB; inputs are no CPU layers.
    sums = sums_of(LAYERS)
    assert (sums.count, sums.cycles, sums.rw_kb, sums.file) == (3, 1000, 148.0, None)
    assert round(sums.modelled_ms, 6) == 0.2306
    assert [one.name for one in sums.cpu] == ["Slice:s"]


@pytest.mark.parametrize("place", ["here", "made", "made/engines", "."])
def test_layers_are_found_in_the_working_directory_and_above_the_manifest(tmp_path: Path, place: str) -> None:
    write(tmp_path / place / FILE, to_json(LAYERS))
    assert looked_for(manifest_of(FILE), tmp_path) == (LAYERS, "")


def test_layers_of_the_working_directory_come_first(tmp_path: Path) -> None:
    write(tmp_path / "here" / FILE, to_json(LAYERS))
    write(tmp_path / "made" / FILE, "nothing of the kind")
    assert looked_for(manifest_of(FILE), tmp_path) == (LAYERS, "")


@pytest.mark.parametrize("manifest", [None, replace(MANIFEST, layers=None)])
def test_nothing_is_said_when_there_is_nothing_to_find(tmp_path: Path, manifest: Manifest | None) -> None:
    assert looked_for(manifest, tmp_path) == ((), "")


def test_manifest_that_names_no_file_is_told(tmp_path: Path) -> None:
    assert looked_for(manifest_of(None), tmp_path) == (
        (),
        "The manifest names no layer table: only its sums are known.",
    )


@pytest.mark.parametrize("name", ["/etc/passwd", "../net.layers.json", "build-logs/../../net.layers.json"])
def test_file_that_lies_elsewhere_is_not_read(tmp_path: Path, name: str) -> None:
    write(tmp_path / "net.layers.json", to_json(LAYERS))
    layers, says = looked_for(manifest_of(name), tmp_path)
    assert layers == ()
    assert says == f"The layers are not read: {name} lies outside the folders of a build."


def test_file_that_is_gone_is_told_with_what_to_do(tmp_path: Path) -> None:
    layers, says = looked_for(manifest_of(FILE), tmp_path)
    assert layers == ()
    assert says.startswith(f"The layer table {FILE} is not at hand: only its sums are known.")
    assert says.endswith("build again there with --force.")


def test_file_that_cannot_be_read_is_told_with_the_reason(tmp_path: Path) -> None:
    path = write(tmp_path / "here" / FILE, {})
    assert looked_for(manifest_of(FILE), tmp_path) == (
        (),
        f"The layer table {path} cannot be read (a list of layers was expected).",
    )


@pytest.mark.parametrize("figures", [{"count": 4}, {"cycles": 1001}, {"rw_kb": 148.1}])
def test_file_of_another_build_is_told_and_not_used(tmp_path: Path, figures: dict[str, Any]) -> None:
    path = write(tmp_path / "here" / FILE, to_json(LAYERS))
    layers, says = looked_for(manifest_of(FILE, **figures), tmp_path)
    assert layers == ()
    assert says == f"The layer table {path} is of another build: only the manifest's sums are shown."


def test_traffic_may_differ_by_a_rounding(tmp_path: Path) -> None:
    """The manifest's sum went through JSON, and may be of another order."""
    write(tmp_path / "here" / FILE, to_json(LAYERS))
    assert looked_for(manifest_of(FILE, rw_kb=148.0 * (1 + 1e-12)), tmp_path) == (LAYERS, "")


def test_sums_name_no_file() -> None:
    assert sums_of(()) == Layers(0, 0, 0, 0.0, (), None)
