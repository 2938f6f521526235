"""A disk that behaves as one of a file server does on one of its nodes (NFS), as far as that can be had without one.

Rules after nfs(5), rename(2), renameat2(2) and fs/nfs/dir.c:
- two names cannot be exchanged (EINVAL);
- a name that the node did not find is missing until the node opens or changes the folder it stands in;
- a file that is removed while it is open on the node stays as `.nfs...`, so its folder cannot be removed.

All else goes to the real disk, which is what another node sees.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_NOT_RENAMED = -1


class NetworkDisk:
    """The layer over the real disk, until the test ends.

    Attributes:
        missing: names that the node remembers as missing.
        open_files: those whose removal leaves a `.nfs...`.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.missing: set[str] = set()
        self.open_files: set[str] = set()
        patch.setattr(ctypes, "CDLL", lambda *_, **__: self)
        for name in ("open", "mkdir", "listdir", "scandir"):
            patch.setattr(os, name, self._asking_the_server(getattr(os, name), 0))
        for name in ("link", "rename", "replace"):
            patch.setattr(os, name, self._asking_the_server(getattr(os, name), 1))
        for owner, name in ((os, "stat"), (Path, "open")):
            patch.setattr(owner, name, self._remembering(getattr(owner, name)))
        patch.setattr(os, "unlink", self._leaving_open_files(os.unlink))

    def renameat2(self, *_: object) -> int:
        """Of the C library."""
        ctypes.set_errno(errno.EINVAL)
        return _NOT_RENAMED

    def _asking_the_server(self, real: Callable[..., Any], argument: int) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            result = real(*arguments, **options)
            opens_a_file = real.__name__ == "open" and not arguments[1] & (os.O_EXCL | os.O_DIRECTORY)
            if isinstance(arguments[argument], (str, Path)) and not opens_a_file:
                path = Path(arguments[argument])
                opens_a_folder = real.__name__ in ("listdir", "scandir") or (real.__name__ == "open" and path.is_dir())
                folder = path if opens_a_folder else path.parent
                self.missing = {name for name in self.missing if Path(name).parent != folder}
            return result

        return call

    def _remembering(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *arguments: Any, **options: Any) -> Any:
            known = isinstance(path, (str, Path))
            if known and self._is_missing(Path(path)):
                raise FileNotFoundError(errno.ENOENT, "remembered as missing", str(path))
            try:
                return real(path, *arguments, **options)
            except FileNotFoundError:
                if known:  # the first name on the way that is missing is what is remembered
                    ways = [Path(path), *Path(path).parents]
                    self.missing.add(str(next(way for way in ways if os.path.lexists(way.parent))))
                raise

        return call

    def _is_missing(self, path: Path) -> bool:
        return any(str(way) in self.missing for way in (path, *path.parents))

    def _leaving_open_files(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *arguments: Any, **options: Any) -> None:
            if options.get("dir_fd") is None:
                real(path, *arguments, **options)
            elif os.path.basename(path).startswith(".nfs"):  # noqa: PTH119
                raise OSError(errno.EBUSY, "Device or resource busy", path)
            elif os.path.basename(path) in self.open_files:  # as shutil.rmtree removes  # noqa: PTH119
                os.rename(path, f".nfs{path}", src_dir_fd=options["dir_fd"], dst_dir_fd=options["dir_fd"])
            else:
                real(path, *arguments, **options)

        return call
