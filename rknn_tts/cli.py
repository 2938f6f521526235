"""The command line. Its commands' options are those of `rknn_tts.request`; what they do is in `rknn_tts.commands`.

Only Typer is imported at the top, so that `--help` answers at once.
"""

from __future__ import annotations

import inspect
import io
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.main import get_command

from contracts.errors import EXIT_REFUSED, UserInput
from rknn_tts.blocks import is_terminal
from rknn_tts.hints import did_you_mean
from rknn_tts.request import (
    CONVERTING,
    EVERY,
    EXPECTED,
    Option,
    Request,
    options,
    request_from_make,
    taken_from_environment,
)

NAME = "rknn-tts"

SUMMARIES = {
    "engine": "Compile a family's stage: checkpoint to proven engine.",
    "export": "Write the NPU-ready ONNX, its contract inside, and the host half; `compile` takes it from there.",
    "compile": "Compile an exported or foreign ONNX.",
    "surgery": "Run chosen passes on any ONNX, and see what each hits, loses and costs.",
    "inspect": "Show what an engine, a manifest, a layer table or an ONNX holds, and what it costs.",
    "diff": "Compare what two engines cost per emitted frame, and say what else differs.",
    "plan": "Write the execution plan that places what was built in the components of its models.",
    "report": "Write one page that shows an engine, or compares several: proof, cost, sound, how to make it again.",
    "probe": "Write a kit that shows on a board what no PC can tell of an engine.",
    "verify": "Put what a probe found on a board into the engine's manifest.",
    "bench": "Time a family's streaming steps on this machine, with a state and decoding the prefix again.",
    "tune": "Sweep a stage's windows under the gates, and choose the ladder for utterances of given lengths.",
    "farm": "Build many checkpoints for many targets, as a matrix names them, on one machine or a cluster.",
    "catalogue": "List every engine of a folder with its proof, cost and digests, and what changed since another list.",
    "families": "List the families and stages that can be compiled.",
    "passes": "List the surgery passes, one line each; --no-pass NAME leaves one out.",
    "doctor": "Examine this machine and the environments, and say what to do.",
    "clean": "Remove the finished steps and the logs of builds.",
}

_EPILOG = "Under make the same options are variables in capitals: make engine FAMILY=piper TARGET=rk3588."

_EPILOGS = {"bench": "Not under make, whose bench is the benchmarks of rknn-tts itself."}
"""Of commands that make has no rule for."""

_QUOTES = " A pattern stands in quotes, or the shell makes many words of it: --checkpoint 'voices/*.onnx'."
"""What is said of words that are too many."""

_OVERRIDES = "RKNN_TTS_MAKE_OVERRIDES"
"""Where the Makefile puts the names that were given on its command line."""


def main() -> int:
    """Run the process's command line; the exit code."""
    # A job that is cancelled gets SIGTERM, one whose terminal is closed SIGHUP (unless nohup has it ignored): what it
    # had started must end, as after Ctrl-C.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    code = run(sys.argv[1:])
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    if any(thread.daemon for thread in others):
        # A command that ended early leaves a gate at work inside onnxruntime. Nothing can stop it, and an interpreter
        # that ends under it is aborted ("terminate called without an active exception", seen after an interrupt).
        # A build in such a thread ends with us (engine/warden.py); what it was writing to stays.
        from rknn_tts.steps import remove_unfinished

        remove_unfinished()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def run(words: Sequence[str]) -> int:
    """Run the command line `words`; the exit code."""
    # It logs what a graph lacks, with a traceback; what that means for the user is told by the gates.
    logging.getLogger("onnx_ir").setLevel(logging.ERROR)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, io.StringIO())
    for stream in (sys.stdout, sys.stderr):
        # A file's name, or a name in a file, may hold what the terminal's encoding does not.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    command = get_command(build_app(rich_help=is_terminal(sys.stdout)))
    try:
        # Where there is no word, Typer would print the help as an error.
        done = command.main(args=[*words] or ["--help"], prog_name=NAME, standalone_mode=False)
    except typer.TyperException as error:
        return _refuse(words, error)
    return int(done or 0) if words else EXIT_REFUSED


def build_app(*, rich_help: bool) -> typer.Typer:
    """The Typer application; with `rich_help` its help has boxes and colours."""
    app = typer.Typer(
        name=NAME,
        help="Compiles speech checkpoints into Rockchip NPU engines, and proves on the PC what can be proven there.",
        epilog=_EPILOG,
        add_completion=False,
        rich_markup_mode="rich" if rich_help else None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_globals)
    for name in EVERY:
        app.command(name, help=SUMMARIES[name], epilog=_EPILOGS.get(name, _EPILOG))(_command(name))
    app.command("from-make", hidden=True)(_from_make)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{NAME} {_version()}")
        raise typer.Exit


