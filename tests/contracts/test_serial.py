"""Dataclasses to JSON and back."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.serial import Json, TooDeep, from_json, parse_json, to_json


class Colour(str, Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Inner:
    size: int
    name: str | None = None


@dataclass(frozen=True)
class Outer:
    ratio: float
    inner: Inner
    many: tuple[Inner, ...] = ()
    figure: float | str | None = None
    colour: Colour = Colour.RED
    table: dict[str, float] = field(default_factory=dict)
    flag: bool = False
    free: dict[str, Json] | None = None


def through_json(value: Outer) -> Outer:
    return from_json(Outer, json.loads(json.dumps(to_json(value), allow_nan=False)))


def test_from_json_gives_back_the_same_when_every_field_is_set() -> None:
    value = Outer(
        ratio=1.5,
        inner=Inner(3, "a"),
        many=(Inner(1), Inner(2, "b")),
        figure="text",
        colour=Colour.BLUE,
        table={"a": 1.0, "b": math.inf},
        flag=True,
        free={"a": 1, "b": "x", "c": None, "d": True, "e": 2.5},
    )
    assert through_json(value) == value


@pytest.mark.parametrize("free", [[1, "x"], {"y": [True, 2.5]}, [[{}], None]])
def test_from_json_gives_back_the_same_when_free_form_json_is_nested(free: Json) -> None:
    value = Outer(1.0, Inner(1), free={"deep": free})
    assert through_json(value) == value


@pytest.mark.parametrize(("number", "text"), [(math.inf, "inf"), (-math.inf, "-inf"), (math.nan, "nan")])
def test_to_json_writes_non_finite_numbers_as_strings_when_met(number: float, text: str) -> None:
    assert to_json({"a": [number]}) == {"a": [text]}
    back = through_json(Outer(number, Inner(1), figure=number, table={"t": number}))
    for read in (back.ratio, back.figure, back.table["t"]):
        assert isinstance(read, float)
        assert math.isnan(read) if math.isnan(number) else read == number


@given(st.floats(allow_nan=False))
def test_from_json_gives_back_every_bit_when_number_is_finite(number: float) -> None:
    assert through_json(Outer(number, Inner(1))).ratio == number


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "Outer: the key 'ratio' is missing"),
        ({"ratio": 1.0}, "Outer: the key 'inner' is missing"),
        ({"ratio": 1.0, "inner": {}}, "Outer.inner: the key 'size' is missing"),
        ({"ratio": 1.0, "inner": {"size": 1}, "many": [{"size": 1}, {}]}, "Outer.many[1]: the key 'size' is missing"),
        ({"ratio": "1.0", "inner": {"size": 1}}, "Outer.ratio: float was expected, not '1.0'"),
        ({"ratio": True, "inner": {"size": 1}}, "Outer.ratio: float was expected, not True"),
        ({"ratio": None, "inner": {"size": 1}}, "Outer.ratio: float was expected, not None"),
        ({"ratio": 1.0, "inner": {"size": 1.5}}, "Outer.inner.size: int was expected, not 1.5"),
        ({"ratio": 1.0, "inner": {"size": True}}, "Outer.inner.size: int was expected, not True"),
        ({"ratio": 1.0, "inner": {"size": 1, "name": 7}}, "Outer.inner.name: str was expected, not 7"),
        ({"ratio": 1.0, "inner": []}, "Outer.inner: Inner was expected, not []"),
        ({"ratio": 1.0, "inner": {"size": 1}, "many": {}}, "Outer.many: tuple"),
        ({"ratio": 1.0, "inner": {"size": 1}, "colour": "green"}, "Outer.colour: 'green' is none of red, blue"),
        ({"ratio": 1.0, "inner": {"size": 1}, "flag": 1}, "Outer.flag: bool was expected, not 1"),
        ({"ratio": 1.0, "inner": {"size": 1}, "table": {"a": "b"}}, "Outer.table.a: float was expected, not 'b'"),
        ({"ratio": 1, "inner": {"size": 2**63}}, "Outer.inner.size: 9223372036854775808... is too large for a number"),
        ({"ratio": 10**400, "inner": {"size": 1}}, f"Outer.ratio: 1{'0' * 59}... is too large for a number"),
        ([], "Outer: Outer was expected, not []"),
        (None, "Outer: Outer was expected, not None"),
    ],
)
def test_from_json_names_the_place_when_data_is_wrong(data: object, says: str) -> None:
    with pytest.raises(ValueError, match=r"expected|missing|none of|too large") as caught:
        from_json(Outer, data)
    assert str(caught.value).startswith(says)


def test_from_json_starts_the_place_with_the_given_name_when_there_is_one() -> None:
    with pytest.raises(ValueError, match=r"^contract\.ratio: float"):
        from_json(Outer, {"ratio": [], "inner": {"size": 1}}, "contract")


def test_from_json_ignores_unknown_keys_when_data_is_newer() -> None:
    assert from_json(Inner, {"size": 1, "colour": {"deep": 1}}) == Inner(1)


def test_from_json_reads_a_whole_number_as_float_when_float_is_expected() -> None:
    read = from_json(Outer, {"ratio": 2, "inner": {"size": 1}}).ratio
    assert isinstance(read, float)
    assert read == 2.0


@pytest.mark.parametrize("figure", [None, 1.5, "If, node 'if0'"])
def test_from_json_chooses_the_kind_that_fits_when_there_is_a_union(figure: float | str | None) -> None:
    assert through_json(Outer(1.0, Inner(1), figure=figure)).figure == figure


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", Inner, 1j])
def test_to_json_raises_when_a_value_has_no_json_form(value: object) -> None:
    with pytest.raises(TypeError, match="has no JSON form"):
        to_json([value])


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_parse_json_reads_a_hundred_levels_and_no_more(opening: str) -> None:
    closing = {"[": "]", '{"a":': "}"}[opening]
    assert parse_json(opening * 99 + "1" + closing * 99) is not None
    for levels in (101, 700, 200_000):
        with pytest.raises(TooDeep, match="more than 100 levels"):
            parse_json(opening * levels + "1" + closing * levels)
