"""What the log of a build says, line for line, where it is still at hand: how many lines of each class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from contracts.manifest import Layers, Manifest
from cost.summary import summarise_layers
from logs.classes import classify
from logs.known_texts import LineClass
from logs.layer_table import parse_layer_table
from logs.lines import clean_lines

LARGEST_BYTES = 256 << 20
"""A larger log is not read again for a page; the gates read it line by line when it was written."""

_ENDING = ".layers.json"


@dataclass(frozen=True)
class LogClasses:
    """A log, by what its lines mean.

    Attributes:
        file: the log's file, as the manifest's folders name it.
        counts: class of lines to how many there are, in the order of `LineClass`.
    """

    file: str
    counts: tuple[tuple[str, int], ...]


def log_classes(manifest: Manifest, beside: Path, workdir: Path) -> tuple[LogClasses | None, str]:
    """The classes of the lines of the build's log; None, and why as a sentence, where that is not known.

    Args:
        manifest: the engine's; its layer table stands beside the log.
        beside: the manifest's file.
        workdir: where `build-logs/` are looked for first.
    """
    if manifest.layers is None or manifest.layers.file is None:
        return None, "The manifest names no layer table, so nothing tells where the build's log is."
    table = PurePosixPath(manifest.layers.file)
    if table.is_absolute() or ".." in table.parts or not table.name.endswith(_ENDING):
        return None, f"The log is not read: {table} lies outside the folders of a build."
    name = table.with_name(table.name.removesuffix(_ENDING) + ".log")
    path = next((f / name for f in (workdir, *beside.resolve().parents) if (f / name).is_file()), None)
    if path is None:
        return None, f"The build's log {name} is not at hand: only what the manifest keeps of it is shown."
    try:
        if path.stat().st_size > LARGEST_BYTES:
            return None, f"The build's log {name} is larger than {LARGEST_BYTES >> 20} MiB and was not read again."
        lines = list(clean_lines(path.read_bytes()))
    except OSError as error:
        return None, f"The build's log {name} cannot be read ({error.strerror or error})."
    read = parse_layer_table(lines)
    if read is None or not _same_build(summarise_layers(read), manifest.layers):
        return None, f"The log {name} is of another build: only what the manifest keeps of its own is shown."
    kinds = [classify(line).kind for line in lines]
    return LogClasses(str(name), tuple((kind.value, kinds.count(kind)) for kind in LineClass)), ""


def _same_build(found: Layers, told: Layers) -> bool:
    return (found.count, found.cycles) == (told.count, told.cycles) and math.isclose(found.rw_kb, told.rw_kb)
