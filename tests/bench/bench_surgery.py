"""What a turn of the researcher's loop costs over a bare conversion script of the same graph; what Piper's cuts save.

`make bench` runs it. It reports ratios of one run, and fails only where a command fails.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from engine.environment import converter_python
from rknn_tts.carried import without_carried
from rknn_tts.steps import CHECKPOINTS_FOLDER, ROOT
from surgery.cuts import every_cut
from tests.bench.measured import measure

TARGET = "rk3588"
FIRST, SECOND = ["fold_channel_flips"], ["fold_channel_flips", "fold_scales"]
"""The passes of two turns: the second builds one graph more."""


def test_a_turn_over_a_bare_conversion_script(
    fetched_voice: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = tmp_path / "cache"
    shutil.copytree(fetched_voice, cache / CHECKPOINTS_FOLDER / fetched_voice.name)
    environment = {**os.environ, "RKNN_TTS_CACHE": str(cache)}
    command: list[str | Path] = [ROOT / "rknn-tts"]
    without = [word for bound in every_cut(None) for word in ("--no-pass", bound.name)]
    measure([*command, "export", "piper", "--window", "109", "--output", "plain.onnx", *without], tmp_path, environment)
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "model.onnx").write_bytes(without_carried((tmp_path / "plain.onnx").read_bytes()))
    script: list[str | Path] = [ROOT / "tests" / "bench" / "bare_conversion.py", ROOT / "engine" / "torch_standin.py"]
    bare_s = measure([converter_python(), *script, "model.onnx", TARGET, "engine.rknn"], bare, os.environ).wall_s
    options = ["--cost", TARGET, "--check", "--json"]
    turns = [
        measure(
            [*command, "surgery", "plain.onnx", *(word for name in names for word in ("--pass", name)), *options],
            tmp_path,
            environment,
        )
        for names in (FIRST, SECOND, SECOND)
    ]
    every = measure([*command, "surgery", "plain.onnx", "--cost", TARGET, "--json"], tmp_path, environment)
    before, *_, after = (one["cost"]["layers"] for one in json.loads(every.output)["trial"]["tried"])
    lines = [
        f"a turn of rknn-tts surgery on Piper's decoder over a bare conversion script ({bare_s:.1f} s), wall:",
        *(
            f"    {turn.wall_s / bare_s:5.2f}  {what}"
            for turn, what in zip(turns, ("two graphs built", "one graph more", "nothing new"), strict=True)
        ),
        f"all cuts of compile for {TARGET} over none, modelled:",
        *(f"    {after[key] / before[key]:5.2f}  {what}" for key, what in FIGURES.items()),
    ]
    with capsys.disabled():
        sys.stdout.write("\n\n" + "\n".join(lines) + "\n")


FIGURES = {"cycles": "cycles", "rw_kb": "traffic", "modelled_ms": "time"}
