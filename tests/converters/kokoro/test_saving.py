"""A checkpoint that is saved is the one that was read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from contracts.contract import Source
from contracts.errors import Refusal, UserInput
from converters.kokoro.checkpoint import open_checkpoint
from converters.kokoro.saving import saved_checkpoint
from converters.stages import Checkpoint, SavedCheckpoint, StageOptions
from models.kokoro.generator_weights import generator_weights
from tests.kokoro_writer.checkpoint import SMALL, random_weights, stated, write_checkpoint
from tests.kokoro_writer.export import float_export, folded, int8_export
from tests.kokoro_writer.speaking import VOCABULARY, write_voices

FOLDED_STEPS = 2
"""Of float32, in which a folded weight may differ: g v / |v| of g' = |w|, v' = w rounds twice."""


def given(path: Path, material: Path | None = None) -> Checkpoint:
    return Checkpoint(path, Source(path.name, "ab" * 32, "checkpoint"), material=material)


def export(folder: Path, quantised: bool) -> Path:
    path = folder / "kokoro.onnx"
    onnx.save((int8_export if quantised else float_export)(random_weights()), path)
    return path


def write(saved: SavedCheckpoint) -> Path:
    for path, data in saved.files:
        path.write_bytes(data)
    return saved.files[0][0]


def place(folder: Path) -> Path:
    (folder / "out").mkdir()
    return folder / "out" / "saved.pth"


def test_saved_checkpoint_gives_the_same_arrays_when_it_was_recovered(tmp_path: Path) -> None:
    path = export(tmp_path, quantised=True)
    saved = saved_checkpoint(given(path, write_voices(tmp_path)), StageOptions(), place(tmp_path))
    first, again = open_checkpoint(path), open_checkpoint(write(saved))
    assert again.config == first.config == SMALL
    assert first.weights.keys() == again.weights.keys()
    assert all(np.array_equal(array, again.weights[name]) for name, array in first.weights.items())
    assert (again.recovered, again.notes) == (False, ())
    assert len(saved.notes) == 1
    assert "saved.pth: its weights are recovered from 8-bit ones still" in saved.notes[0]


def test_saved_checkpoint_folds_to_the_weights_of_the_graph_it_is_from(tmp_path: Path) -> None:
    saved = saved_checkpoint(given(export(tmp_path, quantised=False)), StageOptions(), place(tmp_path))
    assert saved.notes == ()
    made = generator_weights(open_checkpoint(write(saved)).weights, SMALL.istftnet)
    for name in ("ups.0", "conv_post"):
        wanted = folded(random_weights(), f"decoder.module.generator.{name}")
        np.testing.assert_array_max_ulp(made[f"{name}.weight"], wanted, FOLDED_STEPS)


def test_saved_checkpoint_is_in_the_official_layout(tmp_path: Path) -> None:
    path = write(saved_checkpoint(given(export(tmp_path, quantised=False)), StageOptions(), place(tmp_path)))
    held = torch.load(path, weights_only=True)
    assert list(held) == ["bert", "bert_encoder", "predictor", "decoder", "text_encoder"]
    weight = held["decoder"]["module.generator.ups.0.weight_v"]
    assert (weight.dtype, tuple(weight.shape)) == (torch.float32, (16, 8, 7))


def config_of(saved: SavedCheckpoint) -> Any:
    (content,) = [data for path, data in saved.files if path.name == "config.json"]
    return json.loads(content)


def test_saved_checkpoint_has_a_config_with_the_vocabulary_when_an_onnx_had_none(tmp_path: Path) -> None:
    checkpoint = given(export(tmp_path, quantised=False), write_voices(tmp_path))
    written = config_of(saved_checkpoint(checkpoint, StageOptions(), place(tmp_path)))
    assert written.pop("vocab") == VOCABULARY
    assert written.items() <= stated().items()
    assert "decoder_channels" not in written


def test_saved_checkpoint_leaves_out_a_vocabulary_that_has_more_tokens_than_the_model(tmp_path: Path) -> None:
    voices = write_voices(tmp_path)
    (tmp_path / "vocab.json").write_text('{"vocab": {"a": 10}}', encoding="utf-8")
    checkpoint = given(export(tmp_path, quantised=False), voices)
    assert "vocab" not in config_of(saved_checkpoint(checkpoint, StageOptions(), place(tmp_path)))


@pytest.mark.parametrize("named", [True, False])
def test_saved_checkpoint_keeps_the_config_that_it_was_read_with(tmp_path: Path, named: bool) -> None:
    path = write_checkpoint(tmp_path)
    config = tmp_path / "config.json"
    if named:
        config = config.rename(tmp_path / "elsewhere.json")
    options = StageOptions(config=str(config) if named else None)
    saved = saved_checkpoint(given(path), options, place(tmp_path))
    assert saved.files[1][1] == config.read_bytes()
    assert [file.name for file, _ in saved.files] == ["saved.pth", "config.json"]


def test_saved_checkpoint_leaves_a_config_of_the_same_sizes_as_it_is(tmp_path: Path) -> None:
    saved = saved_checkpoint(given(write_checkpoint(tmp_path)), StageOptions(), tmp_path / "again.pth")
    assert [file.name for file, _ in saved.files] == ["again.pth"]
    assert open_checkpoint(write(saved)).config == SMALL


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (json.dumps({**stated(), "max_dur": 6}), "states other sizes than this checkpoint's"),
        ("{}", "is no config of this checkpoint"),
        ("words", "is no config of this checkpoint"),
    ],
)
def test_saved_checkpoint_is_refused_when_another_config_stands_there(tmp_path: Path, other: str, says: str) -> None:
    wanted = place(tmp_path)
    (wanted.parent / "config.json").write_text(other, encoding="utf-8")
    with pytest.raises(UserInput, match=rf"out/config\.json: {says}, which needs one there; --save-checkpoint names"):
        saved_checkpoint(given(write_checkpoint(tmp_path)), StageOptions(), wanted)


def test_saved_checkpoint_is_refused_when_a_file_that_is_none_stands_there(tmp_path: Path) -> None:
    wanted = place(tmp_path)
    wanted.write_bytes(b"a thesis")
    with pytest.raises(UserInput, match=r"saved\.pth: is no checkpoint of torch, and would be replaced"):
        saved_checkpoint(given(write_checkpoint(tmp_path)), StageOptions(), wanted)


def test_saved_checkpoint_may_replace_an_earlier_one(tmp_path: Path) -> None:
    checkpoint, wanted = given(write_checkpoint(tmp_path)), place(tmp_path)
    write(saved_checkpoint(checkpoint, StageOptions(), wanted))
    assert saved_checkpoint(checkpoint, StageOptions(), wanted).files[0][1] == wanted.read_bytes()


@pytest.mark.parametrize("name", ["saved", "saved.onnx", "saved.pt", "saved.pth.gz"])
def test_saved_checkpoint_is_refused_when_its_name_is_no_pths(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserInput, match=r"--save-checkpoint .*: a file ending in \.pth is expected"):
        saved_checkpoint(given(write_checkpoint(tmp_path)), StageOptions(), tmp_path / name)


def test_saved_checkpoint_is_refused_when_the_checkpoint_is(tmp_path: Path) -> None:
    weights = random_weights()
    weights["predictor.module.lstm.bias_hh_l0"][0] = np.nan
    path = tmp_path / "kokoro.onnx"
    onnx.save(float_export(weights), path)
    with pytest.raises(Refusal, match="hold NaN or infinity"):
        saved_checkpoint(given(path), StageOptions(), place(tmp_path))
