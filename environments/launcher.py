"""What the toolchain's environment holds besides packages: the project's own code, and its command."""

import os
from pathlib import Path

from environments.trouble import Trouble

# sh starts the interpreter beside it, wherever the checkout lies and whatever characters its path has (a shebang line
# allows neither spaces nor long paths); Python sees a string and goes on below it. -E -s: what a PYTHONPATH or the
# user's own packages hold under our names must not reach in.
_SCRIPT = """#!/bin/sh
'''exec' '{python}' -E -s "$0" "$@"
' '''
import sys

from rknn_tts.cli import main

if __name__ == "__main__":
    sys.argv[0] = "rknn-tts"
    sys.exit(main())
"""


def connect_project(root: Path, folder: Path) -> None:
    """Puts the checkout on the environment's path, and `rknn-tts` in its bin."""
    sites = sorted(folder.glob("lib/python3.*/site-packages"))
    if len(sites) != 1:
        raise Trouble(f"{folder} has no site-packages folder: remove it and run this again")
    (sites[0] / "rknn-tts.pth").write_bytes(os.fsencode("{}\n{}\n".format(root, root / "runtime")))
    script = folder / "bin" / "rknn-tts"
    quoted = str(folder / "bin" / "python").replace("'", "'\\''")
    script.write_bytes(os.fsencode(_SCRIPT.format(python=quoted)))
    script.chmod(0o755)
