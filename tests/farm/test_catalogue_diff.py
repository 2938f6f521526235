from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contracts.manifest import read_manifest
from contracts.verdicts import Verdict, failure, passed, unproven
from farm.catalogue import (
    Catalogue,
    EngineEntry,
    Failure,
    Fault,
    Repeat,
    RepeatedFile,
    RepeatMeasured,
    VerdictCounts,
)
from farm.catalogue_diff import RULES, Changes, changes_since, engine_text
from farm.engine_entries import Standing, entry_of
from farm.gathering import assembled
from farm.plain_folder import gather_folder
from rknn_tts.tune.ladder_choice import TIE
from tests.farm.farm_folder import layers, simulated
from tests.rknn_tts.built_engines import write_engine

FAILURE = Failure(Fault.FAILED, "No.", "compile-1", "compile", "piper", "decoder", "amy", "", "rk3588")


@pytest.fixture
def engine(tmp_path: Path) -> EngineEntry:
    """An engine of 20 ms and 45 dB, of 10 MB."""
    path = write_engine(tmp_path, "one", "piper.decoder", layers=layers(20.0, cpu=2), verdicts=(simulated(45.0),))
    entry = entry_of(read_manifest(path.with_suffix(".json")), Standing("amy", "", "rk3588/amy/one.rknn"))
    return replace(entry, bytes=10_000_000)


def of(*entries: EngineEntry, failures: tuple[Failure, ...] = (), repeats: tuple[Repeat, ...] = ()) -> Catalogue:
    return assembled(None, entries, failures, repeats)


def changes(before: EngineEntry, after: EngineEntry) -> Changes:
    return changes_since(of(before), of(after), "old.json")


def failing(entry: EngineEntry) -> EngineEntry:
    """The same with a verdict that failed."""
    return replace(entry, verdicts=VerdictCounts(failed=1), notable=(failure("fp32.whole", "It is noise."),))


def costing(entry: EngineEntry, **more: Any) -> EngineEntry:
    assert entry.cost is not None
    return replace(entry, cost=replace(entry.cost, **more))


def told(found: Changes) -> list[tuple[str, str, bool]]:
    """Every difference: which bucket, its figure, whether it is better."""
    buckets = {"worse": found.worse, "better": found.better, "bytes": found.other_bytes}
    return [(name, one.figure, one.better) for name, each in buckets.items() for c in each for one in c.differences]


@pytest.mark.parametrize(
    ("ms", "bucket"),
    [(20.0, ""), (20.2, ""), (19.8, ""), (20.21, "worse"), (19.79, "better"), (40.0, "worse"), (float("nan"), "")],
)
def test_time_counts_when_it_differs_by_more_than_a_percent(engine: EngineEntry, ms: float, bucket: str) -> None:
    found = told(changes(engine, costing(engine, modelled_ms=ms)))
    assert found == ([(bucket, "modelled time", bucket == "better")] if bucket else [])


@pytest.mark.parametrize(("db", "bucket"), [(44.0, ""), (46.0, ""), (43.9, "worse"), (46.1, "better"), (None, "")])
def test_simulator_counts_when_it_differs_by_more_than_a_decibel(
    engine: EngineEntry, db: float | None, bucket: str
) -> None:
    found = told(changes(engine, replace(engine, simulator_db=db)))
    assert found == ([(bucket, "simulator", bucket == "better")] if bucket else [])


@pytest.mark.parametrize(("size", "bucket"), [(10_100_000, ""), (10_100_001, "worse"), (9_800_000, "better")])
def test_size_counts_when_it_differs_by_more_than_a_percent(engine: EngineEntry, size: int, bucket: str) -> None:
    found = told(changes(engine, replace(engine, bytes=size)))
    assert found == ([(bucket, "size", bucket == "better")] if bucket else [])


@pytest.mark.parametrize(("layers_on_cpu", "bucket"), [(2, ""), (3, "worse"), (1, "better"), (0, "better")])
def test_layers_on_the_cpu_count_one_by_one(engine: EngineEntry, layers_on_cpu: int, bucket: str) -> None:
    found = told(changes(engine, costing(engine, cpu_layers=layers_on_cpu)))
    assert found == ([(bucket, "layers on the CPU", bucket == "better")] if bucket else [])