def _globals(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """The options before the command; Typer has called `_print_version` by now."""


def _command(name: str) -> Callable[..., int]:
    """The function behind a command, with a parameter for each of its options."""

    def command(**values: Any) -> int:
        return _perform(
            Request(command=name, **values), lambda option: option.variable if option.positional else option.flag
        )

    parameters = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if option.required else option.default,
            annotation=_annotation(option),
        )
        for option in options(name)
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def _annotation(option: Option) -> Any:
    # The value is named as the make variable, so that the help tells both spellings.
    if option.positional:
        words: Any = list[option.kind] if option.many else option.kind  # type: ignore[name-defined]
        return Annotated[words, typer.Argument(help=option.help, metavar=option.variable, show_default=False)]
    kind: Any = list[option.kind] if option.many else option.kind  # type: ignore[name-defined]
    if not option.required and not option.many and option.default is None:
        kind = kind | None
    metavar = "" if option.kind is bool else option.variable
    return Annotated[
        kind, typer.Option(option.flag, help=option.help, metavar=metavar, show_default=bool(option.default))
    ]


def _from_make(command: Annotated[str, typer.Argument(metavar="COMMAND")]) -> int:
    """The command behind `make COMMAND NAME=value ...`, from the variables that make exported."""
    try:
        if command not in EVERY:
            raise UserInput(f"There is no command {command}; there are: {', '.join(EVERY)}.")
        given = os.environ.get(_OVERRIDES, "")
        request = request_from_make(command, os.environ, given)
        for setting in taken_from_environment(command, os.environ, given):
            typer.echo(f"note: {setting} comes from the environment", err=True)
    except UserInput as error:
        wants_json = os.environ.get("JSON", "") not in ("", "0")
        return _fail(Request(command=command, json=wants_json), error)
    return _perform(request, lambda option: option.variable)


def _perform(request: Request, spelling: Callable[[Option], str]) -> int:
    from rknn_tts.commands import perform
    from rknn_tts.deliver import deliver
    from rknn_tts.progress import progress_on

    with progress_on(sys.stderr) as say:
        report = perform(request, say, spelling)
    return deliver(report)


def _refuse(words: Sequence[str], error: typer.TyperException) -> int:
    """End a command line that Typer could not read: one sentence, and where to read on."""
    command = next((word for word in words if word in EVERY), "")
    sentence = f"{_usage_sentence(command, error)} `{f'{NAME} {command}'.rstrip()} --help` lists what there is."
    return _fail(Request(command=command, json="--json" in words, junit=_junit_in(words)), UserInput(sentence))


def _junit_in(words: Sequence[str]) -> str | None:
    """The JUnit file that a command line names, though it cannot be read as a whole: CI must not find an older one."""
    for word, following in zip(words, [*words[1:], None], strict=True):
        if word.startswith("--junit="):
            return word.partition("=")[2] or None
        if word == "--junit":
            return following
    return None


def _usage_sentence(command: str, error: typer.TyperException) -> str:
    # The kinds of Typer's usage errors are not public; what they carry is.
    if hasattr(error, "possibilities"):
        return _unknown_option(command, getattr(error, "option_name", ""))
    told = " ".join(error.format_message().split())
    name = getattr(getattr(error, "param", None), "name", None)
    option = next((option for option in options(command) if option.name == name), None)
    if option is None:
        hint = _QUOTES if command in CONVERTING and told.startswith("Got unexpected extra") else ""
        return (told if told.endswith(("?", ".")) else f"{told}.") + hint
    if told.startswith("Missing"):
        return f"{command} needs {_spelling(option)}. {option.help}"
    return f"{_spelling(option)}: {EXPECTED[option.kind]} is expected."


def _unknown_option(command: str, flag: str) -> str:
    if flag in {option.flag for option in options()}:
        return f"{command} takes no {flag}."
    return f"There is no option {flag}.{did_you_mean(flag, [option.flag for option in options(command or None)])}"


def _spelling(option: Option) -> str:
    return option.variable if option.positional else option.flag


def _fail(request: Request, error: UserInput) -> int:
    from rknn_tts.deliver import deliver
    from rknn_tts.report import report_of_failure

    return deliver(report_of_failure(request, error))


def _version() -> str:
    """The version in `pyproject.toml`: rknn-tts runs from its checkout and is installed nowhere."""
    text = (Path(__file__).resolve().parents[1] / "pyproject.toml").read_text("utf-8")
    found = re.search(r'^version = "(.+)"$', text, re.MULTILINE)
    return found[1] if found else "unknown"
