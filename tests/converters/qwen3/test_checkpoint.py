from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from contracts.errors import UserInput
from converters.qwen3 import checkpoint
from converters.qwen3.checkpoint import locate, open_checkpoint
from converters.qwen3.stand_in import stand_in
from models.qwen3.config import TRUE_CONFIG
from tests.converters.hubs import Hub, no_hub
from tests.converters.qwen3.openings import SMALL, weights_of, write_small


def test_random_is_a_stand_in_of_the_published_sizes_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    found = locate("random", no_hub)
    assert (found.source.name, found.source.kind) == ("random", "random")
    assert found.read == ()
    assert "a stand-in for a checkpoint, nobody's voice" in found.note
    asked: list[object] = []

    def drawn(*given: object) -> dict[str, object]:
        asked.append(given)
        return {}

    monkeypatch.setattr(checkpoint, "stand_in", drawn)
    opened = open_checkpoint(found)
    assert (opened.config, opened.sample_rate) == (TRUE_CONFIG, 24_000)
    assert not asked  # 114 million numbers are drawn when they are wanted
    assert opened.weights() == {}
    assert asked == [(TRUE_CONFIG, 0)]


def test_snapshot_is_found_and_opened_with_its_own_sizes_and_weights(tmp_path: Path) -> None:
    folder = write_small(tmp_path / "voice")
    for given in (tmp_path / "voice", folder, folder / "model.safetensors"):
        found = locate(str(given), no_hub)
        assert (found.source.kind, found.note) == ("checkpoint", "")
        assert [path.name for path in found.read] == ["model.safetensors", "config.json"]
        opened = open_checkpoint(found)
        assert (opened.config, opened.sample_rate) == (SMALL, 24_000)
    weights = opened.weights()
    assert weights.keys() == weights_of().keys()
    assert all(np.array_equal(array, weights_of()[name]) for name, array in weights.items())


def test_place_on_a_hub_is_fetched_and_opened_like_a_folder(tmp_path: Path) -> None:
    folder = write_small(tmp_path / "own")
    files = {f"speech_tokenizer/{path.name}": path.read_bytes() for path in folder.iterdir()}
    hub = Hub(tmp_path / "hub", files)
    found = locate("hf://owner/voice@v1", hub)
    assert hub.asked == ["hf://owner/voice@v1"]
    assert found.source.name == "voice.safetensors"
    assert found.source.sha256 == locate(str(folder), no_hub).source.sha256
    assert open_checkpoint(found).config == SMALL


@pytest.mark.parametrize("given", ["Random", "missing", "random "])
def test_what_is_no_checkpoint_is_refused(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserInput, match="there is no such file or folder"):
        locate(given, no_hub)


def test_stand_in_of_a_checkpoint_is_that_of_its_seed() -> None:
    assert checkpoint.SEED == 0
    drawn = stand_in(SMALL, checkpoint.SEED)
    assert all(np.array_equal(array, weights_of()[name]) for name, array in drawn.items())
