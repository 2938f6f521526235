"""Stands in for rknn-tts in tests of the farm's runner: `KIND [FILE...] --name NAME --do DEED [--memory GB]`.

It writes to the log that `STUB_LOG` names when it starts and when it ends, prints the object that rknn-tts would, and
does as DEED says. The standard library alone, as it is started often.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

LOG = "STUB_LOG"
FULL = Path("/dev/full")
"""Where no room is left (full(4))."""

EATEN_BYTES = 160 << 20
HOLD_S = 0.7
"""Long enough for memory to be looked at three times (farm/watch.py)."""

SUFFIXES = {"export": ".onnx", "compile": ".rknn", "page": ".html"}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("given", nargs="*")
    parser.add_argument("--name", default="x")
    parser.add_argument("--do", default="done")
    parser.add_argument("--memory", default="")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.kind == "catalogue":
        Path(options.given[0], "catalogue.json").write_text("{}", encoding="utf-8")
        return 0
    earlier = [line.split("\t") for line in log().read_text(encoding="utf-8").splitlines()] if log().exists() else []
    first = not any(line[:2] == ["start", options.name] for line in earlier)
    write("start", options.name, options.memory or "-", os.environ.get("RKNN_TTS_CACHE", "-"), affinity())
    code = deed(options, first=first)
    write("end", options.name, str(code))
    return code


def deed(options: argparse.Namespace, *, first: bool) -> int:
    name, do = options.name, options.do
    sys.stderr.write(f"{name} says so\n")
    if do == "done":
        return done(options)
    if do == "slow":
        time.sleep(0.3)
        return done(options)
    if do == "hang" or (do == "hang-first" and first):
        time.sleep(600)
    if do == "hang-first":
        return done(options)
    if do == "fail":
        return report(1, f"A gate failed on {name}.")
    if do == "refuse":
        return report(2, f"{name} is poisoned.")
    if do == "silent":
        return 1
    if do == "chatter":
        sys.stdout.write("This is no JSON.\n")
        return 0
    if do == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if do == "eat":
        eaten = bytearray(os.urandom(1)) * EATEN_BYTES
        time.sleep(HOLD_S)
        return done(options) if eaten else 1
    if do == "short-memory":
        return report(1, "The toolkit was stopped: too little memory.", shortage="memory") if first else done(options)
    if do == "short-disk":
        return report(1, "No space left on the scratch disk.", shortage="disk") if first else done(options)
    if do == "full":
        return full(FULL)
    if do == "kill-runner":
        if first:
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(600)
        return done(options)
    if do == "leave":
        left = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"])
        write("left", str(left.pid))
        return done(options)
    if do == "missing":
        return report(0, files=[f"{name}.gone"])
    raise AssertionError(do)


def done(options: argparse.Namespace) -> int:
    file = f"{options.name}{SUFFIXES[options.kind]}"
    given = b"".join(Path(path).read_bytes() for path in options.given)
    Path(file).write_bytes(given + f"{options.kind} {options.name}\n".encode())
    models = [file] if options.kind == "export" else []
    return report(0, files=[file], models=models, reused=["graph"])


def full(path: Path) -> int:
    try:
        path.write_bytes(bytes(1 << 20))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return report(1, f"{path}: {error.strerror}.", shortage="disk")
    return report(0)


def report(code: int, error: str | None = None, **more: object) -> int:
    sys.stdout.write(json.dumps({"exit_code": code, "error": error, **more}) + "\n")
    return code


def affinity() -> str:
    return ",".join(map(str, sorted(os.sched_getaffinity(0))))


def log() -> Path:
    return Path(os.environ[LOG])


def write(*words: str) -> None:
    with log().open("a", encoding="utf-8") as file:
        file.write("\t".join([*words, f"{time.time():.3f}"]) + "\n")


if __name__ == "__main__":
    sys.exit(main())