GATE = "log.regtask"
PASSED, UNPROVEN, FAILED = passed(GATE), unproven(GATE, "A board tells."), failure(GATE, "No.")


@pytest.mark.parametrize(
    ("before", "after", "bucket"),
    [
        (PASSED, PASSED, ""),
        (UNPROVEN, UNPROVEN, ""),
        (PASSED, UNPROVEN, "worse"),
        (UNPROVEN, FAILED, "worse"),
        (PASSED, FAILED, "worse"),
        (FAILED, UNPROVEN, "better"),
        (FAILED, PASSED, "better"),
        (UNPROVEN, PASSED, "better"),
    ],
)
def test_verdicts_count_by_their_gate(engine: EngineEntry, before: Verdict, after: Verdict, bucket: str) -> None:
    def judged(verdict: Verdict) -> EngineEntry:
        return replace(engine, notable=() if verdict is PASSED else (verdict,))

    found = changes(judged(before), judged(after))
    assert told(found) == ([(bucket, GATE, bucket == "better")] if bucket else [])
    if bucket:
        (change,) = (*found.worse, *found.better)
        assert (change.differences[0].before, change.differences[0].after) == (before.status.value, after.status.value)


def test_engine_is_worse_when_one_thing_is_and_another_is_better(engine: EngineEntry) -> None:
    found = changes(engine, costing(engine, modelled_ms=10.0, cpu_layers=3))
    assert told(found) == [("worse", "modelled time", True), ("worse", "layers on the CPU", False)]
    assert (found.better, found.same) == ((), 0)


def test_engine_is_the_same_when_only_what_was_measured_differs(engine: EngineEntry) -> None:
    found = changes(engine, replace(engine, measured=replace(engine.measured, build_s=99.0, node="n9"), path="x.rknn"))
    assert (told(found), found.same, found.new, found.gone, found.other_bytes) == ([], 1, (), (), ())


@pytest.mark.parametrize(
    ("more", "other"),
    [
        ({}, ()),
        ({"toolkit": "2.5.0"}, ("toolkit",)),
        ({"onnx_sha256": "1", "source_sha256": "2"}, ("checkpoint", "graph")),
        ({"precision": "w8a8"}, ("precision",)),
    ],
)
def test_other_bytes_come_with_what_else_changed(
    engine: EngineEntry, more: dict[str, Any], other: tuple[str, ...]
) -> None:
    found = changes(engine, replace(engine, sha256="ff" * 32, **more))
    (change,) = found.other_bytes
    assert (change.other, change.sha256_before, change.sha256) == (other, engine.sha256, "ff" * 32)
    assert (found.same, told(found)) == (0, [])


def test_engines_of_one_catalogue_alone_are_new_or_gone(engine: EngineEntry) -> None:
    other = replace(engine, voice="joe", path="rk3588/joe/one.rknn")
    found = changes(engine, other)
    assert [(one.what, one.told) for one in found.new] == [("piper decoder, joe, rk3588", "rk3588/joe/one.rknn")]
    assert [(one.what, one.told) for one in found.gone] == [("piper decoder, amy, rk3588", "rk3588/amy/one.rknn")]
    assert found.same == 0


def test_engines_of_one_kind_are_told_apart_by_their_paths(engine: EngineEntry) -> None:
    twin = replace(engine, path="rk3588/amy/two.rknn", sha256="ee" * 32)
    found = changes_since(of(engine, twin), of(engine, replace(twin, sha256="dd" * 32)), "old.json")
    assert ([one.path for one in found.other_bytes], found.same) == (["rk3588/amy/two.rknn"], 1)


def test_text_of_an_engine_names_role_and_width(engine: EngineEntry) -> None:
    entry = replace(engine, role="w128", width="window-128")
    assert engine_text(entry) == "piper decoder w128, amy, window-128, rk3588"
    assert engine_text(replace(entry, family=None, stage=None, role=None)) == "a foreign ONNX, amy, window-128, rk3588"


