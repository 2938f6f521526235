"""The board's figures in a manifest: put there from a probe's record, and taken out again.

A manifest is as the build made it, and `board` says what a probe found since. Its verdicts that only a board can give
become the probe's, and each of its cases adds one of its own, `board.CASE`; all of that can be undone, so another probe
takes the first one's place, and a build of the same engine keeps what is known of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from contracts.board import Board, BoardCase
from contracts.manifest import Manifest
from contracts.verdicts import Status, Verdict
from rknn_tts.verify_gates import unproven_places, verdict_places

BOARD_GATE = "board"
"""Before the name of a case, in that of its verdict."""


def with_board(manifest: Manifest, board: Board) -> Manifest:
    """`manifest`, which has no board's figures, with those of `board`.

    Raises:
        UserInput: the manifest's REGTASK verdicts are not those of the fields in its log.
    """
    decided = {name: cases for name, cases in _deciders(board.cases).items() if name in unproven_places(manifest)}
    places = {name: unproven_places(manifest)[name] for name in decided}
    before = {name: manifest.verdicts[place] for name, place in places.items()}
    verdicts = list(manifest.verdicts)
    for name, place in places.items():
        verdicts[place] = _decided(before[name], decided[name])
    verdicts += [case_verdict(case) for case in board.cases]
    return replace(manifest, verdicts=tuple(verdicts), board=replace(board, before=before))


def without_board(manifest: Manifest) -> Manifest:
    """`manifest` as it was before a probe's figures were put into it.

    Raises:
        UserInput: as of `with_board`.
    """
    if manifest.board is None:
        return manifest
    own = {f"{BOARD_GATE}.{case.name}" for case in manifest.board.cases}
    bare = replace(manifest, board=None, verdicts=tuple(v for v in manifest.verdicts if v.gate not in own))
    places = verdict_places(bare)
    verdicts = list(bare.verdicts)
    for name, verdict in manifest.board.before.items():
        if name in places:
            verdicts[places[name]] = verdict
    return replace(bare, verdicts=tuple(verdicts))


def case_verdict(case: BoardCase) -> Verdict:
    """The verdict on one case of a probe."""
    return _figured(Verdict(gate=f"{BOARD_GATE}.{case.name}", status=Status.PASSED, detail=case.what), case)


def _deciders(cases: Iterable[BoardCase]) -> dict[str, BoardCase]:
    """By verdict the case that decides it: of several one that failed, else the one least above its bound."""
    found: dict[str, BoardCase] = {}
    for case in cases:
        for name in case.proves:
            found[name] = min(found.get(name, case), case, key=_standing)
    return found


def _standing(case: BoardCase) -> tuple[bool, float]:
    worst = case.worst
    margin = float("-inf") if worst is None or worst.snr_db is None else worst.snr_db - worst.bound_db
    return case.passed, margin


def _decided(before: Verdict, case: BoardCase) -> Verdict:
    detail = f"on a board, case {case.name}: {case.what.rstrip('.')}. Before: {before.detail}"
    return _figured(replace(before, threshold=None, detail=detail), case)


def _figured(verdict: Verdict, case: BoardCase) -> Verdict:
    """`verdict` with the figures and the status of `case`."""
    worst = case.worst
    where = f"output '{worst.name}'" if worst is not None and len(case.outputs) > 1 else ""
    told = [text for text in (where, case.problem.rstrip(".")) if text]
    return replace(
        verdict,
        measured=worst.snr_db if worst is not None else None,
        threshold=worst.bound_db if worst is not None else None,
        unit="dB",
        status=Status.PASSED if case.passed else Status.FAILED,
        detail=f"{verdict.detail.rstrip('.')} ({': '.join(told)})" if told else verdict.detail,
    )


def lost(earlier: Mapping[str, Verdict], later: Mapping[str, Verdict]) -> list[str]:
    """Names of the verdicts that an earlier probe decided and a later one does not."""
    return [name for name in earlier if name not in later]
