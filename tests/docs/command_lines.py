"""Reads a command line of a page as the command itself does, or as the board companion does, and does not run it."""

from __future__ import annotations

import argparse
import importlib
import shlex
from dataclasses import fields
from typing import Any, NoReturn

import typer
from rknn_tts_runtime.cli import COMMANDS, Command
from typer.main import get_command

from contracts.errors import UserInput
from contracts.targets import TARGETS
from converters.registry import STAGES
from converters.stages import Stage, StageOptions, find_stage
from farm.matrix import read_matrix
from rknn_tts.cli import NAME, build_app
from rknn_tts.farm_rows import rows_of
from rknn_tts.request import Request, options, request_from_make
from rknn_tts.tune.candidates import candidates_of
from tests.docs.pages import ROOT


def fault_of_command(line: str) -> str:
    """What `line`, of `make` or of ./rknn-tts, would be refused for before a checkpoint is opened; "" for nothing."""
    try:
        request = request_of(line)
        if request.command == "farm":
            rows_of(read_matrix(ROOT / (request.matrix or "")))
            return ""
        stage = find_stage(STAGES, request.family or "", request.stage)
        return _fault_of_options(request, stage)
    except (UserInput, typer.TyperException) as error:
        return f"{error}"


def request_of(line: str) -> Request:
    """The request that `line` makes.

    Raises:
        UserInput, TyperException: it makes none.
    """
    program, command, *words = shlex.split(line)
    if program == "make":
        return request_from_make(command, dict(word.split("=", 1) for word in words), " ".join(words))
    assert program == f"./{NAME}"
    group: Any = get_command(build_app(rich_help=False))
    if command not in group.commands:
        raise UserInput(f"There is no command {command}.")
    return Request(command=command, **group.commands[command].make_context(command, words).params)


def _fault_of_options(request: Request, stage: Stage) -> str:
    """A target that is not there, or an option that the stage does not take."""
    if request.target not in (None, *TARGETS):
        return f"there is no target {request.target}"
    if request.command == "tune":
        candidates_of(stage, request)
        return ""
    chosen = {field.name: getattr(request, field.name) for field in fields(StageOptions)}
    defaults = {option.name: option.default for option in options()}
    foreign = [name for name, value in chosen.items() if value != defaults[name] and name not in stage.options]
    if foreign:
        return f"{stage.family} takes no {', '.join(foreign)}"
    stage.roles(StageOptions(**chosen))
    return ""


def fault_of_companion(line: str) -> str:
    """What `line`, of python -m rknn_tts_runtime, would be refused for before a file is opened; "" for nothing."""
    _, module, name, command, *words = shlex.split(line)
    assert (module, name) == ("-m", "rknn_tts_runtime")
    if command not in COMMANDS:
        return f"there is no command {command}"
    parser = _Parser()
    companion: Command = importlib.import_module(f"rknn_tts_runtime.commands.{command}")
    companion.add_arguments(parser)
    try:
        parser.parse_args(words)
    except UserInput as error:
        return f"{error}"
    return ""


class _Parser(argparse.ArgumentParser):
    """Raises where argparse's own would end the process."""

    def error(self, message: str) -> NoReturn:
        raise UserInput(message)
