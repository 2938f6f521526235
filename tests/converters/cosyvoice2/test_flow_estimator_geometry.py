"""What may be asked for of the flow estimator."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.errors import UserInput
from converters.cosyvoice2.flow_estimator_geometry import Geometry, StepSizes, geometry_of
from converters.stages import StageOptions


def asked(**options: Any) -> Geometry:
    return geometry_of(StageOptions(**options))


def test_default_is_a_step_of_16_tokens_behind_128() -> None:
    made = asked()
    assert made.roles == ("step",)
    assert made.step == StepSizes(frames=32, history=256)
    assert made.stem("step") == "cosyvoice2-flow_estimator-t16"


def test_lengths_take_the_place_of_the_step() -> None:
    made = asked(lengths="200, 400")
    assert made.roles == ("s200", "s400")
    assert made.lengths == {"s200": 200, "s400": 400}
    assert made.stem("s400") == "cosyvoice2-flow_estimator-s400"


def test_a_steps_size_and_lengths_ask_for_both() -> None:
    made = asked(lengths="200", chunk=8, history=75)
    assert made.roles == ("step", "s200")
    assert made.stem("step") == "cosyvoice2-flow_estimator-t8-h75"
    assert made.step == StepSizes(16, 150)


@pytest.mark.parametrize("member", ["step", "s200"])
def test_member_is_one_of_them(member: str) -> None:
    assert asked(lengths="200", chunk=16, member=member).roles == (member,)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"chunk": 0}, "--chunk 0: a step takes 1 to 64 tokens"),
        ({"chunk": 65}, "--chunk 65: a step takes 1 to 64 tokens"),
        ({"history": 15}, "--history 15: 16 to 1024 tokens can be remembered"),
        ({"history": 1025}, "--history 1025: 16 to 1024 tokens"),
        ({"lengths": ""}, "--lengths : whole numbers of frames are expected"),
        ({"lengths": "200,"}, "--lengths 200,: whole numbers"),
        ({"lengths": "400,200"}, "ascending"),
        ({"lengths": "200,200"}, "ascending"),
        ({"lengths": "200x"}, "whole numbers"),
        ({"lengths": "15"}, "--lengths 15: an engine takes 16 to 1500 frames"),
        ({"lengths": "100000"}, "--lengths 100000: an engine takes 16 to 1500 frames"),
        ({"lengths": "1501"}, "--lengths 1501: an engine takes 16 to 1500 frames"),
        ({"lengths": ",".join(map(str, range(20, 29)))}, "at most 8 of them"),
        ({"member": "s200"}, "--member s200: step is expected"),
        ({"member": "step", "lengths": "200"}, "--member step: s200 is expected"),
    ],
)
def test_what_is_no_such_value_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UserInput) as raised:
        asked(**options)
    assert said in str(raised.value)
