from __future__ import annotations

from typing import Any

import pytest
from rknn_tts_runtime.window_cover import Rung as CoverRung

from contracts.contract import Trim, Window
from contracts.errors import UserInput
from contracts.targets import EVERY_TARGET
from converters.stages import StageOptions
from converters.vits_ladder import (
    DecoderWindow,
    Rung,
    default_windows,
    roles_of,
    rungs_of,
    windows_of,
    with_default_windows,
)
from converters.vits_windows import UsualWindow

USUAL = UsualWindow(emitted=45, context=32, widest=512)


def windows(**options: Any) -> dict[str, DecoderWindow]:
    """Of a decoder whose last stages need two frames on either side."""
    return windows_of(StageOptions(**options), USUAL, False, 256, 22_050, lambda window: window.emitted + 4)


def test_rungs_are_widths_with_their_letters_narrowest_first() -> None:
    assert rungs_of("448t, 128m,300") == (Rung(128, "m"), Rung(300, ""), Rung(448, "t"))
    assert [rung.role for rung in rungs_of("448t, 128m,300")] == ["w128", "w300", "w448"]
    assert len(rungs_of("1,2,3,4,5,6,7,8")) == 8


@pytest.mark.parametrize("asked", ["", "128x", "128mt", "m", "128m;256t", "-3", "128m,", "1,2,3,4,5,6,7,8,9", "1" * 10])
def test_rungs_say_what_is_expected_when_a_list_is_none(asked: str) -> None:
    with pytest.raises(UserInput, match=r"at most 8 of them, .* m \(masked\) or t \(trimmed\) .* 128m,256t,448t\.$"):
        rungs_of(asked)


def test_rungs_of_one_width_are_refused() -> None:
    with pytest.raises(UserInput, match="two engines of 128 frames are asked for; leave one of them out"):
        rungs_of("128m,256,128t")


@pytest.mark.parametrize("single", [{"window": 109}, {"decoder_mask": True}, {"no_decoder_mask": True}])
def test_roles_are_refused_when_a_single_window_is_asked_for_too(single: dict[str, Any]) -> None:
    option = next(iter(single)).replace("_", "-")
    with pytest.raises(UserInput, match=f"^--{option} and --windows both say which window is built: give one of them"):
        roles_of(StageOptions(windows="128m", **single))


def test_roles_are_one_without_a_name_when_no_ladder_is_asked_for() -> None:
    assert roles_of(StageOptions(window=109)) == ("",)
    assert roles_of(StageOptions(windows="128m,256t", context=28)) == ("w128", "w256")


def test_windows_of_a_ladder_have_their_form() -> None:
    made = windows(windows="128m,256t,300", context=30)
    assert made == {
        "w128": DecoderWindow(Window(128, 68, 30, 30, 256, 22_050), True, None, True),
        "w256": DecoderWindow(Window(256, 196, 30, 30, 256, 22_050), False, Trim("place", 200), False),
        "w300": DecoderWindow(Window(300, 240, 30, 30, 256, 22_050), False, None, False),
    }
    assert made["w256"].rung(2.5) == (256, 30, 30, 200, False, 2.5)


def test_windows_without_a_mask_pad_where_no_other_does() -> None:
    made = windows(windows="256t,300,400")
    assert [made[role].takes_short for role in made] == [False, True, True]


def test_window_of_no_ladder_is_the_usual_one() -> None:
    assert windows() == {"": DecoderWindow(Window(109, 45, 32, 32, 256, 22_050), False, None, True)}


@pytest.mark.parametrize(
    ("asked", "context", "told"),
    [
        ("64m,256t", None, r"^--windows 64m --context 32: a window needs room .* --windows 65 or more\.$"),
        ("128m,513", None, r"^--windows 513: the widest window that can be checked has 512 frames"),
        ("12t", 2, r"^--windows 12t: there is nothing to trim: 2 frames of context .* write 12, without t\.$"),
        # 59 frames, and two more at an edge of the utterance: 61 of 123, and twice that is less.
        (
            "123t",
            None,
            r"^--windows 123t: a trimmed window emits 61 frames of its 123 .*: 124t or wider, or 123 without t",
        ),
    ],
)
def test_windows_say_what_would_do_when_one_is_none(asked: str, context: int | None, told: str) -> None:
    with pytest.raises(UserInput, match=told):
        windows(windows=asked, context=context)
    assert windows(windows="124t")["w124"].trim == Trim("place", 64)


def test_windows_are_walked_as_what_they_are_made_for() -> None:
    rungs = {role: made.rung(2.5) for role, made in windows(windows="109m,200,256t").items()}
    assert rungs == {
        "w109": CoverRung(109, 32, 32, None, True, 2.5),
        "w200": CoverRung(200, 32, 32, None, False, 2.5),
        "w256": CoverRung(256, 32, 32, 196, False, 2.5),
    }


def test_default_ladders_are_of_known_targets_and_serve_the_shortest_utterance_exactly() -> None:
    assert set(default_windows()) == {"piper.decoder", "inflect.decoder"}
    for ladders in default_windows().values():
        assert "default" in ladders
        assert set(ladders) <= {*EVERY_TARGET, "rk3566", "default"}
        for asked in ladders.values():
            assert len(rungs_of(asked)) <= 3
            assert "m" in {rung.letter for rung in rungs_of(asked)}
            assert windows_of(StageOptions(windows=asked), USUAL, False, 256, None, lambda window: window.emitted + 4)


@pytest.mark.parametrize(
    "options",
    [
        {"window": 256},
        {"window": 0},
        {"context": 24},
        {"decoder_mask": True},
        {"no_decoder_mask": True},
        {"windows": "300"},
    ],
)
def test_default_ladder_is_left_out_when_any_window_is_asked_for(options: dict[str, Any]) -> None:
    asked = StageOptions(**options)
    assert with_default_windows("piper.decoder", asked, "rk3588") == asked


@pytest.mark.parametrize("target", ["rk3588", "rk3562", None])
def test_default_ladder_is_the_targets(target: str | None) -> None:
    ladders = default_windows()["piper.decoder"]
    wanted = ladders.get(str(target), ladders["default"])
    assert with_default_windows("piper.decoder", StageOptions(speaker=1), target) == StageOptions(
        speaker=1, windows=wanted
    )
