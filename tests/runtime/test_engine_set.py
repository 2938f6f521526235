from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rknn_tts_runtime import engine_set
from rknn_tts_runtime.engine_set import EngineSet, read_set
from rknn_tts_runtime.faults import BadInput

from contracts import manifest as toolchain
from contracts.manifest import SetManifest, SharedAperture, manifest_text
from tests.contracts.samples import CACHE


def written(folder: Path, manifest: SetManifest, **change: Any) -> Path:
    path = folder / "piper-decoder.set.json"
    path.write_text(json.dumps({**json.loads(manifest_text(manifest)), **change}), encoding="utf-8")
    return path


def test_schema_is_that_of_the_toolchain() -> None:
    assert engine_set.SET_SCHEMA == toolchain.SET_SCHEMA


SET = SetManifest(
    members=("a.json", "b.json"),
    roles={"main": "a.rknn", "first": "b.rknn"},
    cache=CACHE,
    aperture=SharedAperture(4_089_446_400, {"a.json": 100, "b.json": 4_716_000_000}, (("a.json",),)),
)


def test_read_set_reads_what_the_toolchain_wrote(tmp_path: Path) -> None:
    path = written(tmp_path, SET)
    assert read_set(path) == EngineSet(
        path=path,
        members=(tmp_path / "a.json", tmp_path / "b.json"),
        roles={"main": tmp_path / "a.rknn", "first": tmp_path / "b.rknn"},
        cache_numel=12,
        budget_bytes=4_089_446_400,
        context_bytes={tmp_path / "a.json": 100, tmp_path / "b.json": 4_716_000_000},
    )


def test_read_set_knows_no_budget_when_the_set_tells_none(tmp_path: Path) -> None:
    read = read_set(written(tmp_path, SetManifest(members=("a.json",))))
    assert (read.roles, read.cache_numel, read.budget_bytes, read.context_bytes) == ({}, None, None, {})


def told(**change: object) -> dict[str, object]:
    return {"aperture": {"budget_bytes": 1000, "context_bytes": {}, "together": [], **change}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "rknn-tts/engine/1"}, "is no set's manifest: its schema is 'rknn-tts/engine/1', expected"),
        ({"members": "a.json"}, "members is 'a.json', expected a list"),
        ({"members": ["b.json", "../a.json"]}, "members[1] is '../a.json', expected the name of a file beside it"),
        ({"roles": {"main": "/a.rknn"}}, "roles.main is '/a.rknn'"),
        ({"roles": []}, "roles is [], expected an object"),
        ({"cache": {"numel": 0}}, "cache.numel is 0"),
        (told(budget_bytes=-1), "aperture.budget_bytes is -1"),
        (told(context_bytes={"../a.json": 1}), "aperture.context_bytes is '../a.json'"),
        (told(context_bytes={"a.json": True}), "aperture.context_bytes.a.json is True"),
    ],
)
def test_read_set_names_the_key_when_it_is_of_another_kind(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    with pytest.raises(BadInput) as raised:
        read_set(written(tmp_path, SET, **change))
    assert said in str(raised.value)
