"""Finds the Pythons of this machine, and the one to use.

A name on PATH is no proof: version managers put stand-ins there that fail when run, and Debian's Python comes without
`ensurepip`. So each is run and asked.
"""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from environments.trouble import Trouble

NAMES = ("python3.11", "python3.12", "python3.10", "python3", "python")
OLDEST, NEWEST = (3, 10), (3, 12)
NEEDED = "CPython 3.10, 3.11 or 3.12"

_SECONDS = 30
# Runs on any Python since 2.7; one fact a line. The modules are what `venv`, pip and numpy need of an interpreter.
_QUESTION = """
import os, platform, sys
print(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))
print("%d.%d.%d" % sys.version_info[:3])
print(platform.python_implementation())
print(64 if sys.maxsize > 2 ** 32 else 32)
missing = []
for name in ("venv", "ensurepip", "ssl", "zlib", "ctypes"):
    try:
        __import__(name)
    except ImportError:
        missing.append(name)
print(" ".join(missing))
"""


class Python(NamedTuple):
    """An interpreter that was asked. `problem` is empty when it can be used."""

    command: str
    executable: str = ""
    version: str = ""
    problem: str = ""
    missing: Tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether an environment can be made with it."""
        return not self.problem


def ask(command: str, environ: Optional[Mapping[str, str]] = None) -> Python:
    """Runs an interpreter and says what it is."""
    try:
        answer = subprocess.run(  # noqa: UP022 (3.6 has no capture_output)
            [command, "-c", _QUESTION],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=_SECONDS,
            env=_clean(environ),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Python(command, problem="does not run ({})".format(getattr(error, "strerror", None) or "no answer"))
    lines = answer.stdout.decode("utf-8", "surrogateescape").split("\n")
    if answer.returncode != 0 or len(lines) < 5:
        said = answer.stderr.decode("utf-8", "replace").strip().split("\n")[0]
        return Python(command, problem="does not run ({})".format(said or f"status {answer.returncode}"))
    executable, version, implementation, bits, missing = lines[:5]
    return Python(
        command, executable, version, _problem(version, implementation, bits, missing), tuple(missing.split())
    )


def _problem(version: str, implementation: str, bits: str, missing: str) -> str:
    number = tuple(int(part) for part in version.split("."))
    if implementation != "CPython" or not OLDEST <= number[:2] <= NEWEST:
        return f"is {implementation} {version}"
    if bits != "64":
        return f"is a 32-bit build of CPython {version}"
    if missing:
        return "is CPython {} without {}".format(version, " and ".join(missing.split()))
    return ""


def _clean(environ: Optional[Mapping[str, str]]) -> Dict[str, str]:
    # A PYTHONHOME or PYTHONPATH meant for another Python breaks this one. (-I would do, but not for Python 2.)
    source = os.environ if environ is None else environ
    return {name: value for name, value in source.items() if name not in ("PYTHONHOME", "PYTHONPATH")}


def commands(environ: Mapping[str, str]) -> Iterator[str]:
    """Every candidate on PATH, best first."""
    folders = [folder for folder in environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    for name in NAMES:
        for folder in folders:
            path = Path(folder, name)
            if path.is_file() and os.access(str(path), os.X_OK):
                yield str(path)


def survey(environ: Mapping[str, str]) -> List[Python]:
    """Every Python on PATH, asked, each executable once."""
    found: List[Python] = []
    with ThreadPoolExecutor(max_workers=4) as pool:
        asked = list(pool.map(lambda command: ask(command, environ), commands(environ)))
    for python in asked:
        if not python.executable or all(python.executable != other.executable for other in found):
            found.append(python)
    return found


def named(environ: Mapping[str, str]) -> Optional[Python]:
    """The Python that the variable PYTHON names, asked; None where it names none."""
    value = environ.get("PYTHON", "")
    if not value:
        return None
    python = ask(str(Path(value).expanduser()) if "/" in value else value, environ)
    if not python.usable:
        raise Trouble(
            f"PYTHON={value} cannot be used: it {python.problem}. {NEEDED} is needed: name one, or unset PYTHON"
        )
    return python


def choose(environ: Mapping[str, str], oldest: Tuple[int, int] = OLDEST) -> Python:
    """The Python to make an environment with: the one that PYTHON names, else the first on PATH that can.

    `oldest`: the oldest that what is installed there runs on.
    """
    python = named(environ)
    if python is not None:
        if _is_older(python, oldest):
            raise Trouble(
                "PYTHON={} cannot be used here: it is CPython {}, and this environment needs {}".format(
                    environ["PYTHON"], python.version, _newer_text(oldest)
                )
            )
        return python
    refused, older = [], None
    for command in commands(environ):
        python = ask(command, environ)
        if not python.usable:
            refused.append(python)
        elif _is_older(python, oldest):
            older = python
        else:
            return python
    if older is not None:
        raise Trouble(
            "this environment needs {}, and the newest of those on PATH is CPython {}: install one, or name it with "
            "PYTHON=/path/to/python{}.{}".format(_newer_text(oldest), older.version, *oldest)
        )
    raise Trouble(explain(refused))


def _is_older(python: Python, oldest: Tuple[int, int]) -> bool:
    return tuple(int(part) for part in python.version.split(".")[:2]) < oldest


def _newer_text(oldest: Tuple[int, int]) -> str:
    return "CPython {}.{} to {}.{}".format(*oldest, *NEWEST)


def explain(refused: List[Python]) -> str:
    """Why none of these can be used, and what to do, in one sentence."""
    for python in refused:
        if python.missing and "without" in python.problem:
            short = ".".join(python.version.split(".")[:2])
            return (
                f"{python.command} {python.problem}, so it cannot make an environment: install what is missing (on "
                f"Debian and Ubuntu: apt-get install python{short}-venv), or name another Python with "
                "PYTHON=/path/to/python"
            )
    seen: List[str] = []
    for python in refused:
        text = f"{Path(python.command).name} {python.problem}"
        if python.version and text not in seen:
            seen.append(text)
    found = "of those on PATH, " + ", ".join(seen) if seen else "no Python was found on PATH that runs"
    return (
        f"{NEEDED} is needed (rknn-toolkit2 has wheels for no newer one), and {found}: install one of the three "
        "(python3.11 is best tested), or name it with PYTHON=/path/to/python3.11"
    )
