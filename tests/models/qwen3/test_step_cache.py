"""The cache as rows and as slices, against its layout: slots of channels, one behind the other."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from contracts.contract import Cache
from models.qwen3.cache import KINDS, MINIMAL, REFERENCE, SPARE, VALID, cache_layout, group_width
from models.qwen3.config import DecoderConfig
from models.qwen3.step import cache_shape
from models.qwen3.step_cache import grouped, packed, unpacked
from tests.qwen3_configs import REDUCED, SIMULATED

CONFIGS = pytest.mark.parametrize("config", [REDUCED, SIMULATED], ids=["reduced", "simulated"])


def rows_of(layout: Cache, config: DecoderConfig) -> Tensor:
    """Each number tells its place."""
    return torch.arange(layout.numel, dtype=torch.float64).reshape(cache_shape(config, layout))


def slots_of(part: Tensor) -> NDArray[np.float64]:
    """[C / G, G, 1, slots] as [slots, C]."""
    return np.asarray(part.reshape(-1, part.shape[3]).numpy().T)


@CONFIGS
@pytest.mark.parametrize("kind", KINDS)
def test_slices_are_where_the_layout_says(config: DecoderConfig, kind: str) -> None:
    layout, group = cache_layout(config, kind), group_width(config)
    found = unpacked(rows_of(layout, config), layout, group)
    assert found.keys() == {part.name for part in layout.layout} - {SPARE}
    for part in layout.layout:
        if part.name in (VALID, SPARE):
            continue
        wanted = part.offset + np.arange(prod(part.shape)).reshape(part.shape)
        assert found[part.name].shape[1] == group
        np.testing.assert_array_equal(slots_of(found[part.name]), wanted, err_msg=part.name)


@CONFIGS
def test_valid_stays_rows(config: DecoderConfig) -> None:
    layout = cache_layout(config, REFERENCE)
    (part,) = (part for part in layout.layout if part.name == VALID)
    valid = unpacked(rows_of(layout, config), layout, group_width(config))[VALID]
    assert valid.shape == (1, part.shape[0], 1, part.shape[1])
    assert valid.reshape(-1).tolist() == list(range(part.offset, part.offset + prod(part.shape)))


@CONFIGS
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_unpacked_is_packed_as_it_was(config: DecoderConfig, kind: str) -> None:
    layout = cache_layout(config, kind)
    rows = rows_of(layout, config)
    assert torch.equal(packed(unpacked(rows, layout, group_width(config)), layout, rows), rows)


def test_slices_are_packed_whatever_the_width_of_their_groups() -> None:
    """Attention leaves keys by head, 32 channels, where the cache was cut into groups of 16."""
    layout = cache_layout(REDUCED, MINIMAL)
    rows = rows_of(layout, REDUCED)
    state = unpacked(rows, layout, 16)
    for name in state:
        if name.startswith("layers."):
            state[name] = state[name].reshape(2, 32, 1, 71)
    assert torch.equal(packed(state, layout, rows), rows)


def test_what_is_spare_goes_on_as_it_came() -> None:
    layout = cache_layout(REDUCED, REFERENCE)
    rows = rows_of(layout, REDUCED)
    state = {name: torch.zeros_like(part) for name, part in unpacked(rows, layout, 16).items()}
    after = packed(state, layout, rows).reshape(-1)
    (spare,) = (part for part in layout.layout if part.name == SPARE)
    assert not after[: spare.offset].any()
    assert torch.equal(after[spare.offset :], rows.reshape(-1)[spare.offset :])


@pytest.mark.parametrize("shape", [(1, 12, 1, 5), (1, 12, 5, 1)])
def test_grouped_takes_time_on_either_axis(shape: tuple[int, ...]) -> None:
    x = torch.arange(60.0).reshape(shape)
    assert torch.equal(grouped(x, 4), x.reshape(3, 4, 1, 5))
