from __future__ import annotations

import pytest

from models.inflect.config import MICRO, NANO, InflectConfig


@pytest.mark.parametrize(
    ("config", "latent", "channels", "head"),
    [(MICRO, 192, [320, 160, 80, 40, 20], 48), (NANO, 128, [192, 96, 48, 24, 12], 36)],
)
def test_sizes_are_those_of_the_releases(config: InflectConfig, latent: int, channels: list[int], head: int) -> None:
    assert (config.inter_channels, config.half_channels, config.head_channels) == (latent, latent // 2, head)
    assert [config.stage_channels(stage) for stage in range(5)] == channels
    assert (config.hop, config.sample_rate) == (256, 24_000)
