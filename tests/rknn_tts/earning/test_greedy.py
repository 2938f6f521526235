"""What is kept of an engine's variants, by figures that were made up and sums made by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from contracts.choices import ON_THIS_ENGINE, WITH, WITHOUT, Choice, Variant
from rknn_tts.earning.greedy import Weighed, choose
from rknn_tts.earning.offers import Offer, Picks

ENGINE = "net-w8 for rk3588 by rknn-toolkit2 2.3.2"


def offer(name: str, usual: str = WITH, *forms: str) -> Offer:
    """A pass of which only its variants count."""
    return Offer(name, dict.fromkeys((WITH, WITHOUT, *forms)), usual)


def passing(picks: Picks) -> str:
    """Gates that let every engine pass."""
    return ""


def scales(spent: Callable[[str, str], float], usual: dict[str, str]) -> Callable[[Picks], Weighed]:
    """Weighs an engine that takes 10 ms and, of each pass in `usual`, what `spent` says of it and its variant."""

    def weigh(picks: Picks) -> Weighed:
        chosen = {**usual, **picks}
        total = 10.0 + sum(spent(name, kept) for name, kept in chosen.items())
        return Weighed(str(sorted(chosen.items())), Variant("", 9, 1, 1000, 50.0, total))

    return weigh


def chosen(
    offers: list[Offer], weigh: Callable[[Picks], Weighed], gates: Callable[[Picks], str] = passing
) -> tuple[Choice, ...]:
    return choose(offers, weigh, gates, ON_THIS_ENGINE, ENGINE)


def test_choose_keeps_of_each_pass_what_takes_less_time_beside_what_was_kept_before() -> None:
    saved = {("fold", WITH): -2.0, ("narrow", WITH): 0.5, ("squares", WITH): -0.25}
    usual = {"fold": WITH, "narrow": WITH, "squares": WITHOUT}
    weigh = scales(lambda name, kept: saved.get((name, kept), 0.0), usual)
    fold, narrow, squares = chosen([offer("fold"), offer("narrow"), offer("squares", WITHOUT)], weigh)
    assert (fold.kept, narrow.kept, squares.kept) == (WITH, WITHOUT, WITH)
    # By hand: 10 - 2 + 0.5 as it is; 10.5 without the fold; 8 once the narrow one is gone; 7.75 with the squares.
    assert [(v.name, v.modelled_ms) for v in fold.variants] == [(WITH, 8.5), (WITHOUT, 10.5)]
    assert [(v.name, v.modelled_ms) for v in narrow.variants] == [(WITH, 8.5), (WITHOUT, 8.0)]
    assert [(v.name, v.modelled_ms) for v in squares.variants] == [(WITHOUT, 8.0), (WITH, 7.75)]


def test_choose_records_every_figure_and_what_it_rests_on() -> None:
    (choice,) = chosen([offer("fold")], scales(lambda name, kept: float(kept == WITHOUT), {"fold": WITH}))
    assert choice == Choice(
        name="fold",
        kept=WITH,
        basis=ON_THIS_ENGINE,
        weighed_on=ENGINE,
        variants=(Variant(WITH, 9, 1, 1000, 50.0, 10.0), Variant(WITHOUT, 9, 1, 1000, 50.0, 11.0)),
    )


def test_choose_takes_another_form_when_it_takes_less_time() -> None:
    spent = {WITH: 3.0, WITHOUT: 2.0, "by cycles": 1.0}
    (choice,) = chosen([offer("phases", WITH, "by cycles")], scales(lambda name, kept: spent[kept], {"phases": WITH}))
    assert choice.kept == "by cycles"
    assert [variant.name for variant in choice.variants] == [WITH, WITHOUT, "by cycles"]


def test_variant_is_not_kept_though_cheaper_when_a_gate_fails() -> None:
    spent = {WITH: 3.0, WITHOUT: 2.0, "by cycles": 1.0}
    weigh = scales(lambda name, kept: spent[kept], {"phases": WITH})
    (choice,) = chosen(
        [offer("phases", WITH, "by cycles")],
        weigh,
        lambda picks: "fp32.whole: 12 dB" if picks["phases"] == "by cycles" else "",
    )
    assert choice.kept == WITHOUT
    faults = {variant.name: variant.fault for variant in choice.variants}
    assert faults == {WITH: "", WITHOUT: "", "by cycles": "fp32.whole: 12 dB"}
    cheapest = choice.variants[2]
    assert cheapest.modelled_ms == 11.0


def test_what_is_there_stays_when_no_cheaper_variant_passes() -> None:
    weigh = scales(lambda name, kept: float(kept == WITH), {"fold": WITH})
    (choice,) = chosen([offer("fold")], weigh, lambda picks: "simulator: nan dB")
    assert choice.kept == WITH
    assert choice.variants[1].fault == "simulator: nan dB"


def test_gates_are_asked_of_cheaper_variants_alone() -> None:
    asked: list[Picks] = []

    def gates(picks: Picks) -> str:
        asked.append(dict(picks))
        return ""

    weigh = scales(lambda name, kept: float((kept == WITHOUT) == (name == "fold")), {"fold": WITH, "narrow": WITH})
    chosen([offer("fold"), offer("narrow")], weigh, gates)
    assert asked == [{"fold": WITH, "narrow": WITHOUT}]


def test_variant_that_does_not_build_is_not_kept_and_its_reason_is() -> None:
    def weigh(picks: Picks) -> Weighed:
        if picks.get("fold") == WITHOUT:
            return Weighed("other", Variant("", fault="the toolkit died"))
        return Weighed("same", Variant("", 9, 0, 1, 1.0, 5.0))

    (choice,) = chosen([offer("fold")], weigh)
    assert (choice.kept, choice.variants[1]) == (WITH, Variant(WITHOUT, fault="the toolkit died"))


def test_variant_that_builds_is_kept_where_the_usual_one_does_not() -> None:
    def weigh(picks: Picks) -> Weighed:
        if picks.get("fold", WITH) == WITH:
            return Weighed("same", Variant("", fault="the toolkit died"))
        return Weighed("other", Variant("", 9, 0, 1, 1.0, 5.0))

    (choice,) = chosen([offer("fold")], weigh)
    assert choice.kept == WITHOUT


def test_pass_is_not_told_when_it_changes_nothing() -> None:
    assert chosen([offer("fold")], lambda picks: Weighed("same", Variant("", 9, 0, 1, 1.0, 5.0))) == ()


@pytest.mark.parametrize(("less", "kept"), [(0.0, WITH), (0.0004, WITH), (0.002, WITHOUT)])
def test_what_is_there_stays_when_another_is_cheaper_by_less_than_a_microsecond(less: float, kept: str) -> None:
    weigh = scales(lambda name, picked: -less if picked == WITHOUT else 0.0, {"fold": WITH})
    (choice,) = chosen([offer("fold")], weigh)
    assert choice.kept == kept


@pytest.mark.parametrize(("spent_ms", "kept"), [(9.95, WITH), (9.85, WITHOUT)])
def test_variant_with_another_interface_is_kept_when_it_saves_a_hundredth(spent_ms: float, kept: str) -> None:
    def weigh(picks: Picks) -> Weighed:
        if picks.get("axes") == WITHOUT:
            return Weighed("three", Variant("", 9, 0, 1, 1.0, spent_ms), interface=((1, 192, 109),))
        return Weighed("four", Variant("", 9, 0, 1, 1.0, 10.0), interface=((1, 192, 1, 109),))

    (choice,) = chosen([offer("axes")], weigh)
    assert choice.kept == kept
    assert [variant.modelled_ms for variant in choice.variants] == [10.0, spent_ms]
