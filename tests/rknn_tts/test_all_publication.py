"""Engines of several stages in their places, all or none; the commands around that are in test_all_stages."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from contracts.errors import NotWritten, ToolFailure
from rknn_tts.all_publication import StageFinished, publish_all
from rknn_tts.build_step import Build
from rknn_tts.outcome import Outcome
from rknn_tts.publication import Finished
from rknn_tts.steps import open_steps
from tests.rknn_tts.sources import build_of
from tests.rknn_tts.test_publication import GRAPH, JUDGED, NUMBERS, build, files, set_of

__all__ = ["build"]  # the fixture

PLACE = Path("engines/rk3588/twin.set.json")


def alone(made: Build, result: Path) -> StageFinished:
    """The stage `tail`, of one engine without a role."""
    source = dataclasses.replace(made.source, stem="tail", notes=("of the tail",))
    return StageFinished("tail", (Finished(build_of(source, made.python), GRAPH, NUMBERS, JUDGED, result),))


def stages(made: Build, tmp_path: Path) -> list[StageFinished]:
    return [StageFinished("net", tuple(set_of(made, tmp_path))), alone(made, tmp_path / "result")]


def published(members: list[StageFinished]) -> Outcome:
    return publish_all(members, PLACE, open_steps(False, lambda text: pytest.fail(text)))


def test_engines_are_called_by_stage_and_role(build: Build, tmp_path: Path) -> None:
    net, tail = stages(build, tmp_path)
    assert (list(net.by_name), list(tail.by_name)) == (["net.full", "net.short"], ["tail"])
    assert [verdict.gate for verdict in tail.verdicts][-1] == "tail.simulator"
    assert [verdict.gate for verdict in net.verdicts][-1] == "net.short.simulator"


def test_all_are_written_and_their_digests_last(build: Build, tmp_path: Path) -> None:
    done = published(stages(build, tmp_path))
    assert (set(done.files), len(done.files)) == (files(), len(set(done.files)))
    assert done.files[-2:] == (str(PLACE), "engines/rk3588/MANIFEST.sha256")
    told = json.loads(PLACE.read_text())
    assert told["members"] == ["net-full.json", "net-short.json", "tail.json"]
    assert told["roles"] == {"net.full": "net-full.rknn", "net.short": "net-short.rknn", "tail": "tail.rknn"}
    assert done.notes == ("a note", "of full", "of short", "of the tail")


def test_none_is_written_when_the_last_place_cannot_be(build: Build, tmp_path: Path) -> None:
    Path("engines/rk3588/MANIFEST.sha256").mkdir()
    with pytest.raises(NotWritten, match=r"MANIFEST\.sha256: cannot be written"):
        published(stages(build, tmp_path))
    assert files() == set()


def test_host_halves_of_one_name_and_unlike_content_are_refused(build: Build, tmp_path: Path) -> None:
    net, tail = stages(build, tmp_path)
    (tmp_path / "other.onnx").write_bytes(b"other")
    (member,) = tail.members
    contract = dataclasses.replace(member.build.source.contract, host=net.members[0].build.source.contract.host)
    source = dataclasses.replace(member.build.source, contract=contract, host=tmp_path / "other.onnx")
    unlike = dataclasses.replace(member, build=dataclasses.replace(member.build, source=source))
    with pytest.raises(ToolFailure, match=r"piper-host\.onnx: the engines of this set were made with unlike ones"):
        published([net, StageFinished("tail", (unlike,))])
    assert files() == set()
