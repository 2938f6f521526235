from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from farm.catalogue import Catalogue
from farm.catalogue_diff import changes_since
from farm.gathering import gather_farm
from farm.jobs import Kind, Unplanned
from farm.outcomes import Ended, read_outcome, write_outcome
from rknn_tts.blocks import plain_text
from rknn_tts.present_catalogue import MOST_SHOWN, catalogue_blocks
from tests.farm.farm_folder import CPU_S, FarmFolder


@pytest.fixture
def farm(tmp_path: Path) -> FarmFolder:
    return FarmFolder(tmp_path / "out")


def text(found: Catalogue, earlier: Catalogue | None = None) -> str:
    extra = {"catalogue": found}
    changes = {} if earlier is None else {"changes": changes_since(earlier, found, "old.json")}
    return plain_text(catalogue_blocks({**extra, **changes}, ("c.json", "c.html")))


def lines(found: Catalogue, earlier: Catalogue | None = None) -> list[str]:
    return text(found, earlier).splitlines()


def test_terminal_shows_failures_first_and_totals_last(farm: FarmFolder) -> None:
    farm.compiled("amy", "rk3588")
    failed = farm.job(Kind.COMPILE, "bad", "rk3588")
    farm.ended(failed, ended=Ended.FAILED, sentence="The simulator gave 12 dB.", node="n4")
    farm.job(Kind.PAGE, "bad", "rk3588", failed)
    farm.unplanned.append(Unplanned("x.onnx", "piper", "decoder", "It is no voice."))
    farm.engine("old", "rk3588")
    found = lines(gather_farm(farm.plan().places))
    assert re.split(" {2,}", found[1]) == [
        "failed",
        "compile of piper decoder, bad, rk3588",
        "n4",
        "The simulator gave 12 dB.",
    ]
    assert "waiting: 1 job not begun, as what it needs was not made." in found
    assert "left out: x.onnx, piper decoder: It is no voice." in found
    assert any(line.startswith("note: no job of this plan made 1 engine here, rk3588/old/") for line in found)
    assert found[-7:] == [
        "jobs:       1 of 3 done",
        "engines:    1 (1 voice, 1 target), 22 bytes",
        "verdicts:   2 passed, 0 failed, 0 unproven",
        f"took:       26.0 s in sum, {CPU_S:.1f} s of processors, 1.5 GB of memory at most for a job",
        "nodes:      n1",
        "catalogue:  c.json",
        "page:       c.html",
    ]


def test_terminal_shows_what_changed(farm: FarmFolder) -> None:
    farm.compiled("amy", "rk3588")
    farm.compiled("joe", "rk3588")
    found = gather_farm(farm.plan().places)
    amy, joe = found.engines
    earlier = replace(found, engines=(replace(amy, simulator_db=40.0), replace(joe, voice="eve")))
    told = lines(found, earlier)
    assert told[1].split() == [
        "piper",
        "decoder,",
        "amy,",
        "rk3588",
        "simulator",
        "40",
        "dB",
        "45.5",
        "dB",
        "+5.5",
        "dB",
    ]
    assert any(
        line.startswith("what counts: modelled time by more than 1 %; simulator by more than 1 dB") for line in told
    )
    assert "against:  old.json" in told
    assert "engines:  1 better, 1 new, 1 gone" in told


def test_terminal_says_that_nothing_changed(farm: FarmFolder) -> None:
    farm.compiled("amy", "rk3588")
    found = gather_farm(farm.plan().places)
    assert "engines:  1 the same" in lines(found, found)


@pytest.mark.parametrize(("node", "where"), [("n1", "all on one node"), ("n2", "1 of them on two nodes")])
def test_terminal_says_where_things_were_made_twice(farm: FarmFolder, node: str, where: str) -> None:
    farm.twice("amy", "rk3588", farm.compiled("amy", "rk3588"), node=node)
    assert f"made twice:  1 of 1 the same bytes, {where}" in lines(gather_farm(farm.plan().places))


def test_terminal_does_not_say_where_that_was_made_which_was_found_again(farm: FarmFolder) -> None:
    compiled = farm.compiled("amy", "rk3588")
    first = read_outcome(farm.places.outcome(compiled.id))
    assert first is not None
    write_outcome(replace(first, reused=("build",)), farm.places.outcome(compiled.id))
    farm.twice("amy", "rk3588", compiled, node="n2")
    told = lines(gather_farm(farm.plan().places))
    assert "made twice:  1 of 1 the same bytes, none known to be of two nodes" in told


def test_terminal_leaves_out_what_is_too_much(farm: FarmFolder) -> None:
    for number in range(MOST_SHOWN + 5):
        job = farm.job(Kind.COMPILE, f"v{number}", "rk3588")
        farm.ended(job, ended=Ended.FAILED, sentence="No.")
    told = text(gather_farm(farm.plan().places))
    assert told.count("compile of piper decoder") == MOST_SHOWN
    assert "note: 5 more are on the page." in told
