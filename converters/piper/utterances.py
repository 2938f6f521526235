"""Sentences for the gates: latents from the voice's own encoder, and white noise, each with its full-length decode.

The reference of an encoder utterance is the whole voice, unpatched, whose latent and mask are read out of the same run.
White noise enters at the seam, so its reference is the unpatched cut at full length; that the cut decodes as the whole
voice does is a gate of its own (`fp32.cut`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from contracts.errors import Refusal
from contracts.seed import SEED
from converters.piper.config import BOS, EOS, PAD
from converters.piper.host_half import noise_inputs, seam_shapes, seam_values
from converters.piper.names import NOISE_LATENT, SPEAKER
from converters.piper.phonemes import framed_ids
from converters.piper.voice import Voice, voice_feed
from converters.stages import Array, FloatArray, OpenSession, Session, Utterance
from converters.vits_windows import AUDIO, LATENT, MASK, Latent
from surgery.graph import extract

SENTENCE = "ðə bˈɜːtʃ kənˈuː slˈɪd ɔn ðə smˈuːð plˈæŋks, ɡlˈuː ðə ʃˈiːt."
"""The first Harvard sentence and a piece of the second (IEEE 1969), in espeak-ng's en-us phonemes as Piper writes them:
some 250 frames, a little more than two windows. Repeated or cut for utterances of another length."""

NOISE_STEPS = 16384
"""Frames of noise given to the host half: more than any sentence here takes; what is not needed is cut off."""

WIDEST_WINDOW = NOISE_STEPS // 2
"""Frames: several such windows still fit the noise."""

WIDEST_NOISE = 512
"""Channels of the zeros for noise before the seam: durations take 2, an encoder of VITS is 192 wide."""

SEARCH_STEPS = 12
"""Halvings of the length scale: from a factor of 16 down to one of 1.0007, less than a frame of a window."""

SEARCH_FACTOR = 4.0
"""The search goes from a quarter of the voice's own length scale to four times it: beyond, nobody speaks."""

_LONGER_TRIES = 4
"""Doublings of a sentence that turned out shorter than it was sized for; sizes are right to a few frames."""

Scales = tuple[float, float, float]


def phoneme_ids(voice: Voice, text: str) -> list[int]:
    """`text` (one phoneme a character) as Piper's ids (`framed_ids`).

    Characters the voice does not know are left out; where fewer than half are known (another alphabet), or no map is
    there, as many seeded draws from the voice's own symbols stand for them.
    """
    table = voice.config.phoneme_ids
    known = [table[c] for c in text if c in table]
    if len(known) * 2 < len(text):
        symbols = [ids for s, ids in table.items() if s not in (PAD, BOS, EOS)] or [
            (i,) for i in range(1, voice.symbols)
        ]
        known = [symbols[i] for i in np.random.default_rng(SEED).integers(0, len(symbols), len(text))]
    return framed_ids(table, known)


@dataclass(frozen=True)
class Host:
    """A voice's host half, opened, with what a run of it needs.

    Attributes:
        voice: the voice.
        session: its host half.
        noises: names of the noise inputs (`noise_inputs`).
        sentence_frames: how many frames SENTENCE takes at the voice's own scales, durations without noise.
        speaker: number of the speaker who speaks.
        language: number of the language that is spoken.
    """

    voice: Voice
    session: Session
    noises: tuple[str, ...]
    sentence_frames: int
    speaker: int = 0
    language: int = 0

    @property
    def several(self) -> bool:
        """Whether others speak too, or in other languages."""
        return self.voice.speakers > 1 or self.voice.languages > 1

    def feed(self, ids: list[int], scales: Scales) -> dict[str, Array]:
        """The voice's inputs for one sentence."""
        return voice_feed(self.voice, ids, scales, self.speaker, self.language)


def open_host(voice: Voice, session: Session, speaker: int = 0) -> Host:
    """The host half of `voice`, which `session` has opened, for `speaker`.

    Raises:
        Refusal: what stands at the seam is no latent and mask, or no speaker's embedding.
    """
    return as_speaker(Host(voice, session, tuple(noise_inputs(voice).values()), 0), speaker)


