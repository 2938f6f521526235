"""Saves a Kokoro checkpoint as it was read, recovered weights too: the official `.pth`, a `config.json` beside it."""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

from contracts.errors import UserInput
from converters.kokoro.checkpoint import KokoroCheckpoint, open_checkpoint
from converters.kokoro.config import CONFIG_NAME, read_config
from converters.kokoro.pth_file import pth_bytes
from converters.kokoro.vocabulary import KEY, voices_vocabulary
from converters.stages import Checkpoint, SavedCheckpoint, StageOptions
from models.kokoro.config import KokoroConfig

SUFFIX = ".pth"

_UNSTATED = ("decoder_channels", "asr_channels")
"""Sizes that are in no config.json: they are read off the weights."""

_PICKLE = "/data.pkl"
"""The end of a member's name in every file that `torch.save` writes (since 1.6)."""

_ADVICE = "--save-checkpoint names another place"


def saved_checkpoint(checkpoint: Checkpoint, options: StageOptions, place: Path) -> SavedCheckpoint:
    """`checkpoint` as a `.pth` in `place`, with its config beside it where none stands there.

    Raises:
        UserInput: `place` is no `.pth`, or something else stands there or beside it.
        UserInput, Refusal: see `open_checkpoint`.
    """
    _check_place(place)
    given = Path(options.config) if options.config is not None else None
    opened = open_checkpoint(checkpoint.path, given)
    files = [(place, pth_bytes(opened.weights))]
    beside = place.with_name(CONFIG_NAME)
    if beside.exists():
        _check_config(beside, opened.config)
    else:
        files.append((beside, _config_bytes(checkpoint, opened, given)))
    recovered = f"{place}: its weights are recovered from 8-bit ones still, which the file itself does not say."
    return SavedCheckpoint(tuple(files), (recovered,) if opened.recovered else ())


def _check_place(place: Path) -> None:
    if place.suffix != SUFFIX:
        raise UserInput(f"--save-checkpoint {place}: a file ending in {SUFFIX} is expected.")
    if place.exists() and not _is_torch_file(place):
        raise UserInput(f"{place}: is no checkpoint of torch, and would be replaced; {_ADVICE}.")


def _is_torch_file(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as file:
            return any(name.endswith(_PICKLE) for name in file.namelist())
    except (OSError, ValueError, zipfile.BadZipFile):
        return False


def _check_config(beside: Path, config: KokoroConfig) -> None:
    """A config of the same sizes serves both, and stays as it is."""
    try:
        other = read_config(beside)
    except UserInput as error:
        raise UserInput(f"{beside}: is no config of this checkpoint, which needs one there; {_ADVICE}.") from error
    if replace(config, **{name: getattr(other, name) for name in _UNSTATED}) != other:
        raise UserInput(f"{beside}: states other sizes than this checkpoint's, which needs one there; {_ADVICE}.")


def _config_bytes(checkpoint: Checkpoint, opened: KokoroCheckpoint, given: Path | None) -> bytes:
    """The config that the checkpoint was read with, as it is; of an ONNX without one, its sizes and the vocabulary."""
    if given is not None:
        return given.read_bytes()
    if opened.original is None:
        return opened.path.with_name(CONFIG_NAME).read_bytes()
    stated = {name: value for name, value in asdict(opened.config).items() if name not in _UNSTATED}
    return (
        json.dumps({**stated, **_vocabulary(checkpoint, opened.config)}, indent=2, ensure_ascii=False) + "\n"
    ).encode()


def _vocabulary(checkpoint: Checkpoint, config: KokoroConfig) -> dict[str, dict[str, int]]:
    """Phoneme to token, under the config's key; nothing where what is known is another model's."""
    vocabulary = voices_vocabulary(checkpoint.material, config)
    return {KEY: vocabulary} if vocabulary else {}
