"""Hands a report over: results to standard output, errors to standard error, verdicts to the JUnit file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from contracts.errors import EXIT_FAILED
from contracts.files import write_whole
from rknn_tts.blocks import Block, write_blocks
from rknn_tts.report import Report, report_json


def deliver(report: Report) -> int:
    """Hand `report` over as its request asks; the exit code to end with."""
    report = _write_junit(report)
    blocks = [] if report.request.json else _result_blocks(report)
    try:
        if report.request.json:
            _write(sys.stdout, lambda stream: stream.write(report_json(report)))
        else:
            _write(sys.stdout, lambda stream: write_blocks(blocks, stream))
    except OSError as error:
        if report.error is None:
            sentence = f"The result could not be printed ({error.strerror or error}); all else is done."
            report = replace(report, exit_code=EXIT_FAILED, error=sentence)
    if report.error is not None:
        from rknn_tts.present import error_blocks

        with suppress(OSError):  # the exit code says it still
            _write(sys.stderr, lambda stream: write_blocks(error_blocks(report), stream))
    return report.exit_code


def _write_junit(report: Report) -> Report:
    """Write the JUnit file; the report, which is a failure if it was none and the file cannot be written."""
    if report.request.junit is None:
        return report
    from rknn_tts.junit import junit_xml, may_hold_report

    path = Path(report.request.junit)
    try:
        if report.error is None or may_hold_report(path):  # what was refused for its path is not written there
            write_whole(path, junit_xml(report))
    except OSError as error:
        if report.error is None:
            sentence = f"--junit {path}: the report could not be written ({error.strerror or error}); all else is done."
            return replace(report, exit_code=EXIT_FAILED, error=sentence)
    return report


def _write(stream: TextIO, write: Callable[[TextIO], object]) -> None:
    """Write and flush; a reader that has gone (`| head`) is no error of the command's.

    Raises:
        OSError: the stream cannot be written: a full disk.
    """
    try:
        write(stream)
        stream.flush()
    except OSError as error:
        # The interpreter flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError):
            raise


def _result_blocks(report: Report) -> list[Block]:
    if report.parts:
        from rknn_tts.present_many import many_blocks

        return many_blocks(report)
    if report.request.all:
        from rknn_tts.present_all import all_blocks

        return all_blocks(report)
    from rknn_tts import present

    presenters: Mapping[str, Callable[[Report], list[Block]]] = {
        "surgery": _trial_blocks,
        "inspect": _inspection_blocks,
        "diff": _comparison_blocks,
        "plan": _plan_blocks,
        "report": _page_blocks,
        "probe": _kit_blocks,
        "bench": _bench_blocks,
        "tune": _tune_blocks,
        "farm": _farm_blocks,
        "catalogue": _catalogue_blocks,
        "families": present.family_blocks,
        "passes": present.pass_blocks,
        "doctor": present.finding_blocks,
        "clean": present.removal_blocks,
    }
    if report.request.command in presenters:
        return presenters[report.request.command](report) if report.extra else []
    return present.outcome_blocks(report)


def _trial_blocks(report: Report) -> list[Block]:
    from rknn_tts.present_trial import trial_blocks

    return trial_blocks(report.extra["trial"])


def _inspection_blocks(report: Report) -> list[Block]:
    from rknn_tts.present_inspection import inspection_blocks

    return inspection_blocks(report.extra["inspection"])


def _plan_blocks(report: Report) -> list[Block]:
    from rknn_tts.present_plan import plan_blocks, schema_blocks

    return schema_blocks(report.extra["plan_schema"]) if report.request.schema else plan_blocks(report.extra["plan"])


def _page_blocks(report: Report) -> list[Block]:
    from rknn_tts.present_page import page_blocks

    return page_blocks(report.extra["page"])


def _kit_blocks(report: Report) -> list[Block]:
    from rknn_tts.present_probe import kit_blocks

    return kit_blocks(report.extra["probe"])


def _bench_blocks(report: Report) -> list[Block]:
    from rknn_tts.present_bench import bench_blocks

    return bench_blocks(report.extra["bench"])


def _tune_blocks(report: Report) -> list[Block]:
    from rknn_tts.present_tune import tune_blocks

    return tune_blocks(report.extra["tuning"])


def _farm_blocks(report: Report) -> list[Block]:
    from rknn_tts.present_farm import farm_blocks

    return farm_blocks(report.extra, report.outcome.files)


def _catalogue_blocks(report: Report) -> list[Block]:
    from rknn_tts.present_catalogue import catalogue_blocks

    return catalogue_blocks(report.extra, report.outcome.files)


def _comparison_blocks(report: Report) -> list[Block]:
    from rknn_tts.present_comparison import comparison_blocks

    return comparison_blocks(report.extra["diff"])
