"""The engine `full`: windows without padding, for utterances of at least a window."""

from __future__ import annotations

import numpy as np
from rknn_tts_runtime import plan_windows

from contracts.verdicts import Measurement
from converters.kokoro import evidence
from converters.kokoro.decoding import decode_by, inner_windows, run_whole, windowed
from converters.kokoro.evidence import feed_of, windows_of
from converters.kokoro.geometry import FULL, GAP
from converters.kokoro.opening import Opening, contract_of, notes_of
from converters.kokoro.sine_reach import reach_verdicts, reaches_of, sine_cuts, sine_forms
from converters.kokoro.source_proof import source_equalities
from converters.kokoro.speaking import sample_of
from converters.stages import Equality, Evidence, StageExport
from models.kokoro.generator import instance_norm, pooled_norm
from models.kokoro.generator_graph import SPECTROGRAM, Walked, Whole, shapes_of, traced
from models.kokoro.runs import run, run_frozen
from surgery.rewrite_interface_axes import rewrite_interface_axes

_CONTEXT = "windows against the whole decode, both with its statistics: the context holds what a frame sees"


def full_export(opening: Opening) -> StageExport:
    """The engine `full` of an open checkpoint."""
    geometry = opening.geometry
    windows = windows_of(opening.sentence, geometry)
    middle = windows[len(windows) // 2]
    module = _whole(opening)
    shapes = shapes_of(opening.sizes, opening.checkpoint.config.style_dim, geometry.window.frames, masked=False)
    model = traced(module, shapes)
    reaches = reaches_of(opening, [item.seam for item in opening.edges])

    def proof() -> Evidence:
        original, exported = decode_by(opening.original, geometry), opening.open_session(model)
        algebra, turned = opening.double
        others = [window for said in opening.other_sentences for window in windows_of(said, geometry)]
        last = windows[-1]
        context, stitched = _windows_against_the_whole(opening)
        return Evidence(
            equalities=(
                *source_equalities(opening),
                evidence.window_equality(
                    decode_by(algebra, geometry), lambda window: run_whole(turned, geometry, window), windows
                ),
                *context,
                evidence.equality(
                    "fp32.export",
                    run_whole(opening.turned, geometry, last),
                    np.asarray(exported(feed_of(last))[SPECTROGRAM], np.float32),
                    evidence.GRAPH_DB,
                    evidence.EXPORT_DETAIL,
                ),
            ),
            expectations=tuple(
                evidence.expectation(original, name, [(window, feed_of(window)) for window in some], geometry.form)
                for name, some in (("sentence", windows), ("others", others))
            ),
            verdicts=reach_verdicts(opening, reaches, [w.seam for w in inner_windows(geometry, others)]),
            measurements=stitched,
        )

    return StageExport(
        stem=geometry.stem(FULL),
        contract=contract_of(opening, FULL, shapes),
        model=model,
        passes=(rewrite_interface_axes(),),
        feeds=(feed_of(middle),),
        padded_feeds=(),
        host=opening.host,
        host_file="kokoro-host.onnx",
        notes=notes_of(opening),
        evidence=proof,
        cuts=sine_cuts(opening, model, reaches),
        forms=sine_forms(opening, model, reaches),
        references=({SPECTROGRAM: decode_by(opening.original, geometry)(middle)},),
        sample=lambda sentence: sample_of(opening, opening.other_sentences[0], FULL),
    )


def _whole(opening: Opening) -> Whole | Walked:
    geometry = opening.geometry
    norm = pooled_norm if geometry.norm == GAP else instance_norm
    if geometry.inner is None:
        return Whole(opening.turned, norm)
    steps = plan_windows(geometry.window.frames, geometry.inner, geometry.padding, geometry.padding)
    return Walked(
        opening.turned, norm, [(step.start, step.emit_start, step.emit_stop) for step in steps], geometry.inner
    )


def _windows_against_the_whole(opening: Opening) -> tuple[tuple[Equality, ...], tuple[Measurement, ...]]:
    """Whether the context holds all that a frame sees, a gate where it is as wide as that; and how far apart windows of
    their own statistics are from the whole."""
    geometry, sentence = opening.geometry, opening.sentence
    whole, frozen = run_frozen(opening.double[0], sentence.seam, lambda one: windowed(one, sentence, geometry))
    apart = windowed(lambda seam: run(opening.original, seam), sentence, geometry)
    stitched = evidence.stitched(whole, apart)
    if geometry.window.left < geometry.seen:
        return (), (evidence.context_figure(whole, frozen, geometry), stitched)
    return (evidence.equality("fp64.context", whole, frozen, evidence.EXACT_DB, _CONTEXT),), (stitched,)
