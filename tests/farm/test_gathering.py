from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.verdicts import Status, failure, unproven
from farm.catalogue import Catalogue, Failure, Fault, exit_code_of
from farm.died import Died, write_died
from farm.gathering import gather_farm
from farm.jobs import Kind, Unplanned
from farm.outcomes import Ended
from tests.farm.farm_folder import CPU_S, FRAMES, MODELLED_MS, FarmFolder, layers, simulated


@pytest.fixture
def farm(tmp_path: Path) -> FarmFolder:
    return FarmFolder(tmp_path / "out")


def gathered(farm: FarmFolder) -> Catalogue:
    return gather_farm(farm.plan().places)


def the_failure(farm: FarmFolder) -> Failure:
    (found,) = gathered(farm).failures
    return found


def test_entry_has_what_manifest_job_and_outcome_say(farm: FarmFolder) -> None:
    job = farm.compiled("amy", "rk3588", farm.export("amy"), page=True, node="n7", verdicts=(simulated(45.5),))
    found = gathered(farm)
    (entry,) = found.engines
    assert (entry.family, entry.stage, entry.role, entry.voice) == ("piper", "decoder", None, "amy")
    assert (entry.language, entry.target, entry.toolkit, entry.precision) == ("en-GB", "rk3588", "2.3.2", "fp16")
    assert (entry.path, entry.page) == (
        f"rk3588/amy/piper-decoder-w{FRAMES}.rknn",
        "rk3588/amy/piper-decoder-w102.html",
    )
    assert (entry.job, entry.simulator_db, entry.verdicts.passed) == (job.id, 45.5, 1)
    assert entry.measured.node == "n7"
    assert (entry.measured.build_s, entry.measured.build_cpu_s, entry.measured.build_peak_bytes) == (
        3.5,
        3.25,
        7 * 10**8,
    )
    assert (found.matrix, found.failures, exit_code_of(found)) == ("voices.toml", (), 0)


def test_cost_is_of_a_frame_and_of_real_time_when_the_window_says(farm: FarmFolder) -> None:
    farm.compiled("amy", "rk3588", layers=layers(MODELLED_MS, cpu=2))
    cost = gathered(farm).engines[0].cost
    assert cost is not None
    assert (cost.modelled_ms, cost.cycles, cost.rw_kb, cost.layers, cost.cpu_layers) == (
        20.0,
        5_000_000,
        70_000.0,
        250,
        2,
    )
    assert (cost.unit, cost.emitted, cost.unit_ms) == ("frame", 100, 0.2)
    assert cost.real_time_factor == pytest.approx(0.02 / (100 * 256 / 22050))


def test_cost_is_not_known_when_the_manifest_has_no_layers(farm: FarmFolder) -> None:
    farm.compiled("amy", "rk3588", layers=None, measurements=(), verdicts=())
    (entry,) = gathered(farm).engines
    assert (entry.cost, entry.simulator_db, entry.measured.build_s, entry.measured.build_peak_bytes) == (None,) * 4


def test_verdicts_that_did_not_pass_stand_in_the_entry_whole(farm: FarmFolder) -> None:
    told = unproven("log.regtask", "Only a board can tell.")
    farm.compiled("amy", "rk3588", verdicts=(simulated(45.0), told))
    found = gathered(farm)
    assert found.engines[0].notable == (told,)
    assert (found.totals.verdicts.passed, found.totals.verdicts.unproven, exit_code_of(found)) == (1, 1, 0)


def test_engine_whose_verdict_failed_is_a_failure_too(farm: FarmFolder) -> None:
    farm.compiled("amy", "rk3588", verdicts=(failure("board.engine", "It gave 12 dB."),))
    found = gathered(farm)
    (failed,) = found.failures
    assert (failed.fault, failed.kind, failed.sentence) == (Fault.FAILED, "engine", "board.engine: It gave 12 dB.")
    assert (len(found.engines), exit_code_of(found)) == (1, 1)
    assert found.engines[0].notable[0].status is Status.FAILED


