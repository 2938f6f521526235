"""The commands of the pages that the tests do not run, each with the reason, and what is checked instead."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.docs.command_lines import fault_of_command, fault_of_companion
from tests.docs.pages import ROOT, files_of, pages

_MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


@dataclass(frozen=True)
class NotRun:
    """A kind of command line: what it looks like, and why it is not run."""

    pattern: re.Pattern[str]
    reason: str


def _row(pattern: str, reason: str) -> NotRun:
    return NotRun(re.compile(pattern), reason)


NOT_RUN = (
    _row(r"git clone \S+( \S+)?", "the tests run in a checkout, and need no network for that"),
    _row(r"cd \S+", "belongs to `git clone`, or to another machine"),
    _row(r"scp -r runtime (?P<engines>\S+) BOARD:", "needs a board"),
    _row(
        r"(?P<companion>python3 -m rknn_tts_runtime .+)",
        "belongs to a board: it is read as the companion reads it, and the same with .venv/bin/python is run",
    ),
    _row(r"make (?P<target>test|check|bench)", "would run the tests inside the tests, or takes minutes"),
    _row(r"make (?P<target>setup)", "installs packages"),
    _row(r"pip install '?(?P<folder>[^\s'\[]+)(\[onnx\])?'?", "installs packages into whatever environment is active"),
    _row(
        r"(?P<command>(make engine FAMILY=kokoro|\./rknn-tts (engine|export) kokoro)\b.*)",
        "takes minutes, where the suite has seconds: it is read as the command reads it, and "
        "tests/bench/bench_kokoro_page.py runs the first one of docs/kokoro.md",
    ),
    _row(
        r"(?P<command>\./rknn-tts engine piper .*--weigh)",
        "builds a dozen engines: it is read as the command reads it; tests/rknn_tts/earning/test_weighing.py weighs a "
        "small voice",
    ),
    _row(r"voices=\S+", "belongs to the line behind it"),
    _row(
        r"(?P<command>(make engine FAMILY=qwen3|\./rknn-tts (engine|export|bench) qwen3)\b.*)",
        "takes many minutes at the published sizes: it is read as the command reads it, "
        "tests/converters/qwen3 run small decoders through the commands, and tests/bench/bench_qwen3_page.py runs the "
        "command on random weights of docs/qwen3.md",
    ),
    _row(
        r"\.venv/bin/python (?P<program>speak_kokoro\.py) .+",
        "needs Kokoro's engines: tests/docs/test_speak_kokoro.py runs the program over small ones",
    ),
    _row(
        r"\.venv/bin/python (?P<program>any_length\.py) .+",
        "needs Kokoro's engines: tests/runtime/speaking/test_kokoro_full_length.py runs the program over a small one",
    ),
    _row(
        r"(?P<command>(make engine FAMILY=inflect|\./rknn-tts (engine|export) inflect)\b.*)",
        "takes a minute or more at the published sizes: it is read as the command reads it, "
        "tests/rknn_tts/test_inflect_engine.py builds a small release, and tests/bench/bench_inflect_page.py runs the "
        "command on random weights of docs/inflect.md",
    ),
    _row(
        r"(?P<command>(make tune|\./rknn-tts tune)\b.*)",
        "builds dozens of engines, for many minutes: it is read as the command reads it, tests/rknn_tts/tune run the "
        "command on a stand-in, and tests/bench/bench_reach.py builds the default ladders",
    ),
    _row(
        r"(?P<command>make farm MATRIX=examples/farm/matrix\.toml)",
        "builds the default voices of two families, for minutes: its matrix is read, docs/farm.md plans it and runs a "
        "small one",
    ),
    _row(
        r"(?P<command>(make engine FAMILY=cosyvoice[23]|\./rknn-tts (engine|export) cosyvoice[23])\b.*)",
        "takes many minutes at the published sizes: it is read as the command reads it, and the tests of "
        "converters/cosyvoice2 and cosyvoice3 run small stages through the commands",
    ),
    _row(
        r"\.venv/bin/python (?P<program>speak_cosyvoice2\.py) .+",
        "needs CosyVoice2's engines: tests/docs/test_speak_cosyvoice2.py runs the program over small ones",
    ),
    _row(
        r"\.venv/bin/python (?P<program>speak_inflect\.py) .+",
        "needs an Inflect engine: tests/docs/test_speak_inflect.py runs the program over a small one",
    ),
    _row(
        r"\.venv/bin/python (?P<program>decode_qwen3\.py) .+",
        "needs Qwen3's engines: tests/docs/test_decode_qwen3.py runs the program over small ones",
    ),
    _row(
        r"(?P<command>make farm MATRIX=examples/farm/matrix\.toml PROFILE=slurm)",
        "needs a cluster, and minutes: it is read as the command reads it, and tests/farm/test_slurm.py runs `rknn-tts "
        "farm` by that profile on a SLURM of this machine",
    ),
    _row(
        r"(podman (build|push)|kubectl (apply|logs)) .+",
        "needs podman, a registry or a cluster: tests/farm/test_kubernetes.py holds example, image and profile "
        "together, and runs the profile on a stand-in of a cluster",
    ),
)


def not_run(line: str) -> NotRun | None:
    """The row that the command `line` belongs to; None where it is run."""
    return next((row for row in NOT_RUN if row.pattern.fullmatch(line)), None)


def fault_of(line: str) -> str:
    """What is wrong with a command that is not run: it could not be read, or names what is not there."""
    row = not_run(line)
    match = row.pattern.fullmatch(line) if row else None
    names = match.groupdict() if match else {}
    target, folder = names.get("target"), names.get("folder")
    if target and not re.search(rf"^{target}:", _MAKEFILE, re.MULTILINE):
        return f"the Makefile has no target {target}"
    if folder and not (ROOT / folder / "pyproject.toml").is_file():
        return f"{folder} is no package"
    if (program := names.get("program")) and not any(program in files_of(page) for page in pages()):
        return f"no page has the program {program}"
    if names.get("companion"):
        return fault_of_companion(names["companion"])
    return fault_of_command(names["command"]) if names.get("command") else ""
