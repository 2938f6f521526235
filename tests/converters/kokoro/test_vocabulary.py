from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from contracts.errors import UserInput
from converters.kokoro.checkpoint import KokoroCheckpoint, open_checkpoint
from converters.kokoro.vocabulary import vocabulary_of
from tests.kokoro_writer.checkpoint import SMALL, random_weights, stated, write_checkpoint
from tests.kokoro_writer.export import float_export
from tests.kokoro_writer.speaking import VOCABULARY, write_voices


def pth(folder: Path, vocabulary: str) -> KokoroCheckpoint:
    config = {**stated(), "vocab": json.loads(vocabulary)}
    if config["vocab"] is None:
        del config["vocab"]
    return open_checkpoint(write_checkpoint(folder, config=config))


def test_vocabulary_is_that_of_the_config_beside_a_pth(tmp_path: Path) -> None:
    assert vocabulary_of(pth(tmp_path, '{"a": 3, "ʨ": 1}'), None, write_voices(tmp_path)) == {"a": 3, "ʨ": 1}


def test_vocabulary_is_that_of_the_voices_where_the_config_has_none(tmp_path: Path) -> None:
    opened = pth(tmp_path, "null")
    assert vocabulary_of(opened, None, write_voices(tmp_path)) == VOCABULARY
    assert vocabulary_of(opened, None, None) == {}


def test_vocabulary_is_empty_where_the_voices_is_another_models(tmp_path: Path) -> None:
    path = write_voices(tmp_path)
    (tmp_path / "vocab.json").write_text(json.dumps({"vocab": {"a": SMALL.n_token}}), encoding="utf-8")
    assert vocabulary_of(pth(tmp_path, "null"), None, path) == {}


def test_vocabulary_of_an_onnx_is_that_of_the_voices_or_of_the_config_that_is_given(tmp_path: Path) -> None:
    path = tmp_path / "kokoro.onnx"
    onnx.save(float_export(random_weights()), path)
    opened, voices = open_checkpoint(path), write_voices(tmp_path)
    assert vocabulary_of(opened, None, voices) == VOCABULARY
    given = tmp_path / "given.json"
    given.write_text(json.dumps({**stated(), "vocab": {"b": 2}}), encoding="utf-8")
    assert vocabulary_of(opened, given, voices) == {"b": 2}


@pytest.mark.parametrize("vocabulary", ["[]", '{"ab": 1}', '{"a": true}', '{"a": -1}', '{"a": 1.0}', '{"a": 10}'])
def test_vocabulary_that_is_none_of_the_checkpoint_is_refused_by_name(tmp_path: Path, vocabulary: str) -> None:
    assert SMALL.n_token == 10
    with pytest.raises(UserInput, match=r"config\.json: its key 'vocab' must give each phoneme"):
        vocabulary_of(pth(tmp_path, vocabulary), None, None)
