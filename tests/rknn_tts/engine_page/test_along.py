from __future__ import annotations

import math

import numpy as np
import pytest

from rknn_tts.engine_page.along import level_along, snr_along, snr_along_axis

RATE = 1000


def test_snr_along_finds_a_fault_where_it_is() -> None:
    reference = np.ones(1000, np.float32)
    measured = reference.copy()
    measured[440:460] = 1.5  # one block of 20 ms at 1 kHz, an error of half the signal
    along = snr_along(reference, measured, RATE)
    assert along.centre.tolist() == pytest.approx([0.01 + 0.02 * i for i in range(50)])
    # By hand: 10 log10(1 / 0.5^2) = 6.0206 dB; all other blocks are identical.
    assert along.db[22] == pytest.approx(6.0206, abs=1e-4)
    assert all(math.isinf(db) for i, db in enumerate(along.db) if i != 22)
    assert along.worst == pytest.approx((6.0206, 0.45), abs=1e-4)


def test_snr_along_has_a_block_of_what_is_left_over() -> None:
    reference = np.ones(50, np.float32)
    along = snr_along(reference, reference * np.float32(1.1), RATE)
    assert along.centre.tolist() == pytest.approx([0.01, 0.03, 0.045])
    assert along.db.tolist() == pytest.approx([20.0] * 3, abs=1e-4)


def test_snr_along_is_no_number_when_the_reference_is_silent() -> None:
    reference = np.concatenate([np.zeros(20), np.ones(20)]).astype(np.float32)
    along = snr_along(reference, reference + np.float32(0.1), RATE)
    assert math.isnan(along.db[0])
    assert along.db[1] == pytest.approx(20.0, abs=1e-4)
    assert along.worst is not None
    assert along.worst[1] == pytest.approx(0.03)


def test_snr_along_refuses_signals_of_two_lengths() -> None:
    with pytest.raises(ValueError, match="3 and 4 samples"):
        snr_along(np.zeros(3, np.float32), np.zeros(4, np.float32), RATE)


def test_worst_is_none_when_nothing_differs() -> None:
    signal = np.ones(40, np.float32)
    assert snr_along(signal, signal, RATE).worst is None
    assert snr_along(signal[:0], signal[:0], RATE).worst is None


def test_level_along_is_in_db_of_full_scale() -> None:
    samples = np.concatenate([np.full(20, 0.1), np.zeros(20)]).astype(np.float32)
    along = level_along(samples, RATE)
    assert along.db[0] == pytest.approx(-20.0, abs=1e-4)
    assert math.isinf(along.db[1])


def test_snr_along_axis_finds_a_fault_on_the_last_axis() -> None:
    reference = np.ones((2, 1, 3, 8), np.float32)
    measured = reference.copy()
    measured[1, 0, 2, 5] = 2.0
    along = snr_along_axis(reference, measured, 4)
    assert along.centre.tolist() == [0.5, 2.5, 4.5, 6.5]
    # By hand: 2 runs, 3 rows and 2 places make a power of 12, against an error of 1.
    assert along.db[2] == pytest.approx(10 * math.log10(12), abs=1e-6)
    assert np.isinf(np.delete(along.db, 2)).all()


def test_snr_along_axis_goes_past_axes_of_one() -> None:
    reference = np.ones((1, 5, 1, 1), np.float32)
    assert snr_along_axis(reference, reference, 200).centre.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_snr_along_axis_refuses_arrays_of_two_shapes() -> None:
    with pytest.raises(ValueError, match="cannot be compared"):
        snr_along_axis(np.ones((1, 2)), np.ones((1, 3)), 4)
