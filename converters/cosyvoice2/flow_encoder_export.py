"""One engine of CosyVoice2's flow encoder: a streaming step of so many tokens."""

from __future__ import annotations

from contracts.contract import CarriedState, Contract, TensorSpec
from contracts.thresholds import SIMULATOR, SIMULATOR_DB
from converters.cosyvoice2 import flow_encoder_evidence as evidence
from converters.cosyvoice2.flow_encoder_opening import EncoderOpening
from converters.cosyvoice_quality import REFERENCE_COSINE, REFERENCE_L1, mel_figures
from converters.stages import StageExport
from models.cosyvoice2.encoder_states import MEAN, input_shapes, output_shapes

HOST_FILE = "cosyvoice2-flow_encoder-host.onnx"


def encoder_export(opening: EncoderOpening, role: str) -> StageExport:
    """The engine for `role` of an open checkpoint."""
    sizes = opening.geometry.sizes[role]
    middle, last = runs = evidence.runs_of(opening, role)
    return StageExport(
        stem=opening.geometry.stem(role),
        contract=_contract(opening, role),
        model=opening.model(sizes),
        passes=(),
        feeds=(middle.feed,),
        padded_feeds=(last.feed,),
        host=opening.host,
        host_file=HOST_FILE,
        notes=(opening.file.note,) if opening.file.note else (),
        evidence=lambda: evidence.evidence_of(opening, role, runs),
        references=(middle.owed, last.owed),
        session=lambda: opening.known(sizes),
    )


def _contract(opening: EncoderOpening, role: str) -> Contract:
    config, sizes = opening.config, opening.geometry.sizes[role]
    return Contract(
        family="cosyvoice2",
        stage="flow_encoder",
        source=opening.file.source,
        inputs=tuple(TensorSpec(name, shape) for name, shape in input_shapes(config, sizes).items()),
        outputs=tuple(TensorSpec(name, shape) for name, shape in output_shapes(config, sizes).items()),
        state=tuple(CarriedState(state.input, state.output) for state in opening.states()),
        thresholds={SIMULATOR: SIMULATOR_DB},
        quality=mel_figures(MEAN, REFERENCE_COSINE, REFERENCE_L1, "the mean that the estimator starts from"),
        role=role,
    )
