"""Transposed convolutions by groups of phases: equal in onnxruntime, and only where it pays."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from contracts.targets import TARGETS
from surgery.rewrite_transposed_conv import MOST_STEPS, rewrite_transposed_conv
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.convolutions import left_alone, one_node, rewritten, the_node

ANY = rewrite_transposed_conv(None)

MOST = rewrite_transposed_conv("rk3566", by="cycles")
"""For the slowest NPU: takes small sites too."""


def up(
    kernel: int, stride: int, length: int = 13, channels: tuple[int, int] = (128, 64), batch: int = 1, **options: Any
) -> ir.Model:
    weight = [channels[0], channels[1] // options.get("group", 1), kernel]
    return one_node("ConvTranspose", [batch, channels[0], length], weight, strides=[stride], **options)


def operators(made: ir.Model) -> list[str]:
    return [node.op_type for node in made.graph]


@pytest.mark.parametrize(
    "original",
    [
        up(16, 8, pads=[4, 4], bias=64),
        up(8, 8, bias=64),
        up(20, 10, pads=[5, 5]),
        up(11, 5, pads=[3, 3], output_padding=[1], bias=64),
        up(10, 5, pads=[2, 2]),
        up(20, 10, length=40, pads=[12, 3]),
        up(12, 8, pads=[20, 0]),
        up(12, 8, pads=[0, 23]),
        up(9, 8, dilations=[3], pads=[2, 1]),
        up(5, 8, length=300, output_padding=[7]),
        up(16, 8, batch=3),
        up(16, 8, auto_pad="VALID", kernel_shape=[16]),
        *(up(16, 8, pads=[4, 4], opset=opset) for opset in (7, 9, 12, 13, 17, 18, 19)),
        up(16, 8, pads=[4, 3], opset=11),
    ],
    ids=lambda made: str(list(the_node(made).attributes.values())),
)
def test_rewrite_transposed_conv_is_equal_when_it_pays(original: ir.Model) -> None:
    made = rewritten(MOST, original)
    assert "ConvTranspose" not in operators(made)
    assert not {"w", "b"} & set(made.graph.initializers)
    assert all(str(node.name).startswith("rewrite_transposed_conv/") for node in made.graph)


def test_rewrite_transposed_conv_cuts_nothing_when_the_length_is_whole() -> None:
    made = rewritten(MOST, up(16, 8, pads=[4, 4]))
    assert operators(made) == ["Reshape", "Conv", "Split", "Conv", "Split", "Concat", "Reshape"]


def test_rewrite_transposed_conv_keeps_fp16_when_the_graph_is_fp16() -> None:
    made = rewritten(MOST, up(16, 8, dtype=np.float16, bias=64), least_db=50.0)
    assert {value.dtype for node in made.graph for value in node.outputs} == {ir.DataType.FLOAT16}


@pytest.mark.parametrize(
    "original",
    [
        up(16, 1),
        up(16, 8, group=2),
        up(16, 8, channels=(64, 64), group=64),
        up(16, 8, auto_pad="SAME_UPPER"),
        up(16, 8, output_shape=[104]),
        up(16, 8, pads=[4, 3], opset=9),
        up(16, 8, dtype=np.float64),
        up(130, 65, channels=(4, 4)),
        up(16, 8, length=MOST_STEPS + 1, channels=(8, 8)),
        up(2, 2, channels=(8, 8)),
        one_node("ConvTranspose", [1, 128, 1, 9], [128, 64, 1, 16], strides=[1, 8]),
        one_node("ConvTranspose", [1, 128, "t"], [128, 64, 16], strides=[8]),
        one_node("Conv", [1, 128, 900], [64, 128, 16], strides=[8]),
    ],
    ids=lambda made: str(list(the_node(made).attributes.values())),
)
def test_rewrite_transposed_conv_leaves_the_graph_alone_when_it_does_not_pay_or_is_not_known(
    original: ir.Model,
) -> None:
    left_alone(MOST, original)


def test_rewrite_transposed_conv_leaves_the_graph_alone_when_the_domain_is_another() -> None:
    original = up(16, 8)
    the_node(original).domain = "com.example"
    original.graph.opset_imports["com.example"] = 1
    left_alone(MOST, original)


@pytest.mark.parametrize("computed", ["w", "b", "x"])
def test_rewrite_transposed_conv_leaves_the_graph_alone_when_weights_are_computed(computed: str) -> None:
    names = ["scaled" if name == computed else name for name in ("x", "w", "b")]
    nodes = [
        helper.make_node("Mul", [computed, "scale"], ["scaled"], "mul"),
        helper.make_node("ConvTranspose", names, ["y"], "c", kernel_shape=[16], strides=[8]),
    ]
    weights = [constant("w", np.ones((128, 64, 16))), constant("b", np.ones(64))]
    made = model(nodes, [tensor("x", [1, 128, 9]), tensor("scale", [1])], [tensor("y", [1, 64, 80])], weights)
    if computed == "x":
        rewritten(MOST, made)
    else:
        left_alone(MOST, made)


def test_rewrite_transposed_conv_keeps_names_and_weights_when_others_use_them() -> None:
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w"], ["y"], "c", kernel_shape=[16], strides=[8]),
        helper.make_node("Relu", ["y"], ["z"], "relu"),
        helper.make_node("Identity", ["w"], ["v"], "same"),
    ]
    outputs = [tensor("y", [1, 64, 80]), tensor("z", [1, 64, 80]), tensor("v", [128, 64, 16])]
    weight = constant("w", np.random.default_rng(1).standard_normal((128, 64, 16)))
    made = rewritten(MOST, model(nodes, [tensor("x", [1, 128, 9])], outputs, [weight]))
    assert "w" in made.graph.initializers


@pytest.mark.parametrize(
    ("original", "paying"),
    [
        (up(16, 8, 109, (256, 128), pads=[4, 4]), set(TARGETS)),
        (up(16, 8, 872, (128, 64), pads=[4, 4]), set(TARGETS)),
        (up(8, 4, 6976, (64, 32), pads=[2, 2]), {"rk3566", "rk3568"}),
        (up(4, 2, 7440, (64, 32), pads=[1, 1]), set()),
        (up(20, 10, 160, (512, 256), pads=[5, 5]), set(TARGETS)),
        (up(12, 6, 1280, (256, 128), pads=[3, 3]), set(TARGETS)),
    ],
    ids=["piper 1", "piper 2", "piper 3", "stride 2", "kokoro 1", "kokoro 2"],
)
def test_rewrite_transposed_conv_asks_the_target_when_it_is_named(original: ir.Model, paying: set[str]) -> None:
    by_target = {target: rewrite_transposed_conv(target).rewrite(original).hits for target in TARGETS}
    assert {target for target, hits in by_target.items() if hits} == paying
    assert ANY.rewrite(original).hits == (paying == set(TARGETS))


def test_rewrite_transposed_conv_goes_by_cycles_when_it_is_told() -> None:
    original = up(8, 4, 6976, (64, 32), pads=[2, 2])
    left_alone(rewrite_transposed_conv("rk3588"), original)
    rewritten(rewrite_transposed_conv("rk3588", by="cycles"), original)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("rv1106", "time"), "nothing is known of the target rv1106"),
        (("rk3588", "bytes"), "by time or cycles, not by 'bytes'"),
        ((None, ""), "by time or cycles, not by ''"),
    ],
)
def test_rewrite_transposed_conv_fails_when_nothing_is_known_of_its_arguments(
    arguments: tuple[Any, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        rewrite_transposed_conv(*arguments)
