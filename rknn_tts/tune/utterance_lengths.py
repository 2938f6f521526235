"""How long utterances are: what a ladder of windows is chosen for, read from a JSON file that tells its source.

    {"schema": "rknn-tts/utterance-lengths/1", "name": ..., "source": ..., "derivation": ...,
     "lengths": [[seconds, weight], ...]}

The weights are counts or shares; only their ratios count. The default file stands beside this module.
"""

from __future__ import annotations

import math
import stat
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import UserInput
from contracts.serial import TooDeep, from_json, parse_json

SCHEMA = "rknn-tts/utterance-lengths/1"

DEFAULT_FILE = Path(__file__).with_name("utterance_lengths.json")
"""What is taken where the user names no file."""

LONGEST_S = 600.0
"""Seconds of an utterance: nothing longer is spoken at once."""

MOST_LENGTHS = 200
"""Different lengths of a file: finer ones change no choice, and each costs a search: of 22 windows some 150 ms, and
several times that where utterances last minutes."""

HEAVIEST = 1e100
"""A length's weight: a thousand of these, each times its seconds, still have a sum."""

_LARGEST_FILE_BYTES = 1 << 20

_REMEDY = f'a JSON of {{"schema": "{SCHEMA}", "name": ..., "source": ..., "lengths": [[seconds, weight], ...]}} is read'


@dataclass(frozen=True)
class UtteranceLengths:
    """A distribution of the lengths of utterances.

    Attributes:
        name: what it is of, in a few words.
        source: where its numbers come from.
        lengths: pairs of seconds of audio and weight.
        derivation: how they were made of the source.
        schema: `SCHEMA`.
    """

    name: str
    source: str
    lengths: tuple[tuple[float, ...], ...]
    schema: str
    derivation: str = ""

    @property
    def mean_s(self) -> float:
        """Mean length in seconds."""
        total = math.fsum(weight for _, weight in self.lengths)
        return math.fsum(seconds * weight for seconds, weight in self.lengths) / total


def read_lengths(path: Path | None = None) -> UtteranceLengths:
    """The distribution in the file `path`, or the default one.

    Raises:
        UserInput: it cannot be read, or is no distribution of lengths; the message says what is wrong.
    """
    path = DEFAULT_FILE if path is None else path
    try:
        status = path.stat()
        # Reading a pipe or a device need not end; a folder has a sentence of its own.
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise UserInput(f"{path}: is no regular file; {_REMEDY}.")
        if status.st_size > _LARGEST_FILE_BYTES:
            raise UserInput(f"{path}: is over {_LARGEST_FILE_BYTES >> 20} MB, so no list of lengths; {_REMEDY}.")
        data = parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserInput(f"{path}: cannot be read ({error.strerror or error}).") from error
    except (TooDeep, ValueError) as error:
        raise UserInput(f"{path}: is not JSON ({error}); {_REMEDY}.") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise UserInput(f"{path}: its schema is not {SCHEMA!r}; {_REMEDY}.")
    try:
        found = from_json(UtteranceLengths, data, "lengths")
    except ValueError as error:
        raise UserInput(f"{path}: {error}; {_REMEDY}.") from error
    if fault := _fault(found):
        raise UserInput(f"{path}: {fault}; {_REMEDY}.")
    return found


def in_frames(lengths: UtteranceLengths, frames_per_s: float) -> dict[int, float]:
    """The lengths in latent frames, at least one, to their shares, which sum to 1; ascending.

    Args:
        lengths: the distribution.
        frames_per_s: latent frames of a second of audio.
    """
    total = math.fsum(weight for _, weight in lengths.lengths)
    shares: dict[int, float] = {}
    for seconds, weight in sorted(lengths.lengths):
        frames = max(1, round(seconds * frames_per_s))
        shares[frames] = shares.get(frames, 0.0) + weight / total
    return shares


def _fault(lengths: UtteranceLengths) -> str:
    """What is wrong with the numbers; "" where nothing is."""
    if not 1 <= len(lengths.lengths) <= MOST_LENGTHS:
        return f"it holds {len(lengths.lengths)} lengths, and 1 to {MOST_LENGTHS} are expected"
    for number, pair in enumerate(lengths.lengths):
        if len(pair) != 2:
            return f"lengths[{number}] is no pair of seconds and weight"
        seconds, weight = pair
        if not 0 < seconds <= LONGEST_S:
            return f"lengths[{number}] is of {seconds:g} s, and more than 0 and at most {LONGEST_S:g} are expected"
        if not 0 < weight <= HEAVIEST:
            return f"lengths[{number}] has the weight {weight:g}, and one above 0 and at most {HEAVIEST:g} is expected"
    return ""
