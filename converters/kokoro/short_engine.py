"""The engine `short`: one window, padded and masked, for utterances of less than a window."""

from __future__ import annotations

import numpy as np

from converters.kokoro import evidence
from converters.kokoro.decoding import decode_by, run_masked
from converters.kokoro.evidence import padded_feed_of
from converters.kokoro.geometry import SHORT
from converters.kokoro.opening import Opening, contract_of, notes_of
from converters.kokoro.sine_reach import reach_verdicts, reaches_of, sine_cuts, sine_forms
from converters.kokoro.source_proof import source_equalities
from converters.kokoro.speaking import sample_of
from converters.stages import Evidence, StageExport
from models.kokoro.generator_graph import SPECTROGRAM, Padded, shapes_of, traced
from surgery.rewrite_interface_axes import rewrite_interface_axes

SHORT_LENGTHS = (1.0, 0.75, 0.5, 0.125)
"""Of the window: lengths of the utterances on which `short` is compared."""

HEARD = 0.75
"""Of the window: the most of other voices' sentences that `short` is compared on, so that there is padding."""

PADDED_FEED = 0.6
"""Of the window: the length of the padded feed for the passes and the simulator."""


def short_export(opening: Opening) -> StageExport:
    """The engine `short` of an open checkpoint."""
    geometry = opening.geometry
    width = geometry.window.frames
    shapes = shapes_of(opening.sizes, opening.checkpoint.config.style_dim, width, masked=True)
    model = traced(Padded(opening.turned), shapes)
    lengths = sorted({max(1, round(width * share)) for share in SHORT_LENGTHS}, reverse=True)
    parts = [opening.sentence.part(width // 3, length) for length in lengths]
    feeds = [(item, padded_feed_of(item, width, opening.sizes)) for item in parts]
    said, *others = opening.short_sentences
    padded = said.part(0, min(said.frames, max(1, round(width * PADDED_FEED))))
    reaches = reaches_of(opening, [item.seam for item in (*opening.edges, *parts, said)])

    def proof() -> Evidence:
        original, exported = decode_by(opening.original, geometry), opening.open_session(model)
        algebra, turned = opening.double
        longest = max(1, round(width * HEARD))
        cut = [item.part(0, min(item.frames, longest)) for item in others]
        heard = [(item, padded_feed_of(item, width, opening.sizes)) for item in cut]
        _, shorter = feeds[min(1, len(feeds) - 1)]
        return Evidence(
            equalities=(
                *source_equalities(opening),
                evidence.padded_equality(decode_by(algebra, geometry), lambda feed: run_masked(turned, feed), feeds),
                evidence.equality(
                    "fp32.export",
                    run_masked(opening.turned, shorter),
                    np.asarray(exported(shorter)[SPECTROGRAM], np.float32),
                    evidence.GRAPH_DB,
                    evidence.EXPORT_DETAIL,
                ),
            ),
            expectations=tuple(
                evidence.expectation(original, name, some, geometry.form)
                for name, some in (("sentence", feeds), ("others", heard))
            ),
            verdicts=reach_verdicts(opening, reaches, [item.seam for item in others]),
        )

    return StageExport(
        stem=geometry.stem(SHORT),
        contract=contract_of(opening, SHORT, shapes),
        model=model,
        passes=(rewrite_interface_axes(),),
        feeds=(feeds[0][1],),
        padded_feeds=(padded_feed_of(padded, width, opening.sizes),),
        host=opening.host,
        host_file="kokoro-host.onnx",
        notes=notes_of(opening),
        evidence=proof,
        cuts=sine_cuts(opening, model, reaches),
        forms=sine_forms(opening, model, reaches),
        references=tuple({SPECTROGRAM: decode_by(opening.original, geometry)(item)} for item in (parts[0], padded)),
        sample=lambda sentence: sample_of(opening, said, SHORT),
    )
