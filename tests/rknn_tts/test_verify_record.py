from __future__ import annotations

import dataclasses

import pytest

from contracts.board import Board, BoardCase, BoardOutput
from contracts.contract import TensorSpec
from contracts.manifest import LogSummary, Manifest
from contracts.verdicts import Status, Verdict, passed, unproven
from rknn_tts.verify_gates import verdict_places
from rknn_tts.verify_record import failed_notes, with_board, without_board
from tests.contracts.samples import BOARD, MANIFEST

LOADS = unproven("log.aperture", "only a board can tell", 3950.0, "MiB")
SIMULATED = (unproven("simulator", "there was no memory"), unproven("simulator.cache", "there was no memory"))
BARE = dataclasses.replace(
    MANIFEST,
    log=LogSummary(),
    board=None,
    outputs=(TensorSpec("audio", (1, 4)), TensorSpec("cache", (1, 4))),
    verdicts=(passed("structure.fields"), LOADS, *SIMULATED),
)
AUDIO, CACHE = BoardOutput("audio", 50.0, 40.0, 0.1), BoardOutput("cache", 43.0, 45.0, 0.2)


def found(*cases: BoardCase) -> Board:
    return dataclasses.replace(BOARD, cases=cases, before={})


def engine_case(*outputs: BoardOutput, problem: str = "") -> BoardCase:
    right = bool(outputs) and all(output.snr_db is not None and output.snr_db >= output.bound_db for output in outputs)
    return BoardCase("engine", "engine", "It runs.", right, 20.7, outputs, problem, ())


def told(manifest: Manifest) -> dict[str, tuple[Status, object, object]]:
    return {verdict.gate: (verdict.status, verdict.measured, verdict.threshold) for verdict in manifest.verdicts}


def test_engine_that_ran_was_loaded_and_its_outputs_are_judged_in_the_simulators_place() -> None:
    assert told(with_board(BARE, found(engine_case(AUDIO, CACHE)))) == {
        "structure.fields": (Status.PASSED, None, None),
        "log.aperture": (Status.PASSED, 3950.0, None),
        "simulator": (Status.PASSED, 50.0, 40.0),
        "simulator.cache": (Status.FAILED, 43.0, 45.0),
        "board.engine": (Status.FAILED, 43.0, 45.0),
    }
    assert told(with_board(BARE, found(engine_case(AUDIO))))["simulator"] == (Status.PASSED, 50.0, 40.0)
    assert told(with_board(BARE, found(engine_case(AUDIO))))["simulator.cache"] == (Status.UNPROVEN, None, None)


def test_simulators_verdict_on_all_outputs_needs_all_of_them() -> None:
    whole = dataclasses.replace(BARE, verdicts=(unproven("simulator", "there was no memory"),))
    assert told(with_board(whole, found(engine_case(AUDIO))))["simulator"] == (Status.UNPROVEN, None, None)
    low = dataclasses.replace(AUDIO, snr_db=30.0)
    assert told(with_board(whole, found(engine_case(low))))["simulator"] == (Status.FAILED, 30.0, 40.0)
    both = told(with_board(whole, found(engine_case(AUDIO, dataclasses.replace(CACHE, snr_db=46.0)))))
    assert both["simulator"] == (Status.PASSED, 46.0, 45.0)


def test_engine_that_was_refused_fails_what_only_loading_it_tells() -> None:
    manifest = with_board(BARE, found(engine_case(problem="it could not be loaded: rknn_init failed with code -4.")))
    assert told(manifest)["log.aperture"] == (Status.FAILED, 3950.0, None)
    assert told(manifest)["simulator"] == (Status.FAILED, None, None)
    assert manifest.verdicts[1].detail == (
        "on a board, case engine: it was not run. Before: only a board can tell "
        "(it could not be loaded: rknn_init failed with code -4)"
    )


def test_other_cases_decide_only_what_they_say() -> None:
    case = dataclasses.replace(engine_case(AUDIO), kind="operator")
    assert told(with_board(BARE, found(case)))["log.aperture"][0] is Status.UNPROVEN


def test_output_that_decides_is_named_where_there_are_several() -> None:
    verdict = with_board(BARE, found(engine_case(AUDIO, CACHE))).verdicts[-1]
    assert verdict.detail == "It runs (output 'cache')"


@pytest.mark.parametrize("cases", [(engine_case(AUDIO, CACHE),), (engine_case(),), ()])
def test_what_was_put_in_can_be_taken_out_again(cases: tuple[BoardCase, ...]) -> None:
    with_figures = with_board(BARE, found(*cases))
    assert with_figures != BARE
    assert without_board(with_figures) == BARE
    assert without_board(BARE) == BARE


def test_verdict_that_was_decided_before_keeps_its_own_figures() -> None:
    proven = dataclasses.replace(BARE, verdicts=(Verdict(gate="simulator", status=Status.PASSED, measured=61.0),))
    assert told(with_board(proven, found(engine_case(CACHE))))["simulator"] == (Status.PASSED, 61.0, None)


def test_of_verdicts_of_one_name_the_first_is_meant() -> None:
    twice = dataclasses.replace(BARE, verdicts=(*SIMULATED, passed("structure.fields"), SIMULATED[0]))
    assert verdict_places(twice) == {"simulator": 0, "simulator.cache": 1, "structure.fields": 2}


def test_build_that_keeps_a_failed_probe_says_so() -> None:
    failed = with_board(BARE, found(engine_case(AUDIO, CACHE)))
    assert failed_notes(failed) == ["FAILED on a board (2026-11-30T12:00:00+00:00): board.engine."]
    assert failed_notes(with_board(BARE, found(engine_case(AUDIO)))) == []
    assert failed_notes(BARE) == []
