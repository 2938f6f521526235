"""Every public voice of Piper for every target, on paper; `python -m farm.piper_paper` prints docs/farm.md's table.

No voice is looked at. Each is taken to be of medium quality. How many are of which quality matters: one of high quality
is 1.8 times as large and takes several times as long, one of x_low quality is a third as large and takes less.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from contracts.targets import TARGETS
from farm.jobs import Job, Kind, Plan
from farm.paper import GB, Paper, count_text, gb_text, hours_text, on_paper
from farm.rows import SEED, Table, read_table

VOICES = 1_683
"""Public voices of Piper, as the farm was asked for (docs/farm.md)."""

MEDIUM_BYTES = 63_201_294
"""The checkpoint of Piper's default voice, of medium quality (en_US-joe-medium.onnx)."""

STAGES = ("decoder", "duration_encoder")
TWICE = 0.01
"""The share that is made twice, as a matrix has it that does not say (farm/matrix.py)."""

CORES = (2, 16, 64, 256)
BYTES_PER_CORE = 4 * GB


def piper_plan(voices: int = VOICES, stages: Sequence[str] = STAGES[:1], targets: Sequence[str] = TARGETS) -> Plan:
    """The jobs of so many voices of medium quality, as the planner makes them of a matrix, but for their commands."""
    jobs = [job for number in range(voices) for stage in stages for job in _of_voice(f"voice-{number}", stage, targets)]
    compiles = [job for job in jobs if job.kind is Kind.COMPILE]
    again = [
        replace(job, id=f"{Kind.TWICE.value}-{job.id}", kind=Kind.TWICE, needs=(job.id,))
        for job in compiles[: math.ceil(TWICE * len(compiles))]
    ]
    return Plan(f"{voices} voices", (*jobs, *again))


def paper_table(table: Table, voices: int = VOICES) -> str:
    """What they take, as a table in Markdown: the decoders alone, and with the duration encoders."""
    columns = [_columns(table, piper_plan(voices, stages)) for stages in (STAGES[:1], STAGES)]
    head = [
        f"| {voices:,} voices for {len(TARGETS)} SoCs | Decoders | Decoders and duration encoders |",
        "|---|---|---|",
    ]
    return "\n".join([*head, *(f"| {name} | {columns[0][name]} | {columns[1][name]} |" for name in columns[0])]) + "\n"


def _of_voice(voice: str, stage: str, targets: Sequence[str]) -> Iterator[Job]:
    export = Job(
        id=f"{Kind.EXPORT.value}-{voice}-{stage}",
        kind=Kind.EXPORT,
        commands=(),
        folder="",
        needs=(),
        family="piper",
        stage=stage,
        voice=voice,
        width="",
        target=None,
        toolkit="2.3.2",
        checkpoint_bytes=MEDIUM_BYTES,
    )
    yield export
    for target in targets:
        name = f"{voice}-{stage}-{target}"
        compiled = replace(export, id=f"compile-{name}", kind=Kind.COMPILE, target=target, needs=(export.id,))
        yield compiled
        yield replace(compiled, id=f"page-{name}", kind=Kind.PAGE, needs=(compiled.id,))


def _columns(table: Table, plan: Plan) -> dict[str, str]:
    papers = [on_paper(plan, table, cores, cores * BYTES_PER_CORE) for cores in CORES]
    return {
        "jobs": f"{papers[0].jobs:,}",
        "on one core, were it alone": hours_text(papers[0].core_hours),
        **{_machine(paper): hours_text(paper.hours) for paper in papers},
        f"memory in use at most, on {CORES[-1]} cores": gb_text(papers[-1].peak_memory_gb),
        "left in the output folder": gb_text(papers[0].disk_gb),
        "written to the cache": gb_text(papers[0].cache_gb),
    }


def _machine(paper: Paper) -> str:
    return f"on {count_text(paper.cores, 'core')}, {gb_text(paper.memory_gb)} of memory"


if __name__ == "__main__":
    sys.stdout.write(paper_table(read_table(SEED)))
