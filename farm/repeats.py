"""What was made twice: whether the bytes are the same, and on which nodes they were made."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from farm.catalogue import Failure, Fault, JobMeasured, Repeat, RepeatedFile, RepeatMeasured
from farm.jobs import Job, Kind
from farm.learning import DECISIVE
from farm.outcomes import JobOutcome

COMPARED = (".rknn", ".onnx")
"""Endings of the files whose bytes are compared: engines, and graphs. Manifests tell of the moment they were made in
(`build.wall`), logs of the machine."""


def repeat_of(job: Job, first_job: str, first: Iterable[JobOutcome], second: JobOutcome) -> Repeat:
    """What `job` made once more, against what was made first.

    Files are told apart by their names, which engines and graphs of one stage do not share; a graph that both an export
    and a compilation left counts once where its bytes are the same.

    Args:
        job: the job that made them once more.
        first_job: the job that compiled them first.
        first: its outcome, then those of what it needed.
        second: the outcome of `job`.
    """
    outcomes = list(first)
    once, again = _digests(outcomes), _digests([second])
    files = [
        RepeatedFile(name, before, after)
        for name in sorted(once.keys() | again.keys())
        for before, after in _paired(once.get(name, []), again.get(name, []))
    ]
    found_again = DECISIVE[Kind.COMPILE] in outcomes[0].reused
    measured = RepeatMeasured(None if found_again else outcomes[0].node, second.node)
    of = (job.family, job.stage, job.voice, job.width, job.target)
    return Repeat(job.id, first_job, *of, files=tuple(files), measured=measured)


def repeat_failure(repeat: Repeat) -> Failure | None:
    """What is wrong with `repeat`; None where all bytes are the same."""
    if repeat.same:
        return None
    return Failure(
        Fault.DIFFERS,
        _sentence(repeat),
        repeat.job,
        "twice",
        repeat.family,
        repeat.stage,
        repeat.voice,
        repeat.width,
        repeat.target,
        measured=JobMeasured(node=repeat.measured.second_node),
    )


def _sentence(repeat: Repeat) -> str:
    first = repeat.measured.first_node
    where = f"{'by an earlier run' if first is None else f'on {first}'} and on {repeat.measured.second_node}"
    if not repeat.files:
        return f"It was made {where}, and no file of it can be compared."
    other = [file.name for file in repeat.files if file.first_sha256 and file.second_sha256 and not file.same]
    once = [file.name for file in repeat.files if not (file.first_sha256 and file.second_sha256)]
    told = [f"other bytes in {', '.join(other)}"] if other else []
    told += [f"only once {', '.join(once)}"] if once else []
    return f"Made twice, {where}, it has {', and '.join(told)}; their digests are in catalogue.json."


def _digests(outcomes: Iterable[JobOutcome]) -> dict[str, list[str]]:
    """The digests of the files of each name, each digest once, sorted."""
    found: dict[str, set[str]] = {}
    for outcome in outcomes:
        for file in outcome.files:
            name = PurePosixPath(file.path).name
            if name.endswith(COMPARED):
                found.setdefault(name, set()).add(file.sha256)
    return {name: sorted(digests) for name, digests in found.items()}


def _paired(first: list[str], second: list[str]) -> list[tuple[str | None, str | None]]:
    """Digests that both have, then the others beside each other."""
    both = [digest for digest in first if digest in second]
    left = [digest for digest in first if digest not in both]
    right = [digest for digest in second if digest not in both]
    count = max(len(left), len(right))
    pairs: list[tuple[str | None, str | None]] = [(digest, digest) for digest in both]
    pairs += zip([*left, *[None] * (count - len(left))], [*right, *[None] * (count - len(right))], strict=True)
    return pairs
