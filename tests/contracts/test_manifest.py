"""The manifest has the design's keys under their exact names, and survives its file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contracts.contract import Cache, CacheSlice
from contracts.errors import UserInput
from contracts.manifest import Manifest, SetManifest, manifest_text, read_manifest
from tests.contracts.samples import MANIFEST, STEP

# The key list of the design, "Manifest, version 1": more may be added, none renamed.
DESIGN_KEYS: dict[str, set[str] | None] = {
    "schema": None,
    "family": None,
    "stage": None,
    "target": None,
    "toolkit": {"name", "version"},
    "source": {"name", "sha256", "kind"},
    "onnx": {"file", "sha256", "opset", "nodes"},
    "host": {"file", "sha256"},
    "engine": {"file", "sha256", "bytes"},
    "inputs": {"name", "shape", "dtype"},
    "outputs": {"name", "shape", "dtype"},
    "window": {"frames", "emitted", "left", "right", "hop", "sample_rate"},
    "cache": {"numel", "layout"},
    "passes": {"name", "hits", "exact", "snr_db"},
    "verdicts": {"gate", "measured", "threshold", "unit", "status", "detail"},
    "measurements": {"name", "measured", "unit", "reason"},
    "layers": {"count", "cycles", "rw_kb", "modelled_ms", "cpu", "file"},
    "memory": {"internal_kb", "weight_kb"},
    "log": {"regtask", "unknown_target", "fallback"},
    "board": None,
}
DESIGN_ITEMS = {
    ("cache", "layout"): {"name", "offset", "shape"},
    ("layers", "cpu"): {"op", "name", "rw_kb"},
    ("log", "regtask"): {"target", "offset", "shift", "limit", "max_value", "count"},
}


def written() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(manifest_text(MANIFEST))
    return data


@pytest.mark.parametrize(("key", "inside"), DESIGN_KEYS.items())
def test_manifest_text_has_the_design_key_when_written(key: str, inside: set[str] | None) -> None:
    value = written()[key]
    if inside is not None:
        for item in value if isinstance(value, list) else [value]:
            assert inside <= set(item)


@pytest.mark.parametrize(("place", "keys"), DESIGN_ITEMS.items())
def test_manifest_text_has_the_design_keys_of_list_items_when_written(place: tuple[str, str], keys: set[str]) -> None:
    items = written()[place[0]][place[1]]
    assert items
    assert all(keys <= set(item) for item in items)


def test_manifest_text_starts_with_its_schema_when_written() -> None:
    assert next(iter(written())) == "schema"
    assert written()["schema"] == "rknn-tts/engine/1"
    assert written()["verdicts"][1]["measured"] == "inf"
    assert [verdict["status"] for verdict in written()["verdicts"]] == ["passed", "passed", "failed", "unproven"]


def test_manifest_text_names_members_when_it_is_a_set() -> None:
    data = json.loads(manifest_text(SetManifest(("a.json", "b.json"))))
    assert data == {
        "schema": "rknn-tts/set/1",
        "members": ["a.json", "b.json"],
        "roles": {},
        "cache": None,
        "aperture": None,
    }


def test_manifest_text_of_a_set_tells_roles_and_the_cache_that_they_share() -> None:
    made = SetManifest(("a.json",), {"main": "a.rknn"}, Cache(6, (CacheSlice("keys", 0, (2, 3)),)))
    data = json.loads(manifest_text(made))
    assert data["roles"] == {"main": "a.rknn"}
    assert data["cache"] == {"numel": 6, "layout": [{"name": "keys", "offset": 0, "shape": [2, 3]}]}


BARE = replace(MANIFEST, family=None, stage=None, layers=None, memory=None, host=None, window=None, board=None)


@pytest.mark.parametrize("manifest", [MANIFEST, BARE, replace(BARE, step=STEP)])
def test_read_manifest_gives_back_the_same_when_written(manifest: Manifest, tmp_path: Path) -> None:
    path = tmp_path / "engine.json"
    path.write_text(manifest_text(manifest), encoding="utf-8")
    assert read_manifest(path) == manifest


def test_read_manifest_takes_a_newer_file_when_keys_were_added(tmp_path: Path) -> None:
    path = tmp_path / "engine.json"
    path.write_text(json.dumps({**written(), "later": {"a": 1}}), encoding="utf-8")
    assert read_manifest(path) == MANIFEST


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[]", "its schema is None"),
        ("{}", "its schema is None, expected 'rknn-tts/engine/1'"),
        ('{"schema": "rknn-tts/set/1", "members": []}', "its schema is 'rknn-tts/set/1'"),
        ('{"schema": "rknn-tts/engine/1"}', "the key 'family' is missing"),
        ("\ufeff\x00", "is not JSON"),
    ],
)
def test_read_manifest_names_file_and_fault_when_it_is_no_manifest(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "engine.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserInput) as caught:
        read_manifest(path)
    assert str(path) in str(caught.value)
    assert says in str(caught.value)


def test_read_manifest_names_the_place_when_a_value_is_mistyped(tmp_path: Path) -> None:
    path = tmp_path / "engine.json"
    path.write_text(json.dumps({**written(), "engine": {**written()["engine"], "bytes": "many"}}), encoding="utf-8")
    with pytest.raises(UserInput, match=r"manifest\.engine\.bytes: int was expected, not 'many'"):
        read_manifest(path)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00binary"])
def test_read_manifest_refuses_when_file_is_absent_or_binary(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "engine.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserInput, match=r"engine\.json"):
        read_manifest(path)


@pytest.mark.parametrize("depth", [700, 100_000])
def test_read_manifest_refuses_in_a_sentence_when_it_is_nested_too_deep(depth: int, tmp_path: Path) -> None:
    data = json.loads(manifest_text(MANIFEST))
    data["board"] = {"deep": "HERE"}
    path = tmp_path / "deep.json"
    path.write_text(json.dumps(data).replace('"HERE"', "[" * depth + "]" * depth))
    with pytest.raises(UserInput, match=r"deep\.json: is nested too deep"):
        read_manifest(path)
