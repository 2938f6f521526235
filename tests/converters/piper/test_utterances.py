from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.errors import Refusal
from converters.piper.host_half import host_half
from converters.piper.utterances import (
    SENTENCE,
    check_seam,
    decoder_cut,
    open_host,
    open_speaker,
    phoneme_ids,
    real_latent,
    run_host,
    scaled_to,
    sized_ids,
    speak,
)
from converters.piper.voice import Voice, open_voice
from converters.vits_windows import Latent
from tests.converters.voices import opened, save, whole_voice
from tests.onnx_runs import open_session, run
from tests.vits_writer.recipe import ALPHABET, Recipe
from tests.vits_writer.voice import decoder_model, voice_json, voice_model, write_voice

PIPER_MAP = {"_": [0], "^": [1], "$": [2], "a": [14], "b": [15], "c": [16, 17]}


def with_map(folder: Path, table: dict[str, Any] | None) -> Voice:
    config = voice_json()
    if table is None:
        del config["phoneme_id_map"]
    else:
        config["phoneme_id_map"] = table
    return open_voice(write_voice(folder / "voice.onnx", config=config))


@pytest.mark.parametrize(
    ("table", "text", "wanted"),
    [
        (PIPER_MAP, "ab", [1, 0, 14, 0, 15, 0, 2]),
        (PIPER_MAP, "aca", [1, 0, 14, 0, 16, 17, 0, 14, 0, 2]),
        (PIPER_MAP, "a?b", [1, 0, 14, 0, 15, 0, 2]),
        (PIPER_MAP, "", [1, 0, 2]),
        ({"a": [4]}, "aa", [0, 4, 0, 4, 0]),
        ({"_": [9], "a": [4]}, "a", [9, 4, 9]),
        ({"_": [0], "^": [1, 7], "$": [2], "a": [4]}, "a", [1, 7, 0, 4, 0, 2]),
    ],
)
def test_phoneme_ids_frame_a_sentence_and_part_its_phonemes(
    tmp_path: Path, table: dict[str, Any], text: str, wanted: list[int]
) -> None:
    assert phoneme_ids(with_map(tmp_path, table), text) == wanted


@pytest.mark.parametrize("alphabet", ["абвгд", "一二三"])
def test_phoneme_ids_draw_the_voices_own_symbols_when_its_alphabet_is_another(tmp_path: Path, alphabet: str) -> None:
    table: dict[str, list[int]] = {"_": [0], "^": [1], "$": [2]}
    table |= {symbol: [i + 10] for i, symbol in enumerate(alphabet)}
    ids = phoneme_ids(with_map(tmp_path, table), SENTENCE)
    assert (ids[:2], ids[-1]) == ([1, 0], 2)
    assert ids[1::2] == [0] * (len(SENTENCE) + 1)
    symbols = ids[2:-1:2]
    assert len(symbols) == len(SENTENCE)
    assert set(symbols) == {i + 10 for i in range(len(alphabet))}


def test_phoneme_ids_draw_from_the_embedding_when_there_is_no_map(tmp_path: Path) -> None:
    voice = with_map(tmp_path, None)
    ids = phoneme_ids(voice, SENTENCE)
    assert ids[::2] == [0] * (len(SENTENCE) + 1)
    assert all(1 <= i < voice.symbols for i in ids[1::2])
    assert ids == phoneme_ids(voice, SENTENCE)


def test_every_sentence_of_the_gates_is_in_the_alphabet_of_the_tests() -> None:
    assert set(SENTENCE) <= set(ALPHABET)


def test_decoder_cut_decodes_as_flow_and_decoder_alone(tmp_path: Path) -> None:
    recipe = Recipe(strides=(5, 3))
    cut = decoder_cut(opened(tmp_path, recipe))
    feed = {
        "z": np.random.default_rng(0).standard_normal((1, recipe.latent, 40)).astype(np.float32),
        "y_mask": np.ones((1, 1, 40), np.float32),
    }
    np.testing.assert_array_equal(run(cut, feed)["audio"], run(decoder_model(recipe), feed)["audio"])


