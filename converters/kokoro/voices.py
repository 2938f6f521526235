"""Voices to speak with, and the vocabulary of phonemes: what the gates and samples of Kokoro read."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contracts.errors import UserInput
from converters.kokoro.package import VOCABULARY_FILE

BOUNDARY = 0
"""The token before and behind every sentence (reference, `kokoro.model.KModel.forward`)."""

_OF_DAMAGE = (
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What numpy, zipfile and json raise on damaged files, as found by damaging some."""


@dataclass(frozen=True)
class Voices:
    """Style vectors by the voice's name, each [lengths, 1, 2 S], and the token id of each phoneme."""

    styles: Mapping[str, NDArray[np.float32]]
    vocabulary: Mapping[str, int]

    @property
    def first(self) -> str:
        """The name of the first voice."""
        return next(iter(self.styles))


def read_voices(path: Path) -> Voices:
    """The voices in the npz file `path`, with the vocabulary beside it.

    Raises:
        UserInput: a file is missing or damaged.
    """
    beside = path.with_name(VOCABULARY_FILE)
    try:
        with np.load(path, allow_pickle=False) as arrays:
            styles = {name: np.asarray(arrays[name], np.float32) for name in sorted(arrays.files)}
        vocabulary = json.loads(beside.read_text(encoding="utf-8"))["vocab"]
    except _OF_DAMAGE as error:
        raise UserInput(
            f"{path}: its voices or the vocabulary {beside.name} beside it cannot be read ({error}); "
            "remove the folder, and it is fetched again."
        ) from error
    return Voices(styles, vocabulary)


def tokens_of(phonemes: str, voices: Voices) -> NDArray[np.int64]:
    """`phonemes` as tokens [1, T], the boundary before and behind; what the vocabulary does not know is left out."""
    known = [voices.vocabulary[sign] for sign in phonemes if sign in voices.vocabulary]
    return np.array([[BOUNDARY, *known, BOUNDARY]], np.int64)


def style_of(name: str, tokens: NDArray[np.int64], voices: Voices) -> NDArray[np.float32]:
    """The style [1, 2 S] of a voice for a sentence of that length: there is one for each number of phonemes."""
    styles = voices.styles[name]
    phonemes = tokens.shape[1] - 2
    style: NDArray[np.float32] = styles[min(max(phonemes, 1), len(styles)) - 1].reshape(1, -1)
    return style
