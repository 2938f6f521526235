"""Places on a hub, `hf://OWNER/REPO`, and what a repository is called that was fetched from one."""

from __future__ import annotations

from pathlib import Path

HUB = "hf://"
"""How a `--checkpoint` begins that is a place on a hub."""

_SNAPSHOTS, _MODEL = "snapshots", "models--"
"""The hub's cache: `models--OWNER--REPO/snapshots/COMMIT`."""


def repository_name(folder: Path) -> str:
    """What a checkpoint's folder is called: that of a snapshot in a hub's cache as its repository, REPO; "" for /."""
    whole = folder.absolute()
    repository = whole.parent.parent.name
    if whole.parent.name == _SNAPSHOTS and repository.startswith(_MODEL):
        return repository.rpartition("--")[2]
    return whole.name
