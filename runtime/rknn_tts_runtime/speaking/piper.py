"""A Piper voice that speaks: its host half in onnxruntime, its decoder (and duration encoder) as engines.

    text -> phonemes -> ids -> [host half, or duration encoder and the host half behind it] -> z, y_mask (, g)
         -> [decoder, window by window] -> samples

Sentences are spoken one after the other, so the first is heard while the second is not yet begun.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Iterator

from rknn_tts_runtime.backends.engine import Backend
from rknn_tts_runtime.backends.host_session import HostSession, open_host
from rknn_tts_runtime.faults import BadInput, Mismatch
from rknn_tts_runtime.plans.plan import Plan
from rknn_tts_runtime.speaking.durations import DurationEncoder, open_durations
from rknn_tts_runtime.speaking.phonemiser import Phonemise, piper_phonemes
from rknn_tts_runtime.speaking.piper_host import Sentence, host_feed, latent_noise
from rknn_tts_runtime.speaking.piper_text import said_by
from rknn_tts_runtime.speaking.piper_voice import FAMILY, PiperVoice, read_voice
from rknn_tts_runtime.speaking.seam import AtSeam, at_seam, check_outputs
from rknn_tts_runtime.speaking.speaker import Asked, FloatArray, Speaker, check_speed
from rknn_tts_runtime.speaking.stopwatch import Stopwatch
from rknn_tts_runtime.speaking.window_decoder import WindowDecoder, component_of, host_of, open_decoder, sample_rate_of

DECODER, DURATIONS = "decoder", "duration_encoder"
"""The components of a plan."""


class PiperSpeaker:
    """A Piper voice whose engines are open (`speaking.speaker.Speaker`). See `open_piper`.

    Attributes:
        sample_rate: samples a second.
        notes: what a person should know of what is heard.
    """

    def __init__(
        self,
        voice: PiperVoice,
        host: HostSession,
        decoder: WindowDecoder,
        durations: DurationEncoder | None,
        sample_rate: int,
        phonemise: Phonemise,
    ) -> None:
        self.sample_rate = sample_rate
        self.notes = (*decoder.notes, *(durations.notes if durations else ()))
        self._voice, self._host, self._decoder, self._durations = voice, host, decoder, durations
        self._phonemise = phonemise

    def speak(self, asked: Asked, stopwatch: Stopwatch) -> Iterator[FloatArray]:
        """What was asked for, window by window; see `speaking.speaker.Speaker.speak`.

        What it is told of that the voice cannot speak is added to `notes`.
        """
        scales = self._scales(asked)
        self._voice.check_speaker(asked.speaker)
        if asked.voice is not None:
            raise BadInput(f"--voice {asked.voice}: a Piper voice has no styles; --speaker says who speaks.")
        with stopwatch.stage("phonemes"):
            said = said_by(self._voice, asked, self._phonemise)
        self.notes += tuple(note for note in said.notes if note not in self.notes)
        sentences = [
            Sentence(ids, scales, asked.speaker, asked.seed, place) for place, ids in enumerate(said.sentences)
        ]
        return self._spoken(sentences, stopwatch)

    def close(self) -> None:
        """Let go of the engines; once more does nothing."""
        self._decoder.close()
        self._host.close()
        if self._durations is not None:
            self._durations.close()

    def _scales(self, asked: Asked) -> tuple[float, float, float]:
        check_speed(asked.speed)
        if asked.seed < 0:
            raise BadInput(f"--seed {asked.seed}: a whole number from 0 is expected.")
        noise_scale, length_scale, noise_width = self._voice.scales
        return noise_scale, length_scale / asked.speed, noise_width

    def _spoken(self, sentences: list[Sentence], stopwatch: Stopwatch) -> Iterator[FloatArray]:
        for sentence in sentences:
            seam = self._at_seam(sentence, stopwatch)
            yield from self._decoder.samples(seam.latent, seam.mask, seam.given, stopwatch)

    def _at_seam(self, sentence: Sentence, stopwatch: Stopwatch) -> AtSeam:
        channels = self._decoder.channels
        if self._durations is not None and self._durations.holds(len(sentence.ids)):
            return self._durations.at_seam(sentence, channels, stopwatch)
        with stopwatch.stage("host half"):
            feed = host_feed(self._host, self._voice, sentence)
            return at_seam(self._host, feed, latent_noise(self._host, sentence, channels))


def open_piper(plan: Plan, backend: Backend, phonemise: Phonemise = piper_phonemes) -> Speaker:
    """The Piper voice of `plan`, its engines open on `backend`.

    Args:
        plan: with the component `decoder`, and `duration_encoder` where that is to run as engines too.
        backend: runs the engines.
        phonemise: makes phonemes of a text.

    Raises:
        BadInput: the plan has no decoder, a file is missing or is not what it should be, the host half tells nothing of
            its voice, or nobody states the sample rate.
        Mismatch: an engine, its manifest, a host half and the board do not belong together.
        RunFault: an engine cannot be loaded.
    """
    component = component_of(plan, DECODER)
    durations = None
    with ExitStack() as opened:  # closed again where a later check fails
        decoder = open_decoder(FAMILY, component, backend)
        opened.callback(decoder.close)
        host = open_host(host_of(component, decoder.manifests))
        opened.callback(host.close)
        voice = read_voice(host.metadata, host.path)
        check_outputs(host)
        rate = sample_rate_of(decoder, voice.hop, voice.sample_rate, voice.where)
        if DURATIONS in plan.components:
            durations = open_durations(plan.components[DURATIONS], backend)
            opened.callback(durations.close)
            _check_one_voice(decoder, durations, voice)
        opened.pop_all()
    return PiperSpeaker(voice, host, decoder, durations, rate, phonemise)


def _check_one_voice(decoder: WindowDecoder, durations: DurationEncoder, voice: PiperVoice) -> None:
    """See that both components are of one checkpoint."""
    one = decoder.manifests[0]
    for other in durations.manifests:
        if one.source_sha256 != other.source_sha256 or durations.voice.symbols != voice.symbols:
            raise Mismatch(
                f"{one.engine} and {other.engine} are of two checkpoints ({one.source_name} and {other.source_name}); "
                "a plan is of one voice: build both of one checkpoint."
            )
