from __future__ import annotations

import math

import pytest

from rknn_tts.numbers import column, figures, number, size


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("0x7ff", "0x7ff"),
        (12, "12"),
        (95.0, "95"),
        (98.2149, "98.21"),
        (127.3456, "127.3"),
        (0.05, "0.05"),
        (0.98765432, "0.9877"),
        (0.99995012, "0.99995"),
        (0.9999954321, "0.9999954"),
        (-0.999949, "-0.999949"),
        (1.0000001, "1"),
        (123456.7, "123457"),
        (-3.14159, "-3.142"),
        (1.5e-7, "1.5e-07"),
        (math.nan, "nan"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (0.0, "0"),
        (1e20, "1e+20"),
    ],
)
def test_number_shows_four_digits(value: float | str | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("measured", "threshold", "texts"),
    [
        (94.99999, 95.0, ("94.99999", "95")),
        (95.0, 95.0, ("95", "95")),
        (42.8, 40.0, ("42.8", "40")),
        (math.nan, 40.0, ("nan", "40")),
        (math.nan, math.nan, ("nan", "nan")),
        ("Sin", None, ("Sin", "")),
    ],
)
def test_figures_differ_on_paper_when_they_differ(
    measured: float | str, threshold: float | None, texts: tuple[str, str]
) -> None:
    assert figures(measured, threshold) == texts


@pytest.mark.parametrize(
    ("size_kb", "text"),
    [(0.0, "0 bytes"), (0.5, "500 bytes"), (1.0, "1.0 KB"), (999.9, "999.9 KB"), (12_212.5, "12.2 MB")],
)
def test_size_is_in_megabytes_when_it_is_large(size_kb: float, text: str) -> None:
    assert size(size_kb) == text


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([11.53, 0.0079, 0.0], ["11.53", "0.01", "0.00"]),
        ([-0.25274, 0.0016], ["-0.2527", "0.0016"]),
        ([12345.6, 0.4], ["12346", "0"]),
        ([0.0, 0.0], ["0", "0"]),
        ([math.nan, 1.0], ["nan", "1.000"]),
        ([math.inf], ["inf"]),
        ([], []),
    ],
)
def test_column_shows_as_many_decimals_as_the_largest_needs(values: list[float], texts: list[str]) -> None:
    assert column(values) == texts
