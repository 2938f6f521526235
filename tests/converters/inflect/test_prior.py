from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from contracts.errors import Refusal
from converters.inflect.prior import drawn_ids, drawn_noise, long_prior, prior_of, speak
from converters.inflect.voice import watched_decode
from converters.stages import Array
from tests.converters.inflect.releases import SMALL, graphs
from tests.converters.inflect.test_voice import opened
from tests.onnx_runs import open_session, run, snr_db


def test_drawn_ids_are_symbols_with_blanks_around_each() -> None:
    ids = drawn_ids(opened(), 6)
    assert len(ids) == 13
    assert ids[::2] == [0] * 7
    assert all(0 < number < SMALL.n_vocab for number in ids[1::2])
    assert drawn_ids(opened(), 6) == ids


def test_long_prior_is_the_beginning_of_what_the_durations_give() -> None:
    voice, seen = opened(), []
    session = open_session(graphs()[0])

    def durations(feed: Mapping[str, Array]) -> dict[str, Array]:
        seen.append(session(feed))
        return seen[-1]

    prior = long_prior(voice, durations, 300)
    assert prior.frames == 300
    assert prior.channels == SMALL.inter_channels
    np.testing.assert_array_equal(prior.given["m_p_exp"], seen[-1]["m_p_exp"][..., :300])
    assert prior.given["y_mask"].shape == (1, 1, 300)
    assert (prior.given["y_mask"] == 1).all()


def test_long_prior_refuses_a_model_that_says_nothing() -> None:
    frame = {"m_p_exp": np.zeros((1, 8, 1)), "logs_p_exp": np.zeros((1, 8, 1)), "y_mask": np.ones((1, 1, 1))}
    with pytest.raises(Refusal, match=r"no sentence of this model gets long enough .* take 1 frames, 300 are needed"):
        long_prior(opened(), lambda feed: dict(frame), 300)


@pytest.mark.parametrize(
    "shapes",
    [
        {"m_p_exp": (1, 8, 5), "logs_p_exp": (1, 8, 5), "y_mask": (1, 1, 4)},
        {"m_p_exp": (1, 8, 5), "logs_p_exp": (1, 8, 5), "y_mask": (1, 8, 5)},
        {"m_p_exp": (8, 5), "logs_p_exp": (1, 8, 5), "y_mask": (1, 1, 5)},
    ],
)
def test_prior_of_refuses_other_shapes(shapes: dict[str, tuple[int, ...]]) -> None:
    given = {name: np.zeros(shape) for name, shape in shapes.items()}
    with pytest.raises(Refusal, match=r"is not Inflect v2's: \[1, C, N\] was expected, and it gave m_p_exp"):
        prior_of(opened(), lambda feed: dict(given), [0, 1, 0])


def test_drawn_noise_of_fewer_frames_is_the_beginning_of_more() -> None:
    np.testing.assert_array_equal(drawn_noise(4, 9)[..., :5], drawn_noise(4, 5))
    assert abs(float(drawn_noise(64, 500).std()) - 1) < 0.02


def test_speak_is_the_published_decode_of_the_prior() -> None:
    voice = opened()
    prior = long_prior(voice, open_session(graphs()[0]), 40)
    noise = drawn_noise(prior.channels, 50)
    spoken = speak(voice, open_session(watched_decode(voice)), prior, noise)
    feed: dict[str, Array] = {
        **prior.given,
        "zp_noise": noise[..., :40],
        "noise_scale": np.array(0.667, np.float32),  # the release's
    }
    assert snr_db(run(graphs()[1], feed)["waveform"].reshape(-1), spoken.samples) >= 120.0
    wanted = prior.given["m_p_exp"] + np.exp(prior.given["logs_p_exp"]) * noise[..., :40] * np.float32(0.667)
    assert snr_db(wanted, spoken.said.latent) >= 120.0


def test_speak_refuses_samples_that_are_not_the_hops() -> None:
    voice = opened()
    prior = long_prior(voice, open_session(graphs()[0]), 40)
    got = {"z": np.zeros((1, 8, 40)), "audio": np.zeros(300)}
    with pytest.raises(Refusal, match=r"40 frames gave a latent \[1, 8, 40\] and 300 samples, though .* make 8"):
        speak(voice, lambda feed: dict(got), prior, drawn_noise(8, 40))
