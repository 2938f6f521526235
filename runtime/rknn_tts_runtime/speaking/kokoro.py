"""A Kokoro that speaks: its host half in onnxruntime, its generator's windows as engines, the inverse transform here.

    tokens, style, noise -> [host half] -> x, har, style -> [generator, window by window] -> columns -> [istft] -> audio

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import Iterator, Mapping

import numpy as np

from rknn_tts_runtime.backends.engine import Array, Backend
from rknn_tts_runtime.backends.host_session import HostSession, open_host
from rknn_tts_runtime.faults import BadInput, Mismatch, RunFault
from rknn_tts_runtime.identity import check_stage, identity_notes
from rknn_tts_runtime.istft_stream import IstftStream
from rknn_tts_runtime.manifest import EngineManifest, manifest_of
from rknn_tts_runtime.plans.plan import Plan
from rknn_tts_runtime.speaking.kokoro_card import FAMILY, KokoroCard, read_card
from rknn_tts_runtime.speaking.kokoro_full_length import FullLength, open_full_length, whole_of
from rknn_tts_runtime.speaking.kokoro_generator import (
    HARMONICS,
    LATENT,
    STYLE,
    FloatArray,
    Seam,
    SeamSizes,
    WindowEngine,
    chosen_engine,
    stream_spectrogram,
    window_of,
)
from rknn_tts_runtime.speaking.kokoro_phonemiser import Phonemise, misaki_phonemes
from rknn_tts_runtime.speaking.kokoro_text import said_by
from rknn_tts_runtime.speaking.kokoro_voice import read_voice, style_for
from rknn_tts_runtime.speaking.speaker import Asked, check_speed
from rknn_tts_runtime.speaking.stopwatch import Stopwatch
from rknn_tts_runtime.speaking.window_decoder import host_of, open_engines

STAGE = "generator"
MAIN, SHORT, WHOLE, HOST = "main", "short", "full_length", "host"
ROLES = (MAIN, SHORT)
TOKENS, VOICE_STYLE, SPEED, NOISE = "tokens", "voice_style", "speed", "noise_source"
TAKEN_AXES = {TOKENS: 2, VOICE_STYLE: 2, SPEED: 1, NOISE: 3}
GIVEN_AXES = {LATENT: 3, HARMONICS: 3, STYLE: 2}
"""What the host half takes and gives, and of how many axes."""

PHONEMES, HOST_HALF, GENERATOR, FULL_LENGTH, ISTFT = "phonemes", "host half", "generator", "full-length decode", "istft"
"""Stages that a stopwatch counts."""

USUAL_FRAMES = (192, 10)
"""Latent frames of noise that are drawn at first: so many, and so many for each token. The default checkpoint takes 34
to 114 frames for six tokens and fewer, and 6.1 to 7.4 a token for sentences (five voices); all that tokens can take is
550 MB of noise for the longest sentence. More is drawn where it does not suffice."""


class KokoroSpeaker:
    """A Kokoro whose engines are open; made by `open_kokoro`."""

    def __init__(
        self,
        card: KokoroCard,
        host: HostSession,
        main: WindowEngine,
        short: WindowEngine | None,
        overlap: int,
        full_length: FullLength | None,
        phonemise: Phonemise = misaki_phonemes,
    ) -> None:
        """
        Args:
            card: of the checkpoint.
            host: its host half.
            main: the engine for whole windows.
            short: the one for sentences that are shorter; None where there is none.
            overlap: frames over which windows cross-fade.
            full_length: what decodes a whole sentence, for `gain`; None: the windows' columns stay as they are.
            phonemise: reads a text.
        """
        self._card, self._host, self._main, self._short = card, host, main, short
        self._overlap, self._full_length, self._phonemise = overlap, full_length, phonemise
        engines = [main] if short is None else [main, short]
        self._notes = tuple(note for engine in engines for note in identity_notes(engine.manifest))

    @property
    def sample_rate(self) -> int:
        """Samples a second."""
        return self._card.sample_rate

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of what is heard."""
        return self._notes

    def speak(self, asked: Asked, stopwatch: Stopwatch) -> Iterator[FloatArray]:
        """What was asked for, in pieces `[S]` in their order, each as soon as its window is there.

        What of a text the voice cannot speak is told in `notes`.

        Raises:
            BadInput: it cannot be said; nothing was run, or the host half alone (a sentence shorter than a window tells
                only then).
            RunFault: an engine or the host half failed.
        """
        if asked.voice is None:
            raise BadInput("Kokoro speaks in the style of a voice: give one with --voice FILE (docs/kokoro.md).")
        if asked.speaker:
            raise BadInput(f"--speaker {asked.speaker}: Kokoro has no numbered speakers; --voice chooses who speaks.")
        check_speed(asked.speed)
        voice = read_voice(asked.voice, self._card.style_size)
        with stopwatch.stage(PHONEMES):
            said = said_by(self._card, self._host.path, voice.name, asked, self._phonemise)
        self._notes += tuple(note for note in said.notes if note not in self._notes)
        for place, tokens in enumerate(said.utterances):
            style = style_for(voice, len(tokens) - 2)
            with stopwatch.stage(HOST_HALF):
                seam = self._seam(tokens, style, asked.speed, (asked.seed, place))
            yield from self._uttered(seam, stopwatch)

    def close(self) -> None:
        """Let go of the engines; once more does nothing."""
        self._main.engine.close()
        if self._short is not None:
            self._short.engine.close()
        self._host.close()

    def _uttered(self, seam: Seam, stopwatch: Stopwatch) -> Iterator[FloatArray]:
        """The samples of one utterance."""
        engine = chosen_engine(seam.frames, self._main, self._short)
        whole = None
        if self._full_length is not None:
            with stopwatch.stage(FULL_LENGTH):
                whole = whole_of(self._full_length, seam)
        stream = IstftStream(self._card.n_fft, self._card.istft_hop)
        for columns in stream_spectrogram(engine, seam, self._overlap, lambda: stopwatch.stage(GENERATOR), whole):
            with stopwatch.stage(ISTFT):
                samples = stream.push(columns)
            if samples.size:
                yield samples
        yield stream.finish()

    def _seam(self, tokens: tuple[int, ...], style: FloatArray, speed: float, seed: tuple[int, int]) -> Seam:
        """What the host half makes of `tokens`; `seed` is the asked one, and the utterance's place.

        How much noise it needs shows only when it has run: with too little, it fails. The same seed draws the same
        numbers first, however many are drawn.
        """
        most = len(tokens) * (math.ceil(self._card.most_frames_per_token / speed) + 1)  # durations are rounded
        frames = min(most, math.ceil((USUAL_FRAMES[0] + USUAL_FRAMES[1] * len(tokens)) / min(speed, 1.0)))
        feed: dict[str, Array] = {
            TOKENS: np.array([tokens], np.int64),
            VOICE_STYLE: style,
            SPEED: np.array([speed], np.float32),
        }
        while True:
            samples = (1, frames * self._card.hop, self._card.noise_width)
            feed[NOISE] = np.random.default_rng(seed).standard_normal(samples, np.float32)
            try:
                made = self._host.run([LATENT, HARMONICS, STYLE], feed)
                break
            except RunFault:
                if frames == most:
                    raise
                frames = min(most, 2 * frames)
        return Seam(made[LATENT], made[HARMONICS], made[STYLE])


