"""What an engine can do without, and its passes once that is chosen."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir
import pytest

from contracts.choices import WITH, WITHOUT
from contracts.contract import Contract, Source
from converters.stages import Evidence, StageExport
from rknn_tts.earning.offers import Offer, arranged, offers, offers_of_cuts
from surgery.cuts import cuts
from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.preflight import preflight
from surgery.rewrite_interface_axes import rewrite_interface_axes
from surgery.rewrite_sines import rewrite_sines


def bound(name: str, pays_on: frozenset[str] | None) -> Pass:
    """A pass that rewrites nothing."""
    return Pass(Declaration(name, "", Exact(""), pays_on=pays_on), lambda model: Rewritten(model, 0))


def export_of(*passes: Pass, sines: Pass | None = None, forms: Mapping[str, Pass | None] | None = None) -> StageExport:
    """An export with passes of its own, and sines among its cuts, in the given other forms."""
    contract = Contract("net", "whole", Source("net", "0" * 64, "package"), inputs=(), outputs=())
    own = () if sines is None else (sines,)
    return StageExport(
        stem="net",
        contract=contract,
        model=ir.Model(ir.Graph([], [], nodes=[]), ir_version=10),
        passes=passes,
        feeds=(),
        padded_feeds=(),
        host=None,
        host_file="",
        notes=(),
        evidence=lambda: Evidence(()),
        cuts=lambda target: own,
        forms=lambda target: {} if forms is None else {"rewrite_sines": forms},
    )


def names(passes: tuple[Pass, ...]) -> list[str]:
    return [one.name for one in passes]


@pytest.mark.parametrize("target", [None, "rk3562", "rk3588"])
def test_arranged_is_the_declared_rule_when_nothing_is_picked(target: str | None) -> None:
    owed, axes = bound("normalise_net", None), rewrite_interface_axes()
    export = export_of(owed, axes, sines=rewrite_sines(form="triangle", target=target))
    own = [owed.name, *([axes.name] if target == "rk3588" else [])]
    assert names(arranged(export, target, {})) == [*own, *names(preflight(target, export.cuts(target)))]


def test_arranged_leaves_out_and_puts_in_what_is_picked_in_its_place() -> None:
    export = export_of(rewrite_interface_axes())
    picks = {"rewrite_interface_axes": WITHOUT, "fold_scales": WITHOUT, "rewrite_squares": WITH}
    usual = names(preflight("rk3588"))
    made = names(arranged(export, "rk3588", picks))
    assert sorted(set(usual) ^ set(made)) == ["fold_scales", "rewrite_squares"]
    at = made.index("rewrite_squares")
    assert made[at - 1 : at + 2] == ["rewrite_affine_as_depthwise", "rewrite_squares", "rewrite_narrow_conv"]


def test_arranged_runs_the_usual_variant_when_the_picked_form_is_none_of_this_engine() -> None:
    export = export_of(sines=rewrite_sines(form="fine", target="rk3588"))
    assert names(arranged(export, "rk3588", {"rewrite_sines": "3 convolved"})) == names(
        preflight("rk3588", export.cuts("rk3588"))
    )


def test_arranged_takes_the_form_that_is_picked() -> None:
    usual, other = rewrite_sines(form="triangle"), rewrite_sines(form="triangle", convolved=1)
    export = export_of(sines=usual, forms={"1 convolved": other, "as Sin": None})
    assert other in arranged(export, "rk3588", {"rewrite_sines": "1 convolved"})
    assert usual in arranged(export, "rk3588", {})
    assert "rewrite_sines" not in names(arranged(export, "rk3588", {"rewrite_sines": "as Sin"}))


@pytest.mark.parametrize("target", [None, "rk3588"])
def test_sines_are_in_the_form_that_was_asked_for_though_it_does_not_pay(target: str | None) -> None:
    asked = rewrite_sines(form="floor", target=target)
    assert asked.declaration.pays_on == frozenset()
    assert asked in arranged(export_of(sines=asked), target, {})


def test_offers_are_the_optional_passes_in_the_order_in_which_they_run() -> None:
    export = export_of(bound("normalise_net", None), rewrite_interface_axes())
    found = [offer.name for offer in offers(export, "rk3588")]
    assert found == ["rewrite_interface_axes", *(offer.name for offer in offers_of_cuts("rk3588"))]
    assert "fold_neutral_operands" not in found


def test_stages_own_cut_is_offered_in_other_forms_alone() -> None:
    sines = rewrite_sines(form="triangle")
    assert "rewrite_sines" not in [offer.name for offer in offers(export_of(sines=sines), "rk3588")]
    export = export_of(sines=sines, forms={"as Sin": None})
    (offer,) = (offer for offer in offers(export, "rk3588") if offer.name == "rewrite_sines")
    assert (list(offer.variants), offer.usual) == ([WITH, "as Sin"], WITH)


@pytest.mark.parametrize("target", [None, "rk3566", "rk3588"])
def test_usual_variant_is_that_of_the_declared_rule(target: str | None) -> None:
    running = names(cuts(target))
    for offer in offers_of_cuts(target):
        assert offer.usual == (WITH if offer.name in running else WITHOUT)


def test_transposed_convolutions_have_a_form_that_goes_by_cycles() -> None:
    (offer,) = (offer for offer in offers_of_cuts("rk3588") if offer.name == "rewrite_transposed_conv")
    assert list(offer.variants) == [WITH, WITHOUT, "by cycles"]
    made = offer.run({offer.name: "by cycles"})
    assert made is not None
    assert made is not offer.variants[WITH]


def test_offer_of_an_unknown_variant_is_the_usual_one() -> None:
    made = bound("fold_net", frozenset())
    offer = Offer("fold_net", {WITH: made, WITHOUT: None}, WITHOUT)
    assert offer.chosen({"fold_net": "sideways"}) == WITHOUT
    assert offer.run({"fold_net": WITH}) is made
