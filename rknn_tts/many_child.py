"""A command of rknn-tts that ends with the process that started it, for whatever reason that ends.

    python -I rknn_tts/many_child.py PARENT WORDS...

WORDS are the command line. The kernel sends us SIGTERM when PARENT is gone, upon which a command ends all that it has
started, as after Ctrl-C: a warden (engine/warden.py) around us would end our own wardens before they had tidied up.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str]) -> int:
    """Runs the command that `arguments` hold; its exit code."""
    from engine.warden import PR_SET_PDEATHSIG
    from rknn_tts import cli
    from rknn_tts.report import EXIT_INTERRUPTED

    parent, *words = arguments
    if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0 or os.getppid() != int(parent):
        return EXIT_INTERRUPTED  # it was gone before we could ask to be told
    sys.argv = [cli.NAME, *words]
    return cli.main()


if __name__ == "__main__":
    # -I leaves what is installed; the checkout need not be.
    sys.path[:0] = [str(ROOT), str(ROOT / "runtime")]
    sys.exit(main(sys.argv[1:]))
