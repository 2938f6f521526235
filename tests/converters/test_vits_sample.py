from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from contracts.contract import Window
from converters.vits_sample import counted, decoder_of_windows, sample_by_windows
from converters.vits_windows import AUDIO, Latent
from tests.onnx_runs import open_session, run, snr_db
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import decoder_model

RECIPE = Recipe(latent=8, strides=(3, 2))
WINDOW = Window(64, 8, 28, 28, RECIPE.hop, RECIPE.sample_rate)
"""Its context is beyond what the small decoder reads."""

MASKED_DB = 95.0
"""Of a short latent in a padded window, where the decoder is masked (Piper's gate)."""


def latent(frames: int) -> Latent:
    drawn = np.random.default_rng(1).standard_normal((1, RECIPE.latent, frames)).astype(np.float32)
    return Latent(drawn, np.ones((1, 1, frames), np.float32))


def whole(said: Latent) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.asarray(run(decoder_model(RECIPE), said.feed)[AUDIO], np.float32).reshape(-1)


@pytest.mark.parametrize("masked", [True, False])
def test_short_latent_is_heard_as_the_engine_decodes_it(masked: bool) -> None:
    said = latent(40)
    decoder = open_session(decoder_of_windows(ir.from_proto(decoder_model(RECIPE)), masked))
    sample = sample_by_windows(decoder, said, WINDOW, whole(said), "it", 24_000)
    assert sample.said == "it, 40 frames (less than a window, so padded to 64)"
    assert len(sample.feeds) == 1
    assert (snr_db(sample.whole, sample.windowed) >= MASKED_DB) is masked
    assert np.array_equal(sample.render([decoder(feed) for feed in sample.feeds]), sample.windowed)


def test_long_latent_is_put_together_of_its_windows_each_with_what_is_given() -> None:
    said = latent(100)
    said = Latent(said.latent, said.mask, {"g": np.array([7.0], np.float32)})
    decoder = open_session(ir.from_proto(decoder_model(RECIPE)))
    heard = sample_by_windows(
        lambda feed: decoder({name: feed[name] for name in ("z", "y_mask")}), said, WINDOW, whole(latent(100)), "it", 1
    )
    assert heard.said == "it, 100 frames"
    assert [float(feed["g"][0]) for feed in heard.feeds] == [7.0] * 6  # frames 0, 8, .., 32 and 36 on
    assert snr_db(heard.whole, heard.windowed) >= MASKED_DB
    silent = [{AUDIO: np.zeros((1, 1, 64 * RECIPE.hop), np.float32)}] * 6
    assert not heard.render(silent).any()


@pytest.mark.parametrize(("count", "told"), [(0, "0 ids"), (1, "1 id"), (2, "2 ids")])
def test_counted_is_one_or_several(count: int, told: str) -> None:
    assert counted(count, "id") == told
