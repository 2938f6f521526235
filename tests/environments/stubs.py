"""A small checkout and a machine whose Pythons are scripts: what set-up does, in milliseconds and without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

# What set-up asks of an interpreter: facts about itself, a virtual environment (whose python is this script again),
# and pip, which notes how it was called. Anything else is run by the real Python of the tests.
_INTERPRETER = """#!/bin/sh
case "$*" in
*realpath*) printf '%s\\n' '{executable}' '{version}' '{implementation}' '{bits}' '{missing}' ;;
*"-m venv"*)
    for folder in "$@"; do :; done
    /bin/mkdir -p "$folder/bin" "$folder/lib/python3.11/site-packages"
    /bin/cp "$0" "$folder/bin/python"
    ;;
*"-m pip"*)
    for lock in "$@"; do :; done
    printf '%s\\n' "$*" >>"$STUB_CALLS"
    /usr/bin/env >"$STUB_CALLS.env"
    while [ -n "${{STUB_UNTIL:-}}" ] && ! [ -e "$STUB_UNTIL" ]; do /bin/sleep 0.02; done
    [ -z "${{STUB_SAYS:-}}" ] || /bin/cat "$STUB_SAYS"
    exit "${{STUB_STATUS:-0}}"
    ;;
"-E -s "*)
    # The real Python reads no .pth of this environment: what is in it is put on the path here.
    shift 2
    exec '{real}' -I -c '
import runpy, sys
sys.argv = sys.argv[1:]
venv = sys.argv[0].rpartition("/bin/")[0]
sys.path[:0] = open(venv + "/lib/python3.11/site-packages/rknn-tts.pth").read().splitlines()
runpy.run_path(sys.argv[0], run_name="__main__")
' "$@"
    ;;
*) exec '{real}' "$@" ;;
esac
"""

LOCKS = {
    "toolchain": "# Size: 320 MB\nrich==15.0.0 --hash=sha256:00\n",
    "dev": "# Size: 100 MB\npytest==9.2.0 --hash=sha256:00\n",
    "farm": "# Size: 345 MB\nsnakemake==9.27.1 --hash=sha256:00\n",
    "rknn-2.3.2": "# Size: 700 MB\nrknn-toolkit2==2.3.2 --hash=sha256:00\n",
    "rknn-2.5.0": "# Size: 700 MB\nrknn-toolkit2==2.5.0 --hash=sha256:00\n",
}


@dataclass(frozen=True)
class Machine:
    """A checkout, a PATH with the Pythons that a test adds to it, and the record of the calls of pip."""

    root: Path
    bin: Path
    calls: Path

    def add(
        self,
        name: str = "python3.11",
        version: str = "3.11.7",
        implementation: str = "CPython",
        bits: str = "64",
        missing: str = "",
    ) -> Path:
        """Puts a Python on PATH."""
        path = self.bin / name
        path.write_text(
            _INTERPRETER.format(
                executable=path,
                version=version,
                implementation=implementation,
                bits=bits,
                missing=missing,
                real=sys.executable,
            )
        )
        path.chmod(0o755)
        return path

    def add_failing(self, name: str) -> None:
        """Puts a stand-in on PATH that fails when run, as version managers do."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\necho 'pyenv: {name}: command not found' >&2\nexit 127\n")
        path.chmod(0o755)

    def environ(self, **more: str) -> dict[str, str]:
        """The variables of a process on this machine."""
        return {"PATH": str(self.bin), "HOME": str(self.root), "STUB_CALLS": str(self.calls), **more}

    def pip_locks(self) -> list[str]:
        """The lock that each call of pip installed, in order."""
        if not self.calls.exists():
            return []
        return [Path(line.rpartition("-r ")[2]).stem for line in self.calls.read_text().splitlines()]

    def lock(self, name: str) -> Path:
        """The lock file of that name."""
        return self.root / "requirements" / f"{name}.txt"

    def create(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Runs environments/create.py as a command, to its end."""
        return subprocess.run(
            self.command(*arguments), env=self.environ(**more), capture_output=True, text=True, check=False, timeout=60
        )

    def command(self, *arguments: str) -> list[str]:
        """The command that `create` runs."""
        return [sys.executable, "-I", str(self.root / "environments" / "create.py"), *arguments]


def new_machine(folder: Path) -> Machine:
    """A machine without any Python, and a checkout in a folder with a space in its name."""
    root = Path(os.path.realpath(folder)) / "check out"
    (root / "requirements").mkdir(parents=True)
    for name, text in LOCKS.items():
        (root / "requirements" / f"{name}.txt").write_text(text)
    shutil.copytree(REPOSITORY / "environments", root / "environments", ignore=shutil.ignore_patterns("__pycache__"))
    machine = Machine(root, root.parent / "bin", root.parent / "calls")
    machine.bin.mkdir()
    return machine