@pytest.mark.parametrize(
    "recipe", [Recipe(), Recipe(duration_noise=False), Recipe(encoder_noise=True), Recipe(latent=4, strides=(3,))]
)
def test_run_host_without_noise_is_the_voice_with_its_scales_at_zero(tmp_path: Path, recipe: Recipe) -> None:
    voice = opened(tmp_path, recipe)
    ids = phoneme_ids(voice, SENTENCE[:9])
    found = run_host(open_host(voice, open_session(host_half(voice))), ids, (0.667, 1.0, 0.8))
    if recipe.encoder_noise:
        wanted = whole_voice(Recipe(), ids, (0.0, 1.0, 0.0))
    else:
        wanted = whole_voice(recipe, ids, (0.0, 1.0, 0.0))
    np.testing.assert_array_equal(found.latent, wanted["z"])
    np.testing.assert_array_equal(found.mask, wanted["y_mask"])


@pytest.mark.parametrize("frames", [1, 109, 700])
def test_real_latent_is_lively_and_of_so_many_frames(tmp_path: Path, frames: int) -> None:
    voice = opened(tmp_path)
    found = real_latent(open_host(voice, open_session(host_half(voice))), frames)
    assert found.latent.shape == (1, 8, frames)
    assert found.latent.std() > 0.1
    assert (found.mask == 1).all()


@pytest.mark.parametrize("frames", [60, 93, 109, 150])
def test_scaled_to_takes_so_many_frames_or_a_few_more(tmp_path: Path, frames: int) -> None:
    voice = opened(tmp_path)
    host = open_host(voice, open_session(host_half(voice)))
    ids = phoneme_ids(voice, SENTENCE[:9])
    got = run_host(host, ids, scaled_to(host, ids, frames)).frames
    assert frames <= got <= frames + len(ids)


@pytest.mark.parametrize("frames", [30, 109, 512, 1500])
def test_sized_ids_take_about_so_many_frames(tmp_path: Path, frames: int) -> None:
    voice = opened(tmp_path)
    host = open_host(voice, open_session(host_half(voice)))
    got = run_host(host, sized_ids(host, frames), voice.config.scales).frames
    assert 0.6 * frames - 10 <= got <= 1.6 * frames + 10


def test_speak_reads_the_noises_the_voice_drew(tmp_path: Path) -> None:
    voice = opened(tmp_path)
    speaker = open_speaker(open_host(voice, open_session(host_half(voice))), open_session)
    spoken = speak(speaker, "spoken", phoneme_ids(voice, SENTENCE[:9]), (0.667, 1.0, 0.8))
    frames = spoken.utterance.latent.shape[-1]
    assert {name: noise.shape for name, noise in spoken.noises.items()} == {
        "noise_duration": (1, 2, len(spoken.ids)),
        "noise_latent": (1, 8, frames),
    }
    assert abs(spoken.noises["noise_latent"].std() - 1) < 0.2


@pytest.mark.parametrize(
    ("latent", "mask"),
    [
        ((1, 8, 20), (1, 1, 21)),
        ((8, 20), (1, 1, 20)),
        ((2, 8, 20), (1, 1, 20)),
        ((1, 8, 20), (1, 8, 20)),
        ((1, 8, 0), (1, 1, 0)),
    ],
)
def test_check_seam_names_both_shapes_when_they_are_no_latent_and_mask(
    tmp_path: Path, latent: tuple[int, ...], mask: tuple[int, ...]
) -> None:
    voice = open_voice(save(tmp_path / "voice.onnx", voice_model()))
    with pytest.raises(Refusal, match="is no VITS voice: at its seam") as caught:
        check_seam(voice, Latent(np.zeros(latent, np.float32), np.zeros(mask, np.float32)))
    assert str(list(latent)) in str(caught.value)
    assert str(list(mask)) in str(caught.value)
