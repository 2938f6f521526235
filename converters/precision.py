"""In which precision a stage's engines are built: what the user may ask for, and what is refused.

8 bits lose too much in some stages of CosyVoice2 (reference, CosyVoice2 on RK3588: model precision): there they are
built only where the user insists, and what the stage owes stays what it is, so that a gate may fail then.
"""

from __future__ import annotations

from dataclasses import dataclass

from contracts.errors import Refusal, UserInput
from contracts.quantisation import FP16, PRECISIONS, W8A8

FLOW_LOSES = "W8A8 loses more of the flow's sound than is acceptable"
HIFT_LOSES = "in W8A8 the vocoder's waveform and pitch deviate too far"
"""What the reference found when it built these stages in 8 bits; both stay in fp16 there."""

VENDORS_LEAST_WINDOWS = 20
"""Fewest inputs that the vendor recommends ranges be found on: 20 to 100, by the algorithm `normal` (RKNN SDK User
Guide 1.6, quantisation)."""


@dataclass(frozen=True)
class Precision:
    """What a stage says of its precisions.

    Attributes:
        default: the precision where the user names none.
        loses: why 8 bits are refused, a clause; None where they are not.
        least_windows: fewest inputs of a file that ranges are found on.
        held_out: of the inputs in a file, one in so many, the last ones, is kept from that, and the engine is judged on
            these instead of on the stage's own: of a stage whose export has no `references`. None: on its own.
    """

    default: str = FP16
    loses: str | None = None
    least_windows: int = VENDORS_LEAST_WINDOWS
    held_out: int | None = None


def chosen_precision(
    stage: str, says: Precision | None, asked: str | None, calibration: str | None, allowed: bool | None
) -> str:
    """The precision that `stage` is built in.

    Args:
        stage: what sentences call it ("cosyvoice2 hift").
        says: what it says of precisions; None: fp16 is all there is.
        asked, calibration, allowed: the options `--precision`, `--calibration` and `--allow-quantized`; `allowed` is
            None where the stage has no such option.

    Raises:
        UserInput: there is no such precision, or a calibration set or leave is given to what is not quantised.
        Refusal: 8 bits lose too much, and the user does not insist.
    """
    says = says or Precision()
    precision = says.default if asked is None else asked
    if precision not in PRECISIONS:
        raise UserInput(
            f"--precision {precision!s:.60}: there is none of this name; there are {', '.join(PRECISIONS)}."
        )
    if precision == W8A8:
        if says.loses is not None and not allowed:
            insist = (
                "" if allowed is None else ", or add --allow-quantized to build it all the same and see what it loses"
            )
            raise Refusal(
                f"{stage} is not built in W8A8: {says.loses} (reference, CosyVoice2 on RK3588). Leave --precision "
                f"out for fp16{insist}."
            )
        return precision
    for option, given in (("--calibration", calibration), ("--allow-quantized", allowed)):
        if given:
            raise UserInput(f"{option} is for --precision {W8A8}, and {stage} is built in {precision}.")
    return precision
