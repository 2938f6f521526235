"""The program of docs/qwen3.md over a small set of steps' twins: what it writes is what the whole decoder says."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

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

PROGRAM = files_of(ROOT / "docs" / "qwen3.md")["decode_qwen3.py"]

MAIN, FIRST = 9, 4
"""Codes of the steps: small ones, so that few codes take several."""

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
    """The twin of an engine, and of its manifest what the program reads."""
    ir.save(opening.model(codes), folder / f"{role}.onnx")
    step = {"codes": codes, "samples_per_code": REDUCED.samples_per_code, "sample_rate": opening.sample_rate}
    manifest = {
        "role": role,
        "step": step,
        "inputs": [{"name": name, "shape": list(shape)} for name, shape in opening.shapes(codes).items()],
        "cache": asdict(opening.layout),
        "host": {"file": HOST_FILE},
        "onnx": {"file": f"{role}.onnx"},
    }
    (folder / f"{role}.json").write_text(json.dumps(manifest), encoding="utf-8")


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
