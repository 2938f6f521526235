from __future__ import annotations

import pytest

from contracts.errors import UserInput
from converters.stages import Checkpoint, Opened, OpenSession, Stage, StageOptions, find_stage


def _open(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
    raise AssertionError("nothing is opened to find a stage")


def stage(family: str, name: str) -> Stage:
    return Stage(family, name, "", None, frozenset(), _open)


STAGES = (stage("piper", "decoder"), stage("kokoro", "generator"), stage("piper", "duration_encoder"))


@pytest.mark.parametrize(
    ("family", "name", "wanted"),
    [
        ("piper", None, "decoder"),
        ("piper", "decoder", "decoder"),
        ("piper", "duration_encoder", "duration_encoder"),
        ("kokoro", None, "generator"),
    ],
)
def test_find_stage_gives_the_named_one_or_the_familys_first(family: str, name: str | None, wanted: str) -> None:
    found = find_stage(STAGES, family, name)
    assert (found.family, found.name) == (family, wanted)


@pytest.mark.parametrize("family", ["Piper", "pipr", "", "decoder"])
def test_find_stage_lists_the_families_when_there_is_no_such_one(family: str) -> None:
    with pytest.raises(UserInput, match=r"There is no family .*; there are: piper, kokoro\."):
        find_stage(STAGES, family, None)


@pytest.mark.parametrize("name", ["generator", "", "Decoder"])
def test_find_stage_lists_the_familys_stages_when_there_is_no_such_one(name: str) -> None:
    with pytest.raises(UserInput, match=r"The family piper has no stage .*; it has: decoder, duration_encoder\."):
        find_stage(STAGES, "piper", name)
