"""A Qwen3-TTS snapshot, opened: its speech tokenizer's sizes, and its decoder's weights where they are asked for.

SNAPSHOT/config.json, model.safetensors, ...        the whole model: not read
SNAPSHOT/speech_tokenizer/config.json               the tokenizer's sizes
SNAPSHOT/speech_tokenizer/model.safetensors         its tensors, the decoder's under `decoder.` (or shards of it)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contracts.contract import Source
from contracts.errors import UserInput
from contracts.files import sha256_of, sha256_of_bytes
from converters.hub_places import repository_name
from converters.qwen3.config import CONFIG_NAME, read_config
from converters.qwen3.layout import PREFIX, layout
from converters.qwen3.safetensors_file import INDEX_NAME, WEIGHTS_NAME, check_tensors, read_tensors, tensor_files
from models.qwen3.config import DecoderConfig

FOLDER = "speech_tokenizer"
"""Of a snapshot; one may be given by itself, or a file in it."""

Weights = dict[str, NDArray[np.float32]]

_FILES = (CONFIG_NAME, WEIGHTS_NAME, INDEX_NAME)


@dataclass(frozen=True)
class Snapshot:
    """An opened snapshot; its tensors' names, types and shapes are those of its sizes.

    Attributes:
        folder: what holds its files, its `speech_tokenizer` as a rule.
        name: what it is called: the folder's name, or that of the repository it was downloaded from.
        config: the decoder's sizes.
        sample_rate: in Hz.
        tensors: the file of each of the decoder's tensors.
        files: every file that is read: those of the tensors, the index of shards, the config.
    """

    folder: Path
    name: str
    config: DecoderConfig
    sample_rate: int
    tensors: dict[str, Path]
    files: tuple[Path, ...]

    def weights(self) -> Weights:
        """The decoder's tensors under their names in the file, float32, all finite.

        Raises:
            UserInput: a file is damaged, or a tensor holds NaN or infinity; it is named.
        """
        return dict(read_tensors(self.tensors))

    def source(self) -> Source:
        """Where the weights come from; its digest is that of what sha256sum prints of `files` (names without folders).

        Its name is a file's, so that what is called after the stem of that has the snapshot's name.
        """
        digests = "".join(f"{sha256_of(path)}  {path.name}\n" for path in self.files)
        return Source(f"{self.name}{Path(WEIGHTS_NAME).suffix}", sha256_of_bytes(digests.encode()), "checkpoint")


def open_snapshot(path: Path) -> Snapshot:
    """The snapshot `path`: its folder, that of its speech tokenizer, or a file in there.

    No tensor is read yet, and each has been seen to be there, of a type that can be read and of the right shape.

    Raises:
        UserInput: it is none, lacks a file, is damaged, or another model's: one sentence that names the file or tensor.
    """
    folder = _tokenizer_folder(path)
    stated = folder / CONFIG_NAME
    config = read_config(stated)
    tensors = tensor_files(folder, PREFIX)
    check_tensors(tensors, layout(config.decoder), folder, CONFIG_NAME)
    of_tensors = tuple(dict.fromkeys(tensors.values()))
    index = () if of_tensors == (folder / WEIGHTS_NAME,) else (folder / INDEX_NAME,)
    return Snapshot(folder, _called(folder), config.decoder, config.sample_rate, tensors, (*of_tensors, *index, stated))


def _tokenizer_folder(path: Path) -> Path:
    if not path.exists():
        raise UserInput(f"{path}: there is no such file or folder; give a Qwen3-TTS-12Hz snapshot's folder.")
    if not path.is_dir():
        if path.name not in _FILES:
            raise UserInput(
                f"{path}: is neither a folder nor one of {', '.join(_FILES)}; give a Qwen3-TTS-12Hz snapshot's folder."
            )
        path = path.parent
    if (path / FOLDER).is_dir():
        return path / FOLDER
    if not (path / CONFIG_NAME).is_file():
        raise UserInput(
            f"{path}: is no snapshot of Qwen3-TTS: there is no {FOLDER} and no {CONFIG_NAME} in it; give the folder "
            f"that holds {FOLDER}/{CONFIG_NAME}."
        )
    return path


def _called(folder: Path) -> str:
    whole = folder.absolute()
    root = whole.parent if whole.name == FOLDER and whole.parent.name else whole
    return repository_name(root) or FOLDER
