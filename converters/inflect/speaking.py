"""What a user hears of an engine: ids, decoded window by window and put together again."""

from __future__ import annotations

from collections.abc import Mapping

from contracts.errors import UserInput
from converters.inflect.prior import drawn_ids, drawn_noise, long_prior, prior_of, speak
from converters.inflect.voice import Voice
from converters.stages import AddExtras, Sample, Sentence, Session
from converters.vits_sample import MOST_IDS, SampleRung, counted, sample_by_windows

SYMBOLS = 48
"""Of the sentence that is spoken where the user names none: some seconds."""


def read_sentence(voice: Voice, sentence: Sentence, add_extras: AddExtras) -> Sentence:
    """`sentence` where it is of the model's ids, or of none.

    Raises:
        UserInput: it is a text, an id is none of the model's, or there are more than it is sensible to hear.
    """
    if sentence.text is not None:
        raise UserInput(
            "--text: what makes ids of a text is part of the Inflect release and not of rknn-tts; give them with --ids."
        )
    if wrong := [number for number in sentence.ids or () if number >= voice.symbols]:
        raise UserInput(f"--ids: {wrong[0]} is no symbol of this model, whose ids go from 0 to {voice.symbols - 1}.")
    if len(sentence.ids or ()) > MOST_IDS:
        raise UserInput(
            f"--ids: a sample speaks up to {MOST_IDS} ids, and these are {len(sentence.ids or ())}; shorten it."
        )
    if sentence.ids == ():
        raise UserInput("--ids: there is nothing to speak in it.")
    return sentence


def read_nothing(sentence: Sentence, add_extras: AddExtras) -> Sentence:
    """Of a slice, which knows no ids.

    Raises:
        UserInput: always.
    """
    raise UserInput(
        "--sample: a slice has nothing that makes a latent of ids; give the release's folder as checkpoint."
    )


def sample_of(
    voice: Voice, durations: Session, original: Session, rungs: Mapping[str, SampleRung], sentence: Sentence
) -> Sample:
    """What a user hears: `sentence` by `decode.onnx` as it is, and in windows, whose samples engines give.

    Drawn symbols are as many as fill the narrowest of engines that take no padding.

    Args:
        voice: the model.
        durations: `duration.onnx`.
        original: `decode.onnx` with its latent as a further output (`watched_decode`).
        rungs: the engines (`sample_rungs`).
        sentence: as `read_sentence` gives it.

    Raises:
        UserInput: see `sample_by_windows`.
    """
    ids = drawn_ids(voice, SYMBOLS) if sentence.ids is None else list(sentence.ids)
    prior = prior_of(voice, durations, ids)
    narrowest = min(each.made.window.frames for each in rungs.values())
    if sentence.ids is None and prior.frames < narrowest and all(each.made.trim for each in rungs.values()):
        prior = long_prior(voice, durations, narrowest)
        ids = prior.ids
    spoken = speak(voice, original, prior, drawn_noise(prior.channels, prior.frames))
    what = "drawn symbols" if sentence.ids is None else "the ids that were asked for"
    said = f"{what}, {counted(len(ids), 'id')}"
    return sample_by_windows(rungs, spoken.said, spoken.samples, said, voice.sample_rate)
