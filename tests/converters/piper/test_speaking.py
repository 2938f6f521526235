from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from contracts.contract import Window
from contracts.errors import UserInput
from converters.piper.host_half import host_half
from converters.piper.speaking import read_sentence, sample_of
from converters.piper.utterances import decoder_cut, open_host, open_speaker
from converters.piper.voice import Voice, open_voice
from converters.stages import Sample, Sentence
from converters.vits_ladder import DecoderWindow
from converters.vits_sample import SampleRung
from tests.converters.voices import whole_voice
from tests.onnx_runs import open_session, run, snr_db
from tests.vits_writer.recipe import ALPHABET, Recipe
from tests.vits_writer.voice import decoder_model, voice_json, write_voice

RECIPE = Recipe(strides=(3, 2))
WINDOW = Window(16, 8, 4, 4, RECIPE.hop, RECIPE.sample_rate)
QUIET = (0.0, 1.0, 0.0)
"""Scales without any noise: the voice says the same each time."""

IDS = (1, 0, 12, 0, 20, 0, 2)


def quiet(folder: Path, recipe: Recipe = RECIPE) -> Voice:
    """A voice that speaks without noise."""
    inference = {"noise_scale": 0.0, "length_scale": 1.0, "noise_w": 0.0}
    return open_voice(write_voice(folder / "voice.onnx", recipe, {**voice_json(recipe), "inference": inference}))


def sampled(voice: Voice, sentence: Sentence, window: Window = WINDOW, speaker: int = 0) -> Sample:
    host = open_host(voice, open_session(host_half(voice)), speaker)
    made = DecoderWindow(window, masked=False, trim=None, takes_short=True)
    rungs = {"": SampleRung(made, open_session(decoder_cut(voice)), 1.0)}
    return sample_of(open_speaker(host, open_session), rungs, sentence)


def long_ids(times: int = 4) -> tuple[int, ...]:
    return (1, 0, *(i for _ in range(times) for i in (12, 0, 20, 0)), 2)


def test_whole_is_what_the_voice_says_as_it_was_written(tmp_path: Path) -> None:
    sample = sampled(quiet(tmp_path), Sentence(None, IDS))
    assert np.array_equal(sample.whole, whole_voice(RECIPE, list(IDS), QUIET)["output"].reshape(-1))
    assert sample.sample_rate == RECIPE.sample_rate


def test_gates_sentence_is_spoken_when_nothing_is_asked_for(tmp_path: Path) -> None:
    # Its beginning and end, and a pad behind each of the 59 characters, all of which the voice has.
    sample = sampled(quiet(tmp_path), Sentence())
    assert set("ðə bˈɜːtʃ kənˈuː slˈɪd ɔn ðə smˈuːð plˈæŋks, ɡlˈuː ðə ʃˈiːt.") <= set(ALPHABET)
    assert sample.said.startswith("a sentence of the gates', 123 ids, ")


def test_windows_are_the_original_on_windows_cut_by_hand(tmp_path: Path) -> None:
    spoken = whole_voice(RECIPE, list(long_ids()), QUIET)
    latent, mask = spoken["z"], spoken["y_mask"]
    frames, hop = mask.shape[-1], RECIPE.hop
    assert frames > 2 * 16  # a first window, one in the middle and a last one
    starts = [*range(0, frames - 16, 8), frames - 16]
    decoder = open_session(decoder_model(RECIPE))
    pieces, emitted = [], 0
    for start in starts:
        part = {"z": latent[..., start : start + 16], "y_mask": mask[..., start : start + 16]}
        stop = frames if start == starts[-1] else start + 12
        pieces.append(decoder(part)["audio"].reshape(-1)[(emitted - start) * hop : (stop - start) * hop])
        emitted = stop
    sample = sampled(quiet(tmp_path), Sentence(None, long_ids()))
    assert sample.said == f"the sentence that was asked for, {len(long_ids())} ids, {frames} frames"
    assert np.array_equal(sample.windowed, np.concatenate(pieces))
    assert len(sample.feeds) == len(starts)
    for feed, start in zip(sample.feeds, starts, strict=True):
        assert np.array_equal(feed["z"], latent[..., start : start + 16])