def as_speaker(host: Host, speaker: int, language: int = 0) -> Host:
    """The same host half, spoken by `speaker` in `language`.

    Raises:
        Refusal: see `open_host`.
    """
    host = dataclasses.replace(host, speaker=speaker, language=language)
    spoken = run_host(host, phoneme_ids(host.voice, SENTENCE), host.voice.config.scales)
    check_seam(host.voice, spoken)
    return dataclasses.replace(host, sentence_frames=spoken.frames)


def run_host(host: Host, ids: list[int], scales: Scales, noise: FloatArray | None = None) -> Latent:
    """The host half on `ids`, durations without noise.

    Args:
        host: the host half.
        ids: phoneme ids.
        scales: noise scale, length scale, noise width.
        noise: the latent's noise [1, C, >= N]; zeros where None.
    """
    zeros = np.zeros((1, WIDEST_NOISE, len(ids)), np.float32)
    quiet: dict[str, Array] = dict.fromkeys(host.noises, zeros)
    # One zero stands for all of the latent's, however long that is: it broadcasts.
    quiet[NOISE_LATENT] = np.zeros((1, 1, 1), np.float32) if noise is None else noise
    return _at_seam(host.session({**host.feed(ids, scales), **quiet}))


def _at_seam(got: Mapping[str, Array]) -> Latent:
    """What a run of the host half or of the whole voice gave at the seam."""
    given = {SPEAKER: np.asarray(got[SPEAKER], np.float32)} if SPEAKER in got else {}
    return Latent(np.asarray(got[LATENT], np.float32), np.asarray(got[MASK], np.float32), given)