def open_kokoro(plan: Plan, backend: Backend, full_length: FullLength | None = None) -> KokoroSpeaker:
    """The Kokoro of `plan`, its engines open on `backend`.

    Args:
        plan: of the family kokoro.
        backend: what runs engines.
        full_length: decodes a whole sentence, where the plan's `gain` asks for that; None: its artifact does.

    Raises:
        BadInput: a file of the plan is not what it should be, a param does not fit the engine, or `gain` is asked for
            and nothing decodes a whole sentence.
        Mismatch: engines and host half do not belong together.
        RunFault: an engine cannot be loaded.
    """
    component = plan.components.get(STAGE)
    if component is None:
        raise BadInput(f"{plan.path}: places no {STAGE} of {FAMILY} on the NPU (impl rknn), so nothing speaks here.")
    gain = bool(component.params.get("gain", False))
    if gain and full_length is None and WHOLE not in component.artifacts:
        raise BadInput(
            f"{plan.path}: {STAGE}.params.gain compares with a decode of the whole sentence, which no engine gives; "
            f"name an ONNX for it as artifacts.{WHOLE} (docs/kokoro.md, Gain), or leave gain out."
        )
    manifests = {role: manifest_of(component.artifacts[role][0]) for role in ROLES if role in component.artifacts}
    for manifest in manifests.values():
        check_stage(manifest, FAMILY, STAGE)
    path = host_of(component, list(manifests.values()))
    with ExitStack() as opened:  # closed again where a later check fails
        host = open_host(path)
        opened.callback(host.close)
        card = read_card(host.metadata, path)
        sizes = _seam_sizes(host, card)
        fits = {role: window_of(manifest, sizes, path.name) for role, manifest in manifests.items()}
        _check_short(manifests, fits)
        overlap = int(component.params.get("overlap", 0))
        emitted = fits[MAIN][0].emitted
        if not 0 <= overlap < emitted:
            raise BadInput(
                f"{plan.path}: {STAGE}.params.overlap is {overlap}, and a window of {manifests[MAIN].engine.name} "
                f"emits {emitted} frames: {emitted - 1} at most."
            )
        if not gain:
            full_length = None
        elif full_length is None:
            full_length = open_full_length(component.artifacts[WHOLE][0], sizes, path.name)
        loaded = zip(manifests, open_engines(list(manifests.values()), backend))
        engines = {role: WindowEngine(manifests[role], engine, *fits[role]) for role, engine in loaded}
        opened.pop_all()
    return KokoroSpeaker(card, host, engines[MAIN], engines.get(SHORT), overlap, full_length)


