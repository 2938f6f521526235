"""Extras of the toolchain (torch, hub) that a stage or a checkpoint needs: added to the running environment then."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path

from contracts.errors import UserInput
from environments.locks import TOOLCHAIN, Lock, parse_name, read_lock
from environments.setup import add_extras
from environments.trouble import Trouble
from rknn_tts.installed import differences, installed_versions, normalised
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
        wanted = " and ".join(_wanted_text(read_lock(ROOT, extra)) for extra in lacking)
        raise Trouble(f"{wanted} is needed, and {sys.prefix} is not rknn-tts's own environment: install it there")
    add_extras(ROOT, name)
    importlib.invalidate_caches()
    wrong = [text for extra in lacking for text in _differences(extra)]
    if wrong:
        raise Trouble(f"{ours} was changed, {', '.join(wrong)}: remove it and run `environments/run {name}`")


def _wanted_text(lock: Lock) -> str:
    """A plain lock's one pin; the file's name for a hashed one, whose pins would not fit a sentence."""
    return f"what {lock.path} pins" if lock.hashed else " ".join(lock.pins)


def _differences(extra: str) -> list[str]:
    """How what is installed where we run differs from what the extra pins for this Python."""
    versions, pins = installed_versions(Path(sys.prefix)), _pinned_here(read_lock(ROOT, extra))
    missing = [f"{name} is missing (locked: {version})" for name, version in pins.items() if name not in versions]
    others = differences(versions, {name: frozenset({version}) for name, version in pins.items() if name in versions})
    return missing + [text for _, text in others]


def _pinned_here(lock: Lock) -> dict[str, str]:
    """Package name to version, of the entries whose markers this Python meets."""
    from packaging.requirements import Requirement  # commands without extras do not pay for it

    found = (Requirement(pin) for pin in lock.pins)
    return {
        normalised(each.name): str(each.specifier).removeprefix("==")
        for each in found
        if each.marker is None or each.marker.evaluate()
    }
