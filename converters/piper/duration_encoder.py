"""The stage `piper duration_encoder`: tokens to the prior's statistics and the durations' conditioning, by width."""

from __future__ import annotations

from contracts.contract import Contract, Drift, TensorSpec
from contracts.errors import UserInput
from contracts.thresholds import SIMULATOR
from converters.number_lists import ascending_numbers
from converters.piper.decoder import VOICE
from converters.piper.duration_evidence import DurationOriginal, evidence_of
from converters.piper.duration_host import duration_parts
from converters.piper.duration_sentences import sentences_of
from converters.piper.names import CONDITIONING, DURATIONS, STATS
from converters.piper.streaming import locate
from converters.piper.voice import open_voice, speaker_of
from converters.remembered import Remembered
from converters.stages import Checkpoint, Opened, OpenSession, Stage, StageExport, StageOptions
from surgery.normalise_static_inputs import normalise_static_inputs
from surgery.rewrite_interface_axes import rewrite_interface_axes
from surgery.rewrite_relative_attention import Form, rewrite_relative_attention

DEFAULT_WIDTHS = "128,192"
"""The reference's ladder; beyond it, durations drift."""

NARROWEST, WIDEST = 5, 512
"""Tokens. Below VITS's window of 4 exporters cut the embeddings of distances, and do not pad them: no sentence is so
short, for one phoneme is 5 ids. The reference tried no more than the latter."""

BANDED: Form = "banded"
GATHER: Form = "gather"
"""How relative attention is computed: the latter takes memory that grows with the cube of the width."""

KEPT_WIDTH = 192
"""The widest engine that the reference ships: beyond, durations drift (reference, Piper duration encoder)."""

BEYOND = (
    "on the reference's board sentences of an engine of 384 tokens were 21 to 23 % short, which is heard, and the "
    f"simulator does not show it; up to {KEPT_WIDTH} tokens they kept their length to 7 %"
)
"""What a person should know of wider engines (the same)."""

MOST_DRIFT_PERCENT = 7.0
"""Of an engine of at most that many tokens (reference, Piper duration encoder)."""

DURATION_NOISE_CHANNELS = 2
"""Of the noise that durations are sampled with: VITS's flows have two."""

SIMULATOR_DB = 50.0
"""Least simulator SNR: 62.7 to 63.2 dB measured of the default voice at 128 to 512 tokens, 59.1 at 5, 59.6 to 60.6 of
small random voices at 24; the rest is for other voices."""

REMEMBERED_RUNS = 32
"""Of the encoder cut out: four feeds and four expectations a width, and every width asks for the shortest again."""


def roles(options: StageOptions) -> tuple[str, ...]:
    """The engines that `options` ask for, one a width: "n128" takes 128 tokens.

    Raises:
        UserInput: an option has no such value.
    """
    if options.relative not in (None, BANDED, GATHER):
        raise UserInput(f"--relative {options.relative:.40}: {BANDED} or {GATHER} is expected.")
    return tuple(f"n{width}" for width in widths_of(options))


def widths_of(options: StageOptions) -> tuple[int, ...]:
    """The widths that `options` ask for, in tokens: 128 and 192 by default.

    Raises:
        UserInput: they are no ascending whole numbers from 5 to 512.
    """
    asked = DEFAULT_WIDTHS if options.widths is None else options.widths
    widths = ascending_numbers("widths", asked, "tokens", DEFAULT_WIDTHS)
    if not all(NARROWEST <= width <= WIDEST for width in widths):
        raise UserInput(f"--widths {asked:.60}: an engine takes {NARROWEST} to {WIDEST} tokens.")
    return widths


def stem_of(width: int, options: StageOptions) -> str:
    """The engine's file stem: its width, then what differs from the defaults."""
    return f"piper-duration_encoder-n{width}" + (f"-{GATHER}" if options.relative == GATHER else "")


def open_encoder(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
    """Open a Piper voice at the duration encoder's seam.

    Raises:
        UserInput, Refusal: see `open_voice`; also a voice that cannot be parted there, or has no such speaker.
    """
    widths = {f"n{width}": width for width in widths_of(options)}
    voice = open_voice(checkpoint.path, options.sample_rate)
    parts = duration_parts(voice)
    encode = Remembered(open_session(parts.encoder), REMEMBERED_RUNS)
    original = DurationOriginal(voice, speaker_of(voice, options.speaker), parts, encode, open_session)
    return lambda role: _export(checkpoint, options, original, widths[role])


def _export(checkpoint: Checkpoint, options: StageOptions, original: DurationOriginal, width: int) -> StageExport:
    voice, form = original.voice, GATHER if options.relative == GATHER else BANDED
    whole, *shorter = sentences_of(voice, width)
    full = original.feed(whole, width)
    # Padding comes with another speaker, as the decoder's.
    padded = [original.feed(ids, width, other=True) for ids in shorter]
    shapes = {name: tuple(array.shape) for name, array in full.items()}
    return StageExport(
        stem=stem_of(width, options),
        contract=Contract(
            family="piper",
            stage="duration_encoder",
            source=checkpoint.source,
            inputs=tuple(TensorSpec(name, shape, str(full[name].dtype)) for name, shape in shapes.items()),
            outputs=tuple(TensorSpec(name, ()) for name in (STATS, CONDITIONING)),  # shapes: from the finished graph
            thresholds={SIMULATOR: SIMULATOR_DB},
            drift=_drift(original, width),
        ),
        model=original.parts.encoder,
        passes=(normalise_static_inputs(shapes), rewrite_interface_axes()),
        cuts=lambda target: (rewrite_relative_attention(form),),
        feeds=(full,),
        padded_feeds=tuple(padded),
        host=original.parts.host,
        host_file="piper-duration-host.onnx",
        notes=_notes(checkpoint, width),
        evidence=lambda: evidence_of(original, width),
        session=lambda: original.encode,
    )


def _drift(original: DurationOriginal, width: int) -> Drift:
    """How far the frames of sentences may drift in fp16."""
    kept = width <= KEPT_WIDTH
    return Drift(
        output=DURATIONS,
        settings={original.voice.inputs.scales: original.voice.config.scales},
        noises=dict.fromkeys(original.parts.duration_noises, (1, DURATION_NOISE_CHANNELS, width)),
        most_percent=MOST_DRIFT_PERCENT if kept else None,
        remark="the frames of whole sentences" if kept else f"measured only: {BEYOND}",
    )


def _notes(checkpoint: Checkpoint, width: int) -> tuple[str, ...]:
    warning = f"An engine of {width} tokens may speak too fast on a board: {BEYOND}; the host can run what is longer."
    return (*([checkpoint.note] if checkpoint.note else []), *([warning] if width > KEPT_WIDTH else []))


STAGE = Stage(
    family="piper",
    name="duration_encoder",
    summary="text encoder and duration predictor of a Piper voice, one engine a width in tokens (128, 192)",
    default_checkpoint=VOICE,
    options=frozenset({"widths", "relative", "speaker", "sample_rate"}),
    locate=locate,
    open=open_encoder,
    roles=roles,
)
