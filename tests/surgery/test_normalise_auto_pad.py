from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from surgery.normalise_auto_pad import normalise_auto_pad
from tests.onnx_runs import Array
from tests.surgery.one_operator import equal_after, feed_of, left_alone, operator

PASS = normalise_auto_pad()

CHANNELS = 4


def noise(*shape: int) -> Array:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def padded(op: str, length: tuple[int, ...], kernel: tuple[int, ...], group: int = 1, **options: Any) -> ir.Model:
    """`op` of x [1, 4, *length]."""
    shape = (1, CHANNELS, *length)
    if "Conv" not in op:
        return operator(op, shape=shape, kernel_shape=kernel, **options)
    weights = {
        "Conv": (CHANNELS, CHANNELS // group, *kernel),
        "ConvTranspose": (CHANNELS, 3, *kernel),
    }
    return operator(op, "x w", shape=shape, constants={"w": noise(*weights[op])}, group=group, **options)


@st.composite
def configurations(draw: st.DrawFn) -> ir.Model:
    """Any of the operators with any auto_pad, where onnxruntime holds to ONNX."""
    op = draw(st.sampled_from(["Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool"]))
    mode = draw(st.sampled_from(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    axes = draw(st.integers(1, 2))

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(low, high), min_size=axes, max_size=axes)))

    strides = each(1, 4)
    kernel = tuple(draw(st.integers(stride if mode != "VALID" else 1, 5)) for stride in strides)
    options: dict[str, Any] = {"strides": strides, "auto_pad": mode, "opset": draw(st.sampled_from([11, 17, 19]))}
    if mode == "VALID" and "Conv" in op:
        options["dilations"] = each(1, 2)
    if draw(st.booleans()) and op in ("MaxPool", "AveragePool"):
        options["ceil_mode"] = 1
    if draw(st.booleans()) and op == "AveragePool":
        options["count_include_pad"] = 1
    if op == "ConvTranspose":
        options["output_padding"] = tuple(draw(st.integers(0, stride - 1)) for stride in strides)
        assume(mode == "VALID" or all(k >= s for k, s in zip(kernel, strides, strict=True)))
    group = draw(st.sampled_from([1, 2])) if "Conv" in op else 1
    return padded(op, each(9, 14), kernel, group, **options)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(configurations())
def test_padding_is_onnxruntimes_whatever_the_configuration(original: ir.Model) -> None:
    made = equal_after(PASS, original)
    (node,) = made.graph
    assert "auto_pad" not in node.attributes
    assert "pads" in node.attributes


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    st.integers(1, 6),
    st.integers(1, 4),
    st.integers(1, 2),
    st.integers(-3, 3),
    st.integers(0, 3),
    st.sampled_from(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]),
    st.booleans(),
)
def test_output_shape_is_kept(
    kernel: int, stride: int, dilation: int, more: int, output_padding: int, mode: str, all_axes: bool
) -> None:
    assume(output_padding < stride)
    natural = 6 * stride + dilation * (kernel - 1) + 1
    length = natural + more
    assume(length > 0 and more < stride)
    original = padded(
        "ConvTranspose",
        (7,),
        (kernel,),
        strides=[stride],
        dilations=[dilation],
        output_shape=[1, 3, length] if all_axes else [length],
        auto_pad=mode,
        output_padding=[output_padding],
    )
    (node,) = equal_after(PASS, original).graph
    assert "output_shape" not in node.attributes


@pytest.mark.parametrize(
    ("op", "options", "pads"),
    [
        ("Conv", {"auto_pad": "SAME_UPPER"}, (1, 2)),
        ("Conv", {"auto_pad": "SAME_LOWER"}, (2, 1)),
        ("Conv", {"auto_pad": "VALID"}, (0, 0)),
        ("Conv", {"auto_pad": "SAME_UPPER", "strides": [2]}, (1, 1)),
        ("ConvTranspose", {"auto_pad": "SAME_UPPER"}, (1, 2)),
        ("ConvTranspose", {"auto_pad": "SAME_LOWER"}, (2, 1)),
        ("ConvTranspose", {"auto_pad": "SAME_UPPER", "strides": [2]}, (1, 1)),
        ("ConvTranspose", {"output_shape": [14]}, (1, 0)),
        ("MaxPool", {"auto_pad": "SAME_UPPER"}, (1, 2)),
    ],
)
def test_pads_are_those_of_onnx(op: str, options: dict[str, Any], pads: tuple[int, int]) -> None:
    (node,) = equal_after(PASS, padded(op, (12,), (4,), **options)).graph
    assert node.attributes["pads"].as_ints() == pads


@pytest.mark.parametrize("kernel_shape", [{}, {"kernel_shape": [3]}])
def test_kernel_is_that_of_the_weights_when_it_is_not_stated(kernel_shape: dict[str, Any]) -> None:
    equal_after(PASS, padded("Conv", (12,), (3,), auto_pad="SAME_UPPER", **kernel_shape))


@pytest.mark.parametrize(
    ("op", "mode", "left", "works"),
    [
        ("Conv", "SAME_UPPER", 2, True),
        ("Conv", "SAME_UPPER", 3, False),
        ("Conv", "SAME_LOWER", 3, True),
        ("Conv", "SAME_LOWER", 4, False),
        ("MaxPool", "SAME_UPPER", 1, True),
        ("MaxPool", "SAME_UPPER", 2, False),
        ("AveragePool", "SAME_LOWER", 2, True),
        ("AveragePool", "SAME_LOWER", 3, False),
    ],
)
def test_short_kernel_is_rewritten_as_long_as_onnxruntime_crops_nothing_in_front(
    op: str, mode: str, left: int, works: bool
) -> None:
    """A kernel of 1 with a stride of left + 1 leaves `left` steps behind the last window of two strides."""
    original = padded(op, (2 * (left + 1),), (1,), auto_pad=mode, strides=[left + 1])
    if works:
        equal_after(PASS, original)
    else:
        assert PASS.rewrite(original).refused


@pytest.mark.parametrize(
    "original",
    [
        padded("Conv", (12,), (3,)),
        padded("Conv", (12,), (3,), auto_pad="NOTSET", pads=[1, 1]),
        padded("ConvTranspose", (12,), (3,), strides=[2], output_padding=[1]),
        padded("MaxPool", (12, 9), (3, 2), ceil_mode=1, strides=[2, 2]),
        operator("Relu"),
    ],
)
def test_graph_is_left_alone_when_the_padding_is_explicit(original: ir.Model) -> None:
    left_alone(PASS, original)


def test_length_is_inferred_when_it_is_not_stated() -> None:
    original = padded("Conv", (12,), (3,), auto_pad="SAME_LOWER", strides=[3])
    relu = ir.node("Relu", [original.graph.inputs[0]], name="relu")
    relu.outputs[0].name = "r"
    original.graph.insert_before(original.graph[0], relu)
    original.graph[1].replace_input_with(0, relu.outputs[0])
    assert feed_of(original)
    equal_after(PASS, original)


@pytest.mark.parametrize(
    "options",
    [
        {"strides": [1, 1]},
        {"strides": [0]},
        {"dilations": [1, 1]},
        {"output_padding": [0, 0]},
        {"output_shape": [3, 3]},
    ],
)
def test_graph_is_left_alone_when_its_attributes_fit_no_axis(options: dict[str, Any]) -> None:
    left_alone(PASS, padded("ConvTranspose", (12,), (3,), auto_pad="SAME_UPPER", **options))
