"""One engine of CosyVoice3's flow: its estimator for a fixed number of frames."""

from __future__ import annotations

from contracts.contract import Contract, TensorSpec
from contracts.thresholds import SIMULATOR, SIMULATOR_DB
from converters.cosyvoice3 import evidence
from converters.cosyvoice3.geometry import notes_on, stem_of
from converters.cosyvoice3.opening import FlowOpening
from converters.cosyvoice_quality import OTHER_COSINE, OTHER_L1, mel_figures
from converters.remembered import Remembered
from converters.stages import StageExport
from models.cosyvoice3.config import PAIR
from models.cosyvoice3.layout import OUTPUT, input_shapes

TIMES = (
    "The engine rounds t to fp16, as it does every input, and angles go up to 1000 radians of it: let the solver make "
    "its steps between times that fp16 holds."
)
"""Measured (two blocks, simulator): 61 dB at such times, 32 to 34 dB at others near 1."""


def flow_export(opening: FlowOpening, role: str) -> StageExport:
    """The engine for `role` of an open checkpoint."""
    length = opening.lengths[role]
    model = opening.model(length)
    full, padded = runs = evidence.runs_of(opening, length)

    # Opened for one run at a time: a session holds all weights again, 1.3 GB at the published sizes.
    known = Remembered(lambda feed: opening.open_session(model)(feed), len(runs))

    return StageExport(
        stem=stem_of(length),
        contract=_contract(opening, role, length),
        model=model,
        passes=(),
        feeds=(full.feed,),
        padded_feeds=(padded.feed,),
        host=None,
        host_file="",
        notes=_notes(opening, length),
        evidence=lambda: evidence.evidence_of(opening, length, known, runs),
        references=(full.owed, padded.owed),
        session=lambda: known,
    )


def _contract(opening: FlowOpening, role: str, length: int) -> Contract:
    config = opening.config
    return Contract(
        family="cosyvoice3",
        stage="flow",
        source=opening.file.source,
        inputs=tuple(TensorSpec(name, shape) for name, shape in input_shapes(config, length).items()),
        outputs=(TensorSpec(OUTPUT, (PAIR, config.mel, length)),),
        thresholds={SIMULATOR: SIMULATOR_DB},
        quality=mel_figures(OUTPUT, OTHER_COSINE, OTHER_L1, "the velocity", "mask"),
        role=role,
    )


def _notes(opening: FlowOpening, length: int) -> tuple[str, ...]:
    note = (opening.file.note,) if opening.file.note else ()
    return (*note, TIMES, *notes_on(length))
