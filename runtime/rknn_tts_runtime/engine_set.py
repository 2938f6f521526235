"""What a board reads of the manifest of a set of engines (schema rknn-tts/set/1): a ladder, a pair, a whole family.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rknn_tts_runtime.manifest import MOST_MAPPED, cache_numel_of, reader_of

SET_SCHEMA = "rknn-tts/set/1"


@dataclass(frozen=True)
class EngineSet:
    """Engines that belong together, as their set's manifest tells of them.

    Attributes:
        path: the manifest's file.
        members: their manifests.
        roles: role to engine file.
        cache_numel: elements of the flat cache that they share; None where they keep none.
        budget_bytes: what all engines that a process has loaded may map together; None where it is not known.
        context_bytes: manifest to what its engine maps when it is loaded, estimated; empty where it is not known.
    """

    path: Path
    members: tuple[Path, ...]
    roles: dict[str, Path]
    cache_numel: int | None
    budget_bytes: int | None
    context_bytes: dict[Path, int]


def read_set(path: Path) -> EngineSet:
    """The set's manifest in the file `path`.

    Raises:
        BadInput: it cannot be read, is no set's manifest, or a key of it is missing or of another kind.
    """
    read = reader_of(path, SET_SCHEMA, "set's manifest")
    sizes = read.table("aperture.context_bytes")
    return EngineSet(
        path=path,
        members=tuple(read.as_file(key, name) for key, name in read.items("members")),
        roles={role: read.as_file(f"roles.{role:.40}", name) for role, name in read.table("roles").items()},
        cache_numel=cache_numel_of(read),
        budget_bytes=read.whole("aperture.budget_bytes", 1) if read.table("aperture") else None,
        context_bytes={
            read.as_file("aperture.context_bytes", name): read.as_whole(
                f"aperture.context_bytes.{name:.80}", size, 0, MOST_MAPPED
            )
            for name, size in sizes.items()
        },
    )
