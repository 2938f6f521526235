"""The `config.json` of an Inflect v2 release: the sizes of its model, its sample rate and hop."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path

from contracts.errors import UserInput
from converters.config_keys import ConfigKeys, read_object
from models.inflect.config import InflectConfig

CONFIG_NAME = "config.json"

ADVICE = "give the folder of Inflect-Micro-v2 or Inflect-Nano-v2 with the config.json it came with"


@dataclass(frozen=True)
class Stated:
    """What the config states of published graphs.

    Attributes:
        sample_rate: of the samples, in Hz.
        hop: samples per frame.
        channels: of the latent; None where it says nothing of the model.
    """

    sample_rate: int
    hop: int
    channels: int | None = None


def read_stated(path: Path) -> Stated:
    """What stands in `path` of samples and latent.

    Raises:
        UserInput: it is no config of Inflect v2; the key is named.
    """
    keys = _keys(path)
    data = keys.inner("data")
    rate, hop = data.size("sampling_rate", largest=_HIGHEST_RATE), data.size("hop_length")
    return Stated(rate, hop, keys.inner("model").size("inter_channels") if "model" in keys.data else None)


def read_config(path: Path, symbols: int) -> InflectConfig:
    """The sizes in `path`, of a model with so many `symbols`, which no config states.

    Raises:
        UserInput: it is no config of a model that is supported; the key is named.
    """
    stated = read_stated(path)
    keys = _keys(path).inner("model")
    keys.only("resblock", ("1",))
    keys.only("use_sdp", (False,))
    keys.only("use_spectral_norm", (False,))
    keys.only("decoder_alias_free", (False,))  # the release's code can do more than its models have
    config = InflectConfig(
        inter_channels=keys.size("inter_channels"),
        hidden_channels=keys.size("hidden_channels"),
        filter_channels=keys.size("filter_channels"),
        upsample_initial_channel=keys.size("upsample_initial_channel"),
        n_heads=keys.size("n_heads"),
        n_layers=keys.size("n_layers"),
        kernel_size=keys.size("kernel_size"),
        upsample_rates=keys.sizes("upsample_rates"),
        upsample_kernel_sizes=keys.sizes("upsample_kernel_sizes"),
        resblock_kernel_sizes=keys.sizes("resblock_kernel_sizes"),
        resblock_dilation_sizes=keys.lists("resblock_dilation_sizes"),
        sample_rate=stated.sample_rate,
        n_vocab=symbols,
    )
    for wrong in _faults(config, stated.hop):
        raise UserInput(f"{path}: {wrong}; {ADVICE}.")
    return config


_HIGHEST_RATE = 384_000
"""Hz: the highest that sound cards take."""


def _keys(path: Path) -> ConfigKeys:
    return ConfigKeys(path, read_object(path, ADVICE), "Inflect v2", ADVICE)


def _faults(config: InflectConfig, hop: int) -> list[str]:
    """What does not fit together, each as a clause."""
    rates, kernels = config.upsample_rates, config.upsample_kernel_sizes
    widths, dilations = config.resblock_kernel_sizes, config.resblock_dilation_sizes
    halvings = 2 ** len(rates)
    found = {
        "the latent (inter_channels) must be even, for the flow splits it": config.inter_channels % 2,
        "hidden_channels must be a multiple of n_heads": config.hidden_channels % config.n_heads,
        f"upsample_initial_channel must be a multiple of {halvings}, for {len(rates)} stages halve it": (
            config.upsample_initial_channel % halvings
        ),
        "kernel_size and resblock_kernel_sizes must be odd": any(k % 2 == 0 for k in (config.kernel_size, *widths)),
        "upsample_rates and upsample_kernel_sizes must be of one length": len(rates) != len(kernels),
        "each of upsample_kernel_sizes must be its rate or an even number more": any(
            k < r or (k - r) % 2 for r, k in zip(rates, kernels, strict=False)
        ),
        "resblock_kernel_sizes and resblock_dilation_sizes must be of one length": len(widths) != len(dilations),
        f"data.hop_length is {hop}, and upsample_rates make {prod(rates)}": hop != prod(rates),
    }
    return [clause for clause, wrong in found.items() if wrong]
