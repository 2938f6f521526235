"""The board's figures in a manifest: put there from a probe's record, and taken out again.

A manifest is as the build made it, and `board` says what a probe found since. Its verdicts that only a board can give
become the probe's, and each of its cases adds one of its own, `board.CASE`; all of that can be undone, so another probe
takes the first one's place, and a build of the same engine keeps what is known of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rknn_tts_runtime.probing.kit import ENGINE

from contracts.board import Board, BoardCase, BoardOutput
from contracts.manifest import Manifest
from contracts.verdicts import Status, Verdict
from cost.aperture import GATE as LOADED
from gates.simulator import GATE as SIMULATOR
from rknn_tts.verify_gates import unproven_places, verdict_places

BOARD_GATE = "board"
"""Before the name of a case, in that of its verdict."""


def with_board(manifest: Manifest, board: Board) -> Manifest:
    """`manifest`, which has no board's figures, with those of `board`.

    Raises:
        UserInput: the manifest's REGTASK verdicts are not those of the fields in its log.
    """
    unproven = unproven_places(manifest)
    decided = {name: case for name, case in _deciders(board.cases, _together(manifest)).items() if name in unproven}
    places = {name: unproven[name] for name in decided}
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


def _together(manifest: Manifest) -> frozenset[str]:
    """The outputs that the simulator's one verdict is on: all without a verdict of their own (`gates.simulator`)."""
    gates = {verdict.gate for verdict in manifest.verdicts}
    return frozenset(spec.name for spec in manifest.outputs if f"{SIMULATOR}.{spec.name}" not in gates)


def _deciders(cases: Iterable[BoardCase], together: frozenset[str]) -> dict[str, BoardCase]:
    """By verdict the case that decides it: of several one that failed, else the one least above its bound."""
    found: dict[str, BoardCase] = {}
    for case in cases:
        for name, decider in (*((name, case) for name in case.proves), *_of_the_engine(case, together)):
            found[name] = min(found.get(name, decider), decider, key=_standing)
    return found


def _of_the_engine(case: BoardCase, together: frozenset[str]) -> Iterable[tuple[str, BoardCase]]:
    """What the engine's own case decides without saying so, where no PC could: that it loads, and what it gives.

    Its bounds are those that the simulator's outputs would have been judged by. The verdict on several outputs
    `together` fails with one of them, and is passed where none was left out.
    """
    if case.kind != ENGINE:
        return
    ran = bool(case.outputs)
    yield LOADED, replace(case, passed=ran, outputs=(), what="it was loaded and run" if ran else "it was not run")
    shared = _judged(case, tuple(output for output in case.outputs if output.name in together))
    complete = bool(together) and together <= {output.name for output in shared.outputs}
    if complete or not (ran and shared.passed):
        yield SIMULATOR, shared
    for output in case.outputs:
        yield f"{SIMULATOR}.{output.name}", _judged(case, (output,))


def _judged(case: BoardCase, outputs: tuple[BoardOutput, ...]) -> BoardCase:
    """`case` as it is of these of its outputs alone."""
    reached = all(output.snr_db is not None and output.snr_db >= output.bound_db for output in outputs)
    return replace(case, passed=bool(case.outputs) and reached, outputs=outputs)


def _standing(case: BoardCase) -> tuple[bool, float]:
    worst = case.worst
    margin = float("-inf") if worst is None or worst.snr_db is None else worst.snr_db - worst.bound_db
    return case.passed, margin


def _decided(before: Verdict, case: BoardCase) -> Verdict:
    detail = f"on a board, case {case.name}: {case.what.rstrip('.')}. Before: {before.detail}"
    return _figured(replace(before, detail=detail), case)


def _figured(verdict: Verdict, case: BoardCase) -> Verdict:
    """`verdict` with the status of `case`, and with the figures of what it gave."""
    worst = case.worst
    where = f"output '{worst.name}'" if worst is not None and len(case.outputs) > 1 else ""
    told = [text for text in (where, case.problem.rstrip(".")) if text]
    status = Status.PASSED if case.passed else Status.FAILED
    detail = f"{verdict.detail.rstrip('.')} ({': '.join(told)})" if told else verdict.detail
    if worst is None:
        return replace(verdict, status=status, detail=detail)
    return replace(verdict, measured=worst.snr_db, threshold=worst.bound_db, unit="dB", status=status, detail=detail)


def failed_notes(manifest: Manifest) -> list[str]:
    """Loudly, which cases of a probe failed; nothing where none did, or none was."""
    board = manifest.board
    failed = [f"{BOARD_GATE}.{case.name}" for case in board.cases if not case.passed] if board else []
    return [f"FAILED on a board ({board.date}): {', '.join(failed)}."] if board and failed else []


def lost(earlier: Mapping[str, Verdict], later: Mapping[str, Verdict]) -> list[str]:
    """Names of the verdicts that an earlier probe decided and a later one does not."""
    return [name for name in earlier if name not in later]