def test_engines_windows_are_put_together_as_they_are_cut(tmp_path: Path) -> None:
    sample = sampled(quiet(tmp_path), Sentence(None, long_ids()))
    hop, count = RECIPE.hop, len(sample.feeds)
    frames = sample.whole.size // hop
    # The first emits 12 frames, each behind it 8, the last the rest.
    wanted = np.minimum(np.maximum(np.arange(frames) - 4, 0) // 8, count - 1)
    outputs = [{"audio": np.full((1, 1, 1, 16 * hop), number, np.float32)} for number in range(count)]
    assert np.array_equal(sample.render(outputs), np.repeat(wanted, hop).astype(np.float32))


def test_sentence_shorter_than_a_window_is_one_padded_window(tmp_path: Path) -> None:
    wide = Window(64, 56, 4, 4, RECIPE.hop, RECIPE.sample_rate)
    spoken = whole_voice(RECIPE, list(IDS), QUIET)
    frames = spoken["y_mask"].shape[-1]
    assert frames < 64
    sample = sampled(quiet(tmp_path), Sentence(None, IDS), wide)
    (feed,) = sample.feeds
    padding = [(0, 0), (0, 0), (0, 64 - frames)]
    assert np.array_equal(feed["z"], np.pad(spoken["z"], padding))
    assert np.array_equal(feed["y_mask"], np.pad(spoken["y_mask"], padding))
    decoded = run(decoder_model(RECIPE), feed)["audio"].reshape(-1)
    assert np.array_equal(sample.windowed, decoded[: frames * RECIPE.hop])
    assert np.array_equal(sample.render([{"audio": decoded}]), decoded[: frames * RECIPE.hop])
    assert sample.said.endswith(f", 7 ids, {frames} frames (less than a window, so padded to 64)")


def test_ids_and_frames_are_counted(tmp_path: Path) -> None:
    assert sampled(quiet(tmp_path), Sentence(None, (5,))).said.startswith("the sentence that was asked for, 1 id, ")


def test_voice_of_several_speakers_speaks_as_the_one_that_is_asked_for(tmp_path: Path) -> None:
    recipe = Recipe(strides=(3, 2), speakers=3)
    voice = quiet(tmp_path, recipe)
    # Context beyond what the small voice reads: windows are the whole, and wrong where one has another speaker.
    window = Window(64, 8, 28, 28, recipe.hop, recipe.sample_rate)
    samples = [sampled(voice, Sentence(None, long_ids(20)), window, speaker) for speaker in (0, 2)]
    for sample, speaker in zip(samples, (0, 2), strict=True):
        wanted = whole_voice(recipe, list(long_ids(20)), QUIET, speaker=speaker)["output"].reshape(-1)
        assert np.array_equal(sample.whole, wanted)
        assert f", by speaker {speaker}, " in sample.said
        assert snr_db(wanted, sample.windowed) > 120
    speakers = [[feed["g"] for feed in sample.feeds] for sample in samples]
    assert all(np.array_equal(embedding, given[0]) for given in speakers for embedding in given)
    assert not np.array_equal(speakers[0][0], speakers[1][0])


def test_voice_says_the_same_when_asked_again(tmp_path: Path) -> None:
    voice = open_voice(write_voice(tmp_path / "voice.onnx", RECIPE))  # with noise
    first, second = (sampled(voice, Sentence(None, IDS)).whole for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("sentence", [Sentence(), Sentence("hi"), Sentence(None, IDS)])
def test_sample_of_a_voice_without_a_sample_rate_asks_for_one(tmp_path: Path, sentence: Sentence) -> None:
    path = write_voice(tmp_path / "voice.onnx", config={})
    with pytest.raises(UserInput, match=r"^--sample: neither voice\.onnx nor .*: --sample-rate sets it\.$"):
        read_sentence(open_voice(path), sentence, lambda: None)
    assert read_sentence(open_voice(path, 8000), Sentence(None, IDS), lambda: None).ids == IDS


def test_gates_sentence_needs_no_reading(tmp_path: Path) -> None:
    assert read_sentence(quiet(tmp_path), Sentence(), lambda: pytest.fail("read")) == Sentence()
