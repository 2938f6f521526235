"""What the fp32 gates compare a Piper decoder with: the cut, the host half, and utterances for the walk of windows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

from contracts.seed import SEED
from converters.piper.utterances import (
    Host,
    Scales,
    Speaker,
    Spoken,
    other_speaker,
    run_host,
    scaled_to,
    sized_ids,
    speak,
)
from converters.stages import Array, Equality, Evidence, Session, Utterance, WindowedDecode
from converters.vits_ladder import DecoderWindow
from converters.vits_windows import AUDIO, LATENT, MASK

CUT_DB = HOST_DB = 120.0
"""The same operators on the same values, in another graph: fp32 rounding at most."""

NOISE_FRAMES = 300
"""Length of the white-noise latent on which the context was measured (family-facts, Piper decoder); of a wide window,
two windows are compared."""

SHORT, ONE_WINDOW, SEVERAL_WINDOWS = "encoder_short", "encoder_one_window", "encoder_several_windows"
OTHER_SPEAKER = "encoder_other_speaker"
"""Names of the utterances, for their verdicts."""


def evidence_of(
    spoken: Mapping[str, Spoken],
    equalities: tuple[Equality, ...],
    decode: Session,
    made: DecoderWindow,
    least_db: float,
    short_db: float | None,
) -> Evidence:
    """What the fp32 gates compare an engine with.

    Args:
        spoken: see `encoder_utterances`.
        equalities: of the voice (`equalities_of`).
        decode: the unpatched cut, of any length.
        made: what the engine is built for.
        least_db: what a whole utterance and an interior window owe.
        short_db: what a short utterance owes; None where that is a measurement.
    """
    utterances = [item.utterance for item in spoken.values()]
    channels, given, window = utterances[0].latent.shape[1], utterances[0].given, made.window.frames
    lengths = [max(NOISE_FRAMES, 2 * window)]
    if made.trim is not None:  # whose first window and last one are two even here
        lengths.append(window)
    noise = [noise_utterance(decode, channels, frames, given) for frames in lengths]
    return Evidence(
        equalities=equalities,
        decode=WindowedDecode(
            latent_input=LATENT,
            mask_input=MASK,
            output=AUDIO,
            utterances=(*utterances, *noise),
            interior_db=least_db,
            whole_db=least_db,
            short_db=short_db,
        ),
        unreached=unreached_lengths(spoken, window),
    )


def equalities_of(speaker: Speaker, decode: Session, spoken: Mapping[str, Spoken]) -> tuple[Equality, ...]:
    """What is compared of the cut and of the host half, whatever the window."""
    equalities = [
        _cut_equality(decode, spoken[ONE_WINDOW].utterance),
        _host_equality(speaker.host, spoken[SEVERAL_WINDOWS], "host.latent"),
    ]
    if OTHER_SPEAKER in spoken:
        equalities.append(_host_equality(other_speaker(speaker.host), spoken[OTHER_SPEAKER], "host.other_speaker"))
    return tuple(equalities)


def encoder_utterances(speaker: Speaker, window: int, takes_short: bool = True) -> dict[str, Spoken]:
    """Latents of the voice's own encoder: shorter than a window, one window, several (with its own durations).

    Of a voice of several speakers also one window of another speaker than the one who was asked for: a graph that makes
    nothing of who speaks would decode the others right.

    Args:
        speaker: the voice.
        window: frames.
        takes_short: whether windows of an engine may be padded; where not, there is no utterance shorter than one.
    """
    host, scales = speaker.host, speaker.host.voice.config.scales
    one, several = sized_ids(host, window), sized_ids(host, 2 * window + window // 4)
    spoken = {}
    if takes_short:
        short = sized_ids(host, max(1, window * 2 // 3))
        spoken[SHORT] = speak(speaker, SHORT, short, _short_scales(host, short, window))
    spoken[ONE_WINDOW] = speak(speaker, ONE_WINDOW, one, scaled_to(host, one, window))
    spoken[SEVERAL_WINDOWS] = speak(speaker, SEVERAL_WINDOWS, several, scales)
    if host.several:
        other = other_speaker(host)
        ids = sized_ids(other, window)
        somebody = dataclasses.replace(speaker, host=other)
        spoken[OTHER_SPEAKER] = speak(somebody, OTHER_SPEAKER, ids, scaled_to(other, ids, window))
    return spoken


def _short_scales(host: Host, ids: list[int], window: int) -> Scales:
    """The voice's own scales, durations without noise; faster ones where `ids` fill the window at these."""
    noise, length, _ = host.voice.config.scales
    own = (noise, length, 0.0)
    return own if run_host(host, ids, own).frames < window else scaled_to(host, ids, max(1, window * 2 // 3))


def unreached_lengths(spoken: Mapping[str, Spoken], window: int) -> dict[str, str]:
    """The gates that stay without material because this voice's utterances have other lengths, with the reason."""
    owed: dict[str, tuple[str, Callable[[int], bool], str]] = {
        SHORT: ("short", lambda frames: frames < window, f"fewer than {window}"),
        ONE_WINDOW: ("whole", lambda frames: window <= frames < 2 * window, f"{window}, or little more"),
        SEVERAL_WINDOWS: ("whole", lambda frames: frames > window, f"more than {window}"),
        OTHER_SPEAKER: ("whole", lambda frames: frames >= window, f"{window} or more"),
    }
    unreached = {}
    for name, item in spoken.items():
        gate, reaches, wanted = owed[name]
        frames = item.utterance.mask.shape[-1]
        if not reaches(frames):
            unreached[f"fp32.{name}.{gate}"] = (
                f"it could not run: no utterance of this voice has {wanted} frames, the nearest has {frames}"
            )
    return unreached


def noise_utterance(decode: Session, channels: int, frames: int, given: Mapping[str, Array] | None = None) -> Utterance:
    """White noise at the seam.

    Args:
        decode: the unpatched cut, of any length (`decoder_cut`).
        channels: width of the latent.
        frames: its length.
        given: the speaker's embedding, where the cut takes one.
    """
    given = given or {}
    latent = np.random.default_rng(SEED).standard_normal((1, channels, frames)).astype(np.float32)
    mask = np.ones((1, 1, frames), np.float32)
    samples = np.asarray(decode({**given, LATENT: latent, MASK: mask})[AUDIO], np.float32).reshape(-1)
    return Utterance(f"noise_{frames}_frames", latent, mask, samples, given)


def _cut_equality(decode: Session, spoken: Utterance) -> Equality:
    got = decode({**spoken.given, LATENT: spoken.latent, MASK: spoken.mask})
    return Equality(
        gate="fp32.cut",
        reference={AUDIO: spoken.reference},
        measured={AUDIO: got[AUDIO].reshape(-1)},
        minimum_db=CUT_DB,
        detail="the cut at the seam against the whole voice, full length, on the voice's own latent",
    )


def _host_equality(host: Host, spoken: Spoken, gate: str) -> Equality:
    """The host half, fed the noises that the whole voice drew, against the latent the voice made of them."""
    measured = host.session({**host.feed(spoken.ids, spoken.scales), **spoken.noises})
    reference = {LATENT: spoken.utterance.latent, MASK: spoken.utterance.mask, **spoken.utterance.given}
    return Equality(
        gate=gate,
        reference=reference,
        measured={name: measured[name] for name in reference},
        minimum_db=HOST_DB,
        detail="the host half against the voice's encoder, on the noise that the voice drew",
    )
