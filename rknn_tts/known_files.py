"""What is known of checkpoints' files, kept: a file that has not changed is not read again.

A thousand voices have a hundred GB. A file counts as unchanged while its size, its time of change and its inode are.
"""

from __future__ import annotations

import bisect
import itertools
import json
import time
from dataclasses import dataclass, field
from pathlib import Path

from contracts.files import read_sha256, write_whole
from contracts.serial import from_json, parse_json, to_json
from converters.onnx_file import external_files

SCHEMA = "rknn-tts/farm-digests/1"

_SETTLED_NS = 2 * 10**9
"""A file younger than this may change once more without its time telling: FAT counts in two seconds, the coarsest."""


@dataclass(frozen=True)
class KnownFile:
    """What was found out of a file as it was.

    Attributes:
        size, mtime_ns, inode: how it was.
        sha256: its digest.
        external: of an ONNX, the files with its external data, as paths; None where nobody asked.
    """

    size: int
    mtime_ns: int
    inode: int
    sha256: str
    external: tuple[str, ...] | None = None


@dataclass(frozen=True)
class _Kept:
    files: dict[str, KnownFile]
    schema: str = SCHEMA


@dataclass
class KnownFiles:
    """Digests of files, by their paths; and, for as long as this object lives, what stands in their folders."""

    _files: dict[str, KnownFile] = field(default_factory=dict)
    _folders: dict[Path, list[str]] = field(default_factory=dict)

    def sha256(self, path: Path) -> str:
        """SHA-256 of the file `path`.

        Raises:
            OSError: it cannot be read.
        """
        return self._known(path).sha256

    def external(self, path: Path) -> tuple[Path, ...]:
        """The files with the external data of the ONNX `path`.

        Raises:
            OSError: it cannot be read.
            RknnTtsError: it is no ONNX.
        """
        known = self._known(path)
        if known.external is None:
            known = KnownFile(*_look(path), known.sha256, tuple(map(str, external_files(path))))
            self._keep(path, known)
        return tuple(map(Path, known.external or ()))

    def named_after(self, path: Path) -> list[Path]:
        """What stands beside `path` under names that begin with its own: a folder of thousands is listed once.

        Raises:
            OSError: the folder cannot be read.
        """
        if path.parent not in self._folders:
            self._folders[path.parent] = sorted(beside.name for beside in path.parent.iterdir())
        names = self._folders[path.parent]
        first = bisect.bisect_left(names, path.name)
        from_first = itertools.islice(names, first, None)
        return [
            path.with_name(name) for name in itertools.takewhile(lambda name: name.startswith(path.name), from_first)
        ]

    def write(self, path: Path) -> None:
        """Keep what is known in the file `path`.

        Raises:
            OSError: it cannot be written.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(to_json(_Kept(self._files))).encode())

    def _known(self, path: Path) -> KnownFile:
        size, mtime_ns, inode = _look(path)
        known = self._files.get(str(path.absolute()))
        if known is None or (known.size, known.mtime_ns, known.inode) != (size, mtime_ns, inode):
            known = KnownFile(size, mtime_ns, inode, read_sha256(path))
            self._keep(path, known)
        return known

    def _keep(self, path: Path, known: KnownFile) -> None:
        if time.time_ns() - known.mtime_ns > _SETTLED_NS:
            self._files[str(path.absolute())] = known


def read_known(path: Path) -> KnownFiles:
    """What the file `path` keeps; nothing where it is missing or damaged: then files are read again."""
    try:
        data = parse_json(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            return KnownFiles()
        return KnownFiles(from_json(_Kept, data, "digests").files)
    except (OSError, ValueError):
        return KnownFiles()


def _look(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino
