"""The step `build` where the toolkit crashes in one of its own fuse rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import UserInput
from engine.build import first_log
from engine.result import read_disabled_rules
from rknn_tts.build_step import Build, built
from tests.rknn_tts.sources import build_with
from tests.rknn_tts.stand_in_converter import DOUBLE
from tests.rknn_tts.workshop import Heard, fresh_steps

ONCE = f"""
if not json.loads((folder / "request.json").read_text())["disable_rules"]:
    print("W You can add disable_rules=['rule_a'] in rknn.config() to temporarily disable the error rule!")
    print("E build: Traceback (most recent call last):", flush=True)
    (folder / "result.json").write_text(json.dumps({{"step": "build", "error": "IndexError: x"}}))
    sys.exit(3)
{DOUBLE}
"""


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    return build_with(ONCE, tmp_path, monkeypatch)


def test_built_says_that_it_builds_again_and_the_same_rule_is_known_when_it_is_found_again(build: Build) -> None:
    said, again = Heard(), fresh_steps()
    folder = built(build, fresh_steps(), said, lambda: None)
    told = "building for rk3588 again, without the toolkit's fuse rule rule_a, which crashed"
    assert told in said.steps
    assert first_log(build.places.log).is_file()
    assert built(build, again, Heard(), lambda: pytest.fail("nothing is built")) == folder
    assert again.reused == ["build"]
    assert read_disabled_rules(folder) == ("rule_a",)


def test_built_begins_no_second_attempt_when_it_shall_not_go_on(build: Build) -> None:
    asked: list[int] = []

    def stop_the_second() -> None:
        asked.append(1)
        if first_log(build.places.log).is_file():
            raise UserInput("no further")

    said = Heard()
    with pytest.raises(UserInput, match="no further"):
        built(build, fresh_steps(), said, stop_the_second)
    assert asked
    assert not [text for text in said.steps if "again" in text]
