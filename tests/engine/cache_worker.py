"""A process of the stress test: finds or makes steps by their numbers, in an order of its own, and notes what it makes.

    python cache_worker.py ROOT CACHE NOTES SEED COUNT

A note is a line `PID NUMBER`, written where a step's work begins. Ends with 1 and a sentence where an entry is not
whole.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, sys.argv[1])

from engine.cache import StepCache, step_key

FILE_BYTES = 20_000
WORK_S = 0.01


def content(number: int) -> bytes:
    """What step `number` makes."""
    return f"{number}\n".encode() * (FILE_BYTES // 3)


def main(cache_folder: Path, notes: Path, seed: int, count: int) -> None:
    """Goes through all steps once."""
    numbers = list(range(count))
    random.Random(seed).shuffle(numbers)
    for number in numbers:
        cache = StepCache(cache_folder, say=lambda text: None if text.startswith("Waiting") else sys.exit(text))
        key = step_key("stress", {"number": str(number)})
        found = cache.find(key)
        if found is None:
            with cache.claimed(key, "stress"):
                found = cache.find(key) or make(cache, key, number, notes)
        if (found / "result").read_bytes() != content(number) or not (found / ".contents.json").exists():
            sys.exit(f"step {number} is not whole")


def make(cache: StepCache, key: str, number: int, notes: Path) -> Path:
    """The step's work."""
    descriptor = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{os.getpid()} {number}\n".encode())
    os.close(descriptor)
    made = Path(tempfile.mkdtemp(dir=notes.parent))
    with (made / "result").open("wb") as file:
        for start in range(0, len(content(number)), FILE_BYTES // 4):
            file.write(content(number)[start : start + FILE_BYTES // 4])
            file.flush()
            time.sleep(WORK_S / 4)
    entry = cache.store(key, made, given_up=True)
    shutil.rmtree(made, ignore_errors=True)
    return entry


if __name__ == "__main__":
    main(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
