"""The predictor's export on a small checkpoint: what the gates are given, against the original."""

from __future__ import annotations

from pathlib import Path

import torch

from converters.cosyvoice2.f0 import STAGE
from converters.stages import StageOptions
from tests.converters.hubs import no_hub
from tests.cosyvoice2_hift import original, write_hift
from tests.finished_exports import finished_model
from tests.onnx_runs import open_session, run, snr_db


def test_predictor_of_pitch_is_the_original_and_every_comparison_holds(tmp_path: Path) -> None:
    assert STAGE.locate is not None
    checkpoint = STAGE.locate(str(write_hift(tmp_path / "hift.pt")), no_hub)
    export = STAGE.open(checkpoint, StageOptions(buckets="40"), open_session)("b40")
    assert export.stem == "cosyvoice2-f0-b40"
    model, feed = finished_model(export), export.feeds[0]
    (got,) = run(model, {"mel": feed["mel"].reshape(1, 10, 1, 40)}).values()
    owed = original().f0_predictor(torch.from_numpy(feed["mel"])).numpy()
    assert owed.shape == (1, 40)
    assert snr_db(owed, got.reshape(owed.shape)) > 115
    proof = export.evidence()
    assert [item.gate for item in proof.equalities] == ["fp32.export", "fp32.interior"]
    for item in proof.equalities:
        for name, reference in item.reference.items():
            assert snr_db(reference, item.measured[name]) >= item.minimum_db >= 100, (item.gate, name)
    assert export.contract.thresholds == {"simulator": 50.0}
    assert [figure.name for figure in proof.measurements] == ["windows.streamed"]


def test_eight_bits_find_their_ranges_on_mel_frames_that_nothing_is_judged_on(tmp_path: Path) -> None:
    assert STAGE.locate is not None
    checkpoint = STAGE.locate(str(write_hift(tmp_path / "hift.pt")), no_hub)
    options = StageOptions(buckets="16", precision="w8a8", allow_quantized=True)
    export = STAGE.open(checkpoint, options, open_session)("b16")
    assert len(export.calibration) == 20
    assert all(window["mel"].shape == (1, 10, 16) for window in export.calibration)
    judged = export.feeds[0]["mel"]
    assert not any((window["mel"] == judged).all() for window in export.calibration)
