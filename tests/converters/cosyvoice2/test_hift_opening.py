"""An open vocoder: what its gates run on."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import Refusal
from converters.cosyvoice2.f0 import STAGE as F0
from converters.cosyvoice2.hift import STAGE as HIFT
from converters.cosyvoice2.hift_opening import HiftOpening
from converters.precision import chosen_precision
from converters.stages import Stage, StageOptions
from models.cosyvoice2.hift_config import COLUMNS
from tests.converters.hubs import no_hub
from tests.cosyvoice2_hift import SMALL, write_hift
from tests.onnx_runs import open_session


@pytest.fixture(scope="module")
def opening(tmp_path_factory: pytest.TempPathFactory) -> HiftOpening:
    path = write_hift(tmp_path_factory.mktemp("small") / "hift.pt")
    assert HIFT.locate is not None
    return HiftOpening(HIFT.locate(str(path), no_hub), StageOptions(buckets="11,16"), open_session)


def test_stretch_is_of_several_windows(opening: HiftOpening) -> None:
    assert opening.long.mel.shape == (1, SMALL.mels, 43)
    assert opening.long.har.shape == (1, 18, 43 * COLUMNS + 1)
    assert opening.whole.shape == opening.long.har.shape


def test_part_cuts_both_at_the_same_frames(opening: HiftOpening) -> None:
    part = opening.part(5, 11)
    np.testing.assert_array_equal(part.mel, opening.long.mel[..., 5:16])
    np.testing.assert_array_equal(part.har, opening.long.har[..., 600 : 16 * COLUMNS + 1])


def test_sines_are_folded_for_silence_and_loudness_too(opening: HiftOpening) -> None:
    for seen, other in zip(opening.arguments, opening._watched_arguments(opening.part(0, 43)), strict=True):
        assert np.all(seen >= other)
    assert any(np.any(one > two) for one, two in zip(opening.arguments, opening.other_arguments, strict=True))


def test_no_calibration_is_drawn_in_fp16(opening: HiftOpening) -> None:
    assert opening.calibration(11) == ()


@pytest.mark.parametrize("stage", [HIFT, F0])
def test_eight_bits_are_refused_with_the_references_reason(stage: Stage) -> None:
    with pytest.raises(Refusal, match=r"in W8A8 the vocoder's waveform and pitch deviate too far .*--allow-quantized"):
        chosen_precision(f"cosyvoice2 {stage.name}", stage.precision, "w8a8", None, False)
    assert chosen_precision("", stage.precision, "w8a8", None, True) == "w8a8"
    assert chosen_precision("", stage.precision, None, None, None) == "fp16"
