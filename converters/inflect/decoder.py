"""The decoder of an Inflect v2 model: latent and mask to samples, at fixed windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import onnx_ir as ir

from contracts.contract import RANDOM, Contract, TensorSpec
from contracts.errors import UserInput
from contracts.thresholds import SIMULATOR, SIMULATOR_DB
from converters.inflect.checkpoint import RANDOM_NANO
from converters.inflect.evidence import (
    SLICE_NOTE,
    Compared,
    drawn_latent,
    evidence_of,
    shared_evidence,
    slice_evidence,
)
from converters.inflect.opening import Slice, open_checkpoint
from converters.inflect.prior import drawn_noise, long_prior, speak
from converters.inflect.speaking import read_nothing, read_sentence, sample_of
from converters.inflect.voice import SAMPLE_RATE, Voice, decoder_cut, host_half, watched_decode
from converters.inflect.voice_metadata import tell_voice
from converters.stages import (
    AddExtras,
    Checkpoint,
    Evidence,
    Opened,
    OpenSession,
    Sample,
    Sentence,
    Session,
    StageExport,
    StageOptions,
)
from converters.vits_engine import Feeds, feeds_of, frames_behind, passes_of
from converters.vits_ladder import DecoderWindow, windows_of
from converters.vits_sample import sample_rungs
from converters.vits_windows import AUDIO, LATENT, MASK, UsualWindow, window_of
from surgery.graph import extract
from surgery.normalise_static_inputs import normalise_static_inputs
from surgery.rewrite_interface_axes import rewrite_interface_axes

USUAL = UsualWindow(emitted=192, context=32, widest=4096)
"""256 = 32 + 192 + 32 (reference, Inflect v2): 128.8 dB on the model's own prior, 82.1 with 24 frames of context. The
widest is sixteen times that: a run of twice as many frames takes some minutes, and all that compares needs one."""

HOST_FILE = "inflect-host.onnx"
NANO_HOST_FILE = "inflect-nano-host.onnx"
"""Of Nano's stand-in: both stand-ins go into one folder, where a checkpoint's files have one of its name."""


@dataclass(frozen=True)
class _Engine:
    """What an export is made of, whichever kind of checkpoint it is from.

    Attributes:
        made: what the engine is built for; `masked` of a slice that has its masks, too.
        cut: the decoder behind the seam, unpatched.
        masking: whether the decoder's masks are put in.
        feeds: what it is judged on.
        host: the host half.
        notes: for the user.
        evidence: for the gates.
        read: a sentence of the user's.
        sample: speaks it.
        ladder_sample: likewise, with all engines.
    """

    made: DecoderWindow
    cut: ir.Model
    masking: bool
    feeds: Feeds
    host: ir.Model | None
    notes: tuple[str, ...]
    evidence: Callable[[], Evidence]
    read: Callable[[Sentence, AddExtras], Sentence] | None = None
    sample: Callable[[Sentence], Sample] | None = None
    ladder_sample: Callable[[Sentence, Mapping[str, float]], Sample] | None = None


def open_decoder(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
    """Open an Inflect v2 checkpoint at the decoder's seam.

    Raises:
        UserInput, Refusal: see `open_checkpoint`; also a window that does not hold its context, or none that can be
            trimmed, or several of a slice.
    """
    opened = open_checkpoint(checkpoint)
    if isinstance(opened, Slice):
        engine = _of_slice(opened, options, open_session)
        return lambda role: _export(checkpoint, engine)
    voice = _open_voice(opened, options, open_session)
    return lambda role: _export(checkpoint, _of_voice(voice, role))


def _export(checkpoint: Checkpoint, engine: _Engine) -> StageExport:
    made = engine.made
    (feed, *_), is_nano = engine.feeds.whole, _is_nano(checkpoint)
    shapes = {name: feed[name].shape for name in (LATENT, MASK)}
    return StageExport(
        stem=stem_of(made) + ("-nano" if is_nano else ""),
        contract=Contract(
            family="inflect",
            stage="decoder",
            source=checkpoint.source,
            inputs=tuple(TensorSpec(name, shape) for name, shape in shapes.items()),
            outputs=(TensorSpec(AUDIO, ()),),  # its shape is read from the finished graph
            window=made.window,
            thresholds={SIMULATOR: SIMULATOR_DB},
            trim=made.trim,
        ),
        model=engine.cut,
        passes=(normalise_static_inputs(shapes), *passes_of(made, engine.masking), rewrite_interface_axes()),
        feeds=engine.feeds.whole,
        added_inputs=engine.feeds.added,
        padded_feeds=engine.feeds.padded,
        host=engine.host,
        host_file=NANO_HOST_FILE if is_nano else HOST_FILE,
        notes=(*([checkpoint.note] if checkpoint.note else []), *engine.notes),
        evidence=engine.evidence,
        read=engine.read,
        sample=engine.sample,
        ladder_sample=engine.ladder_sample,
    )


def _is_nano(checkpoint: Checkpoint) -> bool:
    return checkpoint.source.name == RANDOM_NANO and checkpoint.source.kind == RANDOM


def stem_of(made: DecoderWindow) -> str:
    """The engine's file stem: its width, then the context where that is not the usual one, then its form."""
    window = made.window
    context = "" if window.left == USUAL.context else f"-c{window.left}"
    form = "" if made.masked else "-unmasked" if made.trim is None else "-trimmed"
    return f"inflect-decoder-w{window.frames}{context}{form}"


