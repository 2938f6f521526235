"""Snapshots of repositories on a hub, through huggingface_hub and its cache.

Only the files that a family asks for are fetched: a repository may hold gigabytes that no engine is made of.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from contracts.errors import UserInput

_REFERENCE = re.compile(r"hf://(?P<repository>\w[\w.-]*/\w[\w.-]*)(?:@(?P<revision>\w[\w./-]*))?", re.ASCII)

_ELSE = "--checkpoint also takes the folder of a snapshot"


def is_reference(text: str) -> bool:
    """Whether `text` is written as a place on the hub is."""
    return _REFERENCE.fullmatch(text) is not None


def fetch_hub(reference: str, patterns: Sequence[str], cache: Path | None = None) -> Path:
    """The folder of the snapshot that `reference` names; what its cache does not hold yet is downloaded.

    Args:
        reference: `hf://OWNER/REPO[@REVISION]`.
        patterns: of the files that are fetched, as a shell reads them: `onnx/*.onnx`. One that finds nothing is none's
            fault.
        cache: another folder than huggingface_hub's own cache.

    Raises:
        UserInput: it is no such reference, there is nothing there, or it cannot be reached: one sentence.
    """
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        raise UserInput(f"{reference:.200}: a place on the hub is written hf://OWNER/REPO or hf://OWNER/REPO@REVISION.")
    repository, revision = found["repository"], found["revision"]
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

    try:
        wanted = list(patterns)
        return Path(snapshot_download(repository, revision=revision, cache_dir=cache, allow_patterns=wanted))
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