@pytest.mark.parametrize("ended", [how for how in Ended if how not in (Ended.DONE, Ended.WAITING)])
def test_job_that_is_not_done_is_a_failure_with_its_sentence(farm: FarmFolder, ended: Ended) -> None:
    job = farm.job(Kind.COMPILE, "amy", "rk3588")
    farm.ended(job, ended=ended, sentence="So it was.", node="n3")
    log = farm.places.log(job.id)
    log.parent.mkdir(parents=True)
    log.write_text("words")
    failed = the_failure(farm)
    assert (failed.fault.value, failed.sentence, failed.measured.node) == (ended.value, "So it was.", "n3")
    assert (failed.job, failed.kind, failed.voice, failed.target) == (job.id, "compile", "amy", "rk3588")
    assert failed.log == f".farm/logs/{job.id}.log"


def test_job_without_an_outcome_is_lost_and_what_needs_it_waits(farm: FarmFolder) -> None:
    export = farm.job(Kind.EXPORT, "amy", None)
    farm.job(Kind.COMPILE, "amy", "rk3588", export)
    lost, waiting = gathered(farm).failures
    assert (lost.fault, lost.job, lost.measured.node) == (Fault.LOST, export.id, None)
    assert (waiting.fault, waiting.kind) == (Fault.WAITING, "compile")
    assert waiting.sentence == "It was not begun: its export ended as lost."


def test_what_waits_names_the_cause_and_not_what_waits_before_it(farm: FarmFolder) -> None:
    export = farm.job(Kind.EXPORT, "amy", None)
    compiled = farm.job(Kind.COMPILE, "amy", "rk3588", export)
    page = farm.job(Kind.PAGE, "amy", "rk3588", compiled)
    farm.ended(export, ended=Ended.REFUSED, sentence="It is no voice.")
    for job in (compiled, page):
        farm.ended(job, ended=Ended.WAITING, sentence="It starts from what was refused.")
    told = {failure.kind: failure.sentence for failure in gathered(farm).failures}
    waits = "It was not begun: its export ended as refused."
    assert told == {"export": "It is no voice.", "compile": waits, "page": waits}


def test_job_whose_outcome_is_damaged_is_lost(farm: FarmFolder) -> None:
    job = farm.compiled("amy", "rk3588")
    farm.places.outcome(job.id).write_text('{"schema": ')
    assert the_failure(farm).fault is Fault.LOST


def test_job_that_left_only_a_note_of_an_attempt_is_told_by_that(farm: FarmFolder) -> None:
    job = farm.job(Kind.COMPILE, "amy", "rk3588")
    write_died(Died(job.id, 1, Ended.MEMORY, "It took 9 GB.", "n1", 9 * 10**9), farm.places.died(job.id))
    failed = the_failure(farm)
    assert failed.fault is Fault.MEMORY
    assert failed.sentence.startswith("It took 9 GB. ")


def test_note_of_an_earlier_run_says_nothing_of_a_job_that_waits_now(farm: FarmFolder) -> None:
    export = farm.job(Kind.EXPORT, "amy", None)
    farm.ended(export, ended=Ended.REFUSED, sentence="It is no voice.")
    job = farm.job(Kind.COMPILE, "amy", "rk3588", export)
    farm.ended(job, ended=Ended.WAITING, sentence="It starts from that.")
    write_died(Died(job.id, 1, Ended.MEMORY, "It took 9 GB.", "n1", 9 * 10**9), farm.places.died(job.id))
    assert [one.fault for one in gathered(farm).failures] == [Fault.REFUSED, Fault.WAITING]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "rknn-tts/engine/1"}', '{"schema": "other"}'])
def test_manifest_that_is_damaged_is_a_failure_with_a_sentence(farm: FarmFolder, text: str) -> None:
    farm.compiled("amy", "rk3588")
    (farm.output / "rk3588/amy/piper-decoder-w102.json").write_text(text)
    failed = the_failure(farm)
    assert failed.fault is Fault.DAMAGED
    assert failed.sentence.startswith("rk3588/amy/piper-decoder-w102.json: ")
    assert (failed.path, exit_code_of(gathered(farm))) == ("rk3588/amy/piper-decoder-w102.rknn", 1)


@pytest.mark.parametrize("name", ["piper-decoder-w102.json", "piper-decoder-w102.rknn"])
def test_file_that_is_gone_is_a_failure_that_names_it(farm: FarmFolder, name: str) -> None:
    farm.compiled("amy", "rk3588")
    (farm.output / "rk3588/amy" / name).unlink()
    failed = the_failure(farm)
    assert failed.fault is Fault.DAMAGED
    assert failed.sentence.startswith(f"rk3588/amy/{name}: cannot be read (No such file or directory)")


