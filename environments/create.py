"""The command: `python environments/create.py NAME... [--print-python]`.

Sets up each named environment when it is not what its locks say (a few tens of milliseconds when it is). Exit status
2 with one sentence on stderr when that cannot be done.
"""

import argparse
import sys
from pathlib import Path
from typing import List, Optional

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs the command; returns its exit status."""
    from environments.setup import ensure, say
    from environments.trouble import Trouble

    parser = argparse.ArgumentParser(prog="environments/create.py", description="Set up the environments of rknn-tts.")
    parser.add_argument("names", nargs="+", metavar="NAME", help="toolchain, toolchain+dev, rknn-2.3.2, ...")
    parser.add_argument("--print-python", action="store_true", help="print the path of each environment's python")
    options = parser.parse_args(arguments)
    try:
        for name in options.names:
            python = ensure(ROOT, name)
            if options.print_python:
                sys.stdout.write(f"{python}\n")
    except Trouble as trouble:
        # A script that asks for the path shows the sentence as its own.
        sys.stderr.write(f"{trouble}\n" if options.print_python else f"rknn-tts: {trouble}\n")
        return 2
    except KeyboardInterrupt:
        say("interrupted: run the same command again to finish the set-up")
        return 130
    return 0


if __name__ == "__main__":
    # Python puts the folder of this file on its path, where `setup` and others would hide modules of the same name.
    sys.path[:] = [str(ROOT)] + [entry for entry in sys.path if entry != str(ROOT / "environments")]
    sys.exit(main())
