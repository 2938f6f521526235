"""One engine of the speaker encoder, and what its gates compare.

fp32.export       the exported graph against the module
fp32.published    the module against the published ONNX, where the weights come from one, also at other lengths
fp32.finished     the finished graph against the original: the published ONNX, else the module
embedding.apart   how near the embeddings of drawn voices are to each other: a measurement, for a cosine hides
                  errors where all embeddings are alike
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from contracts.contract import Contract, TensorSpec
from contracts.quality import Quality
from contracts.verdicts import Measurement
from converters.cosyvoice2.speaker_lengths import length_of
from converters.cosyvoice2.speaker_opening import VOICES, SpeakerOpening
from converters.stages import Equality, Evidence, Expectation, StageExport
from models.cosyvoice2.speaker_graph import EMBEDDING, speaker_shapes

COSINE = 0.9999
"""Least cosine of an embedding in the simulator to the original's (the issue's bound)."""

GRAPH_DB = 100.0
"""Of one arithmetic in two programs, 60 layers deep; 120 to 128 measured."""

OTHER_FRAMES = (200, 600)
"""Other lengths that the published ONNX is run at: of one segment of gates, and of several."""

FloatArray = NDArray[np.float32]


def speaker_export(opening: SpeakerOpening, role: str) -> StageExport:
    """The engine for `role` of an open checkpoint."""
    frames = length_of(role)
    return StageExport(
        stem=f"cosyvoice2-speaker-{role}",
        contract=_contract(opening, role),
        model=opening.model(frames),
        passes=(),
        feeds=tuple(opening.feed(frames, voice) for voice in VOICES),
        padded_feeds=(),
        host=None,
        host_file="",
        notes=(opening.file.note,) if opening.file.note else (),
        evidence=lambda: _evidence(opening, frames),
        references=tuple({EMBEDDING: opening.owed(frames, voice)} for voice in VOICES),
        session=lambda: opening.session(frames),
    )


def _contract(opening: SpeakerOpening, role: str) -> Contract:
    return Contract(
        family="cosyvoice2",
        stage="speaker",
        source=opening.file.source,
        inputs=tuple(
            TensorSpec(name, shape) for name, shape in speaker_shapes(opening.config, length_of(role)).items()
        ),
        outputs=(TensorSpec(EMBEDDING, ()),),  # its shape is read from the finished graph
        role=role,
        quality=(Quality("embedding_cosine", EMBEDDING, COSINE),),
    )


def _evidence(opening: SpeakerOpening, frames: int) -> Evidence:
    runs = tuple((opening.feed(frames, voice), {EMBEDDING: opening.owed(frames, voice)}) for voice in VOICES)
    against = "the module" if opening.published is None else "the published ONNX"
    return Evidence(
        equalities=(
            Equality(
                "fp32.export",
                {EMBEDDING: opening.of_module(frames, VOICES[0])},
                opening.session(frames)(opening.feed(frames, VOICES[0])),
                GRAPH_DB,
                "the exported graph in onnxruntime against the module that it was traced from",
            ),
            *(_published(opening, frames) if opening.published is not None else ()),
        ),
        expectations=(Expectation("fp32.finished", runs, GRAPH_DB, f"the finished graph against {against}"),),
        measurements=(_apart([opening.owed(frames, voice) for voice in VOICES]),),
    )


def _published(opening: SpeakerOpening, frames: int) -> tuple[Equality, ...]:
    """The module against the ONNX that its weights come from."""
    lengths = {f"{EMBEDDING}_{length}": length for length in (frames, *OTHER_FRAMES)}
    told = ", ".join(map(str, lengths.values()))
    return (
        Equality(
            "fp32.published",
            {name: opening.owed(length, VOICES[0]) for name, length in lengths.items()},
            {name: opening.of_module(length, VOICES[0]) for name, length in lengths.items()},
            GRAPH_DB,
            f"the module with the weights found in the published ONNX against it, {told} frames long",
        ),
    )


def _apart(embeddings: list[FloatArray]) -> Measurement:
    """The largest cosine between embeddings of different voices."""
    units = [np.float64(one).ravel() / np.linalg.norm(np.float64(one)) for one in embeddings]
    nearest = max(float(one @ other) for one, other in combinations(units, 2))
    reason = "the nearest two of the drawn voices' embeddings, as a cosine: below it, one voice is another"
    return Measurement(name="embedding.apart", measured=nearest, unit="", reason=reason)
