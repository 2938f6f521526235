from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from contracts.contract import Window
from contracts.errors import UserInput
from converters.kokoro.geometry import Geometry, geometry_of, roles
from converters.stages import StageOptions
from models.kokoro.config import KOKORO_82M
from surgery.sine_forms import Form

SIZES = KOKORO_82M.istftnet


def geometry(**options: Any) -> Geometry:
    return geometry_of(StageOptions(**options), SIZES)


def test_geometry_is_128_frames_with_the_context_that_a_frame_sees_by_default() -> None:
    made = geometry()
    assert made.window == Window(frames=128, emitted=110, left=9, right=9, hop=300, sample_rate=24000)
    assert (made.inner, made.padding, made.seen, made.norm, made.form) == (None, 9, 9, "native", Form.TRIANGLE)


def test_geometry_is_the_references_when_its_context_is_asked_for() -> None:
    made = geometry(context=28)
    assert made.window == Window(frames=128, emitted=72, left=28, right=28, hop=300, sample_rate=24000)
    assert made.seen == 9


@pytest.mark.parametrize(
    ("options", "window"),
    [
        ({"window": 96}, (96, 78, 9)),
        ({"context": 8}, (128, 112, 8)),
        ({"window": 32, "context": 8}, (32, 16, 8)),
        ({"window": 1, "context": 0}, (1, 1, 0)),
        ({"window": 136}, (136, 118, 9)),
    ],
)
def test_geometry_has_the_width_and_context_that_are_asked_for(
    options: dict[str, int], window: tuple[int, int, int]
) -> None:
    made = geometry(**options).window
    assert (made.frames, made.emitted, made.left) == window
    assert made.left == made.right


@pytest.mark.parametrize(
    ("options", "least"),
    [
        ({"window": 18}, 19),
        ({"window": 0}, 19),
        ({"window": -3, "context": 0}, 1),
        ({"window": 16, "context": 8}, 17),
    ],
)
def test_geometry_is_refused_when_the_window_has_no_room(options: dict[str, int], least: int) -> None:
    with pytest.raises(UserInput, match=rf"^--window .*at least one frame to emit: --window {least} or more\.$"):
        geometry(**options)


@pytest.mark.parametrize(("frames", "columns"), [(137, 8221), (500, 30001)])
def test_geometry_is_refused_when_the_axis_is_longer_than_13_bits(frames: int, columns: int) -> None:
    wanted = (
        rf"^--window {frames}: the spectrogram axis would have 60 x {frames} \+ 1 = {columns} columns, and the NPU "
        r"encodes an axis in 13 bits, 8191 at most: --window 136 or less, or --max-axis 8191 to walk windows inside"
    )
    with pytest.raises(UserInput, match=wanted):
        geometry(window=frames)


@pytest.mark.parametrize(
    ("axis", "padding", "inner"),
    [(8191, None, 136), (7681, 28, 128), (7680, 28, 127), (1141, None, 19), (3421, 28, 57), (61, 0, 1)],
)
def test_geometry_walks_as_many_frames_inside_as_the_axis_holds(axis: int, padding: int | None, inner: int) -> None:
    made = geometry(window=256, max_axis=axis, padding=padding)
    assert (made.window.frames, made.inner, made.padding) == (256, inner, 9 if padding is None else padding)


