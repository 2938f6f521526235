"""The vocabulary of a Kokoro checkpoint: phoneme to token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from contracts.errors import UserInput
from converters.config_keys import read_object
from converters.kokoro.checkpoint import KokoroCheckpoint
from converters.kokoro.config import CONFIG_NAME
from converters.kokoro.voices import read_voices
from models.kokoro.config import KokoroConfig

KEY = "vocab"
"""Of a config.json."""


def vocabulary_of(checkpoint: KokoroCheckpoint, config: Path | None, material: Path | None) -> dict[str, int]:
    """Phoneme to token: the config's; where it has none, or there is none, that of the voices, if it can be.

    Args:
        checkpoint: opened.
        config: the `config.json` that was given; None for the one beside a `.pth`.
        material: voices, their vocabulary beside them.

    Raises:
        UserInput: the config's is not one of this checkpoint; see `read_voices` too.
    """
    if config is None and checkpoint.original is None:
        config = checkpoint.path.with_name(CONFIG_NAME)
    stated = None if config is None else read_object(config, "give the checkpoint's config.json").get(KEY)
    if config is None or stated is None:
        return voices_vocabulary(material, checkpoint.config)
    if not isinstance(stated, dict) or not all(
        len(sign) == 1 and type(token) is int and 0 <= token < checkpoint.config.n_token
        for sign, token in stated.items()
    ):
        raise UserInput(
            f"{config}: its key {KEY!r} must give each phoneme, a character, its token, below n_token "
            f"{checkpoint.config.n_token}; give the checkpoint's own config.json."
        )
    return stated


def voices_vocabulary(material: Path | None, config: KokoroConfig) -> dict[str, int]:
    """The vocabulary beside the voices in the file `material`; empty where it is another model's, or there is none."""
    vocabulary: dict[str, Any] = {} if material is None else dict(read_voices(material).vocabulary)
    return vocabulary if max(vocabulary.values(), default=0) < config.n_token else {}
