"""The program of docs/piper-durations.md against the voice itself: what it writes is what the whole voice says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from contracts.contract import Source
from contracts.files import sha256_of
from converters.piper.decoder import open_decoder
from converters.piper.duration_encoder import open_encoder
from converters.stages import Checkpoint, StageExport, StageOptions
from rknn_tts.steps import CHECKPOINTS_FOLDER
from tests.converters.piper.test_duration_encoder import finished
from tests.converters.voices import whole_voice
from tests.docs.pages import ROOT, files_of
from tests.docs.test_speak_example import DRAWN, LEAST_DB, PHONEMES, db, ids_of, read_wav, said_by_the_voice
from tests.docs.workplace import CHOIR_RECIPE, Ran, Workplace
from tests.onnx_runs import open_session
from tests.vits_writer.voice import write_voice

NAME = "speak_durations.py"
PROGRAM = files_of(ROOT / "docs" / "piper-durations.md")[NAME]
QUIET = (0.0, 1.0, 0.0)


def quietly(folder: Path) -> Path:
    """The program without noise, in `folder`."""
    assert PROGRAM.count(DRAWN) == 1
    path = folder / "quiet_durations.py"
    path.write_text(PROGRAM.replace(DRAWN, "0 * " + DRAWN), encoding="utf-8")
    return path


def test_both_engines_say_what_the_whole_voice_says_when_neither_has_noise(
    workplace: Workplace, durations: Ran
) -> None:
    voice = next((workplace.cache / CHECKPOINTS_FOLDER).glob("*/*.onnx"))
    config = voice.with_name(f"{voice.name}.json")
    program = quietly(workplace.folder)
    done = workplace.run(f'.venv/bin/python {program.name} engines/rk3588 "{config}" quiet.wav "{PHONEMES}"')
    assert done.code == 0, done.output
    spoken, rate = read_wav(workplace.folder / "quiet.wav")
    expected = said_by_the_voice(voice, json.loads(config.read_text(encoding="utf-8")))
    assert rate == 22050
    assert spoken.shape == expected.shape
    assert db(expected, spoken) > LEAST_DB


def twin_of(folder: Path, export: StageExport, name: str, shapes: dict[str, list[int]]) -> None:
    """The twin of `export` and of its manifest what the program reads, `name`.json; its inputs have these `shapes`."""
    graph = finished(export).graph
    ir.save(graph, folder / f"{name}.onnx")
    window = export.contract.window
    manifest = {
        "inputs": [{"name": name, "shape": shape} for name, shape in shapes.items()],
        "outputs": [{"name": value.name, "shape": value.shape.numpy()} for value in graph.graph.outputs if value.shape],
        "onnx": {"file": f"{name}.onnx"},
        "host": {"file": export.host_file},
        "window": None if window is None else vars(window),
    }
    (folder / f"{name}.json").write_text(json.dumps(manifest), encoding="utf-8")


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the twins of a voice of two speakers, encoders of 60 and 120 tokens."""
    folder = tmp_path_factory.mktemp("engines")
    path = write_voice(folder / "choir.onnx", CHOIR_RECIPE)
    checkpoint = Checkpoint(path, Source(path.name, sha256_of(path), "checkpoint"))
    embedding = [1, CHOIR_RECIPE.hidden, 1, 1]
    encoders = open_encoder(checkpoint, StageOptions(widths="60,120"), open_session)
    for width in (60, 120):
        export = encoders(f"n{width}")
        shapes = {"input": [1, width], "input_lengths": [1], "g": embedding}
        twin_of(folder, export, f"encoder-n{width}", shapes)
    assert export.host is not None
    ir.save(export.host, folder / export.host_file)
    members = {"members": ["encoder-n60.json", "encoder-n120.json"]}
    (folder / "piper-duration_encoder.set.json").write_text(json.dumps(members), encoding="utf-8")
    decoder = open_decoder(checkpoint, StageOptions(window=109), open_session)("")
    shapes = {"z": [1, CHOIR_RECIPE.latent, 1, 109], "y_mask": [1, 1, 1, 109], "g": embedding}
    twin_of(folder, decoder, "piper-decoder-w109", shapes)
    quietly(folder)
    return folder


def spoken_by(engines: Path, phonemes: str, speaker: int = 0) -> subprocess.CompletedProcess[str]:
    words = ["quiet_durations.py", ".", "choir.onnx.json", "quiet.wav", phonemes, str(speaker)]
    return subprocess.run(
        [sys.executable, *words], cwd=engines, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("speaker", [0, 1])
def test_both_engines_speak_as_who_is_asked_for_when_a_voice_has_several(engines: Path, speaker: int) -> None:
    done = spoken_by(engines, PHONEMES, speaker)
    assert done.returncode == 0, done.stderr
    ids = ids_of(json.loads((engines / "choir.onnx.json").read_text(encoding="utf-8")))
    said = np.asarray(whole_voice(CHOIR_RECIPE, ids, QUIET, speaker=speaker)["output"], np.float64).ravel()
    assert f"of {len(ids)} ids, 120 wide" in done.stdout
    spoken, _ = read_wav(engines / "quiet.wav")
    assert db(said, spoken) > LEAST_DB


def test_narrowest_encoder_that_holds_the_sentence_is_taken(engines: Path) -> None:
    assert "of 7 ids, 60 wide" in spoken_by(engines, "aɪ").stdout
    longer = spoken_by(engines, "a" * 120)
    assert (longer.returncode, longer.stderr) == (1, "243 ids are more than the widest encoder takes\n")
