"""What the gates of an Inflect decoder compare, and the receptive field, which is measured.

    fp32.cut                  the cut at the seam against decode.onnx, full length, on the model's own prior
    seam.latent               what stands at the seam against the prior's own sum, in numpy
    host.latent               the host half against duration.onnx and the head of decode.onnx
    fp32.prior_*_frames       the windowed decode of the model's own prior against decode.onnx
    fp32.noise_*_frames       the same of white noise at the seam, against the cut
    fp32.prior_30_frames, ... short latents in a padded window, against decode.onnx; gates where the decoder is masked
    fp32.context_*            the original by windows with less context, against itself at full length: measurements

Of a slice nothing but itself is known, so that is what it is compared with.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contracts.contract import Window
from contracts.verdicts import Measurement
from converters.inflect.prior import (
    NOISE_SCALE,
    Prior,
    drawn_ids,
    drawn_noise,
    long_prior,
    prior_of,
    prior_sum,
    speak,
)
from converters.inflect.seam import SliceSeam
from converters.inflect.voice import NOISE, Voice
from converters.inflect.voice import NOISE_SCALE as SCALE_INPUT
from converters.measured_snr import snr_db
from converters.stages import Array, Equality, Evidence, FloatArray, Session, Utterance, WindowedDecode
from converters.vits_ladder import DecoderWindow
from converters.vits_windows import AUDIO, LATENT, MASK, Latent, decode, decode_by_windows

LONG_FRAMES = 480
"""Of the latents on which the context was measured (reference, Inflect v2)."""

SHORT_FRAMES = (30, 47, 91, 210)
"""Of the short latents (the same)."""

CONTEXTS = (0, 20, 24, 32)
"""That the receptive field is told by: 5.1, 40.0, 82.1 and 128.8 dB of the released model (the same)."""

WINDOW_DB = 95.0
"""Least SNR of the windowed decode in fp32, as of Piper's: the reference has 128.8 dB at 32 frames of context
(reference, Inflect v2), and the worst window of both stand-ins 108 (docs/inflect.md)."""

SHORT_DB = 90.0
"""Least SNR of short latents where the decoder is masked: the reference has 94.9 to 120.2 dB (the same)."""

CUT_DB = HOST_DB = 120.0
"""The same operators on the same values, in another graph: fp32 rounding at most."""

HOST_SYMBOLS = 12
"""Of the sentence that the host half is compared on."""

SPARE_NOISE = 5
"""Frames of noise that the host half is given too many, to be cut off."""

SLICE_NOTE = (
    "{name} is a slice, and decode.onnx and duration.onnx are not there: the check is degraded, to latents of drawn "
    "numbers that the slice decodes against itself, and there is no host half; give the release's folder instead"
)

_CUT_DETAIL = "the cut at the seam against decode.onnx, full length, on the model's own prior"
SEAM_GATE = "seam.latent"
_SEAM_DETAIL = "what stands at the seam of decode.onnx against m_p + exp(logs_p) noise scale, summed in numpy"
_NO_SUM = "it could not run: {name} takes mean and deviation in another form than as two inputs"
_HOST_DETAIL = "the host half against duration.onnx and the head of decode.onnx, noise longer than needed"
_SELF_DETAIL = (
    "degraded, for decode.onnx is not there: one window-length latent of drawn numbers, decoded by the slice against "
    "itself"
)


@dataclass(frozen=True)
class Compared:
    """The graphs of a model that are compared, opened.

    Attributes:
        voice: the model.
        durations: `duration.onnx`.
        original: `decode.onnx` with its latent as a further output (`watched_decode`).
        cut: the unpatched cut, of any length.
        host: the host half.
    """

    voice: Voice
    durations: Session
    original: Session
    cut: Session
    host: Session

    def spoken(self, prior: Prior, noise: FloatArray) -> Utterance:
        """The original on `prior`."""
        made = speak(self.voice, self.original, prior, noise)
        return Utterance(f"prior_{prior.frames}_frames", made.said.latent, made.said.mask, made.samples)


def shared_evidence(compared: Compared, window: Window) -> Evidence:
    """What the gates compare of the cut and the host half, whatever the window, and how far a frame sees.

    Args:
        compared: the graphs.
        window: by which the latter is measured.
    """
    voice, frames = compared.voice, max(LONG_FRAMES, 2 * window.frames)
    prior = long_prior(voice, compared.durations, frames)
    noise = drawn_noise(prior.channels, frames)
    long, summed = compared.spoken(prior, noise), prior_sum(voice, prior, noise)
    whole = Latent(long.latent, long.mask)
    alone = decode(compared.cut, whole)
    return Evidence(
        equalities=(
            Equality("fp32.cut", {AUDIO: long.reference}, {AUDIO: alone}, CUT_DB, _CUT_DETAIL),
            *([] if summed is None else [_seam_equality(long, summed)]),
            _host_equality(compared),
        ),
        measurements=receptive_field(compared.cut, whole.first(LONG_FRAMES), window),
        unreached={} if summed is not None else {SEAM_GATE: _NO_SUM.format(name=voice.graphs.decode_name)},
    )


def evidence_of(compared: Compared, made: DecoderWindow) -> WindowedDecode:
    """What the gates walk of a model by an engine's window: its own prior and white noise, long and, where the engine
    takes them, shorter than the window; where it is trimmed, as long as the window too.
    """
    width = made.window.frames
    frames = max(LONG_FRAMES, 2 * width)
    prior = long_prior(compared.voice, compared.durations, frames)
    noise = drawn_noise(prior.channels, frames)
    lengths = [frames, *(short_frames(made.window) if made.takes_short else ())]
    noises = [frames]
    if made.trim is not None:  # whose first window and last one are two even here
        lengths.append(width)
        noises.append(width)
    return _walked(
        (
            *(compared.spoken(prior.first(count), noise) for count in lengths),
            *(_noise_utterance(compared.cut, prior.channels, count) for count in noises),
        ),
        made.masked,
    )


def slice_evidence(seam: SliceSeam, made: DecoderWindow, session: Session) -> Evidence:
    """What the gates compare of a slice: longer and shorter latents, too, where it takes any number of frames."""
    window = made.window
    one = drawn_latent(seam.channels, window.frames)
    samples = decode(session, one)
    utterances = [Utterance(f"noise_{window.frames}_frames", one.latent, one.mask, samples)]
    measurements: tuple[Measurement, ...] = ()
    if seam.frames is None:
        frames = max(LONG_FRAMES, 2 * window.frames)
        utterances = [_noise_utterance(session, seam.channels, n) for n in (frames, *short_frames(window))]
        measurements = receptive_field(session, drawn_latent(seam.channels, LONG_FRAMES), window)
    again = decode(session, one)
    return Evidence(
        equalities=(Equality("fp32.self", {AUDIO: samples}, {AUDIO: again}, CUT_DB, _SELF_DETAIL),),
        decode=_walked(tuple(utterances), made.masked),
        measurements=measurements,
    )


def receptive_field(cut: Session, said: Latent, window: Window) -> tuple[Measurement, ...]:
    """How near windows of the compiled width come to the full-length decode of `said`, by context.

    A window holds each context that leaves something to emit. The unpatched original decodes both.
    """
    whole = decode(cut, said)
    return tuple(
        Measurement(
            name=f"fp32.context_{context}",
            measured=snr_db(whole, decode_by_windows(cut, said, window, context)),
            unit="dB",
            reason=f"the original by windows of {window.frames} frames with {context} of context on each side, against "
            f"itself at full length, {said.frames} frames: how far a frame sees",
        )
        for context in CONTEXTS
        if 2 * context < window.frames <= said.frames
    )


def short_frames(window: Window) -> tuple[int, ...]:
    """The lengths of latents shorter than a window; of one narrower than all of these, two thirds."""
    fitting = tuple(frames for frames in SHORT_FRAMES if frames < window.frames)
    return fitting or tuple(frames for frames in (window.frames * 2 // 3,) if 0 < frames < window.frames)


def drawn_latent(channels: int, frames: int) -> Latent:
    """White noise at the seam, which is harder than any prior."""
    return Latent(drawn_noise(channels, frames), np.ones((1, 1, frames), np.float32))


def _walked(utterances: tuple[Utterance, ...], masked: bool) -> WindowedDecode:
    return WindowedDecode(
        latent_input=LATENT,
        mask_input=MASK,
        output=AUDIO,
        utterances=utterances,
        interior_db=WINDOW_DB,
        whole_db=WINDOW_DB,
        short_db=SHORT_DB if masked else None,
    )


def _noise_utterance(session: Session, channels: int, frames: int) -> Utterance:
    said = drawn_latent(channels, frames)
    return Utterance(f"noise_{frames}_frames", said.latent, said.mask, decode(session, said))


def _seam_equality(long: Utterance, summed: FloatArray) -> Equality:
    return Equality(SEAM_GATE, {LATENT: summed}, {LATENT: long.latent}, CUT_DB, _SEAM_DETAIL)


def _host_equality(compared: Compared) -> Equality:
    voice = compared.voice
    prior: Prior = prior_of(voice, compared.durations, drawn_ids(voice, HOST_SYMBOLS))
    noise = drawn_noise(prior.channels, prior.frames + SPARE_NOISE)
    owed = speak(voice, compared.original, prior, noise).said
    scales = list(voice.scale(NOISE_SCALE).values())  # one or, of a release without a scale, none
    scaled: dict[str, Array] = {SCALE_INPUT: scales[0]} if scales else {}
    got = compared.host({**voice.durations_feed(prior.ids), NOISE: noise, **scaled})
    return Equality(
        "host.latent",
        {LATENT: owed.latent, MASK: owed.mask},
        {n: got[n] for n in (LATENT, MASK)},
        HOST_DB,
        _HOST_DETAIL,
    )
