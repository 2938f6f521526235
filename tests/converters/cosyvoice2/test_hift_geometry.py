"""What a user may choose about the vocoder's windows."""

from __future__ import annotations

import pytest

from contracts.contract import Window
from contracts.errors import UserInput
from converters.cosyvoice2.hift_geometry import (
    f0_stem,
    f0_window,
    form_of,
    hift_stem,
    hift_window,
    roles,
    width_of,
    widths_of,
)
from converters.stages import StageOptions
from surgery.sine_forms import Form


def test_buckets_are_the_references_by_default() -> None:
    assert roles(StageOptions()) == ("b32", "b40")
    assert width_of("b32") == 32


def test_buckets_are_sorted() -> None:
    assert widths_of(StageOptions(buckets="68, 11")) == (11, 68)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("", "different whole numbers of mel frames are expected, at most 8 of them, as in 32,40"),
        ("32,32", "different whole numbers"),
        ("32,x", "different whole numbers"),
        ("32.5", "different whole numbers"),
        ("10,32", "has 11 mel frames or more"),
        ("32,100000", "has 68 mel frames or fewer"),
        ("32,69", "has 68 mel frames or fewer: the NPU counts .* in 13 bits"),
    ],
)
def test_other_buckets_are_refused(asked: str, said: str) -> None:
    with pytest.raises(UserInput, match=f"--buckets {asked}.*{said}"):
        widths_of(StageOptions(buckets=asked))


def test_windows_say_what_they_emit() -> None:
    assert hift_window(40) == Window(40, 32, 0, 8, 480, 24000)
    assert f0_window(40) == Window(40, 30, 5, 5, 480, 24000)


def test_stems_name_what_differs_from_the_default() -> None:
    assert hift_stem("b40", Form.TRIANGLE) == "cosyvoice2-hift-b40"
    assert hift_stem("b40", Form.EXACT) == "cosyvoice2-hift-b40-exact"
    assert f0_stem("b32") == "cosyvoice2-f0-b32"


def test_form_of_sines_is_checked() -> None:
    assert form_of(StageOptions(sine="soft")) is Form.SOFT
    with pytest.raises(UserInput, match="--sine wave: one of exact, clip"):
        form_of(StageOptions(sine="wave"))
