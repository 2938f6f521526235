"""`python -m rknn_tts_runtime`."""

from __future__ import annotations

import sys

from rknn_tts_runtime.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
