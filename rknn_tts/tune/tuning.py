"""The command `tune`: sweeps windows under the gates, and chooses the ladder for utterances of given lengths."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rknn_tts_runtime.window_cover import cover_utterance

from contracts.errors import UserInput
from contracts.files import write_whole
from contracts.serial import parse_json, to_json
from converters.registry import STAGES
from converters.stages import Stage, find_stage
from converters.vits_ladder import default_windows, rungs_of
from engine.targets import resolve_target
from rknn_tts.places import ANOTHER_PLACE, make_folder
from rknn_tts.progress import Say
from rknn_tts.request import Request
from rknn_tts.steps import open_steps
from rknn_tts.tune.candidates import CODES, PLAIN, WINDOWS, candidates_of, knob_of
from rknn_tts.tune.ladder_choice import Ladder, Offered, best_ladder, best_of, ladder_of
from rknn_tts.tune.pareto import beaten_by
from rknn_tts.tune.rows import BEATEN, COSTED, PASSED, Row
from rknn_tts.tune.sweep import Sweep, Swept
from rknn_tts.tune.utterance_lengths import UtteranceLengths, in_frames, read_lengths

DEFAULT_TARGET = "rk3588"

DEFAULT_RUNGS = 3

MOST_RUNGS = 4
"""Windows of a ladder that are searched: of 27, 20,000 ladders of four, each covered for every length."""

SHOWN_S = (1.0, 2.0, 5.0, 10.0)
"""Seconds of the utterances whose windows are shown: short ones, and the five seconds that costs are compared at."""

SCHEMA = "rknn-tts/tuning/1"


@dataclass(frozen=True)
class Cover:
    """How an utterance is covered.

    Attributes:
        seconds: of audio.
        frames: of its latent.
        windows: those that are run, in order.
        ms: modelled, of all of them.
        first_audio_ms: of the first.
    """

    seconds: float
    frames: int
    windows: tuple[str, ...]
    ms: float
    first_audio_ms: float


@dataclass(frozen=True)
class Chosen:
    """The ladder that was chosen, and what it is compared with.

    Attributes:
        ladder: the chosen one.
        windows: as `--windows` takes it, or `--window` of a stage with one width.
        single: the best single width, exact on every length, of all whose cost is known.
        default: the ladder that is built today where nothing is asked; None where it was not swept, or there is none.
        covers: how utterances of some lengths are covered.
    """

    ladder: Ladder
    windows: str
    single: Ladder | None
    default: Ladder | None
    covers: tuple[Cover, ...]


@dataclass(frozen=True)
class Tuning:
    """What the command came to.

    Attributes:
        family, stage, target, toolkit: what was swept.
        source: name and digest of the checkpoint; "" where no graph was made.
        lengths: the distribution that the ladder is for; None of a stage without a choice.
        rows: the sweep.
        chosen: the ladder; None where the stage has no choice, or nothing serves every length.
        notes: sentences for the user.
        file: what was written.
        schema: `SCHEMA`.
    """

    family: str
    stage: str
    target: str
    toolkit: str
    source: str
    lengths: UtteranceLengths | None
    rows: tuple[Row, ...]
    chosen: Chosen | None
    notes: tuple[str, ...]
    file: str | None = None
    schema: str = SCHEMA

    @property
    def failure(self) -> str | None:
        """That nothing came of the sweep, as a sentence; None where a window passed."""
        if any(row.status == PASSED for row in self.rows):
            return None
        return f"Of the {len(self.rows)} windows of this sweep none passed: the table says why."


def tune(request: Request, say: Say) -> Tuning:
    """Sweep what `request` asks for.

    Raises:
        RknnTtsError: refused, or none of the engines can be built at all; an engine that fails a gate is a row.
    """
    stage = find_stage(STAGES, request.family or "", request.stage)
    target = resolve_target(request.target or DEFAULT_TARGET)
    most = _rungs(request)
    candidates = candidates_of(stage, request)
    chooses = knob_of(stage) != CODES
    if not chooses and request.utterances is not None:
        raise UserInput(f"{stage.family} {stage.name} goes along a stream of codes, however long: no --utterances.")
    lengths = read_lengths(Path(request.utterances) if request.utterances is not None else None) if chooses else None
    place = _place(request)
    sweep = Sweep(request, target, open_steps(request.force, say.note), say)
    sweep.check_toolkit()
    swept = [one for candidate in candidates for one in sweep.opened(candidate)]
    if all(one.source is None for one in swept):
        raise UserInput(f"Nothing can be swept: {swept[0].row.reason}")
    shares = _shares(swept, lengths)
    finished = _finished(request, stage, swept, sweep, shares, most)
    rows = tuple(_marked([one.row for one in finished]))
    chosen = _chosen(stage, rows, target, shares, most) if shares else None
    source = next(one.source.contract.source for one in swept if one.source is not None)
    tuning = Tuning(
        stage.family,
        stage.name,
        target,
        request.toolkit,
        f"{source.name}, sha256 {source.sha256[:16]}",
        lengths,
        rows,
        chosen,
        tuple(_notes(sweep, rows, chosen, stage)),
    )
    if place is None:
        return tuning
    tuning = replace(tuning, file=str(place))
    write_whole(place, (json.dumps(to_json(tuning), indent=1) + "\n").encode())
    return tuning


def _rungs(request: Request) -> int:
    most = DEFAULT_RUNGS if request.rungs is None else request.rungs
    if not 1 <= most <= MOST_RUNGS:
        raise UserInput(f"--rungs {most}: a ladder of 1 to {MOST_RUNGS} windows is expected.")
    return most


def _place(request: Request) -> Path | None:
    """Where the sweep is written.

    Raises:
        UserInput: that is no .json, or it cannot be written there.
    """
    if request.output is None:
        return None
    place = Path(request.output)
    if place.suffix != ".json" or place.is_dir():
        raise UserInput(f"--output {request.output}: a file ending in .json is expected.")
    if place.exists() and not _is_tuning(place):
        raise UserInput(f"--output {request.output}: stands there already, and is no sweep; name another file.")
    make_folder(place.parent, ANOTHER_PLACE)
    return place


def _is_tuning(place: Path) -> bool:
    if not place.is_file():  # reading a pipe or a device need not end
        return False
    try:
        data = parse_json(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and data.get("schema") == SCHEMA


def _shares(swept: Sequence[Swept], lengths: UtteranceLengths | None) -> dict[int, float]:
    """The lengths in frames of the stage; empty where there is nothing to choose.

    Raises:
        UserInput: nothing states how long a frame sounds.
    """
    if lengths is None:
        return {}
    sizes = [one.row.size for one in swept if one.row.size is not None]
    rate = sizes[0].units_per_s if sizes else None
    if rate is None:
        raise UserInput(
            "Nothing states the voice's sample rate, so utterances of so many seconds have no number of frames: "
            "--sample-rate says it."
        )
    return in_frames(lengths, rate)


def _finished(
    request: Request, stage: Stage, swept: Sequence[Swept], sweep: Sweep, shares: Mapping[int, float], most: int
) -> list[Swept]:
    """`swept`, costed, and those proven that are worth it: of a stage of one form a width, all.

    Where widths have forms, some of them beat others in every figure; their cost alone shows that, in a third of the
    time. With `--quick` only the ladder's windows are proven, and chosen anew without what fails.
    """
    if knob_of(stage) != WINDOWS:
        return [one if one.source is None else sweep.proven(one) for one in swept]
    costed = sweep.costed(swept)
    while True:
        rows = [one.row for one in costed]
        if request.quick:
            ladder = best_ladder(_offered(_marked(rows), (COSTED, PASSED)), shares, most)
            wanted = ladder.names if ladder is not None else ()
        else:  # what was beaten by an engine that fails is not beaten any more
            wanted = tuple(row.name for row in _marked(rows) if row.status == COSTED)
        waiting = [place for place, row in enumerate(rows) if row.status == COSTED and row.name in wanted]
        if not waiting:
            return costed
        for place in waiting:
            costed[place] = sweep.proven(costed[place])


def _marked(rows: Sequence[Row]) -> list[Row]:
    """`rows`, each that another one beats in every figure with that one's name; its gates need not be run.

    Engines of different roles do different work, and are not compared.
    """
    marked = list(rows)
    alive = [place for place, row in enumerate(rows) if row.layers is not None and row.status in (PASSED, COSTED)]
    for role in dict.fromkeys(rows[place].role for place in alive):
        places = [place for place in alive if rows[place].role == role]
        for place, beaten in zip(places, beaten_by([rows[place].figures for place in places]), strict=True):
            if beaten is not None:
                status = BEATEN if rows[place].status == COSTED else rows[place].status
                marked[place] = replace(rows[place], status=status, reason=f"{rows[places[beaten]].name} beats it")
    return marked


def _offered(rows: Sequence[Row], statuses: Sequence[str]) -> list[Offered]:
    return [
        Offered(row.name, row.rung, row.memory_mb)
        for row in rows
        if row.status in statuses and row.rung is not None and row.memory_mb is not None
    ]


def _chosen(stage: Stage, rows: Sequence[Row], target: str, shares: Mapping[int, float], most: int) -> Chosen | None:
    """The ladder of those that passed; of a stage with one width, the engines of one width."""
    passed = [row for row in rows if row.status == PASSED]
    if knob_of(stage) == WINDOWS:
        offered = _offered(passed, (PASSED,))
        ladder = best_ladder(offered, shares, most)
        single = best_ladder(_offered(rows, (PASSED, COSTED, BEATEN)), shares, 1)
        default = _default(stage, rows, target, shares)
    else:
        sets = {(row.windows, row.context): [one for one in rows if _is_of_set(one, row)] for row in passed}
        whole = [_offered(members, (PASSED,)) for members in sets.values() if all(one in passed for one in members)]
        ladder = single = best_of(whole, shares)
        default = None
    if ladder is None:
        return None
    of_ladder = [next(row for row in passed if row.name == name) for name in ladder.names]
    windows = ",".join(dict.fromkeys(row.windows for row in of_ladder))
    return Chosen(ladder, windows, single, default, tuple(_covers(of_ladder)))


def _is_of_set(one: Row, other: Row) -> bool:
    """Whether two engines are of the same width and context."""
    return (one.windows, one.context) == (other.windows, other.context)


def _default(stage: Stage, rows: Sequence[Row], target: str, shares: Mapping[int, float]) -> Ladder | None:
    """The ladder that is built today, of windows that were swept."""
    ladders = default_windows().get(f"{stage.family}.{stage.name}")
    if ladders is None:
        return None
    names = {f"{rung.frames}{rung.letter or PLAIN}" for rung in rungs_of(ladders.get(target, ladders["default"]))}
    offered = _offered([row for row in rows if row.name in names], (PASSED, BEATEN, COSTED))
    return ladder_of(offered, shares) if len(offered) == len(names) else None


def _covers(rows: Sequence[Row]) -> Iterator[Cover]:
    """How a ladder covers utterances of some lengths."""
    rungs = [row.rung for row in rows]
    rate = rows[0].size.units_per_s if rows[0].size is not None else None
    if rate is None:
        return
    for seconds in SHOWN_S:
        frames = max(1, round(seconds * rate))
        steps = cover_utterance(frames, [rung for rung in rungs if rung is not None])
        costs = [rung.cost for step in steps if (rung := rungs[step.rung]) is not None]
        yield Cover(seconds, frames, tuple(rows[step.rung].name for step in steps), math.fsum(costs), costs[0])


def _notes(sweep: Sweep, rows: Sequence[Row], chosen: Chosen | None, stage: Stage) -> Iterator[str]:
    """Sentences for the user."""
    yield from sweep.notes
    beaten = sum(row.status == BEATEN for row in rows)
    if beaten:
        yield (
            f"{beaten} of {len(rows)} windows are beaten by another one in every figure of their cost, so their gates "
            "and the simulator were not run."
        )
    if any(row.status == COSTED for row in rows):
        yield "Of the windows outside the ladder only the cost was looked at: leave out --quick to run their gates."
    if knob_of(stage) != CODES and chosen is None and any(row.status == PASSED for row in rows):
        yield (
            "No ladder of those that passed serves every length exactly: the shortest utterance needs a masked window, "
            "or one that is no wider than it."
        )
