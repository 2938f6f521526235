"""A hub that holds one repository, for what is fetched of it."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

COMMIT = "5d83992436eae1d760afd27aff78a71d676296fc"


@dataclass
class Hub:
    """Called as a `FetchHub`.

    Attributes:
        cache: where its snapshots go, laid out as huggingface_hub's are.
        files: of the repository, with their contents.
        asked: the references that were asked for.
    """

    cache: Path
    files: Mapping[str, bytes]
    asked: list[str] = field(default_factory=list)

    def __call__(self, reference: str, patterns: Sequence[str]) -> Path:
        """The folder of the snapshot, with the files that `patterns` match."""
        self.asked.append(reference)
        place = reference.removeprefix("hf://").partition("@")[0].replace("/", "--")
        snapshot = self.cache / f"models--{place}" / "snapshots" / COMMIT
        snapshot.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            if any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
                (snapshot / name).parent.mkdir(exist_ok=True)
                (snapshot / name).write_bytes(content)
        return snapshot


def fetched(folder: Path) -> list[str]:
    """The names of all files in `folder`."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def no_hub(reference: str, patterns: Sequence[str]) -> Path:
    """Where nothing is to be fetched."""
    raise AssertionError(f"{reference} was looked for on a hub")
