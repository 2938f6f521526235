"""What a host half tells of its voice, in its metadata under `rknn-tts/voice/1`: an object of JSON with a `family`.

It is data from a file: its size is checked before it is read, and every key before it is used. Keys that are not known
are left alone.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Mapping

from rknn_tts_runtime.faults import BadInput

VOICE_METADATA = "rknn-tts/voice/1"
"""The key in the host half's metadata, and the format's name."""

LARGEST_CHARACTERS = 1 << 20
"""Of it: the default Piper voice's has 3000, one of 900 speakers with names some 20 000."""

LARGEST_COUNT = 1 << 20
"""Of symbols, speakers and rates that are believed: no voice has more than some thousands, no sound card 1 MHz."""

LARGEST_SCALE = 1000.0
"""Of scales of noise and length that are believed: nobody speaks a thousand times as slowly."""

_REMEDY = "export the voice again with rknn-tts, and copy engine, manifest and host half together"


def voice_keys(metadata: Mapping[str, str], where: Path, family: str) -> VoiceKeys:
    """What the metadata of the host half `where` tells of a voice of `family`.

    Raises:
        BadInput: it tells of none, or of one of another family, or is no JSON.
    """
    text = metadata.get(VOICE_METADATA)
    if text is None:
        raise BadInput(
            f"{where}: tells nothing of its voice ({VOICE_METADATA}): it is no host half that speaks, or an older one; "
            f"{_REMEDY}."
        )
    if len(text) > LARGEST_CHARACTERS:
        raise BadInput(f"{where}: {VOICE_METADATA} has {len(text)} characters, and {LARGEST_CHARACTERS} is the most.")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where}: {VOICE_METADATA} is no JSON; {_REMEDY}.") from error
    keys = VoiceKeys(where, data)
    if keys.data.get("family") != family:
        raise BadInput(
            f"{where}: is a host half of {keys.data.get('family')!s:.40}, not of {family}; correct the plan."
        )
    return keys


class VoiceKeys:
    """Keys of an object, each checked where it is read; refusals name the key and what was expected."""

    def __init__(self, where: Path, data: object, name: str = "") -> None:
        self._where, self._name = where, name
        if not isinstance(data, dict):
            raise self._wrong("", data, "an object")
        self.data: dict[str, Any] = data

    def inner(self, key: str) -> VoiceKeys:
        """The object `key`."""
        return VoiceKeys(self._where, self.data.get(key), f"{self._name}{key}.")

    def text(self, key: str) -> str:
        """A text that is not empty."""
        value = self.data.get(key)
        if not isinstance(value, str) or not value:
            raise self._wrong(key, value, "a text")
        return value

    def optional(self, key: str) -> str | None:
        """A text; None where it is null or left out."""
        return None if self.data.get(key) is None else self.text(key)

    def count(self, key: str) -> int:
        """A whole number above 0."""
        value = self.data.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_COUNT:
            raise self._wrong(key, value, f"a whole number from 1 to {LARGEST_COUNT}")
        return value

    def number(self, key: str, least: float) -> float:
        """A number, at least `least`."""
        value = self.data.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= LARGEST_SCALE:
            raise self._wrong(key, value, f"a number from {least:g} to {LARGEST_SCALE:g}")
        return float(value)

    def below(self, key: str, value: object, limit: int) -> int:
        """`value`, which stands at `key`, as a whole number from 0 to below `limit`."""
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < limit:
            raise self._wrong(key, value, f"a whole number from 0 to {limit - 1}")
        return value

    def ids(self, key: str, value: object, symbols: int) -> tuple[int, ...]:
        """`value`, which stands at `key`, as ids of a table of so many `symbols`."""
        if not isinstance(value, list):
            raise self._wrong(key, value, "a list of ids")
        return tuple(self.below(key, number, symbols) for number in value)

    def clusters(self, key: str) -> tuple[tuple[str, ...], ...]:
        """A list of lists of phonemes."""
        value = self.data.get(key)
        good = isinstance(value, list) and all(
            isinstance(cluster, list) and all(isinstance(phoneme, str) for phoneme in cluster) for cluster in value
        )
        if not isinstance(value, list) or not good:
            raise self._wrong(key, value, "a list of lists of phonemes")
        return tuple(tuple(cluster) for cluster in value)

    def _wrong(self, key: str, value: object, expected: str) -> BadInput:
        name = f"{self._name}{key}".rstrip(".")
        return BadInput(
            f"{self._where}: {VOICE_METADATA}{' has ' if name else ' '}{name} {'= ' if name else 'is '}{value!r:.40}, "
            f"expected {expected}; {_REMEDY}."
        )
