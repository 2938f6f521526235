"""A convolution's axes, read from its node."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.convolution_fields import Axis
from surgery.conv_axes import EVERY_AXIS, EXPLICIT_PADS, STATIC_LENGTH, axes_of, kernel_of, numbers
from surgery.declaration import Refused
from tests.surgery.convolutions import one_node


def read(shape: list[int | str], weight: list[int], **attributes: Any) -> tuple[Axis, ...] | Refused:
    return axes_of(one_node("Conv", shape, weight, **attributes).graph[0])


def test_axes_are_in_order_with_starts_before_ends() -> None:
    got = read([1, 2, 30, 40], [3, 2, 4, 5], strides=[2, 3], dilations=[1, 6], pads=[1, 2, 3, 4])
    assert got == (Axis(30, 4, 2, 1, 1, 3), Axis(40, 5, 3, 6, 2, 4))


def test_axes_have_onnxs_defaults_and_no_pads_when_auto_pad_is_valid() -> None:
    assert read([1, 2, 30], [3, 2, 4]) == (Axis(30, 4),)
    assert read([1, 2, 30], [3, 2, 4], auto_pad="VALID") == (Axis(30, 4),)


@pytest.mark.parametrize(
    ("shape", "attributes", "precondition"),
    [
        ([1, 2, "t"], {}, STATIC_LENGTH),
        ([1, 2, 30], {"auto_pad": "SAME_UPPER"}, EXPLICIT_PADS),
        ([1, 2, 30], {"strides": [2, 2]}, EVERY_AXIS),
        ([1, 2, 30], {"strides": [0]}, EVERY_AXIS),
    ],
)
def test_axes_are_refused_by_the_node_when_something_is_not_known(
    shape: list[int | str], attributes: dict[str, Any], precondition: str
) -> None:
    refused = read(shape, [3, 2, 4], **attributes)
    assert isinstance(refused, Refused)
    assert (refused.node, refused.precondition) == ("node 'c'", precondition)


def test_kernel_is_the_weights_when_no_attribute_states_it() -> None:
    node = one_node("Conv", [1, 2, 30], [3, 2, 4]).graph[0]
    node.attributes.pop("kernel_shape", None)
    assert kernel_of(node) == [4]
    assert numbers(node, "strides", [7]) == [7]
