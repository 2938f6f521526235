"""The locks in requirements/, and what the name of an environment asks for.

A name is a base and extras: `toolchain`, `toolchain+dev`, `rknn-2.3.2`. Each part is one lock file,
`requirements/PART.txt`; each base is one folder, `.venv` for the toolchain and `.venv-BASE` for a toolkit and for the
farm's scheduler. Those of toolkits may stand elsewhere than in the checkout: RKNN_TTS_ENVIRONMENTS.
"""

import hashlib
import os
import re
from pathlib import Path
from typing import Iterable, List, NamedTuple, Tuple

from environments.trouble import Trouble

TOOLCHAIN = "toolchain"
TOOLKIT_PREFIX = "rknn-"
DEFAULT_TOOLKIT = "2.3.2"
FARM = "farm"

ENVIRONMENTS = "RKNN_TTS_ENVIRONMENTS"
"""Environment variable: the folder where the converter environments stand, on the disk of the node that runs them."""

_DIGEST_LENGTH = 8
"""Of a lock's digest in the name of a folder there: checkouts whose locks differ share the folder, and what one of them
runs is not made again under its feet by another. The path is the same on each node."""

# A package, its version and for which Pythons: an entry of a lock but for its hashes.
_PIN = re.compile(r"^([A-Za-z0-9][^\s=]*==[^\\\n]*?)[ \t]*(?:\\|--hash=.*)?$", re.MULTILINE)
_HASH = re.compile(r"^[^#\n]*--hash=", re.MULTILINE)
_SIZE = re.compile(r"^# Size: (\d+)(?: to (\d+))? MB$", re.MULTILINE)


class Lock(NamedTuple):
    """One lock file: what it is called, what it holds, and the least and most room that it takes installed.

    A hashed one names everything that is installed. One without hashes is a plain pin: pip adds what it depends on,
    in the build and from the index that pip's own settings choose.
    """

    name: str
    path: Path
    digest: str
    megabytes: int
    most_megabytes: int
    hashed: bool
    pins: Tuple[str, ...]


class Wanted(NamedTuple):
    """What a name asks for: these locks, installed in this folder."""

    name: str
    folder: Path
    locks: Tuple[Lock, ...]

    @property
    def python(self) -> Path:
        """The environment's interpreter, there or not."""
        return self.folder / "bin" / "python"

    @property
    def oldest_python(self) -> Tuple[int, int]:
        """The oldest Python that its locks install on: snakemake 9 needs 3.11."""
        return (3, 11) if self.locks[0].name == FARM else (3, 10)

    @property
    def is_toolchain(self) -> bool:
        """Whether the project itself runs in it."""
        return self.locks[0].name == TOOLCHAIN


def toolkit_versions(root: Path) -> List[str]:
    """The toolkit versions that have a lock."""
    stems = (path.stem for path in (root / "requirements").glob(TOOLKIT_PREFIX + "*.txt"))
    versions = (stem[len(TOOLKIT_PREFIX) :] for stem in stems)
    return sorted(version for version in versions if version[:1].isdigit())


def extras(root: Path) -> List[str]:
    """The locks that are added to an environment rather than make one."""
    stems = (path.stem for path in (root / "requirements").glob("*.txt"))
    bases = (TOOLCHAIN, FARM, FARM + "-overrides")
    return sorted(stem for stem in stems if stem not in bases and not stem.startswith(TOOLKIT_PREFIX))


def read_lock(root: Path, name: str) -> Lock:
    """The lock of that name, which is known to exist."""
    path = root / "requirements" / (name + ".txt")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Trouble(
            f"{path}: this lock cannot be read ({error.strerror}): the checkout is incomplete, restore it with "
            "`git checkout -- requirements`"
        ) from error
    text = content.decode("utf-8", "replace")
    size = _SIZE.search(text)
    least, most = size.groups() if size else ("0", None)
    return Lock(
        name=name,
        path=path,
        digest=hashlib.sha256(content).hexdigest(),
        megabytes=int(least),
        most_megabytes=int(most or least),
        hashed=bool(_HASH.search(text)),
        pins=tuple(_PIN.findall(text)),
    )


def size_text(locks: Iterable[Lock]) -> str:
    """How much room these take installed: `about 320 MB`, or `900 to 5000 MB` where it depends on pip's settings."""
    sizes = [(lock.megabytes, lock.most_megabytes) for lock in locks]
    least, most = sum(size[0] for size in sizes), sum(size[1] for size in sizes)
    return f"about {least} MB" if least == most else f"{least} to {most} MB"


def parse_name(root: Path, name: str) -> Wanted:
    """What `toolchain+dev`, `rknn-2.3.2` or `rknn` (the default toolkit) asks for."""
    base, *added = name.split("+")
    if base == TOOLKIT_PREFIX.rstrip("-"):
        base = TOOLKIT_PREFIX + DEFAULT_TOOLKIT
    _check_base(root, base)
    for extra in added:
        if extra not in extras(root):
            raise Trouble(
                f"'{name}' asks for '{extra}', and requirements/ has no such extra: there is {_listed(extras(root))}"
            )
    locks = tuple(read_lock(root, part) for part in [base, *added])
    return Wanted(name, _folder(root, locks[0], os.environ.get(ENVIRONMENTS, "")), locks)


def _folder(root: Path, lock: Lock, elsewhere: str) -> Path:
    if lock.name == TOOLCHAIN:
        return root / ".venv"
    folder = ".venv-" + lock.name
    if not elsewhere or not lock.name.startswith(TOOLKIT_PREFIX):
        return root / folder
    if not Path(elsewhere).is_absolute():
        raise Trouble(
            f"{ENVIRONMENTS} is '{elsewhere}', which is no absolute path: name a folder on this machine's own disk, "
            "or unset it"
        )
    return Path(os.path.realpath(elsewhere)) / f"{folder}-{lock.digest[:_DIGEST_LENGTH]}"


def _check_base(root: Path, base: str) -> None:
    versions = toolkit_versions(root)
    if base in (TOOLCHAIN, FARM) or (base.startswith(TOOLKIT_PREFIX) and base[len(TOOLKIT_PREFIX) :] in versions):
        return
    if base.startswith(TOOLKIT_PREFIX):
        raise Trouble(
            "there is no lock for rknn-toolkit2 {}: requirements/ has {}. Use one of these, or add a lock "
            "(requirements/README.md)".format(base[len(TOOLKIT_PREFIX) :] or "''", _listed(versions))
        )
    bases = [TOOLCHAIN, FARM] + [TOOLKIT_PREFIX + version for version in versions]
    raise Trouble(f"there is no environment named '{base}': there is {_listed(bases)}")


def _listed(names: List[str]) -> str:
    return ", ".join(names) if names else "none"
