"""The vocoder's sizes: against the original's own tensors, and the published counts."""

from __future__ import annotations

from math import prod

import torch
from torch.nn.utils import parametrize

from models.cosyvoice2.hift_config import HOP, MEL_FLOOR, MOST_FRAMES, TRUE_CONFIG, layout, source_strides
from tests.cosyvoice2_hift import SMALL, original


def test_layout_is_the_originals_with_its_weight_norm_folded() -> None:
    model = original()
    for module in list(model.modules()):
        if parametrize.is_parametrized(module):
            parametrize.remove_parametrizations(module, "weight")
    assert layout(SMALL) == {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def test_true_sizes_are_the_published_ones() -> None:
    counts = {name: prod(shape) for name, shape in layout(TRUE_CONFIG).items()}
    assert sum(counts.values()) == 20_806_557
    assert sum(count for name, count in counts.items() if name.startswith("f0_predictor.")) == 3_271_681


def test_rates_are_those_of_24_khz() -> None:
    assert (HOP, source_strides(), MOST_FRAMES) == (480, (15, 3, 1), 68)
    assert abs(MEL_FLOOR - torch.tensor(1e-5).log().item()) < 1e-5
