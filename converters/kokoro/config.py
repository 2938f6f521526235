"""A Kokoro's `config.json`, as the official repository has it."""

from __future__ import annotations

from pathlib import Path

from contracts.errors import UserInput
from converters.config_keys import ConfigKeys, read_object
from models.kokoro.config import AlbertConfig, GeneratorConfig, KokoroConfig

CONFIG_NAME = "config.json"
"""What the official file is called, and what is looked for beside a checkpoint."""

_ADVICE = "give the checkpoint's config.json"


def read_config(path: Path) -> KokoroConfig:
    """The sizes that the file `path` states; keys that inference does not need (`vocab`, `dropout`) are not looked at.

    Raises:
        UserInput: the file cannot be read, is no JSON, or a key is missing or of the wrong type; it is named.
    """
    whole = ConfigKeys(path, read_object(path, _ADVICE), "Kokoro", _ADVICE)
    albert, generator = whole.inner("plbert"), whole.inner("istftnet")
    config = KokoroConfig(
        n_token=whole.size("n_token"),
        hidden_dim=whole.size("hidden_dim"),
        style_dim=whole.size("style_dim"),
        n_layer=whole.size("n_layer"),
        max_dur=whole.size("max_dur"),
        text_encoder_kernel_size=whole.size("text_encoder_kernel_size"),
        plbert=AlbertConfig(
            hidden_size=albert.size("hidden_size"),
            num_attention_heads=albert.size("num_attention_heads"),
            intermediate_size=albert.size("intermediate_size"),
            max_position_embeddings=albert.size("max_position_embeddings"),
            num_hidden_layers=albert.size("num_hidden_layers"),
        ),
        istftnet=GeneratorConfig(
            upsample_rates=generator.sizes("upsample_rates"),
            upsample_kernel_sizes=generator.sizes("upsample_kernel_sizes"),
            upsample_initial_channel=generator.size("upsample_initial_channel"),
            resblock_kernel_sizes=generator.sizes("resblock_kernel_sizes"),
            resblock_dilation_sizes=generator.lists("resblock_dilation_sizes"),
            gen_istft_n_fft=generator.size("gen_istft_n_fft"),
            gen_istft_hop_size=generator.size("gen_istft_hop_size"),
        ),
    )
    _check_lengths(path, config.istftnet)
    _check_fit(path, config)
    return config


def _check_lengths(path: Path, sizes: GeneratorConfig) -> None:
    """Lists that belong together are equally long."""
    for one, other in (
        ("upsample_rates", "upsample_kernel_sizes"),
        ("resblock_kernel_sizes", "resblock_dilation_sizes"),
    ):
        lengths = len(getattr(sizes, one)), len(getattr(sizes, other))
        if lengths[0] != lengths[1]:
            raise UserInput(
                f"{path}: istftnet.{one} has {lengths[0]} entries and istftnet.{other} {lengths[1]}; one for each is "
                "expected."
            )


def _check_fit(path: Path, config: KokoroConfig) -> None:
    """Sizes that no tensor's shape tells, and that the layers cannot be computed with."""
    albert, generator = config.plbert, config.istftnet
    if albert.hidden_size % albert.num_attention_heads:
        raise UserInput(
            f"{path}: plbert.num_attention_heads, {albert.num_attention_heads}, does not divide plbert.hidden_size, "
            f"{albert.hidden_size}; give the checkpoint's config.json."
        )
    for rate, kernel in zip(generator.upsample_rates, generator.upsample_kernel_sizes, strict=True):
        if kernel < rate or (kernel - rate) % 2:
            raise UserInput(
                f"{path}: istftnet.upsample_rates has {rate} where istftnet.upsample_kernel_sizes has {kernel}, which "
                "must be larger by an even number, or as large; give the checkpoint's config.json."
            )
