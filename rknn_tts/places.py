"""Where things are written (design, Names). Relative to the working directory, never in a source folder."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from contracts.contract import Contract
from contracts.errors import UserInput

ENGINES = Path("engines")
LOGS = Path("build-logs")
EXPORTS = ENGINES / "onnx"
"""Where `export` writes what is for no target yet; what is for one goes into a folder of its name there."""


@dataclass(frozen=True)
class Places:
    """The files of one engine.

    Attributes:
        engine: the .rknn.
        manifest: the .json beside it.
        onnx: the twin beside it.
        log: the raw build log.
        layers: every layer of the compiler's table.
        failed: the verdicts of a failed build.
    """

    engine: Path
    manifest: Path
    onnx: Path
    log: Path
    layers: Path
    failed: Path


def voice_of(contract: Contract) -> str | None:
    """The VOICE of a path: the checkpoint's stem where the user gave one."""
    if contract.family is None or contract.source.kind != "checkpoint":
        return None
    return voice_name(Path(contract.source.name).name)


def voice_name(file_name: str) -> str:
    """The VOICE of a checkpoint in a file (or folder) of that name: its stem."""
    stem = Path(file_name).stem
    return stem if stem.strip(".") else file_name  # of "...onnx" the stem is the folder above


def engine_places(contract: Contract, stem: str, target: str, output: str | None) -> Places:
    """The files of the engine `stem` for `target`; `output` is a folder, or the engine's own file (.rknn).

    Raises:
        UserInput: `output` is a file of another kind.
    """
    voice = voice_of(contract)
    folder = ENGINES / target / (voice or "")
    engine = _chosen(output, folder, f"{stem}.rknn")
    name = "-".join(part for part in (voice, engine.stem, target) if part)
    return Places(
        engine=engine,
        manifest=engine.with_suffix(".json"),
        onnx=engine.with_suffix(".onnx"),
        log=LOGS / f"{name}.log",
        layers=LOGS / f"{name}.layers.json",
        failed=LOGS / f"{name}.failed.json",
    )


def set_place(contract: Contract, target: str, output: str | None) -> Path:
    """The manifest of a set of engines, of which `contract` is one; `output` is a folder.

    Raises:
        UserInput: `output` names one file.
    """
    check_set_output(output)
    folder = ENGINES / target / (voice_of(contract) or "")
    return _chosen(output, folder, f"{contract.family}-{contract.stage}.set.json")


def family_set_place(folder: Path, family: str) -> Path:
    """The manifest of all stages of `family`, whose engines are in `folder`."""
    return folder / f"{family}.set.json"


_ONE_ALONE = (
    ", or ask for one engine alone (--member, or one number in --windows, --widths, --codes, --lengths, --buckets or "
    "--look-ahead)"
)


def check_set_output(output: str | None, otherwise: str = _ONE_ALONE) -> None:
    """See that `output` has room for several engines, before any of them is made.

    Args:
        output: what the user gave.
        otherwise: what to do instead of naming a folder.

    Raises:
        UserInput: `output` names one file.
    """
    if output is not None and Path(output).suffix and not output.endswith("/") and not Path(output).is_dir():
        raise UserInput(f"--output {output}: several files are written; name a folder{otherwise}.")


def export_place(contract: Contract, stem: str, target: str | None, output: str | None) -> Path:
    """Where the exported ONNX goes; `output` is a folder, or the file itself (.onnx).

    Raises:
        UserInput: `output` is a file of another kind.
    """
    return _chosen(output, EXPORTS / (target or "") / (voice_of(contract) or ""), f"{stem}.onnx")


def export_failed_place(contract: Contract, stem: str) -> Path:
    """Where the verdicts of a failed export go."""
    return LOGS / ("-".join(part for part in (voice_of(contract), stem) if part) + ".failed.json")


ANOTHER_PLACE = "--output names another place"
ANOTHER_SAMPLE_PLACE = "--sample names another place"
ANOTHER_FOLDER = "run the command in a folder that can be written"
"""What to do where `LOGS` cannot be written, which no option names."""


def make_folder(folder: Path, remedy: str = ANOTHER_PLACE) -> None:
    """Make `folder` and those above it; `remedy` says what to do where that fails.

    Raises:
        UserInput: it cannot be made or written; the message names it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Only a write tells: permissions, read-only mounts and full disks look alike otherwise.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserInput(f"{folder}: cannot be written ({error.strerror or error}); {remedy}.") from error


def check_folder(folder: Path, remedy: str = ANOTHER_PLACE) -> None:
    """See that `folder` can be written or, where it is missing, made: for what is written much later, if at all.

    Raises:
        UserInput: as of `make_folder`.
    """
    absolute = folder.absolute()
    there = next(place for place in (absolute, *absolute.parents) if os.path.lexists(place))
    make_folder(folder if there == absolute else there, remedy)


def _chosen(output: str | None, folder: Path, name: str) -> Path:
    if output is None:
        return folder / name
    chosen, suffix = Path(output), Path(name).suffix
    if output.endswith("/") or chosen.is_dir() or not chosen.suffix:
        return chosen / name
    if chosen.suffix == suffix:
        return chosen
    raise UserInput(f"--output {output}: a folder or a file ending in {suffix} is expected.")
