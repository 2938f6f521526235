"""One engine of CosyVoice2's vocoder: a window of so many mel frames to its spectrogram."""

from __future__ import annotations

from contracts.contract import Contract, TensorSpec
from contracts.quality import Istft, Quality
from contracts.thresholds import SIMULATOR
from converters.cosyvoice2 import hift_evidence
from converters.cosyvoice2.hift_geometry import hift_stem, hift_window, width_of
from converters.cosyvoice2.hift_opening import HiftOpening
from converters.sine_reach import cuts_in_order, reaches_for
from converters.stages import StageExport
from models.cosyvoice2.hift_config import ISTFT_HOP, LARGEST_MAGNITUDE, N_FFT
from models.cosyvoice2.hift_graph import SPECTROGRAM, hift_shapes
from surgery.rewrite_interface_axes import rewrite_interface_axes
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
        cuts=cuts_in_order(model, reaches, opening.form, opening.file.path),
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