def test_failure_is_new_when_the_earlier_catalogue_lacks_it_and_waiting_is_none() -> None:
    waiting = replace(FAILURE, kind="page", fault=Fault.WAITING)
    found = changes_since(of(), of(failures=(FAILURE, waiting)), "old.json")
    assert [(one.what, one.told) for one in found.failed] == [("compile of piper decoder, amy, rk3588", "No.")]
    found = changes_since(of(failures=(FAILURE,)), of(failures=(replace(FAILURE, sentence="Still."),)), "old.json")
    assert (found.failed, found.mended) == ((), ())


@pytest.mark.parametrize(
    ("failure_before", "page", "mended"),
    [
        (FAILURE, None, True),
        (replace(FAILURE, kind="export", target=None), None, True),
        (replace(FAILURE, kind="export", target="rk3588"), None, True),
        (replace(FAILURE, kind="page"), None, False),
        (replace(FAILURE, kind="page"), "rk3588/amy/one.html", True),
        (replace(FAILURE, target="rk3566"), None, False),
        (replace(FAILURE, voice="joe"), None, False),
        (replace(FAILURE, kind="engine", path="rk3588/amy/one.rknn"), None, True),
        (replace(FAILURE, kind="twice"), None, False),
    ],
)
def test_failure_is_mended_when_what_it_was_of_is_there(
    engine: EngineEntry, failure_before: Failure, page: str | None, mended: bool
) -> None:
    found = changes_since(of(failures=(failure_before,)), of(replace(engine, page=page)), "old.json")
    assert bool(found.mended) is mended


@pytest.mark.parametrize(
    "before",
    [
        FAILURE,
        replace(FAILURE, kind="engine", path="rk3588/amy/one.rknn"),
        replace(FAILURE, fault=Fault.DAMAGED, path="rk3588/amy/one.rknn"),
    ],
)
def test_failure_is_not_mended_when_the_engine_fails_now(engine: EngineEntry, before: Failure) -> None:
    now = failing(engine)
    assert changes_since(of(failures=(before,)), of(now), "old.json").mended == ()
    assert changes_since(of(now), of(now), "old.json").mended == ()
    still = of(engine, failures=(before,))
    assert changes_since(still, still, "old.json").mended == ()


def test_failure_of_one_engine_is_not_mended_by_another_of_its_stage(engine: EngineEntry) -> None:
    other = replace(engine, role="w128", path="rk3588/amy/other.rknn")
    before = of(failing(engine), other)
    assert changes_since(before, before, "old.json").mended == ()
    gone = replace(FAILURE, fault=Fault.DAMAGED, path=engine.path)
    assert changes_since(before, of(other, failures=(gone,)), "old.json").mended == ()


@pytest.mark.parametrize("same", [True, False])
def test_what_was_made_twice_is_mended_when_its_bytes_are_the_same(same: bool) -> None:
    digest = "aa" if same else "bb"
    repeat = Repeat(
        "twice-1",
        "compile-1",
        "piper",
        "decoder",
        "amy",
        "",
        "rk3588",
        (RepeatedFile("one.rknn", "aa", digest),),
        RepeatMeasured("n1", "n2"),
    )
    before = of(failures=(replace(FAILURE, kind="twice", fault=Fault.DIFFERS),))
    assert bool(changes_since(before, of(repeats=(repeat,)), "old.json").mended) is same


def test_damaged_engine_of_a_plain_folder_is_mended_when_it_is_whole_again(tmp_path: Path) -> None:
    engine = write_engine(tmp_path / "a", "one", "piper.decoder")
    whole = engine.read_bytes()
    engine.write_bytes(b"RKNN")
    before = assembled(None, *gather_folder(tmp_path))
    engine.write_bytes(whole)
    found = changes_since(before, assembled(None, *gather_folder(tmp_path)), "old.json")
    assert (len(found.mended), len(found.new), found.failed) == (1, 1, ())


def test_rules_are_those_that_their_sources_state() -> None:
    least = {rule.figure: (rule.least, rule.relative) for rule in RULES}
    assert least["modelled time"][0] == pytest.approx(2 * (TIE - 1))
    page = Path(__file__).resolve().parents[2] / "docs" / "cost.md"
    assert f"Ours may be {least['simulator'][0]:g} dB lower" in " ".join(page.read_text(encoding="utf-8").split())
