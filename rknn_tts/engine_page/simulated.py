"""How an engine that does not speak agrees with its reference along an axis, where its build's arrays are at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contracts.errors import Refusal, RknnTtsError
from contracts.manifest import Manifest
from engine.environment import converter_python
from engine.result import BuildResult, read_build
from logs.regtask import parse_accepted
from rknn_tts.build_step import BUILD_FOLDER, Build
from rknn_tts.carried import feeds_from_npz
from rknn_tts.engine_page.along import Along, snr_along_axis
from rknn_tts.graph_at_hand import OnnxSource
from rknn_tts.onnx_source import open_source
from rknn_tts.places import engine_places
from rknn_tts.progress import Say
from rknn_tts.request import Request
from rknn_tts.steps import Steps

BLOCKS = 200
"""Along an axis, at most: what a figure shows."""

LARGEST_RUN_BYTES = 64 << 20
"""A larger graph is not run once more in onnxruntime for a figure."""

MOST_OUTPUTS = 3
"""That are drawn: the first ones."""

Outputs = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Simulated:
    """Ratios of an engine's outputs in the simulator.

    Attributes:
        curves: outputs, each with its ratio along its last axis, over all runs.
        against: what they are compared with.
        runs: how many there are.
    """

    curves: tuple[tuple[str, Along], ...]
    against: str
    runs: int


class _NotAtHand(Exception):
    """The build was not found among the finished steps."""


def simulated(manifest: Manifest, engine: Path, steps: Steps, say: Say) -> Simulated:
    """What the simulator made of the inputs that the engine was judged on. Nothing is built.

    Args:
        manifest: the engine's.
        engine: its file; the twin stands beside it.
        steps: those of the command.
        say: gets the progress.

    Raises:
        Refusal: its arrays are not at hand, or there is nothing to compare them with, as a clause behind a colon.
    """
    twin = engine.with_name(Path(manifest.onnx.file).name)
    request = Request("compile", model=str(twin), target=manifest.target, toolkit=manifest.toolkit.version)
    try:
        source = open_source(twin, request, manifest.target, steps, say)
        accepted = tuple(sorted(parse_accepted(text) for text in manifest.log.accepted))
        places = engine_places(source.contract, source.stem, manifest.target, str(engine))
        python = converter_python(manifest.toolkit.version)
        found = _found(Build(request, manifest.target, source, accepted, places, python), steps)
    except RknnTtsError as error:
        raise Refusal(f"{error}") from error
    if found.engine_sha256 != manifest.engine.sha256 or not found.simulated:
        raise Refusal("what the simulator gave is not at hand any more: build it again and keep the finished steps.")
    references, against = _references(source)
    return Simulated(_curves(references, found.simulated), against, len(references))


def _found(build: Build, steps: Steps) -> BuildResult:
    """The finished build.

    Raises:
        Refusal: it is not among the finished steps.
    """

    def work(folder: Path) -> None:
        raise _NotAtHand

    try:
        return read_build(steps.folder("build", build.parts, work) / BUILD_FOLDER)
    except _NotAtHand:
        raise Refusal(
            "what the simulator gave is not at hand: build it again, with this version, and keep the finished steps."
        ) from None


def _references(source: OnnxSource) -> tuple[Sequence[Outputs], str]:
    originals = feeds_from_npz(source.originals)
    if originals:
        return originals, "the original"
    size = source.graph.stat().st_size
    if size > LARGEST_RUN_BYTES:
        raise Refusal(
            "its graph is too large to be run once more for a figure; the verdicts have the ratio of each output."
        )
    from converters.onnx_file import read_onnx
    from gates.session import Session  # onnxruntime: only where something is run

    session = Session(read_onnx(source.graph, in_place=True), name=str(source.graph))
    return [session.run(feed) for feed in feeds_from_npz(source.feeds)], "onnxruntime on its graph"


def _curves(references: Sequence[Outputs], measured: Sequence[Outputs]) -> tuple[tuple[str, Along], ...]:
    curves = []
    for name in list(references[0])[:MOST_OUTPUTS]:
        pairs = [
            _alike(one[name], other[name]) for one, other in zip(references, measured, strict=True) if name in other
        ]
        if not pairs or len({pair[0].shape for pair in pairs}) > 1 or pairs[0][0].ndim < 1:
            continue
        reference, gave = (np.stack([pair[i] for pair in pairs]) for i in (0, 1))
        curves.append((name, snr_along_axis(reference, gave, BLOCKS)))
    if not curves:
        raise Refusal("its outputs have no axis of one length in all runs, along which to compare.")
    return tuple(curves)


def _alike(reference: NDArray[Any], measured: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both, in the reference's length: what is behind that on the last axis is padding."""
    return reference, measured[..., : reference.shape[-1]].reshape(reference.shape)
