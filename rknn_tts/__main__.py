"""`python -m rknn_tts`: the same as `rknn-tts`."""

import sys

from rknn_tts.cli import main

sys.exit(main())
