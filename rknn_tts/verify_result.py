"""Reads what a probe on a board came to, and sees that it is of the engine at hand.

The result is data from elsewhere: its size, its kind, its sign-off and what it is of are checked before it is believed.
"""

from __future__ import annotations

from pathlib import Path

from rknn_tts_runtime.identity import runs_on
from rknn_tts_runtime.json_keys import LARGEST_BYTES
from rknn_tts_runtime.probing.kit import ENGINE
from rknn_tts_runtime.probing.result import BOARD_BACKEND, RESULT_SCHEMA, CaseResult, ProbeResult, sign_off_digest

from contracts.board import Board, BoardCase, BoardConditions, BoardMemory, BoardOutput
from contracts.errors import UserInput
from contracts.manifest import Manifest
from contracts.serial import from_json, parse_json
from rknn_tts.probe.bounds import FLOOR_DB, bounds_of
from rknn_tts.verify_gates import REGTASK_GATE, verdict_places

PASS_GATES = "pass."
"""How gates of passes begin: a board says something of what they rewrote, and their own verdicts stay."""

_ANEW = "make a kit of the engine as it is now"
_AGAIN = "run the kit again: python -m rknn_tts_runtime probe FOLDER"


def read_result(path: Path) -> ProbeResult:
    """The result in the file `path`, its sign-off checked.

    Raises:
        UserInput: it cannot be read, is no result, was changed since it was signed off, or contradicts itself.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe is waited for, a device has no end
            raise UserInput(f"{path}: is no file; name the JSON that `python -m rknn_tts_runtime probe` wrote.")
        if path.stat().st_size > LARGEST_BYTES:
            raise UserInput(f"{path}: is larger than any result of a probe ({LARGEST_BYTES} bytes).")
        data = parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserInput(f"{path}: cannot be read ({error.strerror}).") from error
    except ValueError as error:
        raise UserInput(f"{path}: is not JSON, so no result of a probe ({error}).") from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(data, dict) or schema != RESULT_SCHEMA:
        raise UserInput(f"{path}: is no result of a probe: its schema is {schema!r}, expected {RESULT_SCHEMA!r}.")
    try:
        result = from_json(ProbeResult, data, "result")
        digest = sign_off_digest(data) if result.signed_off else ""
    except ValueError as error:
        raise UserInput(f"{path}: {error}; {_AGAIN}.") from error
    if result.signed_off is None:
        raise UserInput(f"{path}: is not signed off; {_AGAIN}.")
    if digest != result.signed_off.sha256:
        raise UserInput(f"{path}: was changed since {result.signed_off.by} signed it off; {_AGAIN}.")
    _check_sound(path, result)
    return result


def check_of_engine(path: Path, result: ProbeResult, manifest: Manifest) -> None:
    """See that `result` was found on a board, with the engine of `manifest`, and by bounds not below its own.

    Raises:
        UserInput: it was not.
    """
    if result.backend != BOARD_BACKEND:
        raise UserInput(
            f"{path}: is of the backend {result.backend}, which proves nothing about a board; on one, "
            f"{_AGAIN} --backend {BOARD_BACKEND}."
        )
    if result.subject.engine_sha256 != manifest.engine.sha256:
        raise UserInput(
            f"{path}: is of {result.subject.engine_file} (sha256 {result.subject.engine_sha256[:16]}), and this engine "
            f"is {manifest.engine.file} (sha256 {manifest.engine.sha256[:16]}); make a kit of this one."
        )
    soc = result.conditions.soc
    if soc is not None and not runs_on(manifest.target, soc):
        raise UserInput(f"{path}: is of a board with an {soc}, and the engine is for {manifest.target}.")
    _check_engine_cases(path, result, manifest)
    _check_other_cases(path, result)
    known = verdict_places(manifest)
    for case in result.cases:
        for name in case.proves:
            if name.startswith(PASS_GATES):
                continue
            if name not in known:
                raise UserInput(
                    f"{path}: its case {case.name} is to prove {name}, of which the engine's manifest has no verdict; "
                    f"{_ANEW}."
                )
            if not name.startswith(f"{REGTASK_GATE}:"):
                raise UserInput(f"{path}: its case {case.name} is to prove {name}, which no case alone does; {_ANEW}.")


def board_of(result: ProbeResult) -> Board:
    """What a manifest keeps of `result`."""
    assert result.signed_off is not None
    engine = _engine_cases(result)[0]
    conditions, clock, memory = result.conditions, result.conditions.clock, engine.memory
    return Board(
        ms=engine.ms,
        least_ms=engine.least_ms,
        repeats=engine.repeats,
        outputs=_outputs(engine),
        memory=BoardMemory(memory.weight_bytes, memory.internal_bytes) if memory and memory.measured else None,
        conditions=BoardConditions(
            soc=conditions.soc,
            model=conditions.board,
            kernel=conditions.kernel,
            governor=conditions.governor,
            least_hz=clock.least_hz if clock else None,
            most_hz=clock.most_hz if clock else None,
            core_mask=engine.core_mask,
            api=result.versions.get("api"),
            driver=result.versions.get("driver"),
        ),
        warnings=result.warnings,
        cases=tuple(
            BoardCase(
                case.name, case.kind, case.what, case.passed, case.ms, _outputs(case), _problem(case), case.proves
            )
            for case in result.cases
        ),
        before={},
        date=conditions.date,
        by=result.signed_off.by,
        kit_sha256=result.kit_sha256,
        probe_sha256=result.signed_off.sha256,
    )


def _engine_cases(result: ProbeResult) -> list[CaseResult]:
    return [case for case in result.cases if case.kind == ENGINE and case.engine_sha256 == result.subject.engine_sha256]


def _check_sound(path: Path, result: ProbeResult) -> None:
    _check_texts(path, result)
    names = [case.name for case in result.cases]
    for case in result.cases:
        if names.count(case.name) > 1:
            raise UserInput(f"{path}: has two cases of the name {case.name}; {_AGAIN}.")
        _check_sizes(path, case)
        ran = bool(case.outputs) and not case.problem
        if case.passed != (ran and all(figure.passed for figure in case.outputs)):
            said = "passed" if case.passed else "failed"
            raise UserInput(f"{path}: says that its case {case.name} {said}, and its figures say otherwise; {_AGAIN}.")


def _check_texts(path: Path, result: ProbeResult) -> None:
    """See that what is shown of `result` can be printed: a terminal takes some characters for commands."""
    told = result.conditions
    texts = [told.date, told.soc, told.board, told.kernel, told.governor, *result.versions, *result.versions.values()]
    texts += [text for case in result.cases for text in (case.name, case.what, case.core_mask)]
    texts += [result.signed_off.by, result.signed_off.at] if result.signed_off else []
    for text in texts:
        if text is not None and not text.isprintable():
            raise UserInput(f"{path}: {text!r:.80} cannot be printed; {_AGAIN}.")


def _check_sizes(path: Path, case: CaseResult) -> None:
    for ms in (case.ms, case.least_ms):
        if ms is not None and ms < 0:
            raise UserInput(f"{path}: says that its case {case.name} took {ms:g} ms, which no run does; {_AGAIN}.")
    for size in (case.memory.weight_bytes, case.memory.internal_bytes) if case.memory else ():
        if size < 0:
            raise UserInput(f"{path}: says that its case {case.name} takes {size} bytes; {_AGAIN}.")


def _check_engine_cases(path: Path, result: ProbeResult, manifest: Manifest) -> None:
    cases = _engine_cases(result)
    if not cases:
        raise UserInput(f"{path}: has no case of the engine itself, so it says nothing about it; make a kit of it.")
    strange = next((case for case in result.cases if case.kind == ENGINE and case not in cases), None)
    if strange is not None:
        raise UserInput(f"{path}: its case {strange.name} is of another engine than the others; {_ANEW}.")
    least_db, _ = bounds_of(manifest)
    for case in cases:
        for figure in case.outputs:
            if figure.name not in least_db:
                raise UserInput(
                    f"{path}: its case {case.name} compares '{figure.name}', which is no output of the engine; {_ANEW}."
                )
            if figure.bound_db < least_db[figure.name]:
                raise UserInput(
                    f"{path}: its case {case.name} asks {figure.bound_db:g} dB of '{figure.name}', and the engine's "
                    f"own bound is {least_db[figure.name]:g} dB; {_ANEW}."
                )


def _check_other_cases(path: Path, result: ProbeResult) -> None:
    """See that small engines were held to bounds as kits have them."""
    for case in result.cases:
        if case.kind == ENGINE:
            continue
        low = next((figure for figure in case.outputs if figure.bound_db < FLOOR_DB), None)
        if low is not None:
            raise UserInput(
                f"{path}: its case {case.name} asks {low.bound_db:g} dB of '{low.name}', and no case of a kit asks "
                f"less than {FLOOR_DB:g} dB; {_ANEW}."
            )


def _outputs(case: CaseResult) -> tuple[BoardOutput, ...]:
    return tuple(BoardOutput(one.name, one.snr_db, one.bound_db, one.max_abs) for one in case.outputs)


def _problem(case: CaseResult) -> str:
    problems = [f"output '{one.name}': {one.problem}" for one in case.outputs if one.problem]
    return "; ".join([case.problem, *problems] if case.problem else problems)
