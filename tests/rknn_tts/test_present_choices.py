"""What is shown of the choices among an engine's variants."""

from __future__ import annotations

from contracts.choices import AS_ASKED, BY_THE_TABLE, ON_A_SPECIMEN, WITH, WITHOUT, Choice, Variant
from rknn_tts.blocks import plain_text
from rknn_tts.present_choices import choice_blocks

W109 = "piper-decoder-w109 for rk3588 by rknn-toolkit2 2.3.2"
FLIPS = Choice(
    "fold_channel_flips",
    WITH,
    BY_THE_TABLE,
    W109,
    (Variant(WITH, 237, 0, 7_256_000, 96_730.0, 26.603), Variant(WITHOUT, 247, 4, 7_256_000, 97_130.0, 27.483)),
)
NARROW = Choice(
    "rewrite_narrow_conv",
    WITHOUT,
    BY_THE_TABLE,
    W109,
    (Variant(WITH, fault="the toolkit died"), Variant(WITHOUT, 235, 0, 7_371_000, 97_500.0, 26.87)),
)


def lines(*choices: Choice) -> list[str]:
    """What is shown, blanks between columns as one."""
    text = plain_text(list(choice_blocks(choices)))
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def test_every_variant_is_shown_with_its_figures_and_which_was_kept() -> None:
    shown = lines(FLIPS, NARROW)
    assert "fold_channel_flips with (kept) 237 0 7.26 96.7 MB 26.60" in shown
    assert "fold_channel_flips without 247 4 7.26 97.1 MB 27.48" in shown
    assert "rewrite_narrow_conv without (kept) 235 0 7.37 97.5 MB 26.87" in shown


def test_what_the_choices_rest_on_is_told_once() -> None:
    (told,) = [line for line in lines(FLIPS, NARROW) if W109 in line]
    assert told == (f"choices: by the table ({W109}): fold_channel_flips with, rewrite_narrow_conv without.")


def test_variant_that_cannot_be_kept_is_shown_with_its_reason() -> None:
    assert "choices: rewrite_narrow_conv with cannot be kept: the toolkit died." in lines(NARROW)


def test_choices_without_figures_are_told_in_a_line() -> None:
    shown = lines(
        Choice("fold_scales", WITH, ON_A_SPECIMEN, "docs/cuts.md"),
        Choice("fold_shifts", WITHOUT, AS_ASKED, "--no-pass"),
    )
    assert shown == [
        "choices: weighed on a small graph (docs/cuts.md): fold_scales with.",
        "choices: asked for (--no-pass): fold_shifts without.",
    ]


def test_nothing_is_shown_where_there_was_no_choice() -> None:
    assert lines() == []
