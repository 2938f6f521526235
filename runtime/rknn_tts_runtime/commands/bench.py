"""`bench`: how the voice of a plan streams: time to first audio, real-time factor, where the time goes.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path

from rknn_tts_runtime.commands.chosen_backend import TWINS, TWINS_NOTE, add_backend_arguments, chosen_backend
from rknn_tts_runtime.commands.example import example
from rknn_tts_runtime.commands.output import tell
from rknn_tts_runtime.commands.utterance import add_plan_arguments, add_utterance_arguments, asked_by
from rknn_tts_runtime.faults import EXIT_DONE, BadInput
from rknn_tts_runtime.plans.reading import read_plans
from rknn_tts_runtime.speaking.streaming_report import StreamingReport, measured, table
from rknn_tts_runtime.speaking.voices import check_asked, open_speaker, the_plan

NAME = "bench"
HELP = "how the voice of a plan streams: first audio, real-time factor, where the time goes, memory"

SCHEMA = "rknn-tts/bench/1"
MOST_REPEATS = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("plan", type=Path, metavar="PLAN.json", help="as `rknn-tts plan` writes it")
    add_plan_arguments(parser)
    add_utterance_arguments(parser, required=False)
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="runs; the one of the median time counts")
    parser.add_argument("--format", choices=["table", "json"], default="table", help="what is printed")
    add_backend_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Speak several times, and tell of the run whose time is the median.

    Raises:
        BadInput, RunFault: it cannot be said.
    """
    asked = asked_by(arguments)
    if not 1 <= arguments.repeats <= MOST_REPEATS:
        raise BadInput(f"--repeats {arguments.repeats}: expected from 1 to {MOST_REPEATS}.")
    plan = the_plan(read_plans(arguments.plan, arguments.model, arguments.family), arguments.plan)
    check_asked(plan.family, asked)
    asked = example(plan.family, asked)
    backend = chosen_backend(arguments)
    speaker = open_speaker(plan, backend)
    try:
        reports = [
            measured(plan.family, backend.name, backend.versions, speaker, asked)[1] for _ in range(arguments.repeats)
        ]
    finally:
        speaker.close()
    report = median_report(reports)
    if backend.name == TWINS:
        report = replace(report, notes=(*report.notes, TWINS_NOTE))
    if arguments.format == "json":
        tell(json.dumps({"schema": SCHEMA, "repeats": len(reports), **asdict(report)}, indent=1))
    else:
        tell(table(report))
    return EXIT_DONE


def median_report(reports: list[StreamingReport]) -> StreamingReport:
    """That of `reports` whose time is the median; of an even number, the slower of the two in the middle."""
    return sorted(reports, key=lambda report: report.total_ms)[len(reports) // 2]
