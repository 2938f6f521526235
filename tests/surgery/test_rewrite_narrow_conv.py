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
from surgery.rewrite_narrow_conv import phase_weights, rewrite_narrow_conv
from tests.engine.toolkit_runs import built
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run, snr_db
from tests.surgery.interfaces import applied, left_alone, node, noise, operators

WEIGHTS = np.random.default_rng(5)


def narrow(steps: int, kernel: int, pads: tuple[int, int], behind: str, bias: bool = True, **conv: Any) -> ir.Model:
    """[2, 8, steps] to one channel, `behind` it, and the axis that exporters add."""
    made = (steps + sum(pads) - kernel) // conv.get("strides", [1])[0] + 1
    nodes = [node("Conv", f"x w{' b' * bias}", "c", **{"kernel_shape": [kernel], "pads": list(pads), **conv})]
    for place, op in enumerate(behind.split()):
        alpha = {"alpha": 0.2} if op == "LeakyRelu" else {}
        nodes.append(node(op, "c" if place == 0 else f"a{place - 1}", f"a{place}", **alpha))
    nodes.append(node("Unsqueeze", f"{nodes[-1].output[0]} axis", "y"))
    weights = [constant("w", WEIGHTS.standard_normal((1, 8, kernel))), constant("axis", [2], np.int64)]
    return model(
        nodes,
        [tensor("x", [2, 8, steps])],
        [tensor("y", [2, 1, 1, made])],
        [*weights, *([constant("b", [0.3])] * bias)],
    )


@pytest.mark.parametrize("behind", ["", "Tanh", "LeakyRelu Sigmoid", "Relu Tanh"])
@pytest.mark.parametrize(
    ("steps", "kernel", "pads"), [(32, 7, (3, 3)), (31, 4, (4, 0)), (36, 13, (0, 0)), (16, 3, (1, 1))]
)
def test_four_steps_at_once_are_the_same_sound(steps: int, kernel: int, pads: tuple[int, int], behind: str) -> None:
    original = narrow(steps, kernel, pads, behind, bias=kernel != 4)
    done = applied(rewrite_narrow_conv(), original)
    assert done.hits == 1
    feed = {"x": noise(2, 8, steps)}
    assert snr_db(run(original, feed)["y"], run(done.model, feed)["y"]) > 120
    assert operators(done.model) == ["Conv", *behind.split(), "Transpose", "Reshape", "Unsqueeze"]
    conv = done.model.graph[0]
    assert list(conv.attributes.get_ints("strides") or ()) == [4]
    assert list(conv.attributes.get_ints("kernel_shape") or ()) == [kernel + 3]
    assert "w" not in done.model.graph.initializers


@pytest.mark.parametrize(("steps", "at_once"), [(4 * 8192, 4), (4 * 8192 + 16, 8), (8 * 8192, 8)])
def test_a_long_axis_is_cut_into_what_the_npu_transposes(steps: int, at_once: int) -> None:
    original = narrow(steps, 7, (3, 3), "Tanh")
    done = applied(rewrite_narrow_conv(), original)
    assert list(done.model.graph[0].attributes.get_ints("strides") or ()) == [at_once]
    feed = {"x": noise(2, 8, steps)}
    assert snr_db(run(original, feed)["y"], run(done.model, feed)["y"]) > 120


