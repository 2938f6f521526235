"""The decoder of an Inflect v2 model: latent and mask to samples, at one fixed window, masked by default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import onnx_ir as ir

from contracts.contract import RANDOM, Contract, TensorSpec, Window
from contracts.errors import UserInput
from contracts.thresholds import SIMULATOR, SIMULATOR_DB
from converters.inflect.checkpoint import RANDOM_NANO
from converters.inflect.evidence import SLICE_NOTE, drawn_latent, evidence_of, slice_evidence
from converters.inflect.opening import Slice, open_checkpoint
from converters.inflect.prior import drawn_noise, long_prior, speak
from converters.inflect.speaking import read_nothing, read_sentence, sample_of
from converters.inflect.voice import SAMPLE_RATE, Voice, decoder_cut, host_half, watched_decode
from converters.inflect.voice_metadata import tell_voice
from converters.stages import AddExtras, Checkpoint, Evidence, OpenSession, Sample, Sentence, StageExport, StageOptions
from converters.vits_sample import decoder_of_windows
from converters.vits_windows import AUDIO, LATENT, MASK, Latent, UsualWindow, window_of
from surgery.graph import extract
from surgery.mask_decoder import mask_decoder
from surgery.normalise_static_inputs import normalise_static_inputs
from surgery.rewrite_interface_axes import rewrite_interface_axes

USUAL = UsualWindow(emitted=192, context=32, widest=4096)
"""256 = 32 + 192 + 32 (reference, Inflect v2): 128.8 dB on the model's own prior, 82.1 with 24 frames of context. The
widest is sixteen times that: a run of twice as many frames takes some minutes, and all that compares needs one."""

HOST_FILE = "inflect-host.onnx"
NANO_HOST_FILE = "inflect-nano-host.onnx"
"""Of Nano's stand-in: both stand-ins go into one folder, where a checkpoint's files have one of its name."""


@dataclass(frozen=True)
class _Opened:
    """What an export is made of, whichever kind of checkpoint it is from.

    Attributes:
        cut: the decoder behind the seam, unpatched.
        window: geometry.
        real: a latent of one window, to feed.
        masking: whether the decoder's masks are put in.
        masked: whether the engine has them.
        host: the host half.
        notes: for the user.
        evidence: for the gates.
        read: a sentence of the user's.
        sample: speaks it.
    """

    cut: ir.Model
    window: Window
    real: Latent
    masking: bool
    masked: bool
    host: ir.Model | None
    notes: tuple[str, ...]
    evidence: Callable[[], Evidence]
    read: Callable[[Sentence, AddExtras], Sentence] | None = None
    sample: Callable[[Sentence], Sample] | None = None


def open_decoder(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> StageExport:
    """Open an Inflect v2 checkpoint at the decoder's seam.

    Raises:
        UserInput, Refusal: see `open_checkpoint`; also a window that does not hold its context.
    """
    opened = open_checkpoint(checkpoint)
    made = (
        _of_slice(opened, options, open_session)
        if isinstance(opened, Slice)
        else _of_voice(opened, options, open_session)
    )
    shapes = {LATENT: made.real.latent.shape, MASK: made.real.mask.shape}
    masking = (mask_decoder(MASK),) if made.masking else ()
    is_nano = checkpoint.source.name == RANDOM_NANO and checkpoint.source.kind == RANDOM
    return StageExport(
        stem=stem_of(made.window, made.masked) + ("-nano" if is_nano else ""),
        contract=Contract(
            family="inflect",
            stage="decoder",
            source=checkpoint.source,
            inputs=tuple(TensorSpec(name, shape) for name, shape in shapes.items()),
            outputs=(TensorSpec(AUDIO, ()),),  # its shape is read from the finished graph
            window=made.window,
            thresholds={SIMULATOR: SIMULATOR_DB},
        ),
        model=made.cut,
        passes=(normalise_static_inputs(shapes), *masking, rewrite_interface_axes()),
        feeds=(made.real.feed,),
        padded_feeds=(made.real.padded().feed,),
        host=made.host,
        host_file=NANO_HOST_FILE if is_nano else HOST_FILE,
        notes=(*([checkpoint.note] if checkpoint.note else []), *made.notes),
        evidence=made.evidence,
        read=made.read,
        sample=made.sample,
    )


def stem_of(window: Window, masked: bool) -> str:
    """The engine's file stem: its width, then the context where that is not the usual one, then what it leaves out."""
    context = "" if window.left == USUAL.context else f"-c{window.left}"
    return f"inflect-decoder-w{window.frames}{context}" + ("" if masked else "-unmasked")


def _of_voice(voice: Voice, options: StageOptions, open_session: OpenSession) -> _Opened:
    window = window_of(USUAL, options.window, options.context, voice.seam.hop, voice.sample_rate)
    cut, host, masked = decoder_cut(voice), tell_voice(host_half(voice), voice), not options.no_decoder_mask
    durations, decode = open_session(voice.graphs.duration), open_session(watched_decode(voice))
    prior = long_prior(voice, durations, window.frames)
    real = speak(voice, decode, prior, drawn_noise(prior.channels, window.frames)).said

    def evidence() -> Evidence:
        return evidence_of(voice, window, masked, durations, decode, open_session(cut), open_session(host))

    windows = decoder_of_windows(cut, masked)
    return _Opened(
        cut=cut,
        window=window,
        real=real,
        masking=masked,
        masked=masked,
        host=host,
        notes=(),
        evidence=evidence,
        read=partial(read_sentence, voice),
        sample=lambda sentence: sample_of(voice, window, durations, decode, open_session(windows), sentence),
    )


def _of_slice(opened: Slice, options: StageOptions, open_session: OpenSession) -> _Opened:
    seam = opened.seam
    frames = options.window if options.window is not None else seam.frames
    window = window_of(USUAL, frames, options.context, seam.hop, SAMPLE_RATE)
    if seam.frames not in (None, window.frames):
        raise UserInput(f"--window {window.frames}: {opened.path} is of {seam.frames} frames, and of no others.")
    if options.no_decoder_mask and seam.masked:
        raise UserInput(f"--no-decoder-mask: the decoder in {opened.path} is masked already; give decode.onnx instead.")
    cut = extract(opened.model, {seam.latent: LATENT, seam.mask: MASK}, {seam.output: AUDIO})
    masking = not (options.no_decoder_mask or seam.masked)
    session = open_session(cut)
    return _Opened(
        cut=cut,
        window=window,
        real=drawn_latent(seam.channels, window.frames),
        masking=masking,
        masked=masking or seam.masked,
        host=None,
        notes=(SLICE_NOTE.format(name=opened.path.name),),
        evidence=lambda: slice_evidence(seam, window, masking or seam.masked, session),
        read=read_nothing,
    )
