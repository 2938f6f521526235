"""The command line of the board companion: a command a module of `commands`.

Exit codes: 0 done; 2 the command or an input file is wrong, nothing was run; 1 an engine failed, or a probe did.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import Protocol, Sequence

from rknn_tts_runtime import __version__
from rknn_tts_runtime.commands.output import complain
from rknn_tts_runtime.faults import EXIT_FAILED, EXIT_REFUSED, BadInput, Fault

PROGRAM = "python -m rknn_tts_runtime"

COMMANDS = ("say", "bench", "check", "probe")
"""Modules of `commands`, in the order in which help lists them."""

_INTERRUPTED = 130
"""What a shell says of a program that SIGINT ended: 128 + 2."""


class Command(Protocol):
    """A module of `commands`.

    Attributes:
        NAME: as it is typed.
        HELP: one line.
    """

    NAME: str
    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Say what the command takes."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it; its exit code."""


def main(arguments: Sequence[str]) -> int:
    """Run the command line `arguments`; its exit code."""
    parser, modules = _parser()
    try:
        asked = _checked(parser.parse_args(list(arguments)))
        return modules[asked.command].run(asked)
    except Fault as fault:
        return _told(str(fault), fault.exit_code)
    except KeyboardInterrupt:
        return _told("interrupted", _INTERRUPTED)
    except BrokenPipeError:  # whoever read the output has seen enough
        sys.stderr.close()
        return EXIT_FAILED
    except OSError as error:  # those of files that are read are told where they are: the disk is full, say
        place = f"{error.filename}: " if error.filename else ""
        return _told(f"{place}{error.strerror or error}.", EXIT_FAILED)
    except MemoryError:
        return _told("This machine has not enough memory for that.", EXIT_FAILED)


def _parser() -> tuple[argparse.ArgumentParser, dict[str, Command]]:
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Runs engines of rknn-tts, speaks, and proves them.")
    parser.add_argument("--version", action="version", version=f"rknn-tts-runtime {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    subparsers.required = True
    modules: dict[str, Command] = {}
    for name in COMMANDS:
        module: Command = importlib.import_module(f"rknn_tts_runtime.commands.{name}")
        modules[name] = module
        module.add_arguments(subparsers.add_parser(module.NAME, help=module.HELP, description=module.HELP))
    return parser, modules


def _checked(asked: argparse.Namespace) -> argparse.Namespace:
    """`asked`, whose values are all single ones.

    Raises:
        BadInput: a value was "--", which argparse before Python 3.13 takes away: it leaves an empty list.
    """
    for name, value in vars(asked).items():
        if isinstance(value, list):
            raise BadInput(f"--{name.replace('_', '-')}=--: two hyphens are no value of it; give another.")
    return asked


def _told(sentence: str, code: int) -> int:
    complain(f"{'refused' if code == EXIT_REFUSED else 'error'}: {sentence}")
    return code
