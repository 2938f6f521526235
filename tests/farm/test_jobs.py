from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import UserInput
from farm.jobs import ENGINES, EXPORTS, Job, Kind, Plan, Unplanned, read_plan, write_plan

EXPORT = Job(
    id="export-0123456789abcdef",
    kind=Kind.EXPORT,
    commands=(("export", "piper", "--checkpoint", "/voices/Ærø.onnx", "--output", ".", "--json"),),
    folder="onnx/Ærø",
    needs=(),
    family="piper",
    stage="decoder",
    voice="Ærø",
    width="",
    target=None,
    toolkit="2.3.2",
    language="da-DK",
    checkpoint="/voices/Ærø.onnx",
    checkpoint_bytes=63_201_294,
)
COMPILE = Job(
    id="compile-fedcba9876543210",
    kind=Kind.COMPILE,
    commands=(("compile", EXPORTS, "--target", "rk3588", "--json"), ("report", ENGINES, "--json")),
    folder="rk3588/Ærø",
    needs=(EXPORT.id,),
    family="piper",
    stage="decoder",
    voice="Ærø",
    width="window-109",
    target="rk3588",
    toolkit="2.3.2",
)
PLAN = Plan("voices.toml", (EXPORT, COMPILE), (Unplanned("voices/x.onnx", "piper", "decoder", "It is no voice."),))


NO_UTF_8 = "/Stra\udcdfe/anna.onnx"
"""In a folder whose name was written in Latin-1, as Python has such a path."""


@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        Plan("empty.toml", ()),
        Plan("m.toml", (replace(EXPORT, commands=(("export", NO_UTF_8),), checkpoint=NO_UTF_8),)),
    ],
)
def test_plan_is_read_as_it_was_written(plan: Plan, tmp_path: Path) -> None:
    write_plan(plan, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.json"]


def test_plan_names_its_schema_and_kinds_as_words(tmp_path: Path) -> None:
    write_plan(PLAN, tmp_path / "plan.json")
    text = (tmp_path / "plan.json").read_text(encoding="utf-8")
    data = json.loads(text)
    assert (data["schema"], [job["kind"] for job in data["jobs"]]) == ("rknn-tts/farm/1", ["export", "compile"])
    assert "Ærø" in text


def damaged(key: str, value: Any) -> str:
    """A plan whose second job has `value` for `key`."""
    data = json.loads(json.dumps({"schema": "rknn-tts/farm/1", "matrix": "m.toml", "jobs": [{}, {}]}))
    for entry, job in zip(data["jobs"], (EXPORT, COMPILE), strict=True):
        entry.update({**vars(job), "kind": job.kind.value})
    data["jobs"][1][key] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is no plan of a farm"),
        ("half of {", "is no plan of a farm"),
        ("[1]", "its schema is not rknn-tts/farm/1"),
        ('{"schema": "rknn-tts/farm/2"}', "its schema is not rknn-tts/farm/1"),
        ('{"schema": "rknn-tts/farm/1"}', "matrix"),
        (damaged("kind", "exprot"), "exprot"),
        (damaged("commands", "export"), "commands"),
        (damaged("checkpoint_bytes", "63 MB"), "checkpoint_bytes"),
        (damaged("needs", None), "needs"),
        ("[" * 100_000, "is no plan of a farm"),
    ],
)
def test_plan_is_refused_in_one_sentence_when_it_is_damaged(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserInput) as caught:
        read_plan(path)
    told = str(caught.value)
    assert told.startswith(f"{path}: is no plan of a farm (")
    assert says in told
    assert told.endswith("run `rknn-tts farm MATRIX.toml` again.")
    assert "\n" not in told


def test_plan_is_refused_when_it_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(UserInput, match="is no plan of a farm"):
        read_plan(tmp_path / "plan.json")


@pytest.mark.parametrize("folder", [True, False])
def test_plan_is_refused_when_it_cannot_be_read(folder: bool, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    if folder:
        path.mkdir()
    with pytest.raises(UserInput, match=r"plan\.json: cannot be read \((No such file|Is a directory)"):
        read_plan(path)


def test_kinds_are_in_the_order_of_the_work() -> None:
    assert [kind.value for kind in Kind] == ["export", "compile", "page", "twice"]
