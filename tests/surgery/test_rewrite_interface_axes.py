from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto

from cost.model import on_cpu
from engine.environment import converter_python
from gates.snr import compare_outputs
from logs.layer_table import parse_layer_table
from rknn_tts.build_gates import kept_lines
from surgery.declaration import Interface, Recast
from surgery.inferred import static_shape
from surgery.rewrite_interface_axes import ARGB_STEPS, rewrite_interface_axes
from tests.engine.toolkit_runs import built
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import Array, run
from tests.surgery.interfaces import WEIGHT, applied, conv, left_alone, node, noise, operators

X, Y = tensor("x", [1, 4, 9]), tensor("y", [1, 4, 9])


def same_numbers(original: ir.Model, made: ir.Model, feed: dict[str, Array]) -> None:
    """Bit for bit, in whatever shape."""
    shapes = {str(value.name): static_shape(value) or () for value in made.graph.inputs}
    after = run(made, {name: array.reshape(shapes[name]) for name, array in feed.items()})
    for name, array in run(original, feed).items():
        np.testing.assert_array_equal(after[name].reshape(-1), array.reshape(-1))


@pytest.mark.parametrize("opset", [9, 13, 17])
def test_inputs_and_outputs_of_three_axes_get_a_fourth(opset: int) -> None:
    original = model([conv(), node("Neg", "c", "y")], [X], [Y], [WEIGHT], opset=opset)
    done = applied(rewrite_interface_axes(), original)
    wide = (1, 4, 1, 9)
    assert done.interface == Interface(inputs=(Recast("x", wide, "float32"),), outputs=(Recast("y", wide, "float32"),))
    assert done.hits == 2
    assert [tuple(value.shape or ()) for value in (*done.model.graph.inputs, *done.model.graph.outputs)] == [wide, wide]
    assert operators(done.model) == ["Reshape", "Conv", "Neg", "Reshape"]
    same_numbers(original, done.model, {"x": noise(1, 4, 9)})


def test_every_reader_of_an_input_and_of_an_output_reads_what_it_read() -> None:
    nodes = [node("Neg", "x", "y"), node("Add", "x y", "z"), node("ReduceMean", "z", "m", axes=[2], keepdims=0)]
    original = model(nodes, [X], [Y, tensor("z", [1, 4, 9]), tensor("m", [1, 4])])
    done = applied(rewrite_interface_axes(), original)
    assert done.hits == 3
    assert [len(value.shape or ()) for value in done.model.graph.outputs] == [4, 4, 2]
    same_numbers(original, done.model, {"x": noise(1, 4, 9)})


def test_an_output_whose_shape_the_file_does_not_state_is_inferred() -> None:
    original = model([node("Neg", "x", "y")], [X], [Y])
    original.graph.outputs[0].shape = None
    done = applied(rewrite_interface_axes(), original)
    assert done.interface.outputs == (Recast("y", (1, 4, 1, 9), "float32"),)


def other(name: str) -> ir.Model:
    if name == "two axes":
        return model([node("Neg", "x", "y")], [tensor("x", [4, 9])], [tensor("y", [4, 9])])
    if name == "four axes":
        return model([node("Neg", "x", "y")], [tensor("x", [1, 4, 1, 9])], [tensor("y", [1, 4, 1, 9])])
    if name == "integers":
        kind = TensorProto.INT64
        return model([node("Neg", "x", "y")], [tensor("x", [1, 4, 9], kind)], [tensor("y", [1, 4, 9], kind)])
    if name == "open":
        return model([node("Neg", "x", "y")], [tensor("x", [1, 4, "T"])], [tensor("y", [1, 4, "T"])])
    weight = constant("k", np.ones((1, 4, 9)))
    return model(
        [node("Neg", "q", "z")], [X, tensor("q", [4])], [X, tensor("z", [4]), tensor("k", [1, 4, 9])], [weight]
    )


@pytest.mark.parametrize("name", ["two axes", "four axes", "integers", "open", "passed on"])
def test_other_inputs_and_outputs_are_left_alone(name: str) -> None:
    left_alone(rewrite_interface_axes(), other(name))


@pytest.mark.parametrize("channels", [1, 4])
def test_an_input_of_few_channels_is_left_alone_where_it_is_long(channels: int) -> None:
    left_alone(rewrite_interface_axes(), given_to_a_mean(channels, ARGB_STEPS + 1))


@pytest.mark.parametrize(("channels", "steps"), [(1, ARGB_STEPS), (5, 7680)])
def test_an_input_gets_a_fourth_axis_where_the_compiler_takes_it(channels: int, steps: int) -> None:
    done = applied(rewrite_interface_axes(), given_to_a_mean(channels, steps))
    assert done.interface.inputs == (Recast("x", (1, channels, 1, steps), "float32"),)


def given_to_a_mean(channels: int, steps: int) -> ir.Model:
    nodes = [node("ReduceMean", "x", "m", axes=[2], keepdims=0)]
    return model(nodes, [tensor("x", [1, channels, steps])], [tensor("m", [1, channels])])


@pytest.mark.parametrize("target", ["rk3562", "rk3576"])
def test_a_long_sound_is_built_where_four_axes_would_not_be(target: str, tmp_path: Path) -> None:
    steps = 7680
    weights = [constant("w", np.ones((8, 1, 3)) / 3), constant("v", np.ones((8, 8, 3)) / 24)]
    nodes = [node("Conv", "x w", "h", pads=[1, 1]), node("Relu", "h", "r"), node("Conv", "r v", "y", pads=[1, 1])]
    original = model(nodes, [tensor("x", [1, 1, steps])], [tensor("y", [1, 8, steps])], weights)
    made = applied(rewrite_interface_axes(), original)
    assert [change.name for change in (*made.interface.inputs, *made.interface.outputs)] == ["y"]
    feed = {"x": noise(1, 1, steps)}
    result = built(made.model, feed, tmp_path, converter_python(), target)
    reference = {name: array.reshape(1, 8, 1, steps) for name, array in run(original, feed).items()}
    assert compare_outputs(reference, result.simulated[0]).snr_db > 50


def test_the_engine_has_no_layer_on_the_cpu_where_it_had_two(tmp_path: Path) -> None:
    original = model([conv(), node("Neg", "c", "y")], [X], [Y], [WEIGHT])
    x = noise(1, 4, 9)
    placed = []
    for name, graph, feed in (
        ("before", original, x),
        ("after", rewrite_interface_axes().rewrite(original).model, x.reshape(1, 4, 1, 9)),
    ):
        (tmp_path / name).mkdir()
        done = built(graph, {"x": feed}, tmp_path / name, converter_python())
        table = parse_layer_table(kept_lines(done.lines))
        assert table is not None
        placed.append([layer.op for layer in table.layers if on_cpu(layer)])
        assert compare_outputs(run(graph, {"x": feed}), done.simulated[0]).snr_db > 55
    assert placed == [["Reshape", "Reshape"], []]
