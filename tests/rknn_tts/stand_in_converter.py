"""A converter's Python that prints and makes what a test wants, in the place of the toolkit."""

from __future__ import annotations

import textwrap
from pathlib import Path

from tests.logs.build_logs import END, START
from tests.logs.layer_tables import RK3588
from tests.programs import write_program

GOOD_LOG = START + RK3588 + END

DOUBLE = f"""
print({GOOD_LOG!r}, end="", flush=True)
simulate(2.0)
"""
"""A good build of y = 2 x."""

UNTIL_STOPPED = """
for number in range(2000):
    print(f"D stage_{number} ...", flush=True)
    time.sleep(0.02)
"""
"""A build that goes from stage to stage for 40 s, unless it is ended."""

_PRELUDE = """
import json, sys, time
from pathlib import Path

from tests.programs import write_program
if "-c" in sys.argv:  # asked what it is, not to build
    raise SystemExit(print("a stand-in"))
folder = Path.cwd()
def simulate(factor):
    import numpy as np
    with np.load(folder / "feeds.npz") as feeds:
        np.savez(folder / "simulated.npz", **{key: feeds[key] * np.float32(factor) for key in feeds.files})
    compile()
def compile():
    (folder / "engine.rknn").write_bytes(b"RKNN" + bytes(60) + (folder / "model.onnx").read_bytes())
    (folder / "result.json").write_text(json.dumps({"step": "done", "outputs": ["y"]}))
"""


def write_converter(path: Path, lines: str) -> Path:
    """Write a converter to `path` that runs the Python `lines`.

    A good build there ends with `simulate(factor)`, or `compile()` where no feeds are given.
    """
    return write_program(path, f"{_PRELUDE}\n{textwrap.dedent(lines)}")
