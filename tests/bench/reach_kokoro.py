"""Kokoro's engine `full` in the table of issue 10, and the reference's design on the same checkpoint and window.

Both windows are of 128 frames; the reference emits 72 of them, ours what its manifest says. The dB are of one window of
a sentence, against the original generator.
"""

from __future__ import annotations

from math import pi
from pathlib import Path

import numpy as np

from contracts.manifest import read_manifest
from contracts.thresholds import SIMULATOR
from converters.kokoro.checkpoint import open_checkpoint
from converters.kokoro.geometry import FULL
from gates.snr import snr_db
from models.kokoro.generator import Generator
from models.kokoro.generator_graph import FINE_MASK, MASK, SPECTROGRAM, shapes_of
from models.kokoro.generator_weights import generator_weights, in_half_turns
from surgery.preflight import owed
from tests.bench.bench_kokoro import FRAMES, REFERENCE_EMITTED, reference_design
from tests.bench.reach_builds import built_bare, conversions, made_by_the_command
from tests.bench.reach_figures import Side, side_of


def reference(folder: Path) -> Side:
    """Masks, means, the sine by Floor: of the default checkpoint, on a window without padding."""
    conversion = next(each for each in conversions("kokoro", None) if each.role == FULL)
    checkpoint, export = open_checkpoint(conversion.origin.checkpoint.path, None), conversion.opened
    sizes, style_dim = checkpoint.config.istftnet, checkpoint.config.style_dim
    generator = Generator(in_half_turns(generator_weights(checkpoint.weights, sizes), pi), sizes).eval()
    graph = reference_design(generator)
    for bound in owed():
        graph = bound.rewrite(graph).model
    shapes = shapes_of(sizes, style_dim, FRAMES, masked=True)
    ones = {name: np.ones(shapes[name], np.float32) for name in (MASK, FINE_MASK)}
    bare = built_bare(graph, folder, [{**export.feeds[0], **ones}])
    snr = snr_db(np.asarray(export.references[0][SPECTROGRAM]), np.asarray(bare.simulated[0][SPECTROGRAM]))
    return side_of(
        f"w{FRAMES}, {REFERENCE_EMITTED} emitted, the reference's design", REFERENCE_EMITTED, bare.layers, snr
    )


def ours(folder: Path) -> Side:
    """As the command makes it, with its sibling; the dB are those of its gate."""
    manifests = map(read_manifest, made_by_the_command(folder, "kokoro"))
    full = next(manifest for manifest in manifests if manifest.role == FULL)
    assert full.layers is not None
    assert full.window is not None
    (measured,) = (verdict.measured for verdict in full.verdicts if verdict.gate == SIMULATOR)
    return side_of(Path(full.engine.file).stem, full.window.emitted, full.layers, float(measured or "nan"))
