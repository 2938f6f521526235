"""Places on a hub, `hf://OWNER/REPO`, and what a repository is called that was fetched from one."""

from __future__ import annotations

from pathlib import Path

from contracts.errors import UserInput

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


def check_at_hand(text: str) -> None:
    """See that the checkpoint `text` is no place on a hub, for a family that fetches from none.

    Raises:
        UserInput: it is one.
    """
    if text.startswith(HUB):
        raise UserInput(
            f"--checkpoint {text:.200}: is a place on a hub, and this family's checkpoints are not fetched from one; "
            "download the file and name it."
        )
