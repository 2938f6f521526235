from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contracts.errors import UserInput
from converters.config_keys import ConfigKeys, read_object

FILE = Path("a/config.json")


def keys(data: dict[str, Any]) -> ConfigKeys:
    return ConfigKeys(FILE, data, "Nobody", "get another")


def test_values_are_read_as_they_are() -> None:
    found = keys({"n": 3, "rates": [8, 5], "dilations": [[1, 3], [1]], "eps": 1e-5, "part": {"n": 65536}})
    assert (found.size("n"), found.sizes("rates"), found.lists("dilations")) == (3, (8, 5), ((1, 3), (1,)))
    assert (found.positive("eps"), found.inner("part").size("n")) == (1e-5, 65536)
    assert found.size("n", 3) == 3


@pytest.mark.parametrize("value", [0, -1, 65537, True, 1.0, "3", None, [3]])
def test_size_that_is_none_is_refused_by_name(value: object) -> None:
    with pytest.raises(UserInput) as caught:
        keys({"part": {"n": value}}).inner("part").size("n")
    expected = f"a/config.json: the key 'part.n' must be a whole number from 1 to 65536, not {value!r}."
    assert str(caught.value) == expected


@pytest.mark.parametrize("value", [[], [0], [1, "2"], 3, {}])
def test_lists_that_are_none_are_refused(value: object) -> None:
    with pytest.raises(UserInput, match="'rates' must be a list of whole numbers from 1 to 65536, not "):
        keys({"rates": value}).sizes("rates")
    with pytest.raises(UserInput, match="'rates' must be a list of lists of whole numbers, not "):
        keys({"rates": value}).lists("rates")


@pytest.mark.parametrize("value", [0, -1.0, True, "1", float("inf"), float("nan"), 1e30])
def test_number_that_is_not_above_0_is_refused(value: object) -> None:
    with pytest.raises(UserInput, match="'eps' must be a number above 0, not "):
        keys({"eps": value}).positive("eps")


def test_key_that_is_missing_is_told_with_the_remedy() -> None:
    with pytest.raises(UserInput) as caught:
        keys({}).size("n")
    assert str(caught.value) == "a/config.json: is no config of Nobody: the key 'n' is missing; get another."
    with pytest.raises(UserInput, match="the key 'part' is missing; get another"):
        keys({}).inner("part")
    with pytest.raises(UserInput, match="the key 'part' must be an object, not 5; get another"):
        keys({"part": 5}).inner("part")


def test_only_what_is_supported_passes() -> None:
    keys({}).only("act", ("silu",))
    keys({"act": "silu", "bias": False}).only("bias", (False,))
    for wrong in ({"act": "relu"}, {"act": None}):
        with pytest.raises(UserInput, match=r"act is .*, and only 'silu' is supported; get another"):
            keys(wrong).only("act", ("silu",))
    with pytest.raises(UserInput, match="bias is 0, and only False is supported"):  # 0 == False, and is another type
        keys({"bias": 0}).only("bias", (False,))


def test_file_is_one_json_object(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    with pytest.raises(UserInput, match=r"there is no such file; get another\."):
        read_object(file, "get another")
    for text, told in (("{", "is not readable JSON"), ("[1]", "a JSON object is expected, not list; get another")):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(UserInput, match=told):
            read_object(file, "get another")
    file.write_text('{"n": 1}', encoding="utf-8")
    assert read_object(file, "get another") == {"n": 1}
