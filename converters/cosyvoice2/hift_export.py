"""One engine of CosyVoice2's vocoder: a window of so many mel frames to its spectrogram."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from contracts.contract import Contract, TensorSpec
from contracts.errors import Refusal
from contracts.quality import Istft, Quality
from contracts.thresholds import SIMULATOR
from converters.cosyvoice2 import hift_evidence
from converters.cosyvoice2.hift_drawn import FloatArray
from converters.cosyvoice2.hift_geometry import hift_stem, hift_window, width_of
from converters.cosyvoice2.hift_opening import HiftOpening
from converters.sine_reach import reaches_for
from converters.stages import StageExport
from models.cosyvoice2.hift_config import ISTFT_HOP, LARGEST_MAGNITUDE, N_FFT
from models.cosyvoice2.hift_graph import SPECTROGRAM, hift_shapes
from surgery.declaration import Pass
from surgery.rewrite_interface_axes import rewrite_interface_axes
from surgery.rewrite_sines import rewrite_sines
from surgery.sine_forms import Form

SIMULATOR_DB = 55.0
"""Least simulator SNR against the module."""

CLIPPED_DB = 15.0
"""What clipped sines owe in the simulator, as they do in fp32: they are wrong past one wave."""

MOST_DISTANCE = 0.5
"""dB of log-spectral distance between the waveforms, at most."""

HOST_FILE = "cosyvoice2-hift-host.onnx"


def hift_export(opening: HiftOpening, role: str) -> StageExport:
    """The engine for `role` of an open checkpoint."""
    width = width_of(role)
    model = opening.hift_model(width)
    reaches = reaches_for(opening.arguments)
    return StageExport(
        stem=hift_stem(role, opening.form),
        contract=_contract(opening, role),
        model=model,
        passes=(rewrite_interface_axes(),),
        feeds=(opening.feed(width),),
        padded_feeds=(),
        host=opening.host,
        host_file=HOST_FILE,
        notes=(opening.file.note,) if opening.file.note else (),
        evidence=lambda: hift_evidence.evidence_of(opening, width, opening.known(model, "hift", width), reaches),
        cuts=_sine_cuts(opening, model, reaches),
        references=(hift_evidence.owed(opening, width),),
        session=lambda: opening.known(model, "hift", width),
        calibration=opening.calibration(width),
    )


def _contract(opening: HiftOpening, role: str) -> Contract:
    width = width_of(role)
    return Contract(
        family="cosyvoice2",
        stage="hift",
        source=opening.file.source,
        inputs=tuple(TensorSpec(name, shape) for name, shape in hift_shapes(opening.config, width).items()),
        outputs=(TensorSpec(SPECTROGRAM, ()),),  # its shape is read from the finished graph
        window=hift_window(width),
        thresholds={SIMULATOR: CLIPPED_DB if opening.form is Form.CLIP else SIMULATOR_DB},
        role=role,
        quality=(
            Quality(
                "log_spectral_distance",
                SPECTROGRAM,
                None if opening.form is Form.CLIP else MOST_DISTANCE,
                istft=Istft(N_FFT, ISTFT_HOP, LARGEST_MAGNITUDE),
                remark="of one window on drawn mel frames",
            ),
        ),
    )


def _sine_cuts(
    opening: HiftOpening, model: ir.Model, reaches: Sequence[FloatArray]
) -> Callable[[str | None], tuple[Pass, ...]]:
    """The stage's own cuts for a target: its sines.

    Raises:
        Refusal: the graph's sines are not the module's.
    """
    sines = [node.outputs[0] for node in model.graph if node.op_type == "Sin"]
    channels = [value.shape[1] if value.shape is not None else None for value in sines]
    if channels != [len(reach) for reach in reaches]:
        raise Refusal(
            f"{opening.file.path}: the exported graph's {len(sines)} sines are not the {len(reaches)} of its module, "
            "in order: this version of torch exports it otherwise."
        )
    reach = {str(value.name): part for value, part in zip(sines, reaches, strict=True)}
    return lambda target: (rewrite_sines(form=opening.form, reach_pi=reach, target=target),)
