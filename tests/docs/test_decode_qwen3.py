"""The program of docs/qwen3.md over a small set of steps' twins: what it writes is what the whole decoder says.

The same set through a plan, for the board's own decoder of codes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from rknn_tts_runtime.backends.twins import TwinBackend
from rknn_tts_runtime.plans.reading import read_plans
from rknn_tts_runtime.speaking.qwen3 import open_qwen3
from rknn_tts_runtime.speaking.stopwatch import Stopwatch

from contracts.files import sha256_of
from contracts.manifest import SetManifest, manifest_text
from converters.qwen3.checkpoint import locate
from converters.qwen3.opening import Opening
from converters.qwen3.stand_in import stand_in
from converters.qwen3.step_engine import HOST_FILE
from converters.qwen3.streams import drawn_codes
from converters.stages import StageOptions
from models.qwen3.decoder import decoded
from tests.docs.pages import ROOT, files_of
from tests.docs.test_speak_example import read_wav
from tests.onnx_runs import open_session, snr_db
from tests.qwen3_configs import REDUCED
from tests.qwen3_snapshots import write_snapshot
from tests.runtime.fake_backends import written_manifest

PROGRAM = files_of(ROOT / "docs" / "qwen3.md")["decode_qwen3.py"]

MAIN, FIRST = 9, 4
"""Codes of the steps: small ones, so that few codes take several."""

WALKED_DB = 90.0
"""Of the samples themselves: what the gate `fp32.stepwise` asks for."""

LEAST_DB = 60.0
"""16-bit samples whose root mean square is 0.1 carry about 90 dB."""


@dataclass(frozen=True)
class Decoding:
    """A folder with the program and a set of two engines' twins, and what they were made of."""

    folder: Path
    opening: Opening

    def decode(self, codes: int) -> list[str]:
        """The program on so many codes, codes.npy; the lines that it printed. It writes decoded.wav."""
        np.save(self.folder / "codes.npy", drawn_codes(REDUCED, codes, 7))
        words = [sys.executable, "decode_qwen3.py", "qwen3-speech_decoder.set.json", "decoded.wav", "codes.npy"]
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()


@pytest.fixture(scope="module")
def decoding(tmp_path_factory: pytest.TempPathFactory) -> Decoding:
    folder = tmp_path_factory.mktemp("decoding")
    (folder / "decode_qwen3.py").write_text(PROGRAM, encoding="utf-8")
    snapshot = write_snapshot(folder / "snapshot", REDUCED, stand_in(REDUCED, 0))
    checkpoint = locate(str(snapshot), lambda text, _: Path(text))
    opening = Opening(checkpoint, StageOptions(codes=f"{MAIN},{FIRST}"), open_session)
    assert opening.host is not None
    ir.save(opening.host, folder / HOST_FILE)
    for role, size in opening.geometry.steps.items():
        write_member(folder, opening, role, size.codes)
    members = SetManifest(tuple(f"{role}.json" for role in opening.geometry.steps), cache=opening.layout)
    (folder / "qwen3-speech_decoder.set.json").write_text(manifest_text(members), encoding="utf-8")
    return Decoding(folder, opening)


def write_member(folder: Path, opening: Opening, role: str, codes: int) -> None:
    """The twin of an engine, and of its manifest what the program and the board read; the engine is empty."""
    ir.save(opening.model(codes), folder / f"{role}.onnx")
    (folder / f"{role}.rknn").write_bytes(b"")
    samples = codes * REDUCED.samples_per_code
    taken = opening.shapes(codes)
    written_manifest(
        folder,
        role,
        family="qwen3",
        stage="speech_decoder",
        role=role,
        source={"name": "random", "sha256": "0" * 64, "kind": "random"},
        step={
            "codes": codes,
            "samples_per_code": REDUCED.samples_per_code,
            "sample_rate": opening.sample_rate,
            "context": 0,
            "emitted": codes,
        },
        inputs=[{"name": name, "shape": list(shape), "dtype": "float32"} for name, shape in taken.items()],
        outputs=[
            {"name": "audio", "shape": [1, 1, samples, 1], "dtype": "float32"},
            {"name": "cache_out", "shape": list(taken["cache"]), "dtype": "float32"},
        ],
        cache=asdict(opening.layout),
        host={"file": HOST_FILE, "sha256": sha256_of(folder / HOST_FILE)},
        onnx={"file": f"{role}.onnx", "sha256": sha256_of(folder / f"{role}.onnx")},
    )


@pytest.mark.parametrize(
    ("codes", "steps"),
    [
        (3, [3]),
        (FIRST, [FIRST]),
        (FIRST + MAIN + 1, [FIRST, MAIN, 1]),
        (FIRST + 2 * MAIN + 6, [FIRST, MAIN, MAIN, 4, 2]),
    ],
)
def test_decode_writes_what_the_whole_decoder_says(decoding: Decoding, codes: int, steps: list[int]) -> None:
    printed = decoding.decode(codes)
    written, rate = read_wav(decoding.folder / "decoded.wav")
    wanted = decoded(decoding.opening.decoder, drawn_codes(REDUCED, codes, 7)).reshape(-1)
    assert printed == [f"{step * 0.08:.2f} s" for step in steps] + [f"decoded.wav: {codes * 0.08:.2f} s, {codes} codes"]
    assert (rate, written.shape) == (24000, (codes * 1920,))
    assert np.abs(wanted).max() < 1
    assert snr_db(wanted, written) > LEAST_DB


def test_a_plan_of_the_set_decodes_what_the_whole_decoder_says_as_codes_come(decoding: Decoding) -> None:
    component = {"impl": "rknn", "artifacts": {"main": "main.rknn", "first": "first.rknn"}}
    path = decoding.folder / "plan.json"
    path.write_text(json.dumps({"qwen3_tts.exec_plan": {"speech_decoder": component}}), encoding="utf-8")
    decoder = open_qwen3(read_plans(path)["qwen3"], TwinBackend())
    codes = drawn_codes(REDUCED, FIRST + MAIN + 6, 8)
    arriving = (codes[..., start : start + 3] for start in range(0, codes.shape[-1], 3))
    pieces = list(decoder.stream(arriving, Stopwatch()))
    assert [piece.size // 1920 for piece in pieces] == [FIRST, MAIN, 4, 2]
    assert snr_db(decoded(decoding.opening.decoder, codes).reshape(-1), np.concatenate(pieces)) > WALKED_DB
