from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from contracts.errors import UserInput
from contracts.verdicts import failure
from farm.catalogue import Catalogue
from farm.catalogue_file import catalogue_bytes, read_catalogue
from farm.gathering import gather_farm
from farm.jobs import Kind, Unplanned
from farm.outcomes import Ended
from tests.farm.farm_folder import FarmFolder, simulated

VOICE = "<script>\N{SNOWMAN} größe"


@pytest.fixture
def found(tmp_path: Path) -> Catalogue:
    farm = FarmFolder(tmp_path / "out")
    compiled = farm.compiled(VOICE, "rk3588", farm.export(VOICE), page=True)
    farm.twice(VOICE, "rk3588", compiled, engine=b"other")
    farm.compiled("amy", "rk3566", verdicts=(simulated(float("inf")), failure("board.engine", "No.")))
    farm.ended(farm.job(Kind.COMPILE, "bad", "rk3588"), ended=Ended.MEMORY, sentence="Too much.")
    farm.unplanned.append(Unplanned("x.onnx", "piper", "decoder", "It is no voice."))
    return gather_farm(farm.plan().places)


def test_catalogue_is_read_as_it_was_written(found: Catalogue, tmp_path: Path) -> None:
    path = tmp_path / "catalogue.json"
    path.write_bytes(catalogue_bytes(found, changes={"new": 1}))
    assert read_catalogue(path) == found
    data = json.loads(path.read_text(encoding="utf-8"))
    assert (next(iter(data)), data["schema"], data["changes"]) == ("schema", "rknn-tts/catalogue/1", {"new": 1})
    assert VOICE in path.read_text(encoding="utf-8")


def test_only_what_was_measured_differs_when_the_same_is_made_elsewhere(tmp_path: Path) -> None:
    def without_measured(value: object) -> object:
        if isinstance(value, dict):
            return {key: without_measured(item) for key, item in value.items() if key != "measured"}
        return [without_measured(item) for item in value] if isinstance(value, list) else value

    def made(name: str, node: str) -> object:
        farm = FarmFolder(tmp_path / name)
        farm.compiled("amy", "rk3588", farm.export("amy"), node=node)
        farm.ended(farm.job(Kind.COMPILE, "bad", "rk3588"), ended=Ended.FAILED, sentence="No.", node=node)
        return json.loads(catalogue_bytes(gather_farm(farm.plan().places)))

    here, there = made("here", "n1"), made("there", "n2")
    assert here != there
    assert without_measured(here) == without_measured(there)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "cannot be read"),
        ("", "is no catalogue"),
        ("[]", "its schema is None"),
        ('{"schema": "rknn-tts/engine/1"}', "its schema is 'rknn-tts/engine/1'"),
        ('{"schema": "rknn-tts/catalogue/1"}', "is a damaged catalogue"),
        ("[" * 200 + "]" * 200, "is no catalogue"),
    ],
)
def test_file_that_is_no_catalogue_is_refused_with_a_sentence(tmp_path: Path, text: str | None, why: str) -> None:
    path = tmp_path / "old.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserInput, match=why) as caught:
        read_catalogue(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_pipe_or_device_that_never_ends_is_refused_with_a_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    for endless in (tmp_path / "pipe.json", Path("/dev/zero")):
        with pytest.raises(UserInput, match=rf"{endless}: is no plain file; name a catalogue.json of rknn-tts"):
            read_catalogue(endless)