@pytest.mark.parametrize(("steps", "kernel"), [(8 * 8192 + 16, 7), (4 * 8192 + 8, 7), (4 * 8192 + 16, 11)])
def test_a_longer_axis_is_left_alone(steps: int, kernel: int) -> None:
    left_alone(rewrite_narrow_conv(), narrow(steps, kernel, (kernel // 2, kernel // 2), "Tanh"))


def test_steps_are_left_alone_when_they_are_no_multiple_of_eight() -> None:
    left_alone(rewrite_narrow_conv(), narrow(436, 7, (3, 3), "Tanh"))
    assert applied(rewrite_narrow_conv(), narrow(440, 7, (3, 3), "Tanh")).hits == 1


def test_each_phase_has_the_taps_one_step_further_on() -> None:
    made = phase_weights(np.array([[[1.0, 2.0, 3.0]]]), 4)
    assert made.tolist() == [[[1, 2, 3, 0, 0, 0]], [[0, 1, 2, 3, 0, 0]], [[0, 0, 1, 2, 3, 0]], [[0, 0, 0, 1, 2, 3]]]


def test_the_output_of_the_graph_keeps_its_name() -> None:
    nodes = [node("Conv", "x w", "c", kernel_shape=[3], pads=[1, 1]), node("Tanh", "c", "y")]
    nodes += [node("Reshape", "y flat", "z")]
    weights = [constant("w", WEIGHTS.standard_normal((1, 4, 3))), constant("flat", [1, 1, 1, 8], np.int64)]
    original = model(nodes, [tensor("x", [1, 4, 8])], [tensor("z", [1, 1, 1, 8])], weights)
    done = applied(rewrite_narrow_conv(), original)
    assert [value.name for value in done.model.graph.outputs] == ["z"]
    feed = {"x": noise(1, 4, 8)}
    assert snr_db(run(original, feed)["z"], run(done.model, feed)["z"]) > 120


def other(what: str) -> ir.Model:
    if what == "steps":
        return narrow(33, 7, (3, 3), "Tanh")
    if what == "stride":
        return narrow(32, 2, (0, 0), "Tanh", strides=[2])
    if what == "dilation":
        return dilated()
    if what == "two taps":
        return narrow(33, 2, (0, 0), "Tanh")
    if what == "many taps":
        return narrow(32, 15, (7, 7), "Tanh")
    nodes = [node("Conv", "x w", "c", kernel_shape=[3], pads=[1, 1])]
    weights = [constant("w", WEIGHTS.standard_normal((2 if what == "two channels" else 1, 4, 3)))]
    if what == "two channels":
        return model([*nodes, node("Tanh", "c", "y")], [tensor("x", [1, 4, 8])], [tensor("y", [1, 2, 8])], weights)
    if what == "read on":
        nodes += [node("Mul", "x c", "y")]
        return model(nodes, [tensor("x", [1, 4, 8])], [tensor("y", [1, 4, 8])], weights)
    if what == "read twice":
        nodes += [node("Tanh", "c", "y"), node("Sin", "c", "z")]
        return model(nodes, [tensor("x", [1, 4, 8])], [tensor("y", [1, 1, 8]), tensor("z", [1, 1, 8])], weights)
    if what == "computed":
        nodes = [node("Neg", "v", "w"), *nodes, node("Tanh", "c", "y")]
        return model(nodes, [tensor("x", [1, 4, 8]), tensor("v", [1, 4, 3])], [tensor("y", [1, 1, 8])])
    if what == "three axes":
        return model([*nodes, node("Tanh", "c", "y")], [tensor("x", [1, 4, 8])], [tensor("y", [1, 1, 8])], weights)
    nodes[0].attribute.append(node("Conv", "x w", "c", auto_pad="SAME_UPPER").attribute[0])
    del nodes[0].attribute[1]
    return model([*nodes, node("Tanh", "c", "y")], [tensor("x", [1, 4, 8])], [tensor("y", [1, 1, 8])], weights)


def dilated() -> ir.Model:
    nodes = [node("Conv", "x w", "y", kernel_shape=[3], pads=[2, 2], dilations=[2])]
    weight = constant("w", WEIGHTS.standard_normal((1, 4, 3)))
    return model(nodes, [tensor("x", [1, 4, 8])], [tensor("y", [1, 1, 8])], [weight])


@pytest.mark.parametrize(
    "what",
    [
        "steps",
        "stride",
        "dilation",
        "two taps",
        "many taps",
        "two channels",
        "read on",
        "read twice",
        "computed",
        "auto_pad",
    ],
)
def test_other_convolutions_are_left_alone(what: str) -> None:
    left_alone(rewrite_narrow_conv(), other(what))


def test_the_engine_is_cheaper_and_says_the_same(tmp_path: Path) -> None:
    steps, channels = 4096, 32
    wide = constant("v", WEIGHTS.standard_normal((channels, channels, 3)) / 10)
    nodes = [
        node("Conv", "x v", "a", kernel_shape=[3], pads=[1, 1]),
        node("LeakyRelu", "a", "l", alpha=0.01),
        node("Conv", "l w", "c", kernel_shape=[7], pads=[3, 3]),
        node("Tanh", "c", "t"),
        node("Unsqueeze", "t axis", "y"),
    ]
    weights = [wide, constant("axis", [2], np.int64), constant("w", WEIGHTS.standard_normal((1, channels, 7)) / 15)]
    original = model(nodes, [tensor("x", [1, channels, steps])], [tensor("y", [1, 1, 1, steps])], weights)
    feed = {"x": noise(1, channels, steps)}
    costs = []
    for name, graph in (("before", original), ("after", rewrite_narrow_conv().rewrite(original).model)):
        (tmp_path / name).mkdir()
        done = built(graph, feed, tmp_path / name, converter_python())
        lines = kept_lines(done.lines)
        table = parse_layer_table(lines)
        assert table is not None
        assert not [layer for layer in table.layers if on_cpu(layer)]
        assert not [line for line in lines if "REGTASK" in line]
        assert compare_outputs(run(original, feed), done.simulated[0]).snr_db > 55
        costs.append((modelled_ms(table.layers), sum(layer.cycles for layer in table.layers)))
    assert costs[1][0] < costs[0][0]
    # 16 channels are counted for one: 7 taps a step before, 10 for four steps after.
    conv_before, conv_after = steps * 7 * channels * 16 / 512, steps / 4 * 10 * channels * 16 / 512
    assert costs[0][1] - costs[1][1] == pytest.approx(conv_before - conv_after, rel=0.2)
