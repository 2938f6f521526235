"""How far samples reach back, against sizes worked out by hand and against what numbers feel."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from surgery.behind_mask import Behind, behind_mask
from surgery.graph import extract, level_of_ratio
from surgery.receptive_fields import bottlenecks, context_frames
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run
from tests.surgery.graphs import decoder, latent
from tests.vits_writer.recipe import HIGH, MEDIUM, QUALITIES, Recipe


def contexts(graph: ir.Model) -> tuple[Behind, dict[str, int], list[str]]:
    """The decoder behind `y_mask`, and by name the context of its values and its bottlenecks."""
    found = behind_mask(graph.graph, "y_mask")
    assert isinstance(found, Behind)
    rates = level_of_ratio(found.nodes, [found.start])
    context = context_frames(found.nodes, rates, graph.graph.outputs)
    narrow = bottlenecks(found.nodes, found.start, rates)
    return found, {str(value.name): frames for value, frames in context.items()}, [str(v.name) for v in narrow]


def one_layer(op: str, kernel: int, **attributes: Any) -> ir.Model:
    """z * y_mask and one layer of one channel."""
    nodes = [
        helper.make_node("Mul", ["z", "y_mask"], ["x"], "masked"),
        helper.make_node(op, ["x", "w"], ["audio"], "net", **attributes),
    ]
    inputs = [tensor("z", [1, 1, 8]), tensor("y_mask", [1, 1, 8])]
    return model(nodes, inputs, [tensor("audio", [1, 1, "n"])], [constant("w", np.ones((1, 1, kernel)))])


@pytest.mark.parametrize(
    ("op", "kernel", "attributes", "wanted"),
    [
        ("Conv", 1, {}, 0),
        ("Conv", 7, {"pads": [3, 3]}, 3),
        ("Conv", 3, {"pads": [5, 5], "dilations": [5]}, 5),
        ("Conv", 3, {"pads": [2, 0]}, 2),  # all of it on the left
        ("Conv", 3, {"pads": [0, 2]}, 2),  # all of it on the right
        ("ConvTranspose", 4, {"strides": [4]}, 0),  # each frame makes its own four steps
        (
            "ConvTranspose",
            8,
            {"strides": [4], "pads": [2, 2]},
            1,
        ),  # steps 0 and 1 hold the frame before, 2 and 3 the next
        ("ConvTranspose", 8, {"strides": [4], "pads": [4, 0]}, 1),  # all of it on the right
        ("ConvTranspose", 8, {"strides": [4], "pads": [0, 4]}, 1),  # all of it on the left
        ("ConvTranspose", 16, {"strides": [8], "pads": [4, 4]}, 1),
        ("ConvTranspose", 6, {"strides": [2], "pads": [2, 2]}, 1),
        ("ConvTranspose", 10, {"strides": [2], "pads": [4, 4]}, 2),
    ],
)
def test_context_is_that_of_the_kernel_when_there_is_one_layer(
    op: str, kernel: int, attributes: dict[str, Any], wanted: int
) -> None:
    assert contexts(one_layer(op, kernel, **attributes))[1]["x"] == wanted


def test_context_is_told_in_whole_frames_when_layers_at_two_rates_add_up() -> None:
    nodes = [
        helper.make_node("Mul", ["z", "y_mask"], ["x"], "masked"),
        helper.make_node("ConvTranspose", ["x", "w4"], ["up"], "up", strides=[4]),
        helper.make_node("Conv", ["up", "w3"], ["near"], "near", pads=[1, 1]),
        helper.make_node("Conv", ["up", "w3"], ["far"], "far", pads=[5, 5], dilations=[5]),
        helper.make_node("Add", ["near", "far"], ["sum"], "join"),
        helper.make_node("Conv", ["sum", "w3"], ["audio"], "last", pads=[1, 1]),
    ]
    inputs = [tensor("z", [1, 1, 8]), tensor("y_mask", [1, 1, 8])]
    weights = [constant("w4", np.ones((1, 1, 4))), constant("w3", np.ones((1, 1, 3)))]
    graph = model(nodes, inputs, [tensor("audio", [1, 1, "n"])], weights)
    _, frames, narrow = contexts(graph)
    # 1 step at the sum, 6 where the convolution of dilation 5 reads: two frames of 4 steps.
    assert frames == {"audio": 0, "sum": 1, "near": 1, "far": 1, "up": 2, "x": 2}
    assert narrow == ["x", "up", "sum", "audio"][: len(narrow)]


@pytest.mark.parametrize("recipe", [*QUALITIES.values(), Recipe(), Recipe(strides=(5, 3)), Recipe(strides=())])
def test_context_is_what_the_samples_of_the_middle_feel(recipe: Recipe) -> None:
    whole = decoder(recipe)
    found, frames, _ = contexts(whole)
    start = str(found.start.name)
    alone, context = extract(whole, {start: "x"}, {"audio": "audio"}), frames[start]
    (x_input,) = alone.graph.inputs
    x_input.type, x_input.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape([1, recipe.latent, "frames"])
    window, middle = 2 * context + 5, slice(context + 2, context + 3)
    x = latent(recipe, window)
    samples = slice(middle.start * recipe.hop, middle.stop * recipe.hop)
    wanted = run(alone, {"x": x})["audio"][..., samples]
    far, near = x.copy(), [x.copy(), x.copy()]
    far[..., : middle.start - context] = far[..., middle.stop + context :] = 1e3
    near[0][..., middle.start - context] = near[1][..., middle.stop + context - 1] = 1e3
    np.testing.assert_array_equal(run(alone, {"x": far})["audio"][..., samples], wanted)
    assert any((run(alone, {"x": one})["audio"][..., samples] != wanted).any() for one in near)


def test_what_no_output_depends_on_is_not_behind_the_mask() -> None:
    made = ir.to_proto(one_layer("Conv", 3, pads=[1, 1]))
    made.graph.node.append(helper.make_node("Neg", ["x"], ["nobody's"], "dead"))
    found = behind_mask(ir.from_proto(made).graph, "y_mask")
    assert isinstance(found, Behind)
    assert [node.name for node in found.nodes] == ["net"]


def test_bottlenecks_are_what_every_path_goes_by() -> None:
    _, _, narrow = contexts(decoder(MEDIUM))
    assert any("ConvTranspose" in name for name in narrow)
    assert not any("resblocks" in name and "convs" in name for name in narrow)
    assert len(contexts(decoder(HIGH))[2]) > len(HIGH.strides)
