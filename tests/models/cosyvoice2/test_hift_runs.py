"""An eye on the vocoder's sines."""

from __future__ import annotations

import numpy as np
import torch

from models.cosyvoice2.hift import Snake, hift_of
from models.cosyvoice2.hift_config import COLUMNS
from models.cosyvoice2.hift_runs import vocoded_and_watched
from tests.cosyvoice2_hift import SMALL, drawn, weights_of


def test_watched_arguments_are_those_of_each_snake_in_order() -> None:
    hift = hift_of(weights_of(), SMALL)
    mel, har = drawn((1, SMALL.mels, 3), 1, 3.0), drawn((1, 18, 3 * COLUMNS + 1), 2, 0.2)
    made, largest = vocoded_and_watched(hift, mel, har)
    assert len(largest) == 72
    assert [reach.size for reach in largest] == [16] * 24 + [8] * 24 + [4] * 24
    down = hift.source_downs[0](torch.from_numpy(har)).numpy()[0]
    first = next(module for module in hift.source_resblocks.modules() if isinstance(module, Snake))
    np.testing.assert_allclose(largest[0], np.abs(down).max(axis=1) * first.alpha.numpy() / np.pi, rtol=1e-5)
    assert made.shape == har.shape
