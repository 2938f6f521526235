"""Sentences for the gates: latents from the voice's own encoder, and white noise, each with its full-length decode.

The reference of an encoder utterance is the whole voice, unpatched, whose latent and mask are read out of the same run.
White noise enters at the seam, so its reference is the unpatched cut at full length; that the cut decodes as the whole
voice does is a gate of its own (`fp32.cut`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from contracts.errors import Refusal
from converters.piper.config import BOS, EOS, PAD
from converters.piper.host_half import LATENT, MASK, NOISE_DURATION, NOISE_LATENT
from converters.piper.voice import Voice, voice_feed
from converters.stages import Array, FloatArray, OpenSession, Session, Utterance
from surgery.graph import extract

AUDIO = "audio"
"""Name of the decoder's output: samples in -1..1, float32."""

WORD = "həlˈoʊ"
SENTENCE = "ðə bˈɜːtʃ kənˈuː slˈɪd ɔn ðə smˈuːð plˈæŋks, ɡlˈuː ðə ʃˈiːt."
"""The first Harvard sentence and a piece of the second (IEEE 1969), in espeak-ng's en-us phonemes as Piper writes them:
some 250 frames, a little more than two windows."""

NOISE_FRAMES = 300
"""Length of the white-noise latent on which the context was measured (family-facts, Piper decoder)."""

SEED = 20240607
NOISE_STEPS = 16384
"""Frames of noise given to the host half: more than any sentence here takes; what is not needed is cut off."""

_LENGTH_SCALE_STEPS = 12
_LENGTH_SCALES = (0.05, 8.0)
"""Range searched for a sentence of one window; beyond it a voice does not speak."""

Scales = tuple[float, float, float]


@dataclass(frozen=True)
class Spoken:
    """One run of the whole voice: latent [1, C, N], mask [1, 1, N], samples."""

    latent: FloatArray
    mask: FloatArray
    samples: FloatArray


def phoneme_ids(voice: Voice, text: str) -> list[int]:
    """`text` (one phoneme a character) as Piper's ids: BOS, then a PAD behind every symbol, EOS.

    Characters the voice does not know are left out; where fewer than half are known (another alphabet), or no map is
    there, as many seeded draws from the voice's own symbols stand for them.
    """
    table = voice.config.phoneme_ids
    known = [table[c] for c in text if c in table]
    pad = list(table.get(PAD, (0,)))
    if len(known) * 2 < len(text):
        symbols = [ids for s, ids in table.items() if s not in (PAD, BOS, EOS)] or [(i,) for i in range(1, voice.symbols)]
        known = [symbols[i] for i in np.random.default_rng(SEED).integers(0, len(symbols), len(text))]
    ids = [*table.get(BOS, ()), *pad]
    for symbol in known:
        ids += [*symbol, *pad]
    return [*ids, *table.get(EOS, ())]


@dataclass(frozen=True)
class Speaker:
    """A voice opened twice: whole, unpatched, with its latent and mask as further outputs; and its host half.

    Attributes:
        voice: the voice.
        whole: the reference; nothing is changed but the seed of its random operators.
        host: the host half, which also tells how long a sentence gets, for a tenth of the time.
    """

    voice: Voice
    whole: Session
    host: Session


def open_speaker(voice: Voice, host: Session, open_session: OpenSession) -> Speaker:
    """Open the whole `voice`."""
    seam = voice.seam
    names = (voice.inputs.ids, voice.inputs.lengths, voice.inputs.scales)
    outputs = {seam.output: AUDIO, seam.latent: LATENT, seam.mask: MASK}
    model = extract(voice.model, dict(zip(names, names, strict=True)), outputs)
    for position, node in enumerate(n for n in model.graph if n.op_type.startswith("Random")):
        node.attributes["seed"] = ir.AttrFloat32("seed", float(SEED + position))
    return Speaker(voice, open_session(model), host)


def host_half_run(speaker: Speaker, ids: list[int], scales: Scales, channels: int) -> Spoken:
    """The host half on `ids` with zero noise; no samples."""
    noises: dict[str, Array] = {
        NOISE_DURATION: np.zeros((1, 2, len(ids)), np.float32),
        NOISE_LATENT: np.zeros((1, channels, NOISE_STEPS), np.float32),
    }
    got = speaker.host({**voice_feed(speaker.voice, ids, scales), **noises})
    latent, mask = (np.asarray(got[name], np.float32) for name in (LATENT, MASK))
    return Spoken(latent, mask, np.zeros(0, np.float32))


