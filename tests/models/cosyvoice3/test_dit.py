"""The estimator in upstream's arithmetic, against the original's blocks at the same weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from models.cosyvoice3.dit import turned
from models.cosyvoice3.layout import INPUTS, input_shapes
from models.cosyvoice3.runs import dit_of, estimated
from tests.cosyvoice3_files import REDUCED, weights_of
from tests.cosyvoice3_reference import Original
from tests.onnx_runs import snr_db

EXACT_DB = 110.0
"""Two orders of one float32 arithmetic; 125 and more measured."""

FRAMES = 23


def feed(real: int, time: float) -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(5)
    made = {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in input_shapes(REDUCED, FRAMES).items()}
    made["t"] = np.array([time, time / 3], np.float32)
    made["mask"] = np.repeat((np.arange(FRAMES) < real).astype(np.float32)[None, None], 2, axis=0)
    return made


@pytest.mark.parametrize(("real", "time"), [(FRAMES, 0.3), (FRAMES, 1.0), (14, 0.0), (1, 0.7)])
def test_the_estimator_is_the_originals(real: int, time: float) -> None:
    given = feed(real, time)
    wanted = Original(REDUCED, weights_of())(*(torch.from_numpy(given[name]) for name in INPUTS)).numpy()
    got = estimated(dit_of(weights_of(), REDUCED), given)
    assert got.shape == (2, REDUCED.mel, FRAMES)
    assert snr_db(wanted, got) >= EXACT_DB


def test_frames_of_padding_change_no_real_one() -> None:
    given = feed(9, 0.4)
    dit = dit_of(weights_of(), REDUCED)
    alone = {name: array[..., :9] if array.ndim == 3 else array for name, array in given.items()}
    assert snr_db(estimated(dit, alone), estimated(dit, given)[..., :9]) >= EXACT_DB


def test_neighbours_change_places_and_one_is_negated() -> None:
    assert turned(torch.tensor([[1.0, 2.0, 3.0, 4.0]])).tolist() == [[-2.0, 1.0, -4.0, 3.0]]


def test_the_estimator_takes_its_weights_as_they_are() -> None:
    weights = weights_of()
    dit = dit_of(weights, REDUCED)
    assert dit.proj_out.weight.data_ptr() == weights["proj_out.weight"].ctypes.data
