from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from numpy.typing import NDArray

from contracts.errors import Refusal
from contracts.verdicts import Status
from converters.sine_reach import cuts_in_order, reach_verdict, reaches_for
from surgery.sine_forms import Form

FloatArray = NDArray[np.float32]


def reach(*sizes: float) -> FloatArray:
    return np.array(sizes, np.float32)


def test_reach_is_what_was_seen_with_a_margin_for_each_channel_and_one_for_the_site() -> None:
    """Channels: twice. The site: a power of two from one and a half times its largest on."""
    found, wide = reaches_for([reach(1.2, 0.5, 0.01, 0.0), reach(1.4, 0.9)])
    # 1.5 * 1.2 = 1.8, so the site is right up to 2: the first channel's 2.4 is cut.
    assert found.tolist() == pytest.approx([2.0, 1.0, 0.1, 0.1])
    assert wide.tolist() == pytest.approx([2.8, 1.8])  # 2.1: up to 4
    assert found.dtype == np.float32


@pytest.mark.parametrize(
    ("reaches", "seen", "share", "status"),
    [
        # Folded for 3 is right up to 4, for 0.1 up to 1.
        ([reach(3)], [reach(4)], 1.0, Status.PASSED),
        ([reach(3)], [reach(4.01)], 1.0025, Status.FAILED),
        ([reach(0.1)], [reach(0.5)], 0.5, Status.PASSED),
        ([reach(0.1, 8)], [reach(1.5, 2)], 1.5, Status.FAILED),
        ([reach(4), reach(1)], [reach(1), reach(1.25)], 1.25, Status.FAILED),
    ],
)
def test_reach_verdict_is_the_farthest_sines_share_of_what_is_covered(
    reaches: list[FloatArray], seen: list[FloatArray], share: float, status: Status
) -> None:
    verdict = reach_verdict(reaches, seen, "other words")
    assert verdict.gate == "sine.reach"
    assert verdict.measured == pytest.approx(share, rel=1e-5)
    assert (verdict.status, verdict.threshold) == (status, 1.0)
    assert f"of {len(reaches)} sines on other words that" in verdict.detail
    assert f"(sine {len(reaches) - 1})" in verdict.detail


def test_reach_verdict_fails_when_an_argument_is_no_number() -> None:
    assert reach_verdict([reach(1)], [reach(np.nan)], "other words").status is Status.FAILED


def test_reach_verdict_needs_a_sight_of_every_sine() -> None:
    with pytest.raises(ValueError, match="is longer than"):
        reach_verdict([reach(1), reach(1)], [reach(1)], "other words")


def two_sines() -> ir.Model:
    return ir.from_onnx_text(
        """<ir_version: 8, opset_import: ["" : 17]>
        net (float[1, 2, 4] a, float[1, 3, 4] b) => (float[1, 2, 4] c, float[1, 3, 4] d) { c = Sin(a) d = Sin(b) }"""
    )


def test_cuts_in_order_are_one_pass_over_the_sines() -> None:
    (cut,) = cuts_in_order(two_sines(), [reach(1, 2), reach(3, 4, 5)], Form.EXACT, Path("x.pt"))("rk3588")
    assert cut.declaration.name == "rewrite_sines"


@pytest.mark.parametrize("reaches", [[reach(1, 2)], [reach(3, 4, 5), reach(1, 2)]])
def test_cuts_in_order_refuse_other_sines(reaches: list[FloatArray]) -> None:
    told = f"^x.pt: the exported graph's 2 sines are not the {len(reaches)} of its module, in order"
    with pytest.raises(Refusal, match=told):
        cuts_in_order(two_sines(), reaches, Form.EXACT, Path("x.pt"))
