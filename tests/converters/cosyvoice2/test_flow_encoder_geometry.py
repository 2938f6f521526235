"""What a user may choose about the flow encoder."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.errors import UserInput
from converters.cosyvoice2.flow_encoder_geometry import geometry_of, roles
from converters.stages import StageOptions
from models.cosyvoice2.encoder_states import StepSizes


def test_default_is_the_references_two_steps_and_13_seconds() -> None:
    geometry = geometry_of(StageOptions())
    assert geometry.sizes == {"steady": StepSizes(16, 3, 352), "first": StepSizes(16, 1, 352)}
    assert geometry.steps == geometry.sizes
    assert [geometry.stem(role) for role in geometry.sizes] == [
        "cosyvoice2-flow_encoder-t16+3",
        "cosyvoice2-flow_encoder-t16+1",
    ]


def test_options_are_in_the_sizes_and_in_the_stem() -> None:
    geometry = geometry_of(StageOptions(chunk=10, look_ahead=" 2 ", history=100))
    assert geometry.sizes == {"steady": StepSizes(10, 2, 100)}
    assert geometry.stem("steady") == "cosyvoice2-flow_encoder-t10+2-h100"
    assert (StepSizes(10, 2, 100).seen, roles(StageOptions(look_ahead="0"))) == (12, ("steady",))


def test_a_member_is_built_alone_and_proven_with_the_other() -> None:
    geometry = geometry_of(StageOptions(member="first"))
    assert list(geometry.sizes) == ["first"]
    assert list(geometry.steps) == ["steady", "first"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"chunk": 0}, "--chunk 0: a step takes 1 to 64 tokens"),
        ({"chunk": 65}, "--chunk 65: a step takes 1 to 64 tokens"),
        ({"history": 15}, "--history 15: 16 to 1024 tokens can be remembered"),
        ({"history": 1025}, "--history 1025: 16 to 1024 tokens can be remembered"),
        ({"look_ahead": ""}, "--look-ahead : one number of tokens, or two different ones, are expected: 1,3"),
        ({"look_ahead": "1,2,3"}, "--look-ahead 1,2,3: one number"),
        ({"look_ahead": "3,3"}, "--look-ahead 3,3: one number"),
        ({"look_ahead": "-1"}, "--look-ahead -1: one number"),
        ({"look_ahead": "3", "member": "first"}, "--member first: steady is expected: --look-ahead 1,3 asks for"),
    ],
)
def test_options_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UserInput, match=said.replace("+", r"\+")):
        geometry_of(StageOptions(**options))