@pytest.mark.parametrize("path", [None, "../elsewhere/x.html", "/tmp/x.html"])
def test_page_that_is_gone_or_lies_elsewhere_is_a_failure_and_no_link(farm: FarmFolder, path: str | None) -> None:
    farm.compiled("amy", "rk3588", page=True)
    page = farm.output / "rk3588/amy/piper-decoder-w102.html"
    if path is None:
        page.unlink()
    else:
        farm.ended(farm.jobs[-1], replace(farm.made(page), path=path))
    failed = the_failure(farm)
    named = path or "rk3588/amy/piper-decoder-w102.html"
    assert (failed.fault, failed.kind) == (Fault.DAMAGED, "page")
    assert failed.sentence == f"{named}: the page is gone, or lies outside of the folder; run the farm again."
    assert [engine.page for engine in gathered(farm).engines] == [None]


def test_engine_that_was_replaced_since_is_a_failure_though_its_size_is_the_same(farm: FarmFolder) -> None:
    job = farm.compiled("amy", "rk3588")
    engine = farm.output / "rk3588/amy/piper-decoder-w102.rknn"
    engine.write_bytes(b"X" * engine.stat().st_size)
    written_ns = farm.places.outcome(job.id).stat().st_mtime_ns
    os.utime(engine, ns=(written_ns + 1, written_ns + 1))
    assert "is not the engine that its manifest tells of" in the_failure(farm).sentence


def test_engine_of_another_target_than_its_jobs_is_a_failure(farm: FarmFolder) -> None:
    job = farm.job(Kind.COMPILE, "amy", "rk3566")
    farm.ended(job, farm.engine("amy", "rk3588"))
    assert "says rk3588, and its job rk3566" in the_failure(farm).sentence


def test_compilation_without_an_engine_is_a_failure(farm: FarmFolder) -> None:
    farm.ended(farm.job(Kind.COMPILE, "amy", "rk3588"))
    assert "has made no engine" in the_failure(farm).sentence


@pytest.mark.parametrize("path", ["/etc/engine.rknn", "../other/engine.rknn"])
def test_engine_outside_of_the_folder_is_a_failure(farm: FarmFolder, path: str) -> None:
    job = farm.job(Kind.COMPILE, "amy", "rk3588")
    made = farm.made(farm.engine("amy", "rk3588"))
    farm.ended(job, type(made)(path, made.sha256, made.bytes))
    assert "lies outside" in the_failure(farm).sentence


def test_engines_that_no_job_made_are_named(farm: FarmFolder) -> None:
    farm.compiled("amy", "rk3588")
    farm.engine("old", "rk3588")
    assert gathered(farm).strangers == ("rk3588/old/piper-decoder-w102.rknn",)


def test_totals_are_sums_of_what_is_done(farm: FarmFolder) -> None:
    for voice in ("amy", "joe"):
        export = farm.export(voice)
        for target in ("rk3588", "rk3566"):
            farm.compiled(voice, target, export, node=f"n-{target}")
    farm.ended(farm.job(Kind.COMPILE, "bad", "rk3588"), ended=Ended.FAILED, sentence="No.")
    farm.unplanned.append(Unplanned("x.onnx", "piper", "decoder", "It is no voice."))
    totals = gathered(farm).totals
    assert (totals.jobs, totals.done, totals.engines, totals.voices, totals.targets) == (7, 6, 4, 2, 2)
    assert (totals.faults, totals.unplanned) == ({"failed": 1}, 1)
    assert totals.bytes == 4 * len(b"RKNNpiper-decoder-w102")
    assert totals.measured.nodes == ("n-rk3566", "n-rk3588", "n1")
    assert totals.measured.cpu_s == 6 * CPU_S


def test_engines_stand_in_the_same_order_whatever_order_they_were_planned_in(tmp_path: Path) -> None:
    first, second = FarmFolder(tmp_path / "a"), FarmFolder(tmp_path / "b")
    pairs = [(voice, target) for voice in ("joe", "amy") for target in ("rk3588", "rk3566")]
    for farm, order in ((first, pairs), (second, pairs[::-1])):
        for voice, target in order:
            farm.compiled(voice, target)
    assert gathered(first) == gathered(second)
    assert [(e.voice, e.target) for e in gathered(first).engines] == sorted(pairs)
