"""One engine of CosyVoice2's flow estimator: a step along a stream, or so many frames at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from contracts.contract import CarriedState, Contract, TensorSpec
from contracts.thresholds import SIMULATOR, SIMULATOR_DB
from converters.cosyvoice2 import flow_estimator_evidence as evidence
from converters.cosyvoice2.flow_estimator_geometry import STEP, StepSizes
from converters.cosyvoice2.flow_estimator_opening import EstimatorOpening
from converters.cosyvoice_quality import REFERENCE_COSINE, REFERENCE_L1, mel_figures
from converters.stages import Evidence, StageExport
from models.cosyvoice2.estimator_config import Shape
from models.cosyvoice2.estimator_graphs import MASK, OUT, carried_states, input_shapes
from surgery.rewrite_interface_axes import rewrite_interface_axes

HOST_FILE = "cosyvoice2-flow_estimator-host.onnx"

_FIGURES = mel_figures(
    OUT, REFERENCE_COSINE, REFERENCE_L1, "the velocity, whose sum with noise is a mel in one step", MASK
)
"""0.999998 and 0.0019 measured at the published sizes, on a stand-in."""


def estimator_export(opening: EstimatorOpening, role: str) -> StageExport:
    """The engine for `role` of an open checkpoint."""
    step = opening.geometry.step
    return _step(opening, step) if role == STEP and step is not None else _whole(opening, role)


def _step(opening: EstimatorOpening, sizes: StepSizes) -> StageExport:
    walk = evidence.walk_of(opening, sizes)
    shapes = input_shapes(opening.config, sizes.frames, sizes.history)

    def proof() -> Evidence:
        return evidence.step_evidence(opening, sizes, walk)

    return _export(opening, STEP, (walk.middle, walk.last), proof, shapes, carried_states(opening.config))


def _whole(opening: EstimatorOpening, role: str) -> StageExport:
    length = opening.geometry.lengths[role]
    runs = evidence.whole_runs(opening, length)

    def proof() -> Evidence:
        return evidence.whole_evidence(opening, role, length, runs)

    return _export(opening, role, runs, proof, input_shapes(opening.config, length), ())


def _export(
    opening: EstimatorOpening,
    role: str,
    runs: tuple[evidence.Run, evidence.Run],
    proof: Callable[[], Evidence],
    shapes: Mapping[str, Shape],
    states: tuple[CarriedState, ...],
) -> StageExport:
    whole, partly = runs
    outputs = (OUT, *(state.output for state in states))
    return StageExport(
        stem=opening.geometry.stem(role),
        contract=Contract(
            family="cosyvoice2",
            stage="flow_estimator",
            source=opening.file.source,
            inputs=tuple(TensorSpec(name, shape) for name, shape in shapes.items()),
            outputs=tuple(TensorSpec(name, ()) for name in outputs),  # shapes are read from the finished graph
            state=states,
            thresholds={SIMULATOR: SIMULATOR_DB},
            quality=_FIGURES,
            role=role,
        ),
        model=opening.model(role),
        passes=(rewrite_interface_axes(),),
        feeds=(whole.feed,),
        padded_feeds=(partly.feed,),
        host=opening.host,
        host_file=HOST_FILE,
        notes=(opening.file.note,) if opening.file.note else (),
        evidence=proof,
        references=(whole.owed, partly.owed),
        session=lambda: opening.known(role),
    )
