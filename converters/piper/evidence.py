"""What the fp32 gates compare a Piper decoder with: the cut, the host half, and utterances for the walk of windows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from contracts.contract import Window
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
from converters.vits_windows import AUDIO, LATENT, MASK

CUT_DB = HOST_DB = 120.0
"""The same operators on the same values, in another graph: fp32 rounding at most."""

NOISE_FRAMES = 300
"""Length of the white-noise latent on which the context was measured (family-facts, Piper decoder)."""

SHORT, ONE_WINDOW, SEVERAL_WINDOWS = "encoder_short", "encoder_one_window", "encoder_several_windows"
OTHER_SPEAKER = "encoder_other_speaker"
"""Names of the utterances, for their verdicts."""


def evidence_of(speaker: Speaker, decode: Session, window: Window, least_db: float, short_db: float | None) -> Evidence:
    """What the fp32 gates compare with; `decode` is the unpatched cut, of any length."""
    spoken = encoder_utterances(speaker, window.frames)
    utterances = [item.utterance for item in spoken.values()]
    noise = noise_utterance(decode, utterances[0].latent.shape[1], window.frames, utterances[0].given)
    equalities = [
        _cut_equality(decode, spoken[ONE_WINDOW].utterance),
        _host_equality(speaker.host, spoken[SEVERAL_WINDOWS], "host.latent"),
    ]
    if OTHER_SPEAKER in spoken:
        equalities.append(_host_equality(other_speaker(speaker.host), spoken[OTHER_SPEAKER], "host.other_speaker"))
    return Evidence(
        equalities=tuple(equalities),
        decode=WindowedDecode(
            latent_input=LATENT,
            mask_input=MASK,
            output=AUDIO,
            utterances=(*utterances, noise),
            interior_db=least_db,
            whole_db=least_db,
            short_db=short_db,
        ),
        unreached=unreached_lengths(spoken, window.frames),
    )


def encoder_utterances(speaker: Speaker, window: int) -> dict[str, Spoken]:
    """Latents of the voice's own encoder: shorter than a window, one window, several (with its own durations).

    Of a voice of several speakers also one window of another speaker than the one who was asked for: a graph that makes
    nothing of who speaks would decode the others right.
    """
    host, scales = speaker.host, speaker.host.voice.config.scales
    short, one = sized_ids(host, max(1, window * 2 // 3)), sized_ids(host, window)
    several = sized_ids(host, 2 * window + window // 4)
    spoken = {
        SHORT: speak(speaker, SHORT, short, _short_scales(host, short, window)),
        ONE_WINDOW: speak(speaker, ONE_WINDOW, one, scaled_to(host, one, window)),
        SEVERAL_WINDOWS: speak(speaker, SEVERAL_WINDOWS, several, scales),
    }
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


def unreached_lengths(spoken: dict[str, Spoken], window: int) -> dict[str, str]:
    """The gates that stay without material because this voice's utterances have other lengths, with the reason."""
    frames = {name: item.utterance.mask.shape[-1] for name, item in spoken.items()}
    owed = {
        f"fp32.{SHORT}.short": (SHORT, frames[SHORT] < window, f"fewer than {window}"),
        f"fp32.{ONE_WINDOW}.whole": (
            ONE_WINDOW,
            window <= frames[ONE_WINDOW] < 2 * window,
            f"{window}, or little more",
        ),
        f"fp32.{SEVERAL_WINDOWS}.whole": (SEVERAL_WINDOWS, frames[SEVERAL_WINDOWS] > window, f"more than {window}"),
    }
    if OTHER_SPEAKER in frames:
        owed[f"fp32.{OTHER_SPEAKER}.whole"] = (OTHER_SPEAKER, frames[OTHER_SPEAKER] >= window, f"{window} or more")
    return {
        gate: f"it could not run: no utterance of this voice has {wanted} frames, the nearest has {frames[name]}"
        for gate, (name, reached, wanted) in owed.items()
        if not reached
    }


def noise_utterance(decode: Session, channels: int, window: int, given: Mapping[str, Array] | None = None) -> Utterance:
    """White noise at the seam: the facts' length, or two windows where that is longer.

    Args:
        decode: the unpatched cut, of any length (`decoder_cut`).
        channels: width of the latent.
        window: frames of the compiled window.
        given: the speaker's embedding, where the cut takes one.
    """
    given = given or {}
    frames = max(NOISE_FRAMES, 2 * window)
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
