"""The generator on utterances, as the engines compute them: a window, a padded one, or windows inside one graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from converters.kokoro import evidence
from converters.kokoro.evidence import windows_of
from converters.kokoro.geometry import GAP, Geometry
from converters.kokoro.utterances import FloatArray, Utterance
from converters.stages import Array
from models.kokoro.generator import Generator, instance_norm, pooled_norm
from models.kokoro.generator_graph import FINE_MASK, HARMONICS, LATENT, MASK, STYLE
from models.kokoro.runs import run


def decode_by(generator: Generator, geometry: Geometry) -> evidence.Decode:
    """What decodes one window; where windows are walked inside the graph, walked likewise."""
    return lambda utterance: walked(geometry, utterance, lambda part: run(generator, part.seam))


def run_whole(generator: Generator, geometry: Geometry, window: Utterance) -> FloatArray:
    """`window` by `generator` as `full` normalises."""
    norm = pooled_norm if geometry.norm == GAP else instance_norm
    return walked(geometry, window, lambda part: run(generator, part.seam, norm=norm))


def run_masked(generator: Generator, feed: Mapping[str, Array]) -> FloatArray:
    """A feed of `short` by `generator`."""
    x, har, style, *masks = (np.asarray(feed[name], np.float32) for name in (LATENT, HARMONICS, STYLE, MASK, FINE_MASK))
    return run(generator, (x, har, style), masks)


def walked(geometry: Geometry, utterance: Utterance, decode: evidence.Decode) -> FloatArray:
    """`utterance`, decoded by the windows inside the graph where there are any."""
    inner = evidence.inside(geometry)
    return decode(utterance) if inner is None else evidence.decoded_by_windows(decode, utterance, inner)


def inner_windows(geometry: Geometry, windows: Sequence[Utterance]) -> list[Utterance]:
    """`windows`, or the windows that are walked inside each."""
    inner = evidence.inside(geometry)
    return list(windows) if inner is None else [part for window in windows for part in windows_of(window, inner)]


def windowed(decode: evidence.SeamDecode, utterance: Utterance, geometry: Geometry) -> FloatArray:
    """`utterance` through windows that `decode` decodes, each by itself."""
    return evidence.decoded_by_windows(lambda part: decode(part.seam), utterance, geometry)
