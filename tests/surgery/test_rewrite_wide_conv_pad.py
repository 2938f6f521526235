"""Zeros around wide convolutions: equal to the original and to numpy's sum, and only where it saves something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from cost.model import modelled_ms, on_cpu
from engine.environment import converter_python
from gates.snr import compare_outputs
from logs.layer_table import parse_layer_table
from rknn_tts.build_gates import kept_lines
from surgery.rewrite_wide_conv_pad import rewrite_wide_conv_pad
from tests.engine.toolkit_runs import built
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run
from tests.surgery.convolutions import left_alone, one_node, rewritten, the_node
from tests.surgery.interfaces import node, noise, operators

PASS = rewrite_wide_conv_pad()

WEIGHTS = np.random.default_rng(5)


def wide(length: int = 40, channels: int = 5, kernel: int = 11, dilation: int = 5, **options: Any) -> ir.Model:
    """y = Conv(x), by default of 25 pads a side."""
    options = {"pads": [25, 25], "dilations": [dilation], **options}
    return one_node("Conv", [1, channels, length], [3, channels // options.get("group", 1), kernel], **options)


def pads(made: ir.Node) -> list[int]:
    """Its attribute."""
    return list(made.attributes.get_ints("pads") or ())


@pytest.mark.parametrize(
    ("original", "made"),
    [
        (wide(), [1, 5, 90]),
        (wide(bias=3), [1, 5, 90]),
        (wide(pads=[16, 0], length=60), [1, 5, 76]),
        (wide(pads=[0, 50]), [1, 5, 90]),
        (wide(pads=[3, 16], length=60, strides=[2]), [1, 5, 79]),
        (wide(pads=[40, 40], kernel=3, dilation=40), [1, 5, 120]),
        (wide(kernel=33, dilation=1, pads=[16, 16]), [1, 5, 72]),
        (wide(kernel=1, dilation=1, pads=[20, 20]), [1, 5, 80]),
        (wide(channels=6, group=3), [1, 6, 90]),
        (wide(opset=11), [1, 5, 90]),
        (one_node("Conv", [2, 1, 40], [3, 1, 4], pads=[17, 16]), [2, 1, 73]),
    ],
    ids=lambda made: str(list(the_node(made).attributes.values())) if isinstance(made, ir.Model) else "",
)
def test_rewrite_wide_conv_pad_puts_all_zeros_in_a_concat_when_they_are_too_many(
    original: ir.Model, made: list[int]
) -> None:
    done = rewritten(PASS, original)
    assert operators(done) == ["Concat", "Conv"]
    concat, conv = done.graph
    assert str(concat.name).startswith("rewrite_wide_conv_pad/")
    assert conv.name == "c"
    assert pads(conv) == [0, 0]
    shape = concat.outputs[0].shape
    assert shape is not None
    assert list(shape) == made


def test_rewrite_wide_conv_pad_is_numpys_sum() -> None:
    made = rewritten(PASS, one_node("Conv", [1, 1, 9], [1, 1, 2], pads=[16, 20], dilations=[3]))
    x = np.arange(9, dtype=np.float32).reshape(1, 1, 9)
    weight = made.graph.initializers["w"].const_value
    assert weight is not None
    (first, second) = weight.numpy().ravel()
    padded = np.pad(x.ravel(), (16, 20))
    np.testing.assert_allclose(run(made, {"x": x})["y"].ravel(), first * padded[:-3] + second * padded[3:], rtol=1e-6)


@pytest.mark.parametrize(
    ("around", "concats", "kept"),
    [
        ([16, 2, 16, 2], [(2, [1, 3, 52, 30])], [0, 2, 0, 2]),
        ([0, 16, 1, 0], [(3, [1, 3, 20, 46])], [0, 0, 1, 0]),
        ([0, 16, 17, 3], [(2, [1, 3, 37, 30]), (3, [1, 3, 37, 49])], [0, 0, 0, 0]),
    ],
)
def test_rewrite_wide_conv_pad_goes_around_the_wide_axes_alone(
    around: list[int], concats: list[tuple[int, list[int]]], kept: list[int]
) -> None:
    made = rewritten(PASS, one_node("Conv", [1, 3, 20, 30], [4, 3, 3, 5], pads=around))
    *joined, conv = made.graph
    shapes = [one.outputs[0].shape for one in joined]
    assert [one.attributes.get_int("axis") for one in joined] == [axis for axis, _ in concats]
    assert [list(shape) for shape in shapes if shape is not None] == [sizes for _, sizes in concats]
    assert pads(conv) == kept


def test_rewrite_wide_conv_pad_keeps_fp16_when_the_graph_is_fp16() -> None:
    made = rewritten(PASS, wide(dtype=np.float16), least_db=50.0)
    assert {value.dtype for one in made.graph for value in one.outputs} == {ir.DataType.FLOAT16}


def readers(channels: int, *each: list[int]) -> ir.Model:
    """y = a sum of convolutions of relu(x) [1, channels, 40] that have these pads, 50 together, and 11 taps."""
    nodes = [node("Relu", "x", "r")]
    weights = []
    for place, around in enumerate(each):
        weights.append(constant(f"w{place}", WEIGHTS.standard_normal((2, channels, 11))))
        nodes.append(node("Conv", f"r w{place}", f"c{place}", kernel_shape=[11], dilations=[5], pads=around))
    nodes.append(node("Sum", " ".join(f"c{place}" for place in range(len(each))), "y"))
    return model(nodes, [tensor("x", [1, channels, 40])], [tensor("y", [1, 2, 40])], weights)


def test_rewrite_wide_conv_pad_makes_one_concat_when_several_want_the_same() -> None:
    made = rewritten(PASS, readers(5, [25, 25], [50, 0], [25, 25], [50, 0]), hits=4)
    assert sorted(operators(made)) == ["Concat"] * 2 + ["Conv"] * 4 + ["Relu", "Sum"]


def test_rewrite_wide_conv_pad_saves_passes_of_any_channels_when_several_want_the_same() -> None:
    assert operators(rewritten(PASS, readers(16, [25, 25], [25, 25]), hits=2)).count("Concat") == 1
    left_alone(PASS, readers(16, [25, 25], [50, 0]))


def test_rewrite_wide_conv_pad_leaves_whole_channels_alone_when_there_would_be_as_many_concats() -> None:
    nodes = [node("Conv", f"x w{at}", f"y{at}", pads=[16, 16, 16, 16]) for at in range(3)]
    weights = [constant(f"w{at}", WEIGHTS.standard_normal((2, 8, 3, 3))) for at in range(3)]
    outputs = [tensor(f"y{at}", [1, 2, 36, 36]) for at in range(3)]
    left_alone(PASS, model(nodes[:2], [tensor("x", [1, 8, 6, 6])], outputs[:2], weights[:2]))
    made = rewritten(PASS, model(nodes, [tensor("x", [1, 8, 6, 6])], outputs, weights), hits=3)
    assert operators(made).count("Concat") == 2


@pytest.mark.parametrize(
    "original",
    [
        wide(pads=[15, 15], length=60),
        wide(channels=8),
        wide(channels=24),
        wide(auto_pad="SAME_UPPER"),
        wide(pads=[-1, 60]),
        wide(strides=[9], kernel=3, dilation=1),
        wide(length=8000, kernel=3, dilation=64, pads=[64, 64]),
        wide(kernel=40, dilation=2, pads=[39, 39]),
        one_node("Conv", [1, 5, "t"], [3, 5, 11], pads=[25, 25]),
        one_node("ConvTranspose", [1, 5, 40], [5, 3, 40], pads=[16, 16]),
        one_node("MaxPool", [1, 5, 40], kernel_shape=[40], pads=[16, 16]),
    ],
    ids=lambda made: str(list(the_node(made).attributes.values())),
)
def test_rewrite_wide_conv_pad_leaves_the_graph_alone_when_there_is_no_pad_or_it_is_others(original: ir.Model) -> None:
    left_alone(PASS, original)


def test_the_engine_pads_no_more_on_the_cpu_and_says_the_same(tmp_path: Path) -> None:
    channels, steps = 20, 1024
    nodes = [
        node("Conv", "x v", "a", kernel_shape=[3], pads=[1, 1]),
        node("LeakyRelu", "a", "l", alpha=0.1),
        node("Conv", "l w", "c", kernel_shape=[11], dilations=[5], pads=[25, 25]),
        node("Conv", "c v", "y", kernel_shape=[3], pads=[1, 1]),
    ]
    weights = [
        constant(name, WEIGHTS.standard_normal((channels, channels, k)) / 15) for name, k in (("v", 3), ("w", 11))
    ]
    original = model(nodes, [tensor("x", [1, channels, steps])], [tensor("y", [1, channels, steps])], weights)
    feed = {"x": noise(1, channels, steps)}
    costs = []
    for name, graph in (("before", original), ("after", rewritten(PASS, original))):
        (tmp_path / name).mkdir()
        done = built(graph, feed, tmp_path / name, converter_python())
        lines = kept_lines(done.lines)
        table = parse_layer_table(lines)
        assert table is not None
        assert not [line for line in lines if "REGTASK" in line]
        assert compare_outputs(run(original, feed), done.simulated[0]).snr_db > 55
        costs.append((modelled_ms(table.layers), [layer.op for layer in table.layers if on_cpu(layer)]))
    (before, padded), (after, left) = costs
    assert "Pad" in padded
    assert "Pad" not in left
    assert after < before