def sized_ids(host: Host, frames: int) -> list[int]:
    """Phoneme ids that take about `frames` frames at the voice's own scales: SENTENCE, repeated or cut."""
    count = max(1, -(-len(SENTENCE) * frames // host.sentence_frames))
    return phoneme_ids(host.voice, (SENTENCE * -(-count // len(SENTENCE)))[:count])


def real_latent(host: Host, frames: int) -> Latent:
    """A latent of the voice's own encoder, cut to `frames` frames, for the simulator and the passes.

    Raises:
        Refusal: the voice speaks no longer.
    """
    ids, scales = sized_ids(host, frames + frames // 4 + 1), host.voice.config.scales
    channels = run_host(host, ids, scales).latent.shape[1]
    noise = np.random.default_rng(SEED).standard_normal((1, channels, NOISE_STEPS)).astype(np.float32)
    for _ in range(_LONGER_TRIES):
        real = run_host(host, ids, scales, noise)
        if real.frames >= frames:
            return real.first(frames)
        ids = ids * 2
    raise Refusal(
        f"{host.voice.path}: no sentence of this voice fills a window: {len(ids)} ids take {real.frames} frames."
    )


@dataclass(frozen=True)
class Speaker:
    """A voice opened twice: whole, unpatched, with what it computes and draws on the way as further outputs; and its
    host half.

    Attributes:
        whole: the reference; nothing is changed but the seed of its random operators.
        host: the host half, which also tells how long a sentence gets, for a tenth of the time.
    """

    whole: Session
    host: Host


@dataclass(frozen=True)
class Spoken:
    """One run of the whole voice: its ids and scales, what it gave, and the noises it drew by the host half's names."""

    ids: list[int]
    scales: Scales
    utterance: Utterance
    noises: dict[str, Array]


def open_speaker(host: Host, open_session: OpenSession) -> Speaker:
    """Open the whole voice."""
    voice, seam = host.voice, host.voice.seam
    names = voice.inputs.names
    outputs = {seam.output: AUDIO, **seam_values(seam), **noise_inputs(voice)}
    return Speaker(open_session(seeded(extract(voice.model, dict(zip(names, names, strict=True)), outputs))), host)


def seeded(model: ir.Model) -> ir.Model:
    """`model`, whose random operators have seeds of ours now: every session draws the same."""
    for position, node in enumerate(node for node in model.graph if node.op_type.startswith("Random")):
        node.attributes["seed"] = ir.AttrFloat32("seed", float(SEED + position))
    return model


def speak(speaker: Speaker, name: str, ids: list[int], scales: Scales) -> Spoken:
    """The whole voice on `ids`, its latent, mask and noises read out of the same run.

    Raises:
        Refusal: what stands at the seam is no latent and mask, or the samples are not hop times the frames.
    """
    voice = speaker.host.voice
    run = speaker.whole(speaker.host.feed(ids, scales))
    got = {key: np.asarray(value, np.float32) for key, value in run.items()}
    latent = _at_seam(got)
    check_seam(voice, latent)
    if got[AUDIO].size != latent.frames * voice.seam.hop:
        raise Refusal(
            f"{voice.path}: {latent.frames} frames gave {got[AUDIO].size} samples, though the strides behind the seam "
            f"make {voice.seam.hop} a frame."
        )
    noises: dict[str, Array] = {key: got[key] for key in speaker.host.noises}
    utterance = Utterance(name, latent.latent, latent.mask, got[AUDIO].reshape(-1), latent.given)
    return Spoken(ids, scales, utterance, noises)


def other_speaker(host: Host) -> Host:
    """The host half spoken by somebody else: the next speaker, in the next language; itself where there is no other."""
    voice = host.voice
    speaker, language = (host.speaker + 1) % voice.speakers, (host.language + 1) % voice.languages
    return as_speaker(host, speaker, language) if host.several else host


def decoder_cut(voice: Voice) -> ir.Model:
    """The voice from the seam to the samples, unpatched, of any length."""
    seam = voice.seam
    cut = extract(voice.model, seam_values(seam), {seam.output: AUDIO})
    # Exporters state no shapes inside a graph; an input without one cannot be fed.
    for value, shape in zip(cut.graph.inputs, seam_shapes(seam).values(), strict=True):
        value.dtype, value.shape = ir.DataType.FLOAT, shape
    return cut


def scaled_to(host: Host, ids: list[int], frames: int) -> Scales:
    """The scales at which `ids` take `frames` frames, or as few more as can be; durations without noise.

    Durations are rounded up a phoneme, so the length grows with the length scale, in steps: from a guess in proportion,
    the scale is narrowed down between one that is too short and one that is long enough.
    """
    noise, guess = host.voice.config.scales[:2]
    low, high = guess / SEARCH_FACTOR, guess * SEARCH_FACTOR
    for _ in range(SEARCH_STEPS):
        got = run_host(host, ids, (noise, guess, 0.0)).frames
        if got == frames:
            return (noise, guess, 0.0)
        low, high = (guess, high) if got < frames else (low, guess)
        guess *= frames / got
        guess = guess if low < guess < high else (low * high) ** 0.5
    return (noise, high, 0.0)


def check_seam(voice: Voice, found: Latent) -> None:
    """Check that what stands at the seam is a latent [1, C, N], a mask [1, 1, N], and a speaker's embedding [1, G, 1].

    Raises:
        Refusal: it is something else; the shapes are named.
    """
    latent, mask = found.latent, found.mask
    frames = mask.shape[-1] if mask.ndim else 0
    good = latent.ndim == 3 and latent.shape[0] == 1 and latent.shape[-1] == frames
    if not good or mask.shape != (1, 1, frames) or frames == 0:
        raise Refusal(
            f"{voice.path}: is no VITS voice: at its seam, a latent [1, C, N] and a mask [1, 1, N] were expected, not "
            f"{list(latent.shape)} ({voice.seam.latent}) and {list(mask.shape)} ({voice.seam.mask})."
        )
    speaker = found.given.get(SPEAKER)
    if speaker is not None and (speaker.ndim != 3 or speaker.shape[::2] != (1, 1)):
        raise Refusal(
            f"{voice.path}: is no VITS voice: the speaker's embedding behind its seam was expected as [1, G, 1], not "
            f"{list(speaker.shape)} ({voice.seam.speaker})."
        )
