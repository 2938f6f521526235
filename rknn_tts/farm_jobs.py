"""A matrix to the plan of all its jobs.

A job's id is the digest of all that decides its result: the checkpoint's content, the geometry, the target, our code
and the libraries it runs on, the toolkit and its lock, and where its files go below the output folder. It does not hold
where the checkpoint, the checkout or the output folder stand.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from contracts.errors import UserInput
from contracts.files import digests_from, sha256_of
from engine.environment import CONVERTER_PYTHON, passed_on
from environments.locks import TOOLKIT_PREFIX, read_lock
from farm.jobs import ENGINES, EXPORTS, Job, Kind, Plan, Unplanned
from farm.matrix import PACKAGE, Cuts, Matrix
from farm.places import EXPORTS_FOLDER
from rknn_tts.extras import pinned_text
from rknn_tts.farm_checkpoints import FoundCheckpoint, checkpoints_of
from rknn_tts.farm_rows import Geometry, RowStage, rows_of, toolkit_of
from rknn_tts.known_files import KnownFiles
from rknn_tts.steps import ROOMS, ROOT, code_digest

ID_DIGITS = 16
"""Hex digits of a job's id: of a million jobs, two are alike with a chance of 3e-8."""

HERE, FORCE = "--output=./", "--force"
TWICE_FOLDER = ".farm/twice"
"""As `farm.places.FarmPlaces.scratch` has it, below the output folder."""

_DATA = ("*.json", "*.j2", "*.css")
"""What beside our code decides results: default windows, what was weighed, templates."""

_PAGE_ROOMS = (*ROOMS, "pages")


@dataclass(frozen=True)
class Planned:
    """A plan, and what is told of it.

    Attributes:
        plan: all jobs.
        notes: sentences about the checkpoints.
        extras: locks that opening them needs.
    """

    plan: Plan
    notes: tuple[str, ...]
    extras: frozenset[str]


def plan_of(matrix: Matrix, known: KnownFiles, *, force: bool = False) -> Planned:
    """All jobs of `matrix`, needs first.

    Args:
        matrix: what is asked for.
        known: digests of files; grows.
        force: let each command do every step again, though its result is at hand.

    Raises:
        UserInput: it asks for what there is not, a pattern stands for nothing, or two checkpoints would go to one
            place; one sentence, and nothing is planned.
    """
    toolkit = toolkit_of(matrix)
    maker = _Maker(matrix, toolkit, _toolkit_digest(toolkit), force)
    unplanned: list[Unplanned] = []
    notes: list[str] = []
    extras = frozenset[str]()
    with digests_from(known.sha256):
        for asked in rows_of(matrix):
            found = checkpoints_of(matrix, asked, known)
            unplanned += found.unplanned
            notes += found.notes
            extras |= asked.stage.extras
            for checkpoint in found.found:
                extras |= checkpoint.extras
                maker.add(asked, checkpoint)
    jobs = tuple(maker.jobs.values())
    twice = _twice([job for job in jobs if job.kind is Kind.COMPILE], matrix.twice)
    again = tuple(maker.twice(job, maker.jobs[job.needs[0]]) for job in twice)
    return Planned(
        Plan(matrix.file.name, (*jobs, *again), tuple(dict.fromkeys(unplanned))), tuple(dict.fromkeys(notes)), extras
    )


