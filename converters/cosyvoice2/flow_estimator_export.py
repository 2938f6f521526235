"""One engine of CosyVoice2's flow estimator: a step along a stream, or so many frames at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from contracts.contract import CarriedState, Contract, TensorSpec
from contracts.quality import Quality
from contracts.thresholds import SIMULATOR, SIMULATOR_DB
from converters.cosyvoice2 import flow_estimator_evidence as evidence
from converters.cosyvoice2.flow_estimator_geometry import STEP, StepSizes
from converters.cosyvoice2.flow_estimator_opening import EstimatorOpening
from converters.stages import Evidence, StageExport
from models.cosyvoice2.estimator_config import Shape
from models.cosyvoice2.estimator_graphs import MASK, OUT, carried_states, input_shapes

HOST_FILE = "cosyvoice2-flow-estimator-host.onnx"

LEAST_COSINE, MOST_L1 = 0.9999, 0.01
"""Of the velocity in fp16. The reference's board leaves a mel that is made in one step a cosine of 0.999989 and a mean
difference of 0.016937, where log mel values are of several; a graph of 40 dB leaves a velocity 0.99995 and 0.009."""

_FIGURES = (
    Quality("mel_cosine", OUT, LEAST_COSINE, MASK, remark="of the velocity, whose sum with noise is a mel"),
    Quality("mel_l1_relative", OUT, MOST_L1, MASK, remark="likewise"),
    Quality("mel_l1", OUT, None, MASK, remark="likewise; the reference's board has 0.016937, of mels of a voice"),
)


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
        passes=(),
        feeds=(whole.feed,),
        padded_feeds=(partly.feed,),
        host=opening.host,
        host_file=HOST_FILE,
        notes=(opening.file.note,) if opening.file.note else (),
        evidence=proof,
        references=(whole.owed, partly.owed),
        session=lambda: opening.known(role),
    )
