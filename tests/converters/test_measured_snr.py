from __future__ import annotations

import math

import numpy as np
import pytest

from converters.measured_snr import snr_db

REFERENCE = np.array([3, 4], np.float32)


def test_snr_db_is_that_of_the_difference() -> None:
    assert snr_db(REFERENCE, np.array([3, 3.5], np.float32)) == 20.0  # 25 over 0.25
    assert snr_db(REFERENCE, REFERENCE / 2) == 6.02  # half the amplitude, a quarter of the power
    assert snr_db(REFERENCE, np.array([3, 11], np.float32)) == -2.92  # 25 over 49
    assert snr_db(REFERENCE, REFERENCE) == math.inf


@pytest.mark.parametrize(
    ("reference", "measured"), [([0, 0], [0, 1]), ([0, 0], [0, 0]), ([3, np.nan], [3, 4]), ([3, 4], [3, np.inf])]
)
def test_snr_db_is_no_number_where_nothing_can_be_said(reference: list[float], measured: list[float]) -> None:
    assert math.isnan(snr_db(np.array(reference, np.float32), np.array(measured, np.float32)))


def test_snr_db_is_refused_of_other_shapes() -> None:
    with pytest.raises(ValueError, match=r"\(2,\) and \(1, 2\)"):
        snr_db(REFERENCE, REFERENCE[None])