@dataclass
class _Maker:
    """Makes jobs, each once."""

    matrix: Matrix
    toolkit: str
    toolkit_digest: str
    force: bool
    jobs: dict[str, Job] = field(default_factory=dict)
    _taken: dict[tuple[str, str, str, str], tuple[str, str]] = field(default_factory=dict)

    def add(self, asked: RowStage, checkpoint: FoundCheckpoint) -> None:
        """The jobs of one checkpoint of a row."""
        for geometry in asked.geometries:
            self._check_place(asked, checkpoint, geometry)
            if self.matrix.cuts is Cuts.COMMON:
                export = self._keep(self._export(asked, checkpoint, geometry, None))
                exports = dict.fromkeys(asked.targets, export)
            else:
                exports = {
                    target: self._keep(self._export(asked, checkpoint, geometry, target)) for target in asked.targets
                }
            for target in asked.targets:
                compiled = self._keep(self._compile(exports[target], target))
                if self.matrix.pages:
                    self._keep(self._page(compiled))

    def _check_place(self, asked: RowStage, checkpoint: FoundCheckpoint, geometry: Geometry) -> None:
        """See that no other checkpoint, and no other geometry, goes to the same place under the same names."""
        place = (asked.stage.family, asked.stage.name, checkpoint.voice, geometry.label)
        mine = (checkpoint.word or PACKAGE, " ".join(geometry.words))
        word, words = self._taken.setdefault(place, mine)
        folder = "/".join(part for part in (checkpoint.voice, geometry.label) if part)
        where = f"{self.matrix.file}: {asked.row.place}"
        if word != mine[0]:
            raise UserInput(
                f"{where}: {word} and {mine[0]} would both go to a folder {folder}; rename one, or build them by two "
                "matrices with an output each."
            )
        if words != mine[1]:
            raise UserInput(f"{where}: {words} and {mine[1]} would both go to a folder {folder}; leave one out.")

    def _keep(self, job: Job) -> Job:
        return self.jobs.setdefault(job.id, job)

    def _export(self, asked: RowStage, checkpoint: FoundCheckpoint, geometry: Geometry, target: str | None) -> Job:
        stage = asked.stage
        head = ["export", stage.family, f"--stage={stage.name}"]
        named = [] if checkpoint.word is None else [f"--checkpoint={checkpoint.word}"]
        chosen = [] if target is None else [f"--target={target}"]
        parts = (EXPORTS_FOLDER, target or "", checkpoint.voice, geometry.label)
        folder = "/".join(part for part in parts if part)
        return Job(
            id=_id(
                Kind.EXPORT,
                *(*head, *geometry.decides, *chosen, folder),
                checkpoint.digest,
                stage.material.sha256 if stage.material is not None else "",
                pinned_text(stage.extras | checkpoint.extras - {"hub"}),
                _code(ROOMS),
            ),
            kind=Kind.EXPORT,
            commands=(self._command(*head, *named, *geometry.words, *chosen, HERE),),
            folder=folder,
            needs=(),
            family=stage.family,
            stage=stage.name,
            voice=checkpoint.voice,
            width=geometry.label,
            target=target,
            toolkit=self.toolkit,
            language=checkpoint.language,
            checkpoint=checkpoint.word,
            checkpoint_bytes=checkpoint.bytes,
        )

    def _compile(self, export: Job, target: str) -> Job:
        words = ("compile", EXPORTS, f"--target={target}", f"--toolkit={self.toolkit}")
        folder = "/".join(part for part in (target, export.voice, export.width) if part)
        return _after(
            export,
            Kind.COMPILE,
            (self._command(*words, HERE),),
            folder,
            _id(Kind.COMPILE, export.id, *words, folder, self.toolkit_digest, _code(ROOMS)),
            target,
        )

    def _page(self, compiled: Job) -> Job:
        words = ("report", ENGINES, "--no-sample", f"--output={compiled.family}-{compiled.stage}.html")
        return _after(
            compiled,
            Kind.PAGE,
            (self._command(*words),),
            compiled.folder,
            _id(Kind.PAGE, compiled.id, *words, _code(_PAGE_ROOMS)),
            compiled.target,
        )

    def twice(self, compiled: Job, export: Job) -> Job:
        """The job that does `export` and `compiled` once more."""
        exporting, compiling = _without_ends(export), _without_ends(compiled)
        identity = _id(Kind.TWICE, compiled.id)
        return _after(
            compiled,
            Kind.TWICE,
            ((*exporting, f"--output={EXPORTS_FOLDER}/", "--json"), (*compiling, HERE, "--json")),
            f"{TWICE_FOLDER}/{identity}",
            identity,
            compiled.target,
        )

    def _command(self, *words: str) -> tuple[str, ...]:
        return (*words, *([FORCE] if self.force else []), "--json")


def _after(
    need: Job, kind: Kind, commands: tuple[tuple[str, ...], ...], folder: str, identity: str, target: str | None
) -> Job:
    """A job of the same checkpoint that starts from what `need` leaves."""
    return Job(
        id=identity,
        kind=kind,
        commands=commands,
        folder=folder,
        needs=(need.id,),
        family=need.family,
        stage=need.stage,
        voice=need.voice,
        width=need.width,
        target=target,
        toolkit=need.toolkit,
        language=need.language,
        checkpoint=need.checkpoint,
        checkpoint_bytes=need.checkpoint_bytes,
    )


def _without_ends(job: Job) -> tuple[str, ...]:
    """The words of a job's command, but for where its files go and how it tells."""
    return tuple(word for word in job.commands[0] if word not in (HERE, FORCE, "--json"))


def _twice(compiles: Sequence[Job], share: float) -> list[Job]:
    """Those of `compiles` that are made twice, the same ones each time: the first by their digests."""
    if not compiles or share == 0:
        return []
    count = max(1, math.ceil(share * len(compiles)))
    chosen = {job.id for job in sorted(compiles, key=lambda job: job.id)[:count]}
    return [job for job in compiles if job.id in chosen]


def _id(kind: Kind, *decides: str) -> str:
    digest = hashlib.sha256(json.dumps(decides).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{kind.value}-{digest[:ID_DIGITS]}"


@cache
def _code(rooms: tuple[str, ...]) -> str:
    """Digest of our code in `rooms` and of the data beside it, libraries' versions included."""
    digest = hashlib.sha256(code_digest(rooms).encode())
    for path in _data_files(rooms):
        digest.update(f"{path.relative_to(ROOT).as_posix()}:{sha256_of(path)}\n".encode())
    return digest.hexdigest()


def _data_files(rooms: Sequence[str]) -> Iterator[Path]:
    for room in rooms:
        found = {path for pattern in _DATA for path in (ROOT / room).rglob(pattern)}
        yield from sorted(path for path in found if not _is_hidden(path))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(ROOT).parts)


def _toolkit_digest(toolkit: str) -> str:
    """What is known of the converter environment before it is made: its lock, where a user's own stands, variables."""
    lock, own = read_lock(ROOT, f"{TOOLKIT_PREFIX}{toolkit}").digest, os.environ.get(CONVERTER_PYTHON, "")
    return json.dumps([lock, own, passed_on(os.environ)], sort_keys=True)