def test_geometry_walks_nothing_inside_when_the_window_fits_the_axis() -> None:
    assert geometry(max_axis=8191).inner is None
    assert geometry(max_axis=7681).inner is None
    assert geometry(max_axis=7680).inner == 127


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_axis": 8192}, r"^--max-axis 8192: the NPU encodes an axis in 13 bits, 8191 at most\.$"),
        ({"max_axis": 1140}, r"^--max-axis 1140 --padding 9: windows of .* = 18 frames leave .*--max-axis 1141 or"),
        ({"max_axis": 121, "padding": 1}, r"= 2 frames leave nothing to emit: --max-axis 181 or more\.$"),
        ({"max_axis": 0}, r"leave nothing to emit"),
        ({"max_axis": -5}, r"leave nothing to emit"),
        ({"context": -1}, r"^--context -1: is less than none; 9 frames, the default, "),
        ({"window": 256, "max_axis": 8191, "padding": -1}, r"^--padding -1: is less than none; "),
        (
            {"window": 256, "max_axis": 8191, "padding": 68},
            r"= 136 frames .*: --padding 67 or less, with --max-axis 8191",
        ),
        ({"padding": 28}, r"^--padding is the context of windows inside the graph: it needs --max-axis\.$"),
        ({"padding": 0}, r"it needs --max-axis\.$"),
        ({"norm": "batch"}, r"^--norm batch: native or gap is expected\.$"),
        ({"norm": ""}, r"^--norm : native or gap is expected\.$"),
        ({"sine": "cosine"}, r"^--sine cosine: one of exact, clip, floor, triangle, fine, soft is expected\.$"),
        ({"sine": ""}, r"^--sine : one of exact"),
    ],
)
def test_geometry_is_refused_when_an_option_has_no_such_value(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UserInput, match=says):
        geometry(**options)


@pytest.mark.parametrize(
    ("options", "stem"),
    [
        ({}, "kokoro-generator-w128-full"),
        ({"window": 32, "context": 8}, "kokoro-generator-w32-c8-full"),
        ({"window": 256, "max_axis": 8191}, "kokoro-generator-w256-walk136-full"),
        ({"context": 28}, "kokoro-generator-w128-c28-full"),
        ({"context": 9}, "kokoro-generator-w128-full"),
        ({"window": 256, "max_axis": 8191, "padding": 28}, "kokoro-generator-w256-walk136-p28-full"),
        ({"norm": "gap"}, "kokoro-generator-w128-gap-full"),
        ({"norm": "native"}, "kokoro-generator-w128-full"),
        ({"sine": "exact"}, "kokoro-generator-w128-exact-full"),
    ],
)
def test_stem_says_what_differs_from_the_default(options: dict[str, Any], stem: str) -> None:
    assert geometry(**options).stem("full") == stem


def test_stem_of_short_is_the_same_whatever_full_normalises_by() -> None:
    assert geometry(norm="gap").stem("short") == geometry().stem("short") == "kokoro-generator-w128-short"


def test_stems_of_distinct_geometries_are_distinct() -> None:
    stems: dict[str, Geometry] = {}
    axes = (None, 3601, 7201)
    every = product((60, 128, 256), (8, 9, 28), axes, (None, 8), (None, "gap"), (None, "fine", "exact"))
    for window, context, axis, padding, norm, sine in every:
        if (axis is None and (window == 256 or padding is not None)) or window <= 2 * context:
            continue
        made = geometry(window=window, context=context, max_axis=axis, padding=padding, norm=norm, sine=sine)
        for role in ("full", "short"):
            key = made.stem(role)
            told = Geometry(
                made.window,
                made.inner,
                made.padding if made.inner is not None else 9,
                made.seen,
                made.norm if role == "full" else "native",
                made.form,
            )
            assert stems.setdefault(key, told) == told
    assert len(stems) > 100


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, ("full", "short")),
        ({"member": "full"}, ("full",)),
        ({"member": "short"}, ("short",)),
        ({"max_axis": 8191}, ("full",)),
        ({"max_axis": 8191, "member": "full"}, ("full",)),
    ],
)
def test_roles_are_both_but_for_what_is_asked(options: dict[str, Any], wanted: tuple[str, ...]) -> None:
    assert roles(StageOptions(**options)) == wanted


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"member": "long"}, r"^--member long: kokoro generator has full and short\.$"),
        ({"member": ""}, r"^--member : kokoro generator has full and short\.$"),
        ({"member": "short", "max_axis": 8191}, r"^--max-axis walks windows without padding: .*none for short\.$"),
    ],
)
def test_roles_are_refused_when_there_is_no_such_engine(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UserInput, match=says):
        roles(StageOptions(**options))
