"""Weighs an engine, and puts what was kept into the table.

    python -m rknn_tts.earning.record FAMILY=piper TARGET=rk3588 WINDOW=109

The words are those of `make engine`: STAGE=, WINDOW=, ... Engines of default checkpoints are recorded, which everybody
has; what was measured holds for the code that measured it, so a pass that is changed is weighed again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from engine.targets import resolve_target
from rknn_tts.checkpoint_to_onnx import Conversion, open_conversions
from rknn_tts.earning.table import Entry, write_table
from rknn_tts.earning.weighing import weighed
from rknn_tts.progress import progress_on
from rknn_tts.request import request_from_make
from rknn_tts.steps import open_steps


def main(words: Sequence[str]) -> int:
    """Weighs what `words` ask for; the exit code."""
    given = dict(word.split("=", 1) for word in words)
    request = replace(request_from_make("engine", given, " ".join(given)), weigh=True)
    target = resolve_target(request.target or "")
    with progress_on(sys.stderr) as say:
        for conversion in open_conversions(request, target, say):
            (done,) = weighed([conversion], request, target, open_steps(request.force, say.note))
            write_table([entry_of(done, target, request.toolkit)])
            conversion.release()
    return 0


def entry_of(conversion: Conversion, target: str, toolkit: str) -> Entry:
    """What the table says of an engine that was weighed."""
    stage, export = conversion.origin.stage, conversion.opened
    window = export.contract.window
    return Entry(
        family=stage.family,
        stage=stage.name,
        role=conversion.role or None,
        stem=export.stem,
        frames=window.frames if window is not None else None,
        target=target,
        toolkit=toolkit,
        source=conversion.origin.checkpoint.source.name,
        choices=conversion.choosing.weighed or (),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
