"""Opens a Kokoro checkpoint at the generator's seam (`converters.kokoro.stage` declares the stage). Imports torch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import onnx_ir as ir
from rknn_tts_runtime import istft, plan_windows

from contracts.contract import Contract, TensorSpec
from contracts.errors import Refusal
from contracts.thresholds import SIMULATOR
from contracts.verdicts import Measurement, Verdict
from converters.kokoro import evidence
from converters.kokoro.checkpoint import Original, open_checkpoint
from converters.kokoro.evidence import feed_of, padded_feed_of, windows_of
from converters.kokoro.geometry import CONTEXT_FRAMES, FULL, GAP, SHORT, Geometry, geometry_of
from converters.kokoro.host_half import host_half
from converters.kokoro.utterances import WEATHER, YES, FloatArray, Utterance, speak, speak_long
from converters.kokoro.voices import Voices, read_voices, style_of, tokens_of
from converters.stages import (
    Array,
    Checkpoint,
    Equality,
    Evidence,
    Opened,
    OpenSession,
    Sample,
    Session,
    StageExport,
    StageOptions,
)
from models.kokoro.config import SAMPLE_RATE
from models.kokoro.generator import Generator, instance_norm, pooled_norm
from models.kokoro.generator_graph import (
    FINE_MASK,
    HARMONICS,
    LATENT,
    MASK,
    SPECTROGRAM,
    STYLE,
    Padded,
    Walked,
    Whole,
    shapes_of,
    traced,
)
from models.kokoro.generator_weights import generator_weights, in_half_turns
from models.kokoro.runs import Seam, run, run_frozen, watched_sines
from surgery.declaration import Pass
from surgery.graph import extract
from surgery.rewrite_interface_axes import rewrite_interface_axes
from surgery.rewrite_sines import rewrite_sines
from surgery.sine_chains import UNIT
from surgery.sine_forms import FOLDED, Form, covered_by

SIMULATOR_DB = {FULL: 59.0, SHORT: 55.0}
"""Least simulator SNR against the original generator: 60.3 dB was measured for `full` in a prototype, 60.9 for a padded
window against onnxruntime (family-facts)."""

CLIPPED_DB = 25.0
"""What clipped sines owe in the simulator, as they do in fp32: they are wrong past one wave."""

SITE_MARGIN, CHANNEL_MARGIN = 1.5, 2.0
"""How much further than what was seen a sine is folded, and each of its channels, as far as the sine goes. In five
voices, other sentences stayed within 0.78 of what that covers; at 1.25 and 1.5 single channels went beyond. A fold more
than needed costs: at 4 the worst of four windows has 60.0 dB in the simulator, at 2 it has 63.0 (docs/kokoro.md).
Further out nothing breaks: a sine is taken for zero there."""

EDGE_FRAMES = 256
"""Frames of each voice that the reach is measured on, in windows: the first and the last of 128, or more of less."""

SMALLEST_REACH = 0.1
"""In units of pi, of a channel that was silent in all sentences: no fold is spared below 1."""

SHORT_LENGTHS = (1.0, 0.75, 0.5, 0.125)
"""Of the window: lengths of the utterances on which `short` is compared."""

HEARD = 0.75
"""Of the window: the most of other voices' sentences that `short` is compared on, so that there is padding."""

PADDED_FEED = 0.6
"""Of the window: the length of the padded feed for the passes and the simulator."""


