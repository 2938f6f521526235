"""The vocoder's and the predictor's exports on a small checkpoint: what the gates are given, against the original."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from numpy.typing import NDArray

from contracts.verdicts import Status
from converters.cosyvoice2.hift import STAGE as HIFT
from converters.cosyvoice2.hift_evidence import interior_equalities
from converters.cosyvoice2.hift_opening import HiftOpening
from converters.stages import Opened, Stage, StageExport, StageOptions
from models.cosyvoice2.hift_config import HOP, receptive_frames
from tests.converters.hubs import no_hub
from tests.cosyvoice2_hift import SMALL, original, write_hift
from tests.finished_exports import finished_model, reshaped
from tests.onnx_runs import open_session, run, snr_db


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hift(tmp_path_factory.mktemp("small") / "hift.pt")


def opened(stage: Stage, checkpoint: Path, **options: str) -> Opened:
    assert stage.locate is not None
    return stage.open(stage.locate(str(checkpoint), no_hub), StageOptions(**options), open_session)  # type: ignore[arg-type]  # all of these are texts


@pytest.fixture(scope="module")
def hift(checkpoint: Path) -> StageExport:
    return opened(HIFT, checkpoint, buckets="32")("b32")


@pytest.fixture(scope="module")
def compiled(hift: StageExport) -> ir.Model:
    """As the toolkit sees it."""
    return finished_model(hift)


def test_hift_is_declared_as_it_is(hift: StageExport) -> None:
    assert hift.stem == "cosyvoice2-hift-b32"
    assert [(spec.name, spec.shape) for spec in hift.contract.inputs] == [
        ("mel", (1, SMALL.mels, 32)),
        ("har", (1, 18, 3841)),
    ]
    assert hift.contract.role == "b32"
    assert hift.contract.thresholds == {"simulator": 55.0}
    (figure,) = hift.contract.quality
    assert (figure.figure, figure.bound, figure.output) == ("log_spectral_distance", 0.5, "spec_phase")
    assert hift.host_file == "cosyvoice2-hift-host.onnx"


def test_finished_vocoder_has_no_sine_and_no_widely_strided_convolution(compiled: ir.Model) -> None:
    assert not [node for node in compiled.graph if node.op_type == "Sin"]
    strides = [max(node.attributes.get_ints("strides", [1])) for node in compiled.graph if node.op_type == "Conv"]
    assert (max(strides), strides.count(5), strides.count(3)) == (5, 1, 2)


def test_finished_vocoder_is_the_original(hift: StageExport, compiled: ir.Model) -> None:
    import torch

    feed = hift.feeds[0]
    (got,) = run(compiled, reshaped(compiled, feed)).values()
    spectrogram: list[NDArray[np.float32]] = []
    generator = original()
    generator.conv_post.register_forward_hook(lambda module, given, made: spectrogram.append(made.numpy()))
    generator._stft = lambda source: (torch.from_numpy(feed["har"][:, :9]), torch.from_numpy(feed["har"][:, 9:]))
    generator.decode(torch.from_numpy(feed["mel"]), torch.zeros(1, 1, 32 * HOP))
    assert snr_db(spectrogram[0], got.reshape(spectrogram[0].shape)) > 85
    assert snr_db(spectrogram[0], np.asarray(hift.references[0]["spec_phase"])) > 120


def test_every_comparison_of_the_vocoder_holds(hift: StageExport) -> None:
    proof = hift.evidence()
    assert [item.gate for item in proof.equalities] == ["host.source", "fp32.export", "fp32.interior"]
    for item in proof.equalities:
        for name, reference in item.reference.items():
            assert snr_db(reference, item.measured[name]) >= item.minimum_db >= 100, (item.gate, name)
    assert [verdict.status for verdict in proof.verdicts] == [Status.PASSED]
    (figure,) = proof.measurements
    assert figure.name == "windows.streamed"
    assert isinstance(figure.measured, float)
    assert 5 < figure.measured < 100


def test_window_without_an_interior_owes_none(checkpoint: Path) -> None:
    assert HIFT.locate is not None
    opening = HiftOpening(HIFT.locate(str(checkpoint), no_hub), StageOptions(buckets="16"), open_session)
    assert interior_equalities(opening, 2 * receptive_frames(), lambda feed: {}) == ()
