"""The graphs that a checkpoint is exported to, as what is compiled; large ones proven one at a time."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from rknn_tts.checkpoint_to_onnx import (
    CALIBRATION_FILE,
    FEEDS_FILE,
    HOST_FILE,
    MODEL_FILE,
    ORIGINALS_FILE,
    Conversion,
    export_graph,
    prove_export,
)
from rknn_tts.graph_at_hand import OnnxSource, judge_numbers
from rknn_tts.steps import Steps

LARGE_GRAPH_BYTES = 1 << 30
"""From this size on, a graph is proven by itself: CosyVoice3's flow (1.3 GB) makes the toolkit take 5.1 GB
(measured, 2.3.2), and its proof some 4."""


def exported_sources(conversions: Sequence[Conversion], steps: Steps) -> list[OnnxSource]:
    """The exported graphs of `conversions`, all of one checkpoint.

    The proof of each is still to come, but of a large one, which is proven at once and let go of before the next is
    opened: neither two of them nor one and the toolkit, which takes four times its size, are to be in memory together.
    """
    sources = [_exported_source(conversion, steps) for conversion in conversions]
    large = [source for source in sources if _is_large(source)]
    if large:
        conversions[0].origin.release()
    for source in large:
        judge_numbers(source, steps)
    return sources


def _exported_source(conversion: Conversion, steps: Steps) -> OnnxSource:
    exported = export_graph(conversion, steps)
    folder, info = exported.folder, exported.info
    source = OnnxSource(
        graph=folder / MODEL_FILE,
        stem=info.stem,
        contract=info.contract,
        host=folder / HOST_FILE if info.contract.host else None,
        make_feeds=(folder / FEEDS_FILE).read_bytes,
        prove=functools.partial(prove_export, conversion, exported, steps),
        notes=info.notes,
        inputs=conversion.origin.inputs,
        refused=info.refused,
        make_originals=(folder / ORIGINALS_FILE).read_bytes,
        make_calibration=(folder / CALIBRATION_FILE).read_bytes,
    )
    if not _is_large(source):
        return source
    proof = source.prove()
    conversion.release()
    return dataclasses.replace(source, prove=lambda: proof)


def _is_large(source: OnnxSource) -> bool:
    return source.graph.stat().st_size >= LARGE_GRAPH_BYTES
