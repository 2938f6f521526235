"""`probe`: runs the kit that `rknn-tts probe` wrote, and signs off what it found.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rknn_tts_runtime.commands.chosen_backend import add_backend_arguments, chosen_backend
from rknn_tts_runtime.commands.output import complain, tell
from rknn_tts_runtime.faults import EXIT_DONE, EXIT_FAILED, BadInput
from rknn_tts_runtime.probing.conditions import utc_now
from rknn_tts_runtime.probing.kit_reading import open_kit
from rknn_tts_runtime.probing.report import check_result_place, report_lines, write_result
from rknn_tts_runtime.probing.result import UNNAMED, signed_off
from rknn_tts_runtime.probing.run import REPEATS, run_kit

NAME = "probe"
HELP = "run a probe kit, and write what it found for `rknn-tts verify`"

MOST_REPEATS = 1000
LONGEST_NAME = 200
"""Of whoever signs off, in characters."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the kit, as `rknn-tts probe ENGINE` writes it")
    parser.add_argument(
        "--out", type=Path, metavar="F.json", help="what is written (default: FOLDER.result.json beside the folder)"
    )
    parser.add_argument("--by", metavar="NAME", help=f"who signs it off (default: {UNNAMED})")
    parser.add_argument(
        "--repeats", type=int, default=REPEATS, metavar="N", help=f"runs of a case that are timed (default: {REPEATS})"
    )
    add_backend_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the kit; 0 where every case passed, 1 where one failed, and the result is written in both.

    Raises:
        BadInput: the kit or an option is wrong; nothing was run.
        RunFault: there is no such backend, or the result cannot be written.
    """
    if not 1 <= arguments.repeats <= MOST_REPEATS:
        raise BadInput(f"--repeats {arguments.repeats}: expected from 1 to {MOST_REPEATS}.")
    by = checked_name(UNNAMED if arguments.by is None else arguments.by)
    folder = _resolved(arguments.folder)
    kit = open_kit(folder)
    place = folder.with_name(f"{folder.name}.result.json") if arguments.out is None else arguments.out
    check_result_place(place)
    backend = chosen_backend(arguments)
    result = run_kit(kit, backend, complain, arguments.repeats)
    result = signed_off(result, by, utc_now())
    tell(*report_lines(result))  # first: they are not lost where the file cannot be written
    write_result(place, result)
    tell(f"written: {place}")
    return EXIT_DONE if result.passed else EXIT_FAILED


def _resolved(folder: Path) -> Path:
    """`folder` with the name that it has in its own folder: it may have been given as `.`."""
    try:
        return folder.resolve()
    except (OSError, RuntimeError) as error:  # a loop of links, a name that is too long
        raise BadInput(f"{folder!s:.300}: is no folder of a kit ({error!s:.100}).") from error


def checked_name(by: str) -> str:
    """`by`, the name of whoever signs off.

    Raises:
        BadInput: it is empty, too long, or cannot be printed.
    """
    name = by.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise BadInput(f"--by: a name of 1 to {LONGEST_NAME} characters is expected, without line breaks.")
    return name
