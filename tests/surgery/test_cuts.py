from __future__ import annotations

import pytest

from contracts.targets import EVERY_TARGET, TARGETS
from surgery.cuts import cuts, every_cut, runs_for
from surgery.declaration import Declaration, Exact


@pytest.mark.parametrize("target", [*TARGETS, None])
def test_cuts_are_those_that_pay_on_the_target_in_the_order_of_all(target: str | None) -> None:
    chosen = [bound.name for bound in cuts(target)]
    every = [bound.declaration for bound in every_cut(target)]
    wanted = EVERY_TARGET if target is None else {target}
    assert chosen == [entry.name for entry in every if entry.pays_on is None or wanted <= entry.pays_on]


def test_what_pays_on_one_target_runs_for_it_alone() -> None:
    assert "rewrite_affine_as_depthwise" in [bound.name for bound in cuts("rk3588")]
    for target in (None, "rk3576", "rk3566"):
        assert "rewrite_affine_as_depthwise" not in [bound.name for bound in cuts(target)]


@pytest.mark.parametrize(
    ("pays_on", "runs"),
    [
        (None, {None, *TARGETS}),
        (EVERY_TARGET, {None, *TARGETS}),
        (frozenset({"rk3588"}), {"rk3588"}),
        (frozenset(), set()),
    ],
)
def test_runs_for_a_target_where_it_pays(pays_on: frozenset[str] | None, runs: set[str | None]) -> None:
    declaration = Declaration("fold_x", "", Exact(""), pays_on=pays_on)
    assert {target for target in (None, *TARGETS) if runs_for(declaration, target)} == runs
