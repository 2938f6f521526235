from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from contracts.contract import Trim, Window
from contracts.errors import UserInput
from converters.stages import Session
from converters.vits_ladder import DecoderWindow
from converters.vits_sample import SampleRung, counted, sample_by_windows, sample_rungs
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


def of_one(decoder: Session, masked: bool = False) -> dict[str, SampleRung]:
    return {"": SampleRung(DecoderWindow(WINDOW, masked, None, takes_short=True), decoder, 1.0)}


@pytest.mark.parametrize("masked", [True, False])
def test_short_latent_is_heard_as_the_engine_decodes_it(masked: bool) -> None:
    said = latent(40)
    made = DecoderWindow(WINDOW, masked, None, takes_short=True)
    rungs = sample_rungs(ir.from_proto(decoder_model(RECIPE)), {"": made}, {}, open_session)
    sample = sample_by_windows(rungs, said, whole(said), "it", 24_000)
    assert sample.said == "it, 40 frames (less than a window, so padded to 64)"
    assert len(sample.feeds) == 1
    assert (snr_db(sample.whole, sample.windowed) >= MASKED_DB) is masked
    assert np.array_equal(sample.render([rungs[""].decoder(feed) for feed in sample.feeds]), sample.windowed)


def test_long_latent_is_put_together_of_its_windows_each_with_what_is_given() -> None:
    said = latent(100)
    said = Latent(said.latent, said.mask, {"g": np.array([7.0], np.float32)})
    decoder = open_session(ir.from_proto(decoder_model(RECIPE)))
    rungs = of_one(lambda feed: decoder({name: feed[name] for name in ("z", "y_mask")}))
    heard = sample_by_windows(rungs, said, whole(latent(100)), "it", 1)
    assert heard.said == "it, 100 frames"
    assert [float(feed["g"][0]) for feed in heard.feeds] == [7.0] * 6  # frames 0, 8, .., 32 and 36 on
    assert snr_db(heard.whole, heard.windowed) >= MASKED_DB
    silent = [{AUDIO: np.zeros((1, 1, 64 * RECIPE.hop), np.float32)}] * 6
    assert not heard.render(silent).any()


LADDER = {
    "w64": DecoderWindow(WINDOW, True, None, takes_short=True),
    "w160": DecoderWindow(Window(160, 104, 28, 28, RECIPE.hop, RECIPE.sample_rate), False, Trim("place", 108), False),
}
"""The wide one emits 106 frames where an utterance begins or ends, 104 between."""


@pytest.mark.parametrize(
    ("frames", "costs", "roles"),
    [
        (40, {}, ["w64"]),
        (100, {}, ["w64"] * 6),  # 36, 8 four times, and what is left
        (160, {}, ["w64", "w160", "w64"]),  # to 36, to 132, to the end: 288 frames run, by two wide ones 320
        (160, {"w64": 1.0, "w160": 0.5}, ["w160", "w160"]),
        (160, {"w160": 0.5}, ["w64", "w160", "w64"]),  # of one of them it is not told, so it is frames again
        (230, {}, ["w64", "w160", "w160"]),  # to 36, to 140, to the end, which the last one emits from 124 on
    ],
)
def test_ladder_is_heard_as_a_board_picks_its_windows(frames: int, costs: dict[str, float], roles: list[str]) -> None:
    said = latent(frames)
    rungs = sample_rungs(ir.from_proto(decoder_model(RECIPE)), LADDER, costs, open_session)
    heard = sample_by_windows(rungs, said, whole(said), "it", 24_000)
    assert heard.roles == tuple(roles)
    assert [feed["z"].shape[-1] for feed in heard.feeds] == [int(role[1:]) for role in heard.roles]
    assert [("place" in feed) for feed in heard.feeds] == [role == "w160" for role in heard.roles]
    assert snr_db(heard.whole, heard.windowed) >= MASKED_DB


def test_sentence_that_no_engine_takes_is_refused_with_what_would() -> None:
    rungs = sample_rungs(ir.from_proto(decoder_model(RECIPE)), {"w160": LADDER["w160"]}, {}, open_session)
    told = r"takes 100 frames, and the engines take no fewer than 160: give a longer one, or add a masked window to"
    with pytest.raises(UserInput, match=told):
        sample_by_windows(rungs, latent(100), whole(latent(100)), "it", 24_000)


@pytest.mark.parametrize(("count", "told"), [(0, "0 ids"), (1, "1 id"), (2, "2 ids")])
def test_counted_is_one_or_several(count: int, told: str) -> None:
    assert counted(count, "id") == told
