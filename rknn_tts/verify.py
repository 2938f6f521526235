"""`rknn-tts verify`: what a probe on a board found becomes the engine's manifest's.

Only the manifest is written, and the folder's MANIFEST.sha256 where it keeps one, both or neither. The manifest of a
set names its members and keeps no digest of them, so it stays true.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from contracts.board import Board
from contracts.errors import UserInput
from contracts.files import sha256_of
from contracts.manifest import Manifest, manifest_text, read_manifest
from contracts.verdicts import Status, Verdict
from rknn_tts.checksums import check_as_listed, with_sums
from rknn_tts.outcome import Outcome
from rknn_tts.publish import publish
from rknn_tts.verify_gates import unproven_places, verdict_places
from rknn_tts.verify_record import BOARD_GATE, lost, with_board, without_board
from rknn_tts.verify_result import board_of, check_of_engine, read_result

_REMEDY = "make the folder writable, and run the command again"


@dataclass(frozen=True)
class Verified:
    """What became of a manifest.

    Attributes:
        outcome: the files, the manifest as it is now, the verdicts that the probe gave and those still unproven, notes.
        failure: what failed on the board, as a sentence; None where nothing did.
    """

    outcome: Outcome
    failure: str | None


def verify(engine: Path, probe: Path) -> Verified:
    """Put the figures of the result `probe` into the manifest of `engine`.

    Args:
        engine: the engine's file, or its manifest's.
        probe: what `python -m rknn_tts_runtime probe` wrote on a board.

    Raises:
        UserInput: there is no such engine, its manifest is not of it, or the result is not one of it on a board.
        NotWritten: the manifest cannot be written; it is as it was.
    """
    place, manifest = _at_hand(engine)
    check_as_listed(place)
    result = read_result(probe)
    bare = without_board(manifest)
    check_of_engine(probe, result, bare)
    now = with_board(bare, board_of(result))
    assert now.board is not None
    files = with_sums([(place, manifest_text(now).encode())])
    publish(files, _REMEDY)
    given = _given(now, now.board)
    outcome = Outcome(
        files=tuple(str(path) for path, _ in files),
        manifest=now,
        verdicts=given,
        measurements=(),
        notes=(
            *_notes(manifest.board, now.board),
            *_silent(now),
            *_unnamed_chip(now),
            *now.board.warnings,
            *_unproven(given),
        ),
        reused=(),
    )
    return Verified(outcome, _failure(now, given))


def _at_hand(engine: Path) -> tuple[Path, Manifest]:
    """The manifest of an engine, and where it stands; it is of the file beside it."""
    place = engine.with_suffix(".json")
    if not place.is_file():
        raise UserInput(f"{place}: there is no such manifest; name an engine that rknn-tts built.")
    manifest = read_manifest(place)
    file = place.with_name(Path(manifest.engine.file).name)
    if engine not in (place, file):
        raise UserInput(f"{engine}: the manifest beside it is of {file.name}; name that engine.")
    if not file.is_file():
        raise UserInput(f"{file}: there is no such engine beside its manifest.")
    try:
        digest = sha256_of(file)
    except OSError as error:
        raise UserInput(f"{file}: cannot be read ({error.strerror}).") from error
    if digest != manifest.engine.sha256:
        raise UserInput(
            f"{place}: is stale, the engine beside it is another one (sha256 {digest[:16]}, the manifest's is "
            f"{manifest.engine.sha256[:16]}); build the engine again."
        )
    return place, manifest


def _given(now: Manifest, board: Board) -> tuple[Verdict, ...]:
    """The verdicts that the probe gave, those on its cases first, and those that are unproven still."""
    places = verdict_places(now)
    cases = [now.verdicts[places[f"{BOARD_GATE}.{case.name}"]] for case in board.cases]
    decided = [now.verdicts[places[name]] for name in board.before]
    return (*cases, *decided, *(now.verdicts[place] for place in unproven_places(now).values()))


def _failure(now: Manifest, given: tuple[Verdict, ...]) -> str | None:
    failed = [verdict for verdict in given if verdict.status is Status.FAILED]
    if not failed:
        return None
    more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
    return f"{now.engine.file} failed on a board: {failed[0].gate}{more}; its manifest says so now."


def _unproven(given: tuple[Verdict, ...]) -> list[str]:
    """How many verdicts the probe does not give either."""
    count = sum(verdict.status is Status.UNPROVEN for verdict in given)
    told = f"{count} verdicts can only be given by a board, and this probe gives none on them"
    if count == 1:
        told = "1 verdict can only be given by a board, and this probe gives none on it"
    return [f"UNPROVEN: {told}."] if count else []


def _silent(now: Manifest) -> list[str]:
    """That the probe compared none but some of the outputs."""
    compared = [output.name for output in now.board.outputs] if now.board else []
    missing = [spec.name for spec in now.outputs if compared and spec.name not in compared]
    return [f"Not compared on the board: {', '.join(missing)}."] if missing else []


def _unnamed_chip(now: Manifest) -> list[str]:
    """That nothing but the engine's own word tells the chip it ran on."""
    if now.board is None or now.board.conditions.soc is not None:
        return []
    return [f"The board did not tell its chip; that it is an {now.target} follows only from what ran on it."]


def _notes(earlier: Board | None, now: Board) -> list[str]:
    if earlier is None:
        return []
    if earlier.probe_sha256 == now.probe_sha256:
        return ["These figures were in the manifest already."]
    notes = [f"The figures of {earlier.date} (by {earlier.by}) are replaced by those of {now.date} (by {now.by})."]
    gone = lost(earlier.before, now.before)
    if gone:
        notes.append(f"LOST: that probe had decided {', '.join(gone)}, and this one does not: unproven again.")
    if now.date < earlier.date:
        notes.append("The probe that is replaced was the later one.")
    return notes
