"""An Inflect v2 voice that speaks ids: its host half in onnxruntime, its decoder as engines.

    ids -> [host half] -> z, y_mask -> [decoder, window by window] -> samples

What makes ids of a text is part of the Inflect release, and not of this.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Mapping

import numpy as np

from rknn_tts_runtime.backends.engine import Array, Backend
from rknn_tts_runtime.backends.host_session import HostSession, open_host
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.plans.plan import Plan
from rknn_tts_runtime.speaking.ids import checked_ids
from rknn_tts_runtime.speaking.seam import LatentNoise, at_seam, check_outputs, frames_guessed
from rknn_tts_runtime.speaking.speaker import Asked, FloatArray, Speaker, check_speed
from rknn_tts_runtime.speaking.stopwatch import Stopwatch
from rknn_tts_runtime.speaking.voice_keys import voice_keys
from rknn_tts_runtime.speaking.window_decoder import WindowDecoder, component_of, host_of, open_decoder, sample_rate_of

FAMILY = "inflect"
"""As manifests name it."""

NOISE, NOISE_SCALE = "zp_noise", "noise_scale"
"""What the host half calls these inputs (converters/inflect/voice.py)."""


@dataclass(frozen=True)
class InflectVoice:
    """A model, as its host half tells of it.

    Attributes:
        where: the host half's file.
        sample_rate: in Hz.
        hop: samples a frame.
        symbols: rows of the symbol table; ids go from 0 to one less.
        noise_scale, length_scale: what the release speaks with.
        ids, lengths, length_scale_name: names of the host half's inputs.
    """

    where: Path
    sample_rate: int
    hop: int
    symbols: int
    noise_scale: float
    length_scale: float
    ids: str
    lengths: str
    length_scale_name: str


def read_inflect(metadata: Mapping[str, str], where: Path) -> InflectVoice:
    """The voice that the metadata of the host half `where` tells of.

    Raises:
        BadInput: it tells of none, or a key is missing or of another kind; the key is named.
    """
    keys = voice_keys(metadata, where, FAMILY)
    inputs, inference = keys.inner("inputs"), keys.inner("inference")
    return InflectVoice(
        where=where,
        sample_rate=keys.count("sample_rate"),
        hop=keys.count("hop_length"),
        symbols=keys.count("num_symbols"),
        noise_scale=inference.number("noise_scale", 0.0),
        length_scale=inference.number("length_scale", 0.0),
        ids=inputs.text("ids"),
        lengths=inputs.text("lengths"),
        length_scale_name=inputs.text("length_scale"),
    )


class InflectSpeaker:
    """An Inflect voice whose engines are open (`speaking.speaker.Speaker`). See `open_inflect`.

    Attributes:
        sample_rate: samples a second.
        notes: what a person should know of what is heard.
    """

    def __init__(self, voice: InflectVoice, host: HostSession, decoder: WindowDecoder, sample_rate: int) -> None:
        self.sample_rate = sample_rate
        self.notes = decoder.notes
        self._voice, self._host, self._decoder = voice, host, decoder

    def speak(self, asked: Asked, stopwatch: Stopwatch) -> Iterator[FloatArray]:
        """What was asked for, window by window; see `speaking.speaker.Speaker.speak`."""
        ids, length_scale = self._asked(asked)
        noise = LatentNoise(NOISE, (asked.seed, 0, 0), self._decoder.channels, frames_guessed(len(ids), length_scale))
        feed = self._feed(ids, length_scale)
        return self._spoken(feed, noise, stopwatch)

    def close(self) -> None:
        """Let go of the engines; once more does nothing."""
        self._decoder.close()
        self._host.close()

    def _spoken(self, feed: Mapping[str, Array], noise: LatentNoise, stopwatch: Stopwatch) -> Iterator[FloatArray]:
        with stopwatch.stage("host half"):
            seam = at_seam(self._host, feed, noise)
        yield from self._decoder.samples(seam.latent, seam.mask, seam.given, stopwatch)

    def _asked(self, asked: Asked) -> tuple[tuple[int, ...], float]:
        """Ids and length scale."""
        if asked.ids is None:
            raise BadInput(
                "What makes ids of a text or of phonemes is part of the Inflect release and not of this; give --ids."
            )
        if asked.speaker or asked.voice is not None:
            raise BadInput(f"The voice in {self._voice.where.name} has one speaker; leave --speaker and --voice out.")
        check_speed(asked.speed)
        return checked_ids(asked.ids, self._voice.symbols, self._voice.where), self._voice.length_scale / asked.speed

    def _feed(self, ids: tuple[int, ...], length_scale: float) -> dict[str, Array]:
        voice = self._voice
        feed: dict[str, Array] = {voice.ids: np.array([ids], np.int64), voice.lengths: np.array([len(ids)], np.int64)}
        scales = {voice.length_scale_name: length_scale, NOISE_SCALE: voice.noise_scale}
        for info in self._host.inputs:
            if info.name in scales:
                feed[info.name] = np.full((1,) * len(info.shape), scales[info.name], np.float32)
        return feed


def open_inflect(plan: Plan, backend: Backend) -> Speaker:
    """The Inflect voice of `plan`, its engines open on `backend`.

    Raises:
        BadInput: the plan has no decoder, a file is missing or is not what it should be, or there is no host half: a
            slice has none, and its engine decodes latents only (`window_decoder.open_decoder`).
        Mismatch: an engine, its manifest, a host half and the board do not belong together.
        RunFault: an engine cannot be loaded.
    """
    component = component_of(plan, "decoder")
    with ExitStack() as opened:  # closed again where a later check fails
        decoder = open_decoder(FAMILY, component, backend)
        opened.callback(decoder.close)
        host = open_host(host_of(component, decoder.manifests))
        opened.callback(host.close)
        voice = read_inflect(host.metadata, host.path)
        check_outputs(host)
        rate = sample_rate_of(decoder, voice.hop, voice.sample_rate, voice.where)
        opened.pop_all()
    return InflectSpeaker(voice, host, decoder, rate)