def speak(speaker: Speaker, ids: list[int], scales: Scales) -> Spoken:
    """The whole voice on `ids`, its latent and mask read out of the same run.

    Raises:
        Refusal: what stands at the seam is no latent and mask, or the samples are not hop times the frames.
    """
    got = speaker.whole(voice_feed(speaker.voice, ids, scales))
    spoken = Spoken(*(np.asarray(got[name], np.float32) for name in (LATENT, MASK, AUDIO)))
    _check_geometry(speaker.voice, spoken)
    return spoken


def encoder_utterances(speaker: Speaker, window: int) -> list[Utterance]:
    """Latents of the voice's own encoder: shorter than a window, one window (or little more), several."""
    word, sentence = phoneme_ids(speaker.voice, WORD), phoneme_ids(speaker.voice, SENTENCE)
    scales = speaker.voice.config.scales
    once = speak(speaker, sentence, scales)
    times = -(-2 * window // once.mask.shape[-1])
    channels = once.latent.shape[1]
    made = {
        "short": speak(speaker, word, _scaled_to(speaker, word, window * 2 // 3, channels)),
        "one_window": speak(speaker, word, _scaled_to(speaker, word, window, channels)),
        "several_windows": once if times == 1 else speak(speaker, sentence * times, scales),
    }
    return [
        Utterance(f"encoder_{name}", s.latent, s.mask, s.samples.reshape(-1))
        for name, s in made.items()
    ]


def noise_utterance(decode: Session, channels: int, window: int) -> Utterance:
    """White noise at the seam: the facts' length, or two windows where that is longer.

    Args:
        decode: the unpatched cut, of any length (`decoder_cut`).
        channels: width of the latent.
        window: frames of the compiled window.
    """
    frames = max(NOISE_FRAMES, 2 * window)
    latent = np.random.default_rng(SEED).standard_normal((1, channels, frames)).astype(np.float32)
    mask = np.ones((1, 1, frames), np.float32)
    samples = np.asarray(decode({LATENT: latent, MASK: mask})[AUDIO], np.float32).reshape(-1)
    return Utterance(f"noise_{frames}_frames", latent, mask, samples)


def decoder_cut(voice: Voice) -> ir.Model:
    """The voice from the seam to the samples, unpatched, of any length."""
    seam = voice.seam
    cut = extract(voice.model, {seam.latent: LATENT, seam.mask: MASK}, {seam.output: AUDIO})
    # Exporters state no shapes inside a graph; an input without one cannot be fed.
    for value, channels in zip(cut.graph.inputs, ("channels", 1), strict=True):
        value.shape, value.dtype = ir.Shape([1, channels, "frames"]), ir.DataType.FLOAT
    return cut


def _scaled_to(speaker: Speaker, ids: list[int], frames: int, channels: int) -> Scales:
    """The scales at which `ids` take `frames` frames, or as few more as can be; durations without noise.

    Durations are rounded up a phoneme, so the length grows with the length scale, in steps: from a guess in proportion,
    the scale is narrowed down between one that is too short and one that is long enough.
    """
    noise, guess = speaker.voice.config.scales[:2]
    low, high = _LENGTH_SCALES
    for _ in range(_LENGTH_SCALE_STEPS):
        got = host_half_run(speaker, ids, (noise, guess, 0.0), channels).mask.shape[-1]
        if got == frames:
            return (noise, guess, 0.0)
        low, high = (guess, high) if got < frames else (low, guess)
        guess *= frames / got
        guess = guess if low < guess < high else (low * high) ** 0.5
    return (noise, high, 0.0)


def _check_geometry(voice: Voice, spoken: Spoken) -> None:
    frames = spoken.mask.shape[-1]
    good = spoken.latent.ndim == 3 and spoken.latent.shape[0] == 1 and spoken.latent.shape[-1] == frames
    if not good or spoken.mask.shape != (1, 1, frames):
        raise Refusal(
            f"{voice.path}: is no VITS voice: at its seam, a latent [1, C, N] and a mask [1, 1, N] were expected, not "
            f"{list(spoken.latent.shape)} ({voice.seam.latent}) and {list(spoken.mask.shape)} ({voice.seam.mask})."
        )
    if spoken.samples.size != frames * voice.seam.hop:
        raise Refusal(
            f"{voice.path}: {frames} frames gave {spoken.samples.size} samples, though the strides behind the seam make "
            f"{voice.seam.hop} a frame."
        )
