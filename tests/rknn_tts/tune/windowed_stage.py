"""A stage of windows, y = 2 x on as many values as a window has frames, and a converter for it.

A frame is one sample, of which two are a second. Every engine costs the same by the stand-in's layer table: 364,886
cycles and 3,613 KB, 40 of them in one layer on the CPU: 0.364886 + 3.613 / 5 + 5 x 0.04 = 1.287486 ms.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contracts.contract import Window
from contracts.errors import Refusal
from converters.stages import Checkpoint, Opened, OpenSession, Stage, StageExport, StageOptions
from converters.vits_ladder import roles_of, rungs_of
from tests.logs.build_logs import END, START
from tests.logs.layer_tables import RK3588
from tests.rknn_tts.stand_in_converter import write_converter
from tests.rknn_tts.stand_in_stage import Doubled, export_of, install, write_checkpoint
from tests.rknn_tts.workshop import Workshop, new_workshop

RUN_MS = 1.287486
RATE = 2
CONTEXT = 1
"""Frames, by default."""

LEAVES_NOTHING = "a window of 4 frames has nothing to trim."
"""Why one window is refused."""

CONVERTER = f"""
print({START + RK3588 + END!r}, end="", flush=True)
import numpy as np
if not (folder / "feeds.npz").exists():
    compile()
else:
    (size,) = {{array.shape[-1] for array in np.load(folder / "feeds.npz").values()}}
    simulate(2.5 if size == 12 else 2.001)
"""
"""The simulator is 66 dB from the graph (a two-thousandth), but for windows of 12 frames, where it is 12 dB off."""


def windowed(*options: str, **others: Any) -> Stage:
    """The stage `twin net`, with the options of a ladder of windows or those named."""
    names = options or ("windows", "context")
    made = Doubled([], {}).stage(options=frozenset(names), open=_open, roles=_roles, **others)
    return replace(made, extras=frozenset())


def _roles(options: StageOptions) -> tuple[str, ...]:
    return ("full", "short") if options.window is not None else roles_of(options)


def _open(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
    factor = json.loads(checkpoint.path.read_text(encoding="utf-8"))["factor"]
    context = CONTEXT if options.context is None else options.context

    def export(role: str) -> StageExport:
        if options.windows is None:
            width, letter = options.window or 0, ""
        else:
            (rung,) = rungs_of(options.windows)
            width, letter = rung.frames, rung.letter
        if letter == "t" and width == 4:
            raise Refusal(LEAVES_NOTHING)
        made = export_of(checkpoint, f"{role}-{letter}{context}", width, factor)
        window = Window(width, width - 2 * context, context, context, 1, RATE)
        return replace(made, contract=replace(made.contract, window=window))

    return export


def tuning_workshop(factory: pytest.TempPathFactory, patch: pytest.MonkeyPatch, stage: Stage) -> Workshop:
    """A folder and a cache of the test's own, `stage` all there is, and a converter; the checkpoint is `CHECKPOINT`."""
    made = new_workshop(factory)
    write_checkpoint(made.folder)
    install(patch, stage)
    patch.setattr("rknn_tts.tune.tuning.STAGES", (stage,))
    patch.chdir(made.folder)
    python: Path = write_converter(made.folder.parent / "converter", CONVERTER)
    patch.setenv("RKNN_TTS_CONVERTER_PYTHON", str(python))
    return made
