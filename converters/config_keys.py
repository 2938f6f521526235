"""A checkpoint's config, a JSON file: its keys read one by one, each refused by name where it is not as it must be."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

from contracts.errors import UserInput
from contracts.serial import parse_json

LARGEST_SIZE = 1 << 16
"""Of any size: thirty times and more the largest of the models known, and far from what would fill the memory by
mistake."""


class ConfigKeys:
    """The keys of one object in the file.

    Its methods raise `UserInput` where a key is missing or of the wrong type.
    """

    def __init__(self, path: Path, data: dict[str, Any], whose: str, advice: str, above: str = "") -> None:
        """The keys of `data`.

        Args:
            path: the file.
            data: the object.
            whose: whose config the file should be, for sentences ("Kokoro").
            advice: what to do where it is not, the end of a sentence.
            above: what stands ahead of the keys in the file ("plbert.").
        """
        self.path, self.data, self.above = path, data, above
        self._whose, self._advice = whose, advice

    def below(self, key: str, data: dict[str, Any]) -> ConfigKeys:
        """The keys of `data`, which stands under `key`."""
        return ConfigKeys(self.path, data, self._whose, self._advice, f"{key}.")

    def inner(self, key: str) -> ConfigKeys:
        """The keys of the object under `key`."""
        value = self.data.get(key)
        if isinstance(value, dict):
            return self.below(key, value)
        got = "is missing" if key not in self.data else f"must be an object, not {value!r:.40}"
        raise UserInput(f"{self.path}: is no config of {self._whose}: the key {key!r} {got}; {self._advice}.")

    def size(self, key: str, largest: int = LARGEST_SIZE) -> int:
        """A whole number from 1 to `largest`."""
        value = self._value(key)
        if not _is_size(value, largest):
            raise self._wrong(key, f"a whole number from 1 to {largest}", value)
        return int(value)

    def sizes(self, key: str) -> tuple[int, ...]:
        """A list of them, one or more."""
        value = self._value(key)
        if not _are_sizes(value):
            raise self._wrong(key, f"a list of whole numbers from 1 to {LARGEST_SIZE}", value)
        return tuple(value)

    def lists(self, key: str) -> tuple[tuple[int, ...], ...]:
        """A list of such lists."""
        value = self._value(key)
        if not isinstance(value, list) or not value or not all(_are_sizes(part) for part in value):
            raise self._wrong(key, "a list of lists of whole numbers", value)
        return tuple(tuple(part) for part in value)

    def positive(self, key: str) -> float:
        """A number above 0."""
        value = self._value(key)
        if type(value) not in (int, float) or not 0 < value < LARGEST_SIZE**2 or not isfinite(value):
            raise self._wrong(key, "a number above 0", value)
        return float(value)

    def only(self, key: str, supported: tuple[object, ...]) -> None:
        """See that a key that may be absent has a value that is supported."""
        value = self.data.get(key, supported[0])
        if not any(type(value) is type(one) and value == one for one in supported):
            raise UserInput(
                f"{self.path}: {self.above}{key} is {value!r:.60}, and only {supported[0]!r} is supported; "
                f"{self._advice}."
            )

    def _value(self, key: str) -> Any:
        if key not in self.data:
            raise UserInput(
                f"{self.path}: is no config of {self._whose}: the key {self.above + key!r} is missing; {self._advice}."
            )
        return self.data[key]

    def _wrong(self, key: str, wanted: str, value: object) -> UserInput:
        return UserInput(f"{self.path}: the key {self.above + key!r} must be {wanted}, not {value!r:.40}.")


def read_object(path: Path, advice: str) -> dict[str, Any]:
    """The JSON object in the file `path`.

    Args:
        path: the file.
        advice: what to give where it is not there, the end of a sentence.

    Raises:
        UserInput: it cannot be read, is no JSON, or no object.
    """
    try:
        data = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserInput(f"{path}: there is no such file; {advice}.") from error
    except (OSError, ValueError) as error:
        raise UserInput(f"{path}: is not readable JSON ({error!s:.200}); get the config.json again.") from error
    if not isinstance(data, dict):
        raise UserInput(f"{path}: a JSON object is expected, not {type(data).__name__}; {advice}.")
    return data


def _is_size(value: object, largest: int = LARGEST_SIZE) -> bool:
    return type(value) is int and 1 <= value <= largest


def _are_sizes(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_size(size) for size in value)
