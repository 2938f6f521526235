from __future__ import annotations

from typing import Any

import pytest

from contracts.errors import UserInput
from converters.qwen3.geometry import Size, geometry_of, roles
from converters.stages import StageOptions
from surgery.sine_forms import Form


def of(**options: Any) -> Any:
    return geometry_of(StageOptions(**options))


def test_default_is_the_references_two_steps_from_hidden_with_its_cache() -> None:
    found = of()
    assert found.sizes == found.steps == {"main": Size(64), "first": Size(16)}
    assert (found.seam, found.cache) == ("hidden", "reference")
    assert roles(StageOptions()) == ("main", "first")
    assert [found.stem(role) for role in found.sizes] == [
        "qwen3-speech_decoder-b64-main",
        "qwen3-speech_decoder-b16-first",
    ]


@pytest.mark.parametrize("codes", ["16,64", "64,16", " 64 , 16"])
def test_larger_step_is_main_in_any_order(codes: str) -> None:
    assert of(codes=codes).sizes == {"main": Size(64), "first": Size(16)}


def test_one_step_is_main() -> None:
    assert of(codes="8").sizes == {"main": Size(8)}
    assert roles(StageOptions(codes="1")) == ("main",)
    assert of(codes="128").sizes == {"main": Size(128)}


def test_window_role_is_a_step_of_context_and_new_codes_beside_the_others() -> None:
    found = of(window_role="25+12")
    assert found.sizes == {"main": Size(64), "first": Size(16), "window": Size(37, 25)}
    assert (found.sizes["window"].emitted, found.sizes["main"].emitted) == (12, 64)
    assert found.steps == {"main": Size(64), "first": Size(16)}
    assert found.stem("window") == "qwen3-speech_decoder-b25+12-window"
    assert of(window_role="0+8").sizes["window"] == Size(8, 0)


@pytest.mark.parametrize("member", ["main", "first", "window"])
def test_member_asks_for_one_engine_and_streams_are_proven_with_both_steps(member: str) -> None:
    found = of(member=member, window_role="25+12")
    assert list(found.sizes) == [member]
    assert list(found.steps) == ["main", "first"]


def test_stem_tells_what_differs_from_the_defaults() -> None:
    found = of(codes="8", seam="codes", cache="minimal", sine="exact")
    assert found.stem("main") == "qwen3-speech_decoder-b8-codes-minimal-exact-main"
    assert found.form is Form.EXACT
    stems = {of(sine=form.value).stem("main") for form in Form}
    assert len(stems) == len(Form)
    assert of().stem("main") in stems


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"codes": "64,64"}, "--codes 64,64: one number of codes, or two different ones, are expected: 64,16."),
        ({"codes": "64,16,8"}, "--codes 64,16,8: one number of codes, or two different ones, are expected: 64,16."),
        ({"codes": "x"}, "--codes x: one number"),
        ({"codes": ""}, "--codes : one number"),
        ({"codes": "-4"}, "--codes -4: one number"),
        ({"codes": "1.5"}, "--codes 1.5: one number"),
        ({"codes": "64,"}, "--codes 64,: one number"),
        ({"codes": "0"}, "--codes 0: a step takes 1 to 128 codes."),
        ({"codes": "16,0"}, "--codes 16,0: a step takes 1 to 128 codes."),
        ({"codes": "200"}, "--codes 200: a step takes 1 to 128 codes."),
        ({"codes": "129"}, "--codes 129: a step takes 1 to 128 codes."),
        ({"codes": "9" * 400}, "--codes 9999"),
        ({"window_role": "25"}, "--window-role 25: codes of context and new ones are expected: 25+12."),
        ({"window_role": "25+"}, "--window-role 25+: codes of context"),
        ({"window_role": "a+b"}, "--window-role a+b: codes of context"),
        ({"window_role": "25+0"}, "--window-role 25+0: at least one new code is expected, and at most 128 with"),
        ({"window_role": "120+9"}, "--window-role 120+9: at least one new code is expected, and at most 128 with"),
        ({"seam": "foo"}, "--seam foo: one of hidden, codes is expected."),
        ({"cache": "foo"}, "--cache foo: one of reference, minimal is expected."),
        ({"sine": "foo"}, "--sine foo: one of "),
        ({"member": "foo"}, "--member foo: main or first is expected: --codes 64,16 asks for main and first"),
        ({"member": "window"}, "--member window: main or first is expected"),
        ({"member": "first", "codes": "64"}, "--member first: main is expected"),
        ({"member": "foo", "window_role": "25+12"}, "--member foo: main or first or window is expected"),
    ],
)
def test_option_without_such_a_value_is_refused_in_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserInput) as caught:
        geometry_of(StageOptions(**options))
    said = str(caught.value)
    assert said.startswith(sentence)
    assert said.endswith(".")
    assert "\n" not in said
    assert len(said) < 200
