from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
import torch
from rknn_tts_runtime import CodeStep

from contracts.errors import UserInput
from converters.qwen3 import opening as opening_module
from converters.qwen3.opening import Opening
from converters.stages import Session
from models.qwen3.runs import quantized
from tests.converters.qwen3.openings import SMALL, open_small, weights_of, write_small
from tests.onnx_runs import snr_db
from tests.qwen3_reference import reference_decoder

RATE = 96
FLOAT_DB = 110.0
"""Of this decoder's float32 against double precision: 15 squared sines in a row make more of the roundings."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small(tmp_path_factory.mktemp("snapshot"))


@pytest.fixture(scope="module")
def opening(folder: Path) -> Opening:
    return open_small(folder)


def test_stream_is_long_enough_and_no_step_ends_with_it(opening: Opening) -> None:
    length = opening.codes.shape[-1]
    assert length >= 192
    assert length % 16
    assert length % 4
    assert (length - 4) % 16


def test_whole_decode_is_the_references(opening: Opening) -> None:
    original = reference_decoder(SMALL)
    original.load_state_dict(
        {name.removeprefix("decoder."): torch.from_numpy(array) for name, array in weights_of().items()}
    )
    with torch.no_grad():
        wanted = original.double()(torch.from_numpy(opening.codes)).numpy()
    assert wanted.shape == (1, 1, RATE * opening.codes.shape[-1])
    assert snr_db(wanted, opening.whole[0]) >= FLOAT_DB
    np.testing.assert_array_equal(opening.audio_of(3, 7), opening.whole[0][..., 3 * RATE : 7 * RATE])


def test_feed_is_the_streams_columns_with_zeros_behind_and_the_cache_in_rows(opening: Opening) -> None:
    cache = np.arange(opening.layout.numel, dtype=np.float32)
    feed = opening.feed(CodeStep(16, 32, 5), cache)
    assert list(feed) == ["hidden", "cache"]
    assert {name: array.shape for name, array in feed.items()} == opening.shapes(16)
    np.testing.assert_array_equal(feed["hidden"][:, :, 0, :5], opening.hidden[..., 32:37])
    assert not feed["hidden"][..., 5:].any()
    np.testing.assert_array_equal(feed["cache"].reshape(-1), cache)


def test_inputs_are_the_seams_and_the_cache_in_rows(folder: Path, opening: Opening) -> None:
    width = opening.shapes(4)["cache"][3]
    rows = (1, opening.layout.numel // width, 1, width)
    assert opening.shapes(4) == {"hidden": (1, 64, 1, 4), "cache": rows}
    codes = open_small(folder, seam="codes")
    assert codes.shapes(4) == {"codes": (1, 16, 4), "cache": rows}
    assert codes.seam is codes.codes
    assert codes.host is None
    feed = codes.feed(CodeStep(4, 0, 4), codes.zeros())
    assert feed["codes"].dtype == np.int64


def test_graph_and_session_of_a_step_are_made_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = open_small(folder, codes="4")
    traced, opened = [], []

    def trace(step: object, seam: str, shapes: list[tuple[int, ...]]) -> ir.Model:
        traced.append((seam, shapes))
        return ir.Model(ir.Graph([], [], nodes=[]), ir_version=10)

    def open_session(model: ir.Model) -> Session:
        opened.append(model)
        return lambda feed: {"audio": np.full(4, feed["hidden"].sum()), "cache_out": feed["cache"] + 1}

    monkeypatch.setattr(opening_module, "step_graph", trace)
    monkeypatch.setattr(made, "open_session", open_session)
    assert made.model(4) is made.model(4)
    assert made.session(4) is made.session(4)
    assert opened == [made.model(4)]
    assert traced == [("hidden", list(made.shapes(4).values()))]


def test_drawn_stream_is_of_any_length_and_of_what_the_step_takes(folder: Path, opening: Opening) -> None:
    codes = open_small(folder, seam="codes").drawn(9)
    assert codes.shape == (1, 16, 9)
    np.testing.assert_array_equal(opening.drawn(9), quantized(opening.decoder, np.asarray(codes, np.int64)))


@pytest.mark.parametrize("options", [{"codes": "16,1"}, {"codes": "1"}, {"window_role": "0+1"}])
def test_step_of_fewer_codes_than_the_next_one_starts_from_is_refused(options: dict[str, str], folder: Path) -> None:
    """A code makes 2 * 2 * 8 frames behind the first block, and 34 are kept."""
    with pytest.raises(UserInput) as caught:
        open_small(folder, **options)
    said = str(caught.value)
    assert str(folder) in said
    assert said.endswith(
        "a step of 1 codes gives this decoder 32 frames behind its first block and 34 are needed: --codes 2 or more."
    )


def test_checkpoint_that_has_changed_into_another_is_refused(tmp_path: Path) -> None:
    folder = write_small(tmp_path)
    opening = open_small(folder)
    (folder / "model.safetensors").write_bytes(b"\0" * 100)
    with pytest.raises(UserInput):
        opening.decoder  # noqa: B018
