"""A decode of whole sentences, of a file that the program of docs/kokoro.md makes of a twin."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from rknn_tts_runtime.backends.twins import TwinBackend
from rknn_tts_runtime.faults import Mismatch
from rknn_tts_runtime.plans.reading import read_plans
from rknn_tts_runtime.speaking.kokoro import open_kokoro
from rknn_tts_runtime.speaking.kokoro_full_length import open_full_length
from rknn_tts_runtime.speaking.kokoro_generator import SeamSizes
from rknn_tts_runtime.speaking.speaker import Asked
from rknn_tts_runtime.speaking.stopwatch import Stopwatch

from surgery.rewrite_transposed_conv import rewrite_transposed_conv
from tests.docs.pages import ROOT, files_of
from tests.kokoro_writer.windowed import WIDTH, twin
from tests.onnx_runs import snr_db
from tests.runtime.speaking.kokoro_set import RATE, VOICES, Array, KokoroSet, write_set

PROGRAM = files_of(ROOT / "docs" / "kokoro.md")["any_length.py"]
SIZES = SeamSizes(channels=16, rows=22, style=4, columns_per_frame=60, hop=300, sample_rate=24000)
LEAST_DB = 90.0
"""Of the same arithmetic in fp32, in torch and in onnxruntime."""

FAR_DB = 60.0
"""Less is another arithmetic."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> KokoroSet:
    written = write_set(tmp_path_factory.mktemp("kokoro"))
    (written.folder / "any_length.py").write_text(PROGRAM, encoding="utf-8")
    # As in a finished engine, where transposed convolutions are convolutions and reshapes of the window's length.
    finished = rewrite_transposed_conv(None).rewrite(twin("full"))
    assert finished.hits
    ir.save(finished.model, written.folder / "finished.onnx")
    for name in ("full", "finished"):
        printed = freed(written.folder, f"{name}.onnx", f"any-{name}.onnx")
        assert printed.stdout == f"any-{name}.onnx: takes any number of frames\n"
    return written


def freed(folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "any_length.py", *names]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("name", ["any-full.onnx", "any-finished.onnx"])
@pytest.mark.parametrize("frames", [5, WIDTH, 75])
def test_any_number_of_frames_is_decoded_as_the_original_does(made: KokoroSet, name: str, frames: int) -> None:
    rng = np.random.default_rng(frames)
    shapes = (1, 16, frames), (1, 22, RATE * frames + 1), (1, 4)
    x, har, style = (rng.standard_normal(shape, np.float32) for shape in shapes)
    found = open_full_length(made.folder / name, SIZES, "kokoro-host.onnx")(x, har, style)
    assert snr_db(made.whole(x, har, style), found) > LEAST_DB


def test_gain_of_a_plan_compares_with_its_artifact(made: KokoroSet) -> None:
    artifacts = {"main": "full.rknn", "short": "short.rknn", "full_length": "any-finished.onnx"}
    plan = read_plans(made.plan(artifacts=artifacts, params={"gain": True}))["kokoro"]
    asked = Asked(phonemes="aeiokʨɯn", voice=Path(f"{made.folder / VOICES}:second"), seed=3)

    def said(speaker: object) -> Array:
        return np.concatenate(list(speaker.speak(asked, Stopwatch())))  # type: ignore[attr-defined]

    ours = said(open_kokoro(plan, TwinBackend(threads=1)))
    theirs = said(open_kokoro(plan, TwinBackend(threads=1), full_length=made.whole))
    without = said(open_kokoro(read_plans(made.plan(artifacts=artifacts))["kokoro"], TwinBackend(threads=1)))
    assert snr_db(theirs, ours) > LEAST_DB
    assert snr_db(theirs, without) < FAR_DB


@pytest.mark.parametrize(
    ("name", "sizes", "says"),
    [
        ("full.onnx", SIZES, r"full\.onnx: its x is of the shape \[1, 16, 1, 32\], of a fixed length"),
        ("short.onnx", SIZES, r"short\.onnx: takes x, har, style, mask, mask_fine and gives spec_phase, expected"),
        ("any-full.onnx", SIZES._replace(channels=512), r"its x has 16 channels, and kokoro-host\.onnx gives 512"),
        ("any-full.onnx", SIZES._replace(rows=24), r"its har has 22 channels"),
        ("any-full.onnx", SIZES._replace(style=128), r"its style is \[1, 4\], and kokoro-host\.onnx gives 128"),
    ],
)
def test_what_is_no_generator_for_any_length_is_refused(
    made: KokoroSet, name: str, sizes: SeamSizes, says: str
) -> None:
    with pytest.raises(Mismatch, match=says):
        open_full_length(made.folder / name, sizes, "kokoro-host.onnx")


def test_the_program_refuses_what_may_count_on_the_window(made: KokoroSet, tmp_path: Path) -> None:
    model = onnx.load(made.folder / "full.onnx")
    model.graph.node.append(onnx.helper.make_node("AveragePool", ["x"], ["pooled"], kernel_shape=[1, 32]))
    onnx.save(model, tmp_path / "pooled.onnx")
    shutil.copy(made.folder / "any_length.py", tmp_path)
    done = freed(tmp_path, "pooled.onnx", "any.onnx")
    assert done.returncode == 1
    assert done.stderr.startswith("pooled.onnx: has AveragePool: give the engine full of --norm native")
    assert not (tmp_path / "any.onnx").exists()
