from __future__ import annotations

import pytest

from contracts.targets import EVERY_TARGET, TARGETS
from surgery.cuts import cuts, every_cut, runs_for
from surgery.declaration import Declaration, Exact

PAYS_NOWHERE = {"rewrite_constant_divisions", "rewrite_squares"}
DEPTHWISE, NARROW, PADDED = "rewrite_affine_as_depthwise", "rewrite_narrow_conv", "rewrite_wide_conv_pad"
LEFT_OUT = {
    "rk3588": PAYS_NOWHERE,
    "rk3576": PAYS_NOWHERE | {DEPTHWISE},
    "rk3562": PAYS_NOWHERE | {DEPTHWISE},
    "rk3566": PAYS_NOWHERE | {DEPTHWISE, NARROW, PADDED},
    "rk3568": PAYS_NOWHERE | {DEPTHWISE, NARROW, PADDED},
    None: PAYS_NOWHERE | {DEPTHWISE, NARROW, PADDED},
}
"""By target, what docs/cuts.md shows not to pay there."""


@pytest.mark.parametrize("target", [*TARGETS, None])
def test_cuts_are_those_that_pay_on_the_target_in_the_order_of_all(target: str | None) -> None:
    every = [bound.name for bound in every_cut(target)]
    assert set(every) >= LEFT_OUT[target]
    assert [bound.name for bound in cuts(target)] == [name for name in every if name not in LEFT_OUT[target]]


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
