"""What is fetched from a hub for Qwen3: the speech tokenizer, hundreds of MB out of gigabytes.

That is the folder `speech_tokenizer` of a model's repository, or, of one that is a tokenizer itself, the files at its
top.
"""

from __future__ import annotations

from pathlib import Path

from contracts.errors import UserInput
from contracts.serial import parse_json
from converters.qwen3.config import CONFIG_NAME
from converters.qwen3.snapshot import FOLDER
from converters.stages import FetchHub

_WEIGHTS = "*.safetensors*"
"""A file, or shards and their index."""

_TOKENIZER = "qwen3_tts_tokenizer"
"""How the `model_type` of a repository begins that is a speech tokenizer itself."""


def fetch_tokenizer(reference: str, fetch_hub: FetchHub) -> Path:
    """The folder of the snapshot that `reference` names, with the speech tokenizer in it.

    Raises:
        UserInput: there is none in the repository; or as `fetch_hub` does.
    """
    folder = fetch_hub(reference, [f"{FOLDER}/{CONFIG_NAME}", f"{FOLDER}/{_WEIGHTS}"])
    if (folder / FOLDER / CONFIG_NAME).is_file():
        return folder
    folder = fetch_hub(reference, [CONFIG_NAME])
    if not _is_tokenizer(folder / CONFIG_NAME):
        raise UserInput(
            f"{reference}: has no {FOLDER}/{CONFIG_NAME}, and is no speech tokenizer itself; name a Qwen3-TTS-12Hz "
            "repository."
        )
    return fetch_hub(reference, [CONFIG_NAME, _WEIGHTS])


def _is_tokenizer(config: Path) -> bool:
    try:
        data = parse_json(config.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and str(data.get("model_type")).startswith(_TOKENIZER)
