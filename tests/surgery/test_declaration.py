from __future__ import annotations

import pytest

from surgery.declaration import VERBS, Declaration, Exact, Pass, Rewritten, check_order


def bound(name: str, *after: str) -> Pass:
    return Pass(Declaration(name, "", Exact(""), frozenset(after)), lambda model: Rewritten(model, 0))


@pytest.mark.parametrize("verb", ["fold", "fuse", "decompose", "rewrite", "mask", "split", "normalise"])
def test_declaration_takes_a_verb_of_the_vocabulary(verb: str) -> None:
    assert verb in VERBS
    assert Declaration(f"{verb}_something", "", Exact("")).name == f"{verb}_something"


@pytest.mark.parametrize("name", ["optimise_graph", "refold_x", "", "foldx"])
def test_declaration_raises_when_its_name_begins_with_no_verb(name: str) -> None:
    with pytest.raises(ValueError, match="must begin with one of decompose, fold, fuse"):
        Declaration(name, "", Exact(""))


@pytest.mark.parametrize(
    "names",
    [
        [("fold_a",), ("mask_b", "fold_a")],
        [("mask_b", "fold_a")],
        [("fold_a",), ("split_c",), ("mask_b", "fold_a", "split_c")],
        [],
    ],
)
def test_check_order_accepts_when_what_must_run_before_does_or_is_not_there(names: list[tuple[str, ...]]) -> None:
    check_order([bound(*each) for each in names])


def test_check_order_raises_when_a_pass_stands_before_what_it_needs() -> None:
    with pytest.raises(ValueError, match="mask_b must run after fold_a"):
        check_order([bound("mask_b", "fold_a"), bound("split_c"), bound("fold_a")])


def test_check_order_raises_when_a_pass_stands_twice() -> None:
    with pytest.raises(ValueError, match="fold_a stands twice"):
        check_order([bound("fold_a"), bound("mask_b"), bound("fold_a")])
