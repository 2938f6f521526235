"""`MANIFEST.sha256` of a folder: digests of the files in it, as `sha256sum -c` reads them.

`engine FAMILY --all` writes it. What is written into such a folder later is entered, so that it goes on being true; the
other lines stay as they are, and so does what they say of files that were damaged since.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from contracts.errors import UserInput
from contracts.files import Content, sha256_of, sha256_of_content

SUMS = "MANIFEST.sha256"

_LINE = re.compile(r"(\\?)([0-9a-f]{64}) [ *](.+)")
"""A line of sha256sum; a backslash before it says that its name is written with escapes."""

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}
"""How GNU coreutils write what would end a line."""


def sums_text(digests: Mapping[str, str]) -> str:
    """The file's text from digests by name, sorted by name."""
    return "".join(_line(name, digests[name]) for name in sorted(digests))


def read_sums(text: str) -> dict[str, str] | None:
    """The digests by name in `text`; None where that is no list of them."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        told = _LINE.fullmatch(line)
        if told is None:
            return None
        escaped, digest, name = told.groups()
        found[_unescaped(name) if escaped else name] = digest
    return found


def check_sums_place(path: Path) -> None:
    """See that the list in `path` can be added to, or that nothing is there.

    Raises:
        UserInput: something else is there, that would be replaced.
    """
    if path.exists() and _read(path) is None:
        raise UserInput(f"{path}: is no list of sha256sum, and would be replaced; --output names another place.")


def check_as_listed(path: Path) -> None:
    """See that the file `path`, which is to be changed, is the one that its folder's list tells of, if it does.

    Raises:
        UserInput: it is another: entering it anew would make the list true of what somebody changed.
    """
    listed = (_read(path.parent / SUMS) or {}).get(path.name)
    if listed is not None and listed != sha256_of(path):
        raise UserInput(
            f"{path}: is not the file that {SUMS} beside it tells of, so it was changed since; build the engine again."
        )


def with_sums(files: Sequence[tuple[Path, Content]], beginning: Path | None = None) -> list[tuple[Path, Content]]:
    """`files` that are about to be written, and behind them the lists of those folders that keep one.

    Args:
        files: each a place and its content.
        beginning: a folder that keeps a list from now on.
    """
    written: dict[Path, dict[str, Content]] = {}
    for path, data in files:
        written.setdefault(path.parent, {})[path.name] = data
    lists: list[tuple[Path, Content]] = []
    for folder, contents in written.items():
        earlier = _read(folder / SUMS) if folder == beginning or (folder / SUMS).is_file() else None
        if earlier is None and folder != beginning:
            continue
        # What is no longer there would have the check fail for good.
        kept = {name: digest for name, digest in (earlier or {}).items() if (folder / name).is_file()}
        new = {name: sha256_of_content(data) for name, data in contents.items()}
        lists.append((folder / SUMS, sums_text({**kept, **new}).encode()))
    return [*files, *lists]


def _read(path: Path) -> dict[str, str] | None:
    try:
        return read_sums(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _line(name: str, digest: str) -> str:
    escaped = "".join(_ESCAPES.get(character, character) for character in name)
    return f"{'' if escaped == name else chr(92)}{digest}  {escaped}\n"


def _unescaped(name: str) -> str:
    plain = {written: character for character, written in _ESCAPES.items()}
    return re.sub(r"\\[\\nr]", lambda found: plain[found[0]], name)
