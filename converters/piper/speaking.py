"""What a user hears of an engine: a sentence of the voice, decoded window by window and put together again."""

from __future__ import annotations

from contracts.contract import Window
from contracts.errors import UserInput
from converters.piper.phonemes import spoken_ids
from converters.piper.utterances import SENTENCE, Host, Speaker, phoneme_ids, speak
from converters.piper.voice import Voice
from converters.stages import AddExtras, Sample, Sentence, Session
from converters.vits_sample import counted, sample_by_windows
from converters.vits_windows import Latent


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


def sample_of(speaker: Speaker, decoder: Session, window: Window, sentence: Sentence) -> Sample:
    """What a user hears: `sentence` by the whole voice, and in windows, whose samples an engine gives.

    Args:
        speaker: the voice, opened, as who is to speak.
        decoder: of windows (`decoder_of_windows`).
        window: the engine's.
        sentence: as `read_sentence` gives it.
    """
    voice = speaker.host.voice
    assert voice.sample_rate is not None  # `read_sentence`
    ids = phoneme_ids(voice, SENTENCE) if sentence.ids is None else list(sentence.ids)
    spoken = speak(speaker, "sample", ids, voice.config.scales).utterance
    latent = Latent(spoken.latent, spoken.mask, spoken.given)
    said = _said(speaker.host, sentence, len(ids))
    return sample_by_windows(decoder, latent, window, spoken.reference, said, voice.sample_rate)


def _said(host: Host, sentence: Sentence, ids: int) -> str:
    what = "a sentence of the gates'" if sentence.ids is None else "the sentence that was asked for"
    who = f", by speaker {host.speaker}" if host.voice.speakers > 1 else ""
    return f"{what}{who}, {counted(ids, 'id')}"
