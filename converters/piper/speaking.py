"""What a user hears of an engine: a sentence of the voice, decoded window by window and put together again."""

from __future__ import annotations

from collections.abc import Mapping

from contracts.errors import UserInput
from converters.piper.phonemes import spoken_ids
from converters.piper.utterances import SENTENCE, Host, Speaker, phoneme_ids, sized_ids, speak
from converters.piper.voice import Voice
from converters.stages import AddExtras, Sample, Sentence
from converters.vits_sample import SampleRung, counted, sample_by_windows
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


def sample_of(speaker: Speaker, rungs: Mapping[str, SampleRung], sentence: Sentence) -> Sample:
    """What a user hears: `sentence` by the whole voice, and in windows, whose samples engines give.

    The gates' sentence is said again and again where the narrowest of engines that take no padding is wider.

    Args:
        speaker: the voice, opened, as who is to speak.
        rungs: the engines (`sample_rungs`).
        sentence: as `read_sentence` gives it.

    Raises:
        UserInput: see `sample_by_windows`.
    """
    voice = speaker.host.voice
    assert voice.sample_rate is not None  # `read_sentence`
    ids = _gates_ids(speaker.host, rungs) if sentence.ids is None else list(sentence.ids)
    spoken = speak(speaker, "sample", ids, voice.config.scales).utterance
    latent = Latent(spoken.latent, spoken.mask, spoken.given)
    said = _said(speaker.host, sentence, len(ids))
    return sample_by_windows(rungs, latent, spoken.reference, said, voice.sample_rate)


def _gates_ids(host: Host, rungs: Mapping[str, SampleRung]) -> list[int]:
    ids = phoneme_ids(host.voice, SENTENCE)
    if any(each.made.trim is None for each in rungs.values()):
        return ids
    # A quarter more, for durations are drawn.
    longer = sized_ids(host, min(each.made.window.frames for each in rungs.values()) * 5 // 4)
    return max(ids, longer, key=len)


def _said(host: Host, sentence: Sentence, ids: int) -> str:
    what = "a sentence of the gates'" if sentence.ids is None else "the sentence that was asked for"
    who = f", by speaker {host.speaker}" if host.voice.speakers > 1 else ""
    return f"{what}{who}, {counted(ids, 'id')}"
