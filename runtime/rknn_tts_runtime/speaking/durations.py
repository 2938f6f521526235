"""The duration encoder of a Piper voice: engines of fixed numbers of ids, and the host half behind them.

    ids, lengths (, g) -> [engine, the narrowest that holds them] -> stats, conditioning -> [host half] -> z, y_mask

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Mapping

import numpy as np

from rknn_tts_runtime.backends.engine import Array, Backend, Engine
from rknn_tts_runtime.backends.host_session import HostSession, open_host
from rknn_tts_runtime.faults import Mismatch
from rknn_tts_runtime.identity import check_stage, identity_notes
from rknn_tts_runtime.ladders import ladder_of, narrowest_rung
from rknn_tts_runtime.manifest import EngineManifest, TensorInfo, manifest_of
from rknn_tts_runtime.plans.plan import Component
from rknn_tts_runtime.speaking.piper_host import SPEAKER, Sentence, host_feed, latent_noise
from rknn_tts_runtime.speaking.piper_voice import PiperVoice, read_voice
from rknn_tts_runtime.speaking.seam import AtSeam, LatentNoise, at_seam, check_outputs
from rknn_tts_runtime.speaking.stopwatch import Stopwatch
from rknn_tts_runtime.speaking.window_decoder import MAIN, host_of, open_engines

STAGE, HOST_STAGE = "duration encoder", "host half"
"""The stopwatch's names of engine and host half."""


class DurationEncoder:
    """The engines of a ladder, open, and the host half behind them. See `open_durations`.

    Attributes:
        manifests: of the engines.
        voice: what the host half tells of the voice.
        notes: what a person should know of the engines.
    """

    def __init__(
        self, ladder: Mapping[int, EngineManifest], engines: Mapping[int, Engine], host: HostSession, voice: PiperVoice
    ) -> None:
        self.manifests = tuple(ladder.values())
        self.voice = voice
        self.notes = tuple(note for manifest in self.manifests for note in identity_notes(manifest))
        self._engines, self._host = dict(engines), host
        self._embeddings: dict[int, Array] = {}

    def holds(self, ids: int) -> bool:
        """Whether an engine takes so many ids."""
        return self._width(ids) is not None

    def at_seam(self, sentence: Sentence, channels: int, stopwatch: Stopwatch) -> AtSeam:
        """What stands at the decoder's seam of a sentence that an engine holds; `channels` is C of its latent.

        Raises:
            BadInput, RunFault: see `seam.at_seam`.
        """
        width = self._width(len(sentence.ids))
        assert width is not None
        engine = self._engines[width]
        known, noise = host_feed(self._host, self.voice, sentence), latent_noise(self._host, sentence, channels)
        beside: dict[str, Array] = {}
        if any(info.name == SPEAKER for info in engine.inputs):
            with stopwatch.stage(HOST_STAGE):
                beside = {SPEAKER: self._embedding(engine, known, sentence.speaker, noise)}
        names = self.voice.inputs
        padded = np.zeros((1, width), np.int64)
        padded[0, : len(sentence.ids)] = sentence.ids
        with stopwatch.stage(STAGE):
            made = engine.run({names.ids: padded, names.lengths: np.array([len(sentence.ids)], np.int64), **beside})
        with stopwatch.stage(HOST_STAGE):
            # The engine's floats have a unit axis that the host half has not.
            encoded = {name: array.reshape(1, -1, width) for name, array in made.items()}
            return at_seam(self._host, {**known, **encoded}, noise)

    def close(self) -> None:
        """Let go of the engines; once more does nothing."""
        for engine in self._engines.values():
            engine.close()
        self._host.close()

    def _width(self, ids: int) -> int | None:
        return narrowest_rung(ids, {width: width for width in self._engines})

    def _embedding(self, engine: Engine, known: Mapping[str, Array], speaker: int, noise: LatentNoise) -> Array:
        """The speaker's `g`: it depends on nothing else, so the host half gives it of zeros."""
        if speaker not in self._embeddings:
            zeros = {info.name: np.zeros(_flat(info), np.float32) for info in engine.outputs}
            self._embeddings[speaker] = at_seam(self._host, {**known, **zeros}, noise).given[SPEAKER]
        return self._embeddings[speaker]


def open_durations(component: Component, backend: Backend) -> DurationEncoder:
    """The duration encoder of a plan's `component`, its engines open on `backend`.

    Raises:
        BadInput: a manifest is missing or cannot be read, the host half is none, or two engines are of one width.
        Mismatch: an engine is of another stage, or of another voice than the host half; see also `Backend.open`.
        RunFault: an engine cannot be loaded.
    """
    manifests = [manifest_of(path) for path in component.artifacts[MAIN]]
    for manifest in manifests:
        check_stage(manifest, "piper", component.name)
    with ExitStack() as opened:  # closed again where a later check fails
        host = open_host(host_of(component, manifests))
        opened.callback(host.close)
        voice = read_voice(host.metadata, host.path)
        check_outputs(host)
        ladder = ladder_of(manifests, voice.inputs.ids)
        for manifest in manifests:
            _check_tensors(manifest, voice, host)
        engines = open_engines(list(ladder.values()), backend)
        opened.pop_all()
    return DurationEncoder(ladder, dict(zip(ladder, engines)), host, voice)


def _check_tensors(manifest: EngineManifest, voice: PiperVoice, host: HostSession) -> None:
    """See that the host half takes what the engine gives, and the engine nothing else than it is given here."""
    taken = {info.name: info for info in host.inputs}
    strange = [info.name for info in manifest.outputs if info.name not in taken]
    known = (voice.inputs.ids, voice.inputs.lengths, SPEAKER)
    strange += [info.name for info in manifest.inputs if info.name not in known]
    for info in manifest.outputs:
        wanted = taken[info.name].shape[1] if info.name in taken and len(taken[info.name].shape) > 1 else None
        if wanted is not None and _flat(info)[1] != wanted:
            strange.append(f"{info.name} of {_flat(info)[1]} channels, not {wanted},")
    if strange:
        raise Mismatch(
            f"{manifest.engine} does not fit {host.path}: {', '.join(strange)} of the one is nothing to the other. "
            "Copy an engine, its manifest and its host half together."
        )


def _flat(info: TensorInfo) -> tuple[int, int, int]:
    """The shape [1, channels, width] of an output; the engine's has unit axes more."""
    return 1, info.shape[1], int(np.prod(info.shape, dtype=np.int64)) // max(1, info.shape[1])