def _seam_sizes(host: HostSession, card: KokoroCard) -> SeamSizes:
    """Sizes of what the host half gives.

    Raises:
        BadInput: it takes or gives other tensors than a Kokoro's.
    """
    taken, given = ({info.name: info.shape for info in infos} for infos in (host.inputs, host.outputs))
    for found, kind, axes in ((taken, "input", TAKEN_AXES), (given, "output", GIVEN_AXES)):
        for name, count in axes.items():
            if len(found.get(name, ())) != count:
                raise BadInput(f"{host.path}: has no {kind} {name} of {count} axes, so it is no host half of Kokoro's.")
    channels, rows, style = given[LATENT][1], given[HARMONICS][1], given[STYLE][1]
    if channels is None or rows is None or style is None:
        raise BadInput(f"{host.path}: {LATENT}, {HARMONICS} and {STYLE} must have channels of a fixed number.")
    if rows != card.n_fft + 2:
        raise BadInput(f"{host.path}: {HARMONICS} has {rows} rows, and n_fft {card.n_fft} makes {card.n_fft + 2}.")
    return SeamSizes(channels, rows, style, card.columns_per_frame, card.hop, card.sample_rate)


def _check_short(manifests: Mapping[str, EngineManifest], fits: Mapping[str, tuple[object, tuple[int, ...]]]) -> None:
    """See that the engine for short sentences takes padding, and has the other's window."""
    if SHORT not in manifests:
        return
    main, short = manifests[MAIN], manifests[SHORT]
    if not fits[SHORT][1]:
        raise Mismatch(f"{short.engine.name}: takes no masks, so it is no engine of role short; name that one.")
    if fits[MAIN][0] != fits[SHORT][0]:
        raise Mismatch(
            f"{main.engine.name} and {short.engine.name} are of two exports: they have other windows; both come "
            "from one run of make engine FAMILY=kokoro."
        )
