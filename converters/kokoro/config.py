"""A Kokoro's `config.json`, as the official repository has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from contracts.errors import UserInput
from contracts.serial import parse_json
from models.kokoro.config import AlbertConfig, GeneratorConfig, KokoroConfig

CONFIG_NAME = "config.json"
"""What the official file is called, and what is looked for beside a checkpoint."""

_LARGEST = 1 << 16
"""Of any size: a hundred times Kokoro-82M's, and far from what would fill the memory by mistake."""


def read_config(path: Path) -> KokoroConfig:
    """The sizes that the file `path` states; keys that inference does not need (`vocab`, `dropout`) are not looked at.

    Raises:
        UserInput: the file cannot be read, is no JSON, or a key is missing or of the wrong type; it is named.
    """
    try:
        data = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserInput(f"{path}: there is no such file; give the checkpoint's config.json.") from error
    except (OSError, ValueError) as error:
        raise UserInput(f"{path}: is not readable JSON ({error!s:.200}); get the config.json again.") from error
    if not isinstance(data, dict):
        raise UserInput(f"{path}: a JSON object is expected, not {type(data).__name__}.")
    whole, albert, generator = _Keys(path, data), _below(path, data, "plbert"), _below(path, data, "istftnet")
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


class _Keys:
    """The keys of one object in the file."""

    def __init__(self, path: Path, data: dict[str, Any], above: str = "") -> None:
        self._path, self._data, self._above = path, data, above

    def size(self, key: str) -> int:
        value = self._value(key)
        if not _is_size(value):
            raise self._wrong(key, f"a whole number from 1 to {_LARGEST}", value)
        return int(value)

    def sizes(self, key: str) -> tuple[int, ...]:
        value = self._value(key)
        if not _are_sizes(value):
            raise self._wrong(key, f"a list of whole numbers from 1 to {_LARGEST}", value)
        return tuple(value)

    def lists(self, key: str) -> tuple[tuple[int, ...], ...]:
        value = self._value(key)
        if not isinstance(value, list) or not value or not all(_are_sizes(part) for part in value):
            raise self._wrong(key, "a list of lists of whole numbers", value)
        return tuple(tuple(part) for part in value)

    def _value(self, key: str) -> Any:
        if key not in self._data:
            raise UserInput(
                f"{self._path}: is no config of Kokoro: the key {self._above + key!r} is missing; give the "
                "checkpoint's config.json."
            )
        return self._data[key]

    def _wrong(self, key: str, wanted: str, value: object) -> UserInput:
        return UserInput(f"{self._path}: the key {self._above + key!r} must be {wanted}, not {value!r:.40}.")


def _below(path: Path, data: dict[str, Any], key: str) -> _Keys:
    value = data.get(key)
    if not isinstance(value, dict):
        got = "is missing" if key not in data else f"must be an object, not {value!r:.40}"
        raise UserInput(f"{path}: is no config of Kokoro: the key {key!r} {got}; give the checkpoint's config.json.")
    return _Keys(path, value, f"{key}.")


def _is_size(value: object) -> bool:
    return type(value) is int and 1 <= value <= _LARGEST


def _are_sizes(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_size(size) for size in value)


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
