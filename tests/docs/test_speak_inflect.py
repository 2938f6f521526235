"""The program of docs/inflect.md over a small release's twin: what it writes is what the published graphs say."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from converters.inflect.checkpoint import locate
from converters.inflect.decoder import open_decoder
from converters.stages import StageOptions
from tests.converters.inflect.releases import graphs, write_release
from tests.docs.pages import ROOT, files_of
from tests.docs.test_speak_example import read_wav
from tests.onnx_runs import Array, open_session, run, snr_db

PROGRAM = files_of(ROOT / "docs" / "inflect.md")["speak_inflect.py"]

LEAST_DB = 50.0
"""16-bit samples whose root mean square is 0.03 carry about 80 dB."""

FRAMES = 72
"""Of the window: small, so that few ids take several."""


@dataclass(frozen=True)
class Speaking:
    """A folder with the program, a twin, its host half, and of its manifest what the program reads."""

    folder: Path

    def speak(self, ids: list[int]) -> str:
        """The program on `ids`; what it printed. It writes hello.wav."""
        words = [sys.executable, "speak_inflect.py", "engine.json", "hello.wav", ",".join(map(str, ids))]
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture(scope="module")
def speaking(tmp_path_factory: pytest.TempPathFactory) -> Speaking:
    folder = tmp_path_factory.mktemp("speaking")
    (folder / "speak_inflect.py").write_text(PROGRAM, encoding="utf-8")
    checkpoint = locate(str(write_release(folder / "release")), lambda text, _: Path(text))
    export = open_decoder(checkpoint, StageOptions(window=FRAMES), open_session)("")
    assert export.host is not None
    ir.save(export.host, folder / export.host_file)
    twin = export.model
    for bound in export.passes:
        twin = bound.rewrite(twin).model
    ir.save(twin, folder / "engine.onnx")
    window = {"frames": FRAMES, "left": 32, "right": 32, "hop": 8, "sample_rate": 16_000}
    inputs = [
        {"name": str(value.name), "shape": [size for size in value.shape or () if isinstance(size, int)]}
        for value in twin.graph.inputs
    ]
    told = {"window": window, "inputs": inputs, "host": {"file": export.host_file}, "onnx": {"file": "engine.onnx"}}
    (folder / "engine.json").write_text(json.dumps(told), encoding="utf-8")
    return Speaking(folder)


@pytest.mark.parametrize("symbols", [3, 60])
def test_speak_writes_what_the_published_graphs_say(speaking: Speaking, symbols: int) -> None:
    ids = [0, *(part for symbol in range(symbols) for part in (1 + symbol % 19, 0))]
    printed = speaking.speak(ids)
    written, rate = read_wav(speaking.folder / "hello.wav")
    feed: dict[str, Array] = {
        "tokens": np.array([ids], np.int64),
        "lengths": np.array([len(ids)], np.int64),
        "length_scale": np.array(1, np.float32),
    }
    prior = run(graphs()[0], feed)
    frames = prior["y_mask"].shape[-1]
    drawn = np.random.default_rng(1).standard_normal((1, 8, 4096)).astype(np.float32)  # as the program draws it
    given: dict[str, Array] = {**prior, "zp_noise": drawn[..., :frames], "noise_scale": np.array(0.667, np.float32)}
    wanted = run(graphs()[1], given)["waveform"].reshape(-1)
    assert printed == f"hello.wav: {frames * 8 / 16_000:.2f} s, {frames} frames"
    assert (frames < FRAMES) == (symbols == 3)
    assert (rate, written.shape) == (16_000, wanted.shape)
    assert snr_db(wanted, written) > LEAST_DB
