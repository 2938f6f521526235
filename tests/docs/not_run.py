"""The commands of the pages that the tests do not run, each with the reason, and what is checked instead."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.docs.pages import ROOT

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
    _row(r"make (?P<target>test|check|bench)", "would run the tests inside the tests, or takes minutes"),
    _row(r"make (?P<target>setup)", "installs packages"),
    _row(r"pip install (?P<folder>\S+)", "installs packages into whatever environment is active"),
)


def not_run(line: str) -> NotRun | None:
    """The row that the command `line` belongs to; None where it is run."""
    return next((row for row in NOT_RUN if row.pattern.fullmatch(line)), None)


def fault_of(line: str) -> str:
    """What is wrong with a command that is not run: it names a target or a folder that is not there."""
    row = not_run(line)
    match = row.pattern.fullmatch(line) if row else None
    names = match.groupdict() if match else {}
    target, folder = names.get("target"), names.get("folder")
    if target and not re.search(rf"^{target}:", _MAKEFILE, re.MULTILINE):
        return f"the Makefile has no target {target}"
    if folder and not (ROOT / folder / "pyproject.toml").is_file():
        return f"{folder} is no package"
    return ""
