"""What a conversion goes by when it chooses among variants, and what its contract says of that."""

from __future__ import annotations

from contracts.choices import AS_ASKED, BY_THE_TABLE, ON_A_SPECIMEN, ON_THIS_ENGINE, WITH, WITHOUT, Choice, Variant
from contracts.contract import Contract, Source
from rknn_tts.earning.choosing import Choosing, trying
from rknn_tts.earning.offers import Offer
from rknn_tts.earning.table import Entry

CONTRACT = Contract("net", "whole", Source("net", "0" * 64, "package"), inputs=(), outputs=())
FIGURES = (Variant(WITH, 9, 0, 1000, 50.0, 10.0), Variant(WITHOUT, 9, 0, 1000, 50.0, 9.0))
WEIGHED = Choice("fold", WITHOUT, ON_THIS_ENGINE, "net-w8 for rk3588 by rknn-toolkit2 2.3.2", FIGURES)
ENTRY = Entry("net", "whole", None, "net-w8", None, "rk3588", "2.3.2", "net", (WEIGHED,))


def offer(name: str, usual: str = WITH) -> Offer:
    return Offer(name, {WITH: None, WITHOUT: None}, usual)


def made(choosing: Choosing, *offers: Offer, skipped: tuple[str, ...] = (), **hits: int) -> tuple[Choice, ...]:
    return choosing.made("net-w8", CONTRACT, offers, skipped, hits)


def test_choice_rests_on_specimens_where_nothing_was_weighed() -> None:
    assert made(Choosing(), offer("fold"), offer("squares", WITHOUT), fold=3) == (
        Choice("fold", WITH, ON_A_SPECIMEN, "docs/cuts.md"),
        Choice("squares", WITHOUT, ON_A_SPECIMEN, "docs/cuts.md"),
    )


def test_choice_of_the_table_has_its_figures_and_says_that_another_engine_was_weighed() -> None:
    choosing = Choosing((ENTRY,))
    (choice,) = made(choosing, offer("fold"))
    assert choice == Choice("fold", WITHOUT, BY_THE_TABLE, WEIGHED.weighed_on, FIGURES)
    assert choosing.picks("net-w8", CONTRACT) == {"fold": WITHOUT}


def test_pass_that_the_table_does_not_tell_of_rests_on_its_specimen() -> None:
    found = made(Choosing((ENTRY,)), offer("fold"), offer("narrow"), narrow=1)
    assert [(choice.name, choice.basis) for choice in found] == [
        ("fold", BY_THE_TABLE),
        ("narrow", ON_A_SPECIMEN),
    ]


def test_choice_says_that_this_engine_was_weighed_when_it_was() -> None:
    choosing = Choosing((ENTRY,), (WEIGHED,))
    assert made(choosing, offer("fold"), offer("narrow"), offer("squares", WITHOUT), narrow=0) == (WEIGHED,)


def test_pass_that_is_left_out_was_asked_for() -> None:
    assert made(Choosing((ENTRY,)), offer("fold"), skipped=("fold",)) == (
        Choice("fold", WITHOUT, AS_ASKED, "--no-pass"),
    )


def test_pass_that_ran_and_found_nothing_is_not_told() -> None:
    assert made(Choosing(), offer("fold"), fold=0) == ()


def test_variant_that_this_engine_has_not_is_not_told_as_its_own() -> None:
    other = Choice("fold", "3 convolved", ON_THIS_ENGINE, "net-w8", FIGURES)
    entry = Entry("net", "whole", None, "net-w8", None, "rk3588", "2.3.2", "net", (other,))
    (choice,) = made(Choosing((entry,)), offer("fold"), fold=1)
    assert (choice.kept, choice.basis) == (WITH, ON_A_SPECIMEN)


def test_trying_makes_the_engine_of_the_given_variants() -> None:
    assert trying({"fold": WITHOUT}).picks("net-w8", CONTRACT) == {"fold": WITHOUT}
