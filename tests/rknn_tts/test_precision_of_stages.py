"""Which stages are built in 8 bits, and which refuse that: the reference's table of precisions."""

from __future__ import annotations

import pytest

from contracts.errors import Refusal
from converters.registry import STAGES
from converters.stages import StageOptions
from rknn_tts.calibration import check_precision

# Flow: W8A8 loses unacceptable sound quality. HiFT's F0 and decoder: waveform and F0 deviate (reference, CosyVoice2).
REFUSING = {
    ("cosyvoice2", "flow_encoder"): "the flow's sound",
    ("cosyvoice2", "flow_estimator"): "the flow's sound",
    ("cosyvoice2", "f0"): "waveform and pitch",
    ("cosyvoice2", "hift"): "waveform and pitch",
    ("cosyvoice3", "flow"): "the flow's sound",
}
QUANTISED = {("cosyvoice2", "speech_head")}


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: f"{stage.family}-{stage.name}")
def test_stage_is_in_fp16_unless_the_reference_builds_it_in_8_bits(stage: object) -> None:
    (found,) = (each for each in STAGES if each is stage)
    expected = "w8a8" if (found.family, found.name) in QUANTISED else "fp16"
    assert check_precision(found, StageOptions()) == expected
    assert (found.precision is None) == ("precision" not in found.options)


@pytest.mark.parametrize(("which", "words"), REFUSING.items())
def test_stage_that_sounds_wrong_in_8_bits_refuses_them_unless_the_user_insists(
    which: tuple[str, str], words: str
) -> None:
    (found,) = (each for each in STAGES if (each.family, each.name) == which)
    with pytest.raises(Refusal, match=f"{' '.join(which)} is not built in W8A8: .*{words}.*--allow-quantized"):
        check_precision(found, StageOptions(precision="w8a8"))
    assert check_precision(found, StageOptions(precision="w8a8", allow_quantized=True)) == "w8a8"
