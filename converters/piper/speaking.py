"""What a user hears of an engine: a sentence of the voice, decoded window by window and put together again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from rknn_tts_runtime import decode_windowed

from contracts.contract import Window
from contracts.errors import UserInput
from converters.piper.phonemes import spoken_ids
from converters.piper.utterances import SENTENCE, Host, Speaker, phoneme_ids, speak
from converters.piper.voice import Voice
from converters.stages import AddExtras, Array, FloatArray, Sample, Sentence, Session
from converters.vits_windows import AUDIO, LATENT, MASK


def read_sentence(voice: Voice, sentence: Sentence, add_extras: AddExtras) -> Sentence:
    """`sentence` as `voice` speaks it; the gates' own where it is neither text nor ids.

    Raises:
        UserInput: the voice states no sample rate, which a WAV has; see also `spoken_ids`.
        Refusal, ToolFailure: see `spoken_ids`.
    """
    if voice.sample_rate is None:
        raise UserInput(
            f"--sample: neither {voice.path.name} nor an .onnx.json beside it states the sample rate, which a WAV "
            "needs: --sample-rate sets it."
        )
    return sentence if sentence == Sentence() else spoken_ids(voice, sentence, add_extras)


def sample_of(speaker: Speaker, decode: Session, window: Window, sentence: Sentence) -> Sample:
    """What a user hears: `sentence` by the whole voice, and in windows, whose samples an engine gives.

    Args:
        speaker: the voice, opened, as who is to speak.
        decode: the cut, of any length (`decoder_cut`), masked as the engine is.
        window: the engine's.
        sentence: as `read_sentence` gives it.
    """
    voice = speaker.host.voice
    assert voice.sample_rate is not None  # `read_sentence`
    ids = phoneme_ids(voice, SENTENCE) if sentence.ids is None else list(sentence.ids)
    spoken = speak(speaker, "sample", ids, voice.config.scales).utterance
    feeds: list[dict[str, Array]] = []

    def walked(run: Callable[[FloatArray, FloatArray], Array]) -> FloatArray:
        samples = decode_windowed(run, spoken.latent, spoken.mask, window.frames, window.left, window.right, window.hop)
        return np.asarray(samples, np.float32)

    def decoded(latent: FloatArray, mask: FloatArray) -> Array:
        feeds.append({LATENT: latent, MASK: mask, **spoken.given})
        return decode(feeds[-1])[AUDIO]

    def render(outputs: Sequence[Mapping[str, Array]]) -> FloatArray:
        following = iter(outputs)
        return walked(lambda latent, mask: next(following)[AUDIO])

    windowed = walked(decoded)
    return Sample(
        said=_said(speaker.host, sentence, len(ids), spoken.mask.shape[-1], window.frames),
        feeds=tuple(feeds),
        render=render,
        whole=spoken.reference,
        windowed=windowed,
        sample_rate=voice.sample_rate,
    )


def _said(host: Host, sentence: Sentence, ids: int, frames: int, window: int) -> str:
    what = "a sentence of the gates'" if sentence.ids is None else "the sentence that was asked for"
    who = f", by speaker {host.speaker}" if host.voice.speakers > 1 else ""
    short = f" (less than a window, so padded to {window})" if frames < window else ""
    return f"{what}{who}, {_counted(ids, 'id')}, {_counted(frames, 'frame')}{short}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
