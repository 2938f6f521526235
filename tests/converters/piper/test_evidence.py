from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from converters.piper.evidence import encoder_utterances, noise_utterance, unreached_lengths
from converters.piper.host_half import host_half
from converters.piper.utterances import Spoken, decoder_cut, open_host, open_speaker
from converters.stages import Utterance
from tests.converters.voices import opened
from tests.onnx_runs import open_session, run
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import decoder_model


@pytest.mark.parametrize("window", [64, 109, 512])
def test_encoder_utterances_are_shorter_than_a_window_one_and_several(tmp_path: Path, window: int) -> None:
    recipe = Recipe()
    voice = opened(tmp_path, recipe)
    speaker = open_speaker(open_host(voice, open_session(host_half(voice))), open_session)
    spoken = encoder_utterances(speaker, window)
    short, one, several = (item.utterance for item in spoken.values())
    assert short.latent.shape[-1] < window <= one.latent.shape[-1] < window + 20
    assert several.latent.shape[-1] > 2 * window * 0.8
    assert unreached_lengths(spoken, window) == {}
    for utterance in (short, one, several):
        feed = {"z": utterance.latent, "y_mask": utterance.mask}
        decoded = run(decoder_model(recipe), feed)["audio"].reshape(-1)
        np.testing.assert_array_equal(decoded, utterance.reference)


def spoken(name: str, frames: int) -> Spoken:
    latent, mask = np.zeros((1, 2, frames), np.float32), np.ones((1, 1, frames), np.float32)
    return Spoken([1], (0.0, 1.0, 0.0), Utterance(name, latent, mask, np.zeros(frames, np.float32)), {})


@pytest.mark.parametrize(
    ("short", "one", "several", "unreached"),
    [
        (6, 9, 20, set()),
        (9, 9, 20, {"fp32.encoder_short.short"}),
        (6, 8, 20, {"fp32.encoder_one_window.whole"}),
        (6, 18, 20, {"fp32.encoder_one_window.whole"}),
        (6, 9, 9, {"fp32.encoder_several_windows.whole"}),
    ],
)
def test_unreached_lengths_names_the_gate_that_stays_without_material(
    short: int, one: int, several: int, unreached: set[str]
) -> None:
    names = ("encoder_short", "encoder_one_window", "encoder_several_windows")
    made = {name: spoken(name, frames) for name, frames in zip(names, (short, one, several), strict=True)}
    assert set(unreached_lengths(made, 9)) == unreached


@pytest.mark.parametrize(("other", "reached"), [(8, False), (9, True), (500, True)])
def test_unreached_lengths_wants_a_window_of_the_other_speaker(other: int, reached: bool) -> None:
    lengths = {"encoder_short": 6, "encoder_one_window": 9, "encoder_several_windows": 20}
    made = {name: spoken(name, frames) for name, frames in {**lengths, "encoder_other_speaker": other}.items()}
    assert set(unreached_lengths(made, 9)) == (set() if reached else {"fp32.encoder_other_speaker.whole"})


def test_encoder_utterances_speak_faster_when_the_shortest_fills_the_window(tmp_path: Path) -> None:
    # A voice whose sentences grow by more than their share: two thirds of a window take 131 frames at its own pace.
    voice = opened(tmp_path, Recipe(duration_flows=True, duration_noise=False, attention=True))
    speaker = open_speaker(open_host(voice, open_session(host_half(voice))), open_session)
    said = encoder_utterances(speaker, 109)
    assert unreached_lengths(said, 109) == {}
    assert said["encoder_short"].scales[1] < voice.config.scales[1]


def test_noise_utterance_is_white(tmp_path: Path) -> None:
    recipe, frames = Recipe(), 400
    made = noise_utterance(open_session(decoder_cut(opened(tmp_path, recipe))), recipe.latent, frames)
    assert made.name == f"noise_{frames}_frames"
    assert made.latent.shape == (1, recipe.latent, frames)
    assert made.reference.shape == (frames * recipe.hop,)
    assert abs(made.latent.mean()) < 0.1
    assert abs(made.latent.std() - 1) < 0.1