@dataclass(frozen=True)
class _OpenVoice:
    """A model, for all engines that are made of its decoder; what they share is opened and run once.

    Attributes:
        voice: the model.
        windows: what its engines are built for, by role.
        cut: its decoder, unpatched, of any length.
        host: its host half.
        durations: `duration.onnx`.
        original: `decode.onnx` with its latent as a further output.
        open_session: opens graphs.
    """

    voice: Voice
    windows: Mapping[str, DecoderWindow]
    cut: ir.Model
    host: ir.Model
    durations: Session
    original: Session
    open_session: OpenSession

    @cached_property
    def compared(self) -> Compared:
        """The graphs that the gates compare, opened."""
        sessions = self.open_session(self.cut), self.open_session(self.host)
        return Compared(self.voice, self.durations, self.original, *sessions)

    @cached_property
    def narrowest(self) -> str:
        """The role of the engine of the narrowest window."""
        return min(self.windows, key=lambda role: self.windows[role].window.frames)

    @cached_property
    def shared(self) -> Evidence:
        """What is compared of the cut and the host half, and measured, whatever the window."""
        return shared_evidence(self.compared, self.windows[self.narrowest].window)

    def evidence(self, role: str) -> Evidence:
        """What the gates compare of one engine; figures of the model are told of the narrowest alone."""
        walked = evidence_of(self.compared, self.windows[role])
        measurements = self.shared.measurements if role == self.narrowest else ()
        return replace(self.shared, decode=walked, measurements=measurements)

    def sample(self, sentence: Sentence, roles: Iterable[str], costs: Mapping[str, float]) -> Sample:
        """`sentence` by engines of these `roles`, a run of which costs so much."""
        ladder = {role: self.windows[role] for role in roles}
        rungs = sample_rungs(self.cut, ladder, costs, self.open_session)
        return sample_of(self.voice, self.durations, self.original, rungs, sentence)


def _open_voice(voice: Voice, options: StageOptions, open_session: OpenSession) -> _OpenVoice:
    cut, masked = decoder_cut(voice), not options.no_decoder_mask
    windows = windows_of(
        options, USUAL, masked, voice.seam.hop, voice.sample_rate, lambda window: frames_behind(cut, window)
    )
    return _OpenVoice(
        voice=voice,
        windows=windows,
        cut=cut,
        host=tell_voice(host_half(voice), voice),
        durations=open_session(voice.graphs.duration),
        original=open_session(watched_decode(voice)),
        open_session=open_session,
    )


def _of_voice(opened: _OpenVoice, role: str) -> _Engine:
    made, voice = opened.windows[role], opened.voice
    prior = long_prior(voice, opened.durations, made.window.frames)
    real = speak(voice, opened.original, prior, drawn_noise(prior.channels, made.window.frames)).said
    return _Engine(
        made=made,
        cut=opened.cut,
        masking=made.masked,
        feeds=feeds_of(made, real, real),
        host=opened.host,
        notes=(),
        evidence=lambda: opened.evidence(role),
        read=partial(read_sentence, voice),
        sample=lambda sentence: opened.sample(sentence, (role,), {}),
        ladder_sample=lambda sentence, costs: opened.sample(sentence, opened.windows, costs),
    )


def _of_slice(opened: Slice, options: StageOptions, open_session: OpenSession) -> _Engine:
    seam = opened.seam
    if options.windows is not None:
        raise UserInput(
            f"--windows {options.windows:.60}: {opened.path} is a slice, of which one engine is made; leave it out."
        )
    frames = options.window if options.window is not None else seam.frames
    window = window_of(USUAL, frames, options.context, seam.hop, SAMPLE_RATE)
    if seam.frames not in (None, window.frames):
        raise UserInput(f"--window {window.frames}: {opened.path} is of {seam.frames} frames, and of no others.")
    if options.no_decoder_mask and seam.masked:
        raise UserInput(f"--no-decoder-mask: the decoder in {opened.path} is masked already; give decode.onnx instead.")
    cut = extract(opened.model, {seam.latent: LATENT, seam.mask: MASK}, {seam.output: AUDIO})
    masking = not (options.no_decoder_mask or seam.masked)
    made = DecoderWindow(window, masking or seam.masked, None, takes_short=True)
    session, drawn = open_session(cut), drawn_latent(seam.channels, window.frames)
    return _Engine(
        made=made,
        cut=cut,
        masking=masking,
        feeds=feeds_of(made, drawn, drawn),
        host=None,
        notes=(SLICE_NOTE.format(name=opened.path.name),),
        evidence=lambda: slice_evidence(seam, made, session),
        read=read_nothing,
    )
