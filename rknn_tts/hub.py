"""Snapshots of repositories on a hub, through huggingface_hub and its cache.

Only the speech tokenizer's files are fetched, hundreds of MB out of gigabytes: the folder `speech_tokenizer`, or, of a
repository that is a tokenizer itself, the files at its top.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from contracts.errors import UserInput
from contracts.serial import parse_json

_REFERENCE = re.compile(r"hf://(?P<repository>\w[\w.-]*/\w[\w.-]*)(?:@(?P<revision>\w[\w./-]*))?", re.ASCII)

_FOLDER, _CONFIG = "speech_tokenizer", "config.json"
_WEIGHTS = "*.safetensors*"
"""A file, or shards and their index."""

_TOKENIZER = "qwen3_tts_tokenizer"
"""How the `model_type` of a repository begins that is a speech tokenizer itself."""

_ELSE = "--checkpoint also takes the folder of a snapshot"

Get = Callable[[list[str]], Path]
"""Fetches the files that patterns match; gives the snapshot's folder."""


def fetch_hub(reference: str, cache: Path | None = None) -> Path:
    """The folder of the snapshot that `reference` names; what its cache does not hold yet is downloaded.

    Args:
        reference: `hf://OWNER/REPO[@REVISION]`.
        cache: another folder than huggingface_hub's own cache.

    Raises:
        UserInput: it is no such reference, there is nothing there, or it cannot be reached: one sentence.
    """
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        raise UserInput(f"{reference:.200}: a place on the hub is written hf://OWNER/REPO or hf://OWNER/REPO@REVISION.")
    get = _getter(reference, found["repository"], found["revision"], cache)
    folder = get([f"{_FOLDER}/{_CONFIG}", f"{_FOLDER}/{_WEIGHTS}"])
    if (folder / _FOLDER / _CONFIG).is_file():
        return folder
    folder = get([_CONFIG])
    if not _is_tokenizer(folder / _CONFIG):
        raise UserInput(
            f"{reference}: has no {_FOLDER}/{_CONFIG}, and is no speech tokenizer itself; name a Qwen3-TTS-12Hz "
            "repository."
        )
    return get([_CONFIG, _WEIGHTS])


def _is_tokenizer(config: Path) -> bool:
    try:
        data = parse_json(config.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and str(data.get("model_type")).startswith(_TOKENIZER)


def _getter(reference: str, repository: str, revision: str | None, cache: Path | None) -> Get:
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import (
            GatedRepoError,
            LocalEntryNotFoundError,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )
    except ImportError as error:
        raise UserInput(
            f"{reference}: huggingface_hub is not installed in this environment; install the extra hub, or note that "
            f"{_ELSE}."
        ) from error

    def get(patterns: list[str]) -> Path:
        try:
            return Path(snapshot_download(repository, revision=revision, cache_dir=cache, allow_patterns=patterns))
        except GatedRepoError as error:
            told = "is open only to those whom its owner has given access, and whose token huggingface_hub has"
            raise UserInput(f"{reference}: {told}; {_ELSE}.") from error
        except RepositoryNotFoundError as error:
            raise UserInput(f"{reference}: there is no such repository on the hub, or it is private.") from error
        except RevisionNotFoundError as error:
            raise UserInput(
                f"{reference}: the repository has no revision {revision or 'main'!r}; name one that it has."
            ) from error
        except LocalEntryNotFoundError as error:
            raise UserInput(
                f"{reference}: the hub cannot be reached, and its cache does not hold this; {_ELSE}."
            ) from error
        except (OSError, ValueError) as error:
            why = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]:.160}"
            raise UserInput(f"{reference}: cannot be fetched ({why}); try again, or note that {_ELSE}.") from error

    return get
