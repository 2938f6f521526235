"""Extras of the toolchain (torch) that a stage needs: added to the running environment when one first does."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path

from contracts.errors import UserInput
from environments.locks import TOOLCHAIN, parse_name, read_lock
from environments.setup import add_extras
from environments.trouble import Trouble
from rknn_tts.installed import differences, installed_versions, pinned_versions
from rknn_tts.progress import Say

ROOT = Path(__file__).resolve().parents[1]
"""The checkout that rknn-tts runs from."""


def ensure_extras(extras: Iterable[str], say: Say) -> None:
    """Makes what these extras hold importable in this process.

    Args:
        extras: names of locks in requirements/.
        say: told when something has to be installed. The set-up itself tells on stderr how much.

    Raises:
        UserInput: it cannot be installed; the message is the set-up's own sentence.
    """
    try:
        lacking = [extra for extra in sorted(extras) if _differences(extra)]
        if lacking:
            say.step(f"adding {' and '.join(lacking)} to the environment")
            _add(lacking)
    except Trouble as trouble:
        raise UserInput(str(trouble)) from trouble


def pinned_text(extras: Iterable[str]) -> str:
    """What the extras pin (`torch==2.13.0`), installed or not: for the key of a step whose result depends on it."""
    return " ".join(pin for extra in sorted(extras) for pin in read_lock(ROOT, extra).pins)


def _add(lacking: list[str]) -> None:
    name = "+".join((TOOLCHAIN, *lacking))
    ours = parse_name(ROOT, name).folder
    if not ours.is_dir() or not ours.samefile(sys.prefix):
        wanted = pinned_text(lacking)
        raise Trouble(f"{wanted} is needed, and {sys.prefix} is not rknn-tts's own environment: install it there")
    add_extras(ROOT, name)
    importlib.invalidate_caches()
    wrong = [text for extra in lacking for text in _differences(extra)]
    if wrong:
        raise Trouble(f"{ours} was changed, {', '.join(wrong)}: remove it and run `environments/run {name}`")


def _differences(extra: str) -> list[str]:
    """How what is installed where we run differs from what the extra pins."""
    pins = pinned_versions(read_lock(ROOT, extra).path)
    return [text for _, text in differences(installed_versions(Path(sys.prefix)), pins)]