def open_generator(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
    """Open a Kokoro checkpoint at the generator's seam.

    Raises:
        UserInput, Refusal: see `open_checkpoint`, `geometry_of`.
    """
    opening = Opening(checkpoint, options, open_session)
    return cache(opening.export)


class Opening:
    """An open checkpoint: what both engines share is made when somebody needs it, and once."""

    def __init__(self, checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> None:
        self.file, self.open_session = checkpoint, open_session
        config = Path(options.config) if options.config is not None else None
        self.checkpoint = open_checkpoint(checkpoint.path, config)
        self.sizes = self.checkpoint.config.istftnet
        self.geometry = geometry_of(options, self.sizes)

    @cached_property
    def original(self) -> Generator:
        """The generator in the reference's arithmetic."""
        return Generator(generator_weights(self.checkpoint.weights, self.sizes), self.sizes).eval()

    @cached_property
    def turned(self) -> Generator:
        """The generator as it is exported: the sines' arguments in units of pi."""
        weights = in_half_turns(generator_weights(self.checkpoint.weights, self.sizes), UNIT)
        return Generator(weights, self.sizes).eval()

    @cached_property
    def double(self) -> tuple[Generator, Generator]:
        """`original` and `turned` in double precision, where nothing but their algebra differs."""
        return copy.deepcopy(self.original).double(), copy.deepcopy(self.turned).double()

    @cached_property
    def host(self) -> ir.Model:
        """The host half."""
        return host_half(self.checkpoint.weights, self.checkpoint.config)

    @cached_property
    def speaking(self) -> Session:
        """The host half, opened."""
        return self.open_session(self.host)

    @cached_property
    def voices(self) -> Voices:
        """Voices to speak with."""
        assert self.file.material is not None
        return read_voices(self.file.material)

    def spoken(self, voice: str, frames: int | None = None) -> Utterance:
        """A sentence in `voice`, of a window or more; its first `frames` frames."""
        least = self.geometry.window.frames if frames is None else frames
        said = speak_long(self.speaking, self.voices, self.checkpoint.config, f"cat_{voice}", voice, least)
        return said if frames is None else said.part(0, frames)

    @cached_property
    def sentence(self) -> Utterance:
        """What most gates run on: two windows and a quarter, which makes three or more of them."""
        frames = self.geometry.window.frames
        return self.spoken(self.voices.first, 2 * frames + frames // 4 + 1)

    @cached_property
    def edges(self) -> tuple[Utterance, ...]:
        """What the sines' reach is measured on: in every voice, a sentence's first and last window, and between them.

        The silence at both ends makes a normalised signal's peaks the largest (docs/kokoro.md).
        """
        frames = self.geometry.inner or self.geometry.window.frames
        found: list[Utterance] = []
        count = max(2, -(-EDGE_FRAMES // frames))
        for voice in self.voices.styles:
            spoken = self.spoken(voice)
            starts = np.linspace(0, spoken.frames - frames, count).astype(int)
            found += [spoken.part(int(start), frames) for start in starts]
        return tuple(found)

    @cached_property
    def other_sentences(self) -> tuple[Utterance, ...]:
        """Another sentence, of a window or more, in the first and in the last voice."""
        config, frames = self.checkpoint.config, self.geometry.window.frames
        voices = list(dict.fromkeys((self.voices.first, max(self.voices.styles))))
        said = [speak(self.speaking, self.voices, config, f"weather_{voice}", voice, WEATHER) for voice in voices]
        return tuple(
            item if item.frames >= frames else self.spoken(voice, frames)
            for voice, item in zip(voices, said, strict=True)
        )

    @cached_property
    def short_sentences(self) -> tuple[Utterance, ...]:
        """Sentences that one window holds: a short one in every voice, cut where it is longer."""
        frames = self.geometry.window.frames
        said = [
            speak(self.speaking, self.voices, self.checkpoint.config, f"thanks_{voice}", voice, YES)
            for voice in self.voices.styles
        ]
        return tuple(item.part(0, min(item.frames, frames)) for item in said)

    def export(self, role: str) -> StageExport:
        """The engine for `role`."""
        return _full(self) if role == FULL else _short(self)


def _full(opening: Opening) -> StageExport:
    geometry = opening.geometry
    windows = windows_of(opening.sentence, geometry)
    middle = windows[len(windows) // 2]
    module = _whole(opening)
    shapes = shapes_of(opening.sizes, opening.checkpoint.config.style_dim, geometry.window.frames, masked=False)
    model = traced(module, shapes)
    reaches = _reaches(opening, [item.seam for item in opening.edges])

    def proof() -> Evidence:
        original, exported = _original_of(opening), opening.open_session(model)
        algebra, turned = opening.double
        others = [window for said in opening.other_sentences for window in windows_of(said, geometry)]
        last = windows[-1]
        context, stitched = _windows_against_the_whole(opening)
        return Evidence(
            equalities=(
                *_source_equalities(opening),
                evidence.window_equality(
                    _decode_by(algebra, geometry), lambda window: _run_whole(turned, geometry, window), windows
                ),
                *context,
                evidence.equality(
                    "fp32.export",
                    _run_whole(opening.turned, geometry, last),
                    np.asarray(exported(feed_of(last))[SPECTROGRAM], np.float32),
                    evidence.GRAPH_DB,
                    _EXPORT,
                ),
            ),
            expectations=tuple(
                evidence.expectation(original, name, [(window, feed_of(window)) for window in some], geometry.form)
                for name, some in (("sentence", windows), ("others", others))
            ),
            verdicts=_reach_verdicts(opening, reaches, [w.seam for w in _inner_windows(geometry, others)]),
            measurements=stitched,
        )

    return StageExport(
        stem=geometry.stem(FULL),
        contract=_contract(opening, FULL, shapes),
        model=model,
        passes=(rewrite_interface_axes(),),
        feeds=(feed_of(middle),),
        padded_feeds=(),
        host=opening.host,
        host_file="kokoro-host.onnx",
        notes=_notes(opening),
        evidence=proof,
        cuts=_cuts(opening, model, reaches),
        references=({SPECTROGRAM: _original_of(opening)(middle)},),
        sample=lambda: _sample(opening, opening.other_sentences[0], FULL),
    )


def _short(opening: Opening) -> StageExport:
    geometry = opening.geometry
    width = geometry.window.frames
    shapes = shapes_of(opening.sizes, opening.checkpoint.config.style_dim, width, masked=True)
    model = traced(Padded(opening.turned), shapes)
    lengths = sorted({max(1, round(width * share)) for share in SHORT_LENGTHS}, reverse=True)
    parts = [opening.sentence.part(width // 3, length) for length in lengths]
    feeds = [(item, padded_feed_of(item, width, opening.sizes)) for item in parts]
    thanks, *others = opening.short_sentences
    padded = thanks.part(0, min(thanks.frames, max(1, round(width * PADDED_FEED))))
    reaches = _reaches(opening, [item.seam for item in (*opening.edges, *parts, thanks)])

    def proof() -> Evidence:
        original, exported = _original_of(opening), opening.open_session(model)
        algebra, turned = opening.double
        longest = max(1, round(width * HEARD))
        cut = [item.part(0, min(item.frames, longest)) for item in others]
        heard = [(item, padded_feed_of(item, width, opening.sizes)) for item in cut]
        _, shorter = feeds[min(1, len(feeds) - 1)]
        return Evidence(
            equalities=(
                *_source_equalities(opening),
                evidence.padded_equality(_decode_by(algebra, geometry), lambda feed: _run_masked(turned, feed), feeds),
                evidence.equality(
                    "fp32.export",
                    _run_masked(opening.turned, shorter),
                    np.asarray(exported(shorter)[SPECTROGRAM], np.float32),
                    evidence.GRAPH_DB,
                    _EXPORT,
                ),
            ),
            expectations=tuple(
                evidence.expectation(original, name, some, geometry.form)
                for name, some in (("sentence", feeds), ("others", heard))
            ),
            verdicts=_reach_verdicts(opening, reaches, [item.seam for item in others]),
        )

    return StageExport(
        stem=geometry.stem(SHORT),
        contract=_contract(opening, SHORT, shapes),
        model=model,
        passes=(rewrite_interface_axes(),),
        feeds=(feeds[0][1],),
        padded_feeds=(padded_feed_of(padded, width, opening.sizes),),
        host=opening.host,
        host_file="kokoro-host.onnx",
        notes=_notes(opening),
        evidence=proof,
        cuts=_cuts(opening, model, reaches),
        references=tuple({SPECTROGRAM: _original_of(opening)(item)} for item in (parts[0], padded)),
        sample=lambda: _sample(opening, thanks, SHORT),
    )


def _sample(opening: Opening, said: Utterance, role: str) -> Sample:
    """What a user hears: `said`, whose spectrogram an engine gives window by window."""
    geometry, original = opening.geometry, _original_of(opening)
    windows = windows_of(said, geometry) if role == FULL else [said]
    width = geometry.window.frames
    feeds = [feed_of(part) if role == FULL else padded_feed_of(part, width, opening.sizes) for part in windows]

    def samples(spectrogram: FloatArray) -> FloatArray:
        return istft(spectrogram, opening.sizes.gen_istft_n_fft, opening.sizes.gen_istft_hop_size)

    def render(outputs: Sequence[Mapping[str, Array]]) -> FloatArray:
        shape = (1, 2 * opening.sizes.bins, -1)
        following = iter([np.asarray(output[SPECTROGRAM], np.float32).reshape(shape) for output in outputs])
        return samples(evidence.walk(lambda x, har, valid: next(following), said, geometry))

    return Sample(
        said=f"the sentence {said.name}, {said.frames} frames",
        feeds=tuple(feeds),
        render=render,
        whole=samples(run(opening.original, said.seam)),
        windowed=samples(evidence.decoded_by_windows(original, said, geometry) if role == FULL else original(said)),
        sample_rate=SAMPLE_RATE,
    )


_CONTEXT = "windows against the whole decode, both with the statistics of the whole: the context holds all a frame sees"
_EXPORT = "the exported ONNX in onnxruntime against the torch module that it was traced from, exact sines"


def _whole(opening: Opening) -> Whole | Walked:
    geometry = opening.geometry
    norm = pooled_norm if geometry.norm == GAP else instance_norm
    if geometry.inner is None:
        return Whole(opening.turned, norm)
    steps = plan_windows(geometry.window.frames, geometry.inner, geometry.padding, geometry.padding)
    return Walked(
        opening.turned, norm, [(step.start, step.emit_start, step.emit_stop) for step in steps], geometry.inner
    )


def _original_of(opening: Opening) -> evidence.Decode:
    """The original on one window; where windows are walked inside the graph, walked likewise."""
    return _decode_by(opening.original, opening.geometry)


def _decode_by(generator: Generator, geometry: Geometry) -> evidence.Decode:
    return lambda utterance: _walked(geometry, utterance, lambda part: run(generator, part.seam))


def _run_whole(generator: Generator, geometry: Geometry, window: Utterance) -> FloatArray:
    """`window` by `generator` as `full` normalises."""
    norm = pooled_norm if geometry.norm == GAP else instance_norm
    return _walked(geometry, window, lambda part: run(generator, part.seam, norm=norm))


def _run_masked(generator: Generator, feed: Mapping[str, Array]) -> FloatArray:
    """A feed of `short` by `generator`."""
    x, har, style, *masks = (np.asarray(feed[name], np.float32) for name in (LATENT, HARMONICS, STYLE, MASK, FINE_MASK))
    return run(generator, (x, har, style), masks)


def _walked(geometry: Geometry, utterance: Utterance, decode: evidence.Decode) -> FloatArray:
    """`utterance`, decoded by the windows inside the graph where there are any."""
    inner = evidence.inside(geometry)
    return decode(utterance) if inner is None else evidence.decoded_by_windows(decode, utterance, inner)


def _inner_windows(geometry: Geometry, windows: Sequence[Utterance]) -> list[Utterance]:
    inner = evidence.inside(geometry)
    return list(windows) if inner is None else [part for window in windows for part in windows_of(window, inner)]


def _windows_against_the_whole(opening: Opening) -> tuple[tuple[Equality, ...], tuple[Measurement, ...]]:
    """Whether the context holds all that a frame sees, a gate where it is as wide as that; and how far apart windows of
    their own statistics are from the whole."""
    geometry, sentence = opening.geometry, opening.sentence
    whole, frozen = run_frozen(opening.double[0], sentence.seam, lambda one: _windowed(one, sentence, geometry))
    windowed = _windowed(lambda seam: run(opening.original, seam), sentence, geometry)
    stitched = evidence.stitched(whole, windowed)
    if geometry.window.left < CONTEXT_FRAMES:
        return (), (evidence.context_figure(whole, frozen, geometry), stitched)
    return (evidence.equality("fp64.context", whole, frozen, evidence.EXACT_DB, _CONTEXT),), (stitched,)


def _windowed(decode: evidence.SeamDecode, utterance: Utterance, geometry: Geometry) -> FloatArray:
    return evidence.decoded_by_windows(lambda part: decode(part.seam), utterance, geometry)


def _reaches(opening: Opening, seams: Sequence[Seam]) -> list[FloatArray]:
    """How far each sine must be right, by channel, in units of pi: with margins, what it saw on `seams`."""
    found = []
    for largest in _arguments(opening, seams):
        site = covered_by(largest.max() * SITE_MARGIN)
        found.append(np.clip(largest * CHANNEL_MARGIN, SMALLEST_REACH, site).astype(np.float32))
    return found


def _arguments(opening: Opening, seams: Sequence[Seam]) -> list[FloatArray]:
    with watched_sines(opening.turned) as largest:
        for seam in seams:
            run(opening.turned, seam)
    return list(largest)


def _reach_verdicts(opening: Opening, reaches: Sequence[FloatArray], seams: Sequence[Seam]) -> tuple[Verdict, ...]:
    if opening.geometry.form not in FOLDED:
        return ()
    return (evidence.reach_verdict(reaches, _arguments(opening, seams)),)


def _cuts(opening: Opening, model: ir.Model, reaches: Sequence[FloatArray]) -> Callable[[str | None], tuple[Pass, ...]]:
    """The stage's own cuts for a target: its sines."""
    sines = [str(node.outputs[0].name) for node in model.graph if node.op_type == "Sin"]
    if not sines or len(sines) % len(reaches):
        raise Refusal(
            f"{opening.file.path}: the exported graph has {len(sines)} sines, its module {len(reaches)}: this version "
            "of torch exports it otherwise."
        )
    # Windows inside the graph have the module's sines once each, in its order.
    reach = {name: reaches[place % len(reaches)] for place, name in enumerate(sines)}
    return lambda target: (rewrite_sines(form=opening.geometry.form, reach_pi=reach, target=target),)


def _contract(opening: Opening, role: str, shapes: Mapping[str, tuple[int, ...]]) -> Contract:
    form = opening.geometry.form
    return Contract(
        family="kokoro",
        stage="generator",
        source=opening.file.source,
        inputs=tuple(TensorSpec(name, shape) for name, shape in shapes.items()),
        outputs=(TensorSpec(SPECTROGRAM, ()),),  # its shape is read from the finished graph
        window=opening.geometry.window,
        thresholds={SIMULATOR: CLIPPED_DB if form is Form.CLIP else SIMULATOR_DB[role]},
        role=role,
    )


def _notes(opening: Opening) -> tuple[str, ...]:
    said = [opening.file.note] if opening.file.note else []
    return (*said, *opening.checkpoint.notes)


def _source_equalities(opening: Opening) -> tuple[Equality, ...]:
    """Against the ONNX that the weights were recovered from, where there is one."""
    original: Original | None = opening.checkpoint.original
    if original is None:
        return ()
    values, sentence = original.values, opening.sentence
    inputs = evidence.host_inputs(original.model, opening.file.path)
    whole = opening.open_session(extract(original.model, {name: name for name in inputs}, {values.x: LATENT}))
    voice = opening.voices.first
    tokens = tokens_of(WEATHER, opening.voices)
    fed = (tokens, style_of(voice, tokens, opening.voices), np.ones(1, np.float32))
    latent = whole(dict(zip(inputs, fed, strict=True)))
    spoken = speak(opening.speaking, opening.voices, opening.checkpoint.config, "", voice, WEATHER)
    part = extract(
        original.model,
        {values.x: LATENT, values.har: HARMONICS, values.style: STYLE},
        {values.conv_post: SPECTROGRAM},
    )
    decoded = opening.open_session(part)(feed_of(sentence))
    return (
        evidence.equality(
            "fp32.weights",
            np.asarray(decoded[SPECTROGRAM], np.float32),
            run(opening.original, sentence.seam),
            evidence.GRAPH_DB,
            "the generator on the recovered weights against the ONNX they are from, its weights made float",
        ),
        Equality(
            "host.latent",
            {LATENT: latent[LATENT]},
            {LATENT: spoken.x},
            evidence.HOST_DB,
            "the latent that the host half makes of a sentence, against that of the ONNX, its weights made float",
        ),
    )
