"""`--pass` as the user writes it."""

from __future__ import annotations

import importlib
import inspect

import pytest

from contracts.errors import UserInput
from rknn_tts.chosen_passes import ALWAYS_RUN, TARGET_ARGUMENT, chosen_passes
from surgery.catalogue import CATALOGUE

TEXTS = {
    "mask_decoder": "mask_decoder:mask_name=y_mask",
    "rewrite_sines": "rewrite_sines:form=triangle,reach_pi=16",
    "trim_decoder": "trim_decoder:mask_name=y_mask,window_left=32,emitted=192",
}
"""Passes that cannot do without an argument."""


@pytest.mark.parametrize("name", [entry.name for entry in CATALOGUE if entry.name not in ALWAYS_RUN])
def test_every_pass_of_the_catalogue_can_be_chosen(name: str) -> None:
    (bound,) = chosen_passes([TEXTS.get(name, name)], "rk3588")
    assert bound.name == name


@pytest.mark.parametrize("name", [entry.name for entry in CATALOGUE])
def test_a_pass_is_the_function_of_its_name_in_the_module_of_its_name(name: str) -> None:
    assert inspect.isfunction(getattr(importlib.import_module(f"surgery.{name}"), name))


@pytest.fixture
def targets_heard(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """What `fold_constants`, which decides by target here, is given."""
    module = importlib.import_module("surgery.fold_constants")
    made, heard = module.fold_constants(), []

    def fold_constants(target: str | None) -> object:
        heard.append(target)
        return made

    assert inspect.signature(fold_constants).parameters.keys() == {TARGET_ARGUMENT}
    monkeypatch.setattr(module, "fold_constants", fold_constants)
    return heard


def test_a_pass_that_decides_by_target_is_given_the_one_whose_cost_is_asked_for(
    targets_heard: list[str | None],
) -> None:
    for target in ("rk3576", None):
        assert [bound.name for bound in chosen_passes(["fold_constants"], target)] == ["fold_constants"]
    assert targets_heard == ["rk3576", None]


@pytest.mark.parametrize("by", ["time", "cycles"])
def test_every_choice_of_an_argument_can_be_given(by: str) -> None:
    (bound,) = chosen_passes([f"rewrite_transposed_conv:by={by}"], "rk3588")
    assert bound.name == "rewrite_transposed_conv"


def test_a_target_goes_by_its_other_name_too(targets_heard: list[str | None]) -> None:
    chosen_passes(["fold_constants:target=rk3588s"], "rk3566")
    assert targets_heard == ["rk3588"]


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["rewrite_safe_softmx"], "there is no such pass. Did you mean rewrite_safe_softmax?"),
        (["zzz"], "`rknn-tts passes` lists them"),
        ([""], "there is no such pass"),
        (["normalise_static_inputs"], "need not be named: --shape gives it the sizes"),
        (["mask_decoder"], "--pass mask_decoder: needs mask_name: --pass mask_decoder:mask_name=..."),
        (["mask_decoder:y_mask"], "takes mask_name=...; 'y_mask' is none of that"),
        (["mask_decoder:maske=y"], "takes mask_name=...; 'maske=y' is none of that"),
        (["rewrite_sines:form=square"], "form=square: one of exact, clip, floor, triangle, fine, soft is expected"),
        (["rewrite_sines:form=triangle,reach_pi=far"], "reach_pi=far: a number is expected"),
        (["rewrite_sines:form=clip,degree=2.5"], "degree=2.5: a whole number is expected"),
        (["rewrite_transposed_conv:by=speed"], "by=speed: one of time, cycles is expected"),
        (["fuse_instance_norm:target=rk9"], "fuse_instance_norm:target=rk9: "),
        (["rewrite_sines:form=clip,target=rk9"], "rewrite_sines:target=rk9: "),
        (["fold_constants:a=1"], "takes no arguments"),
        (["rewrite_sines:form=clip,form=fine"], "rewrite_sines:form=clip,form=fine: form is given twice."),
        (["fold_scales,fold_shifts"], "there is no such pass. Each is a --pass of its own."),
        (["fold_scales fold_shifts"], "there is no such pass. Each is a --pass of its own."),
        (["fold_constants", "fold_constants"], "stands twice"),
        (["rewrite_strided_conv", "fold_constants"], "must run after fold_constants"),
    ],
)
def test_what_cannot_be_run_is_refused_with_a_sentence(texts: list[str], says: str) -> None:
    with pytest.raises(UserInput) as caught:
        chosen_passes(texts, None)
    assert says in str(caught.value)
    assert str(caught.value).startswith("--pass")
