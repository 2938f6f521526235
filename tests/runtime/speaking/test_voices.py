"""Which plan is meant, and who speaks it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rknn_tts_runtime.backends.twins import TwinBackend
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.plans.plan import Plan
from rknn_tts_runtime.speaking.speaker import Asked
from rknn_tts_runtime.speaking.voices import check_asked, open_speaker, the_plan

PATH = Path("plan.json")


def plans(*families: str) -> dict[str, Plan]:
    return {family: Plan(PATH, family, {}, ()) for family in families}


@pytest.mark.parametrize(
    ("families", "chosen"),
    [
        (("piper",), "piper"),
        (("cosyvoice3", "kokoro"), "kokoro"),  # the other does not speak
        (("cosyvoice3",), "cosyvoice3"),
    ],
)
def test_the_plan_is_the_one_that_speaks(families: tuple[str, ...], chosen: str) -> None:
    assert the_plan(plans(*families), PATH).family == chosen


@pytest.mark.parametrize(
    ("families", "sentence"),
    [
        (("piper", "kokoro"), "has plans of piper, kokoro; --family says which is meant"),
        ((), "has plans of nothing"),
    ],
)
def test_the_plan_refuses_to_guess(families: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        the_plan(plans(*families), PATH)


def test_open_speaker_refuses_a_family_that_does_not_speak() -> None:
    with pytest.raises(BadInput, match=r"plan\.json: cosyvoice3 does not speak here, only piper, kokoro, in"):
        open_speaker(plans("cosyvoice3")["cosyvoice3"], TwinBackend())


def test_check_asked_takes_codes_for_qwen3_alone() -> None:
    codes = Asked(codes=np.ones((16, 1), np.int64))
    check_asked("qwen3", codes)
    check_asked("piper", Asked(text="Hello"))
    with pytest.raises(BadInput, match="--codes: piper speaks words"):
        check_asked("piper", codes)
