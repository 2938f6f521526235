from __future__ import annotations

import pytest

from farm.page_parts import MOST_LISTED, Row, counted, duration, figure, href, listed, megabytes


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0"),
        (20.146062, "20.15"),
        (0.027113, "0.02711"),
        (123456.7, "123457"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (1e300, "1e+300"),
    ],
)
def test_figure_has_four_digits(value: float | None, text: str) -> None:
    assert figure(value) == text


@pytest.mark.parametrize(
    ("size", "text"), [(None, "-"), (32, "0.0 KB"), (99_000, "99.0 KB"), (19_625_976, "19.6 MB"), (168e9, "168.0 GB")]
)
def test_size_is_in_the_unit_that_suits_it(size: float | None, text: str) -> None:
    assert megabytes(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "-"), (3.99, "4.0 s"), (99.0, "99.0 s"), (150.0, "2.5 min"), (5400.0, "1.5 h")]
)
def test_time_is_in_the_unit_that_suits_it(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_one_is_no_plural() -> None:
    assert (counted(1, "engine"), counted(2, "engine"), counted(0, "engine")) == ("1 engine", "2 engines", "0 engines")


@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("rk3588/amy/one.html", "./rk3588/amy/one.html"),
        ("javascript:alert(1)", "./javascript%3Aalert%281%29"),
        ("//example.org/x", ".///example.org/x"),
        ("größe #1?.html", "./gr%C3%B6%C3%9Fe%20%231%3F.html"),
        ("bad\udcff", "./bad%ED%B3%BF"),
    ],
)
def test_link_stays_below_the_page_whatever_the_name_holds(path: str, link: str) -> None:
    assert href(path) == link


def test_list_says_how_many_are_left_out_when_it_is_long() -> None:
    rows = [Row((str(number),)) for number in range(MOST_LISTED + 3)]
    found = listed("many", ("number",), rows)
    assert (len(found.table.rows), found.rest) == (MOST_LISTED, "3 more are in catalogue.json.")
    assert listed("few", ("number",), rows[:MOST_LISTED]).rest == ""
