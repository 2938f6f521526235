from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from surgery.graph import (
    ancestors,
    descendants,
    extract,
    holds,
    level_of_ratio,
    node_dependencies,
    only_reader,
    time_stride,
    value_named,
    varying_values,
)
from tests.gates.small_graphs import constant, model, proto, row, tensor
from tests.onnx_runs import run
from tests.surgery.graphs import check, serialised
from tests.vits_writer.names import renamed
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import LATENT, MASK, decoder_model, voice_model

BOOL = onnx.TensorProto.BOOL


def names(nodes: set[ir.Node]) -> set[str]:
    return {str(node.name) for node in nodes}


def with_branch() -> ir.Model:
    """`a` and `b` are made outside; the branches of `if` capture them, `c` decides; `beside` does not lead there."""

    def branch(name: str, op: str, captured: str) -> onnx.GraphProto:
        nodes = [
            helper.make_node(op, [captured], [f"{name}_1"], f"{name}_inner"),
            helper.make_node("Add", [f"{name}_1", f"{name}_w"], [f"{name}_2"], f"{name}_add"),
        ]
        return helper.make_graph(nodes, name, [], [tensor(f"{name}_2", [1, 4])], [constant(f"{name}_w", [[1.0] * 4])])

    nodes = [
        helper.make_node("Neg", ["x"], ["a"], "make_a"),
        helper.make_node("Abs", ["x"], ["b"], "make_b"),
        helper.make_node("Exp", ["x"], ["s"], "beside"),
        helper.make_node(
            "If", ["c"], ["k"], "if", then_branch=branch("then", "Relu", "a"), else_branch=branch("else", "Sin", "b")
        ),
        helper.make_node("Mul", ["k", "s"], ["y"], "last"),
    ]
    return model(nodes, [tensor("x", [1, 4]), tensor("c", [], BOOL)], [tensor("y", [1, 4])])


def test_ancestors_holds_what_nested_graphs_capture() -> None:
    graph = with_branch().graph
    assert names(ancestors([value_named(graph, "k")])) == {"if", "make_a", "make_b"}
    assert names(ancestors(graph.outputs)) == {"last", "beside", "if", "make_a", "make_b"}


def test_ancestors_is_empty_when_a_value_is_an_input() -> None:
    graph = with_branch().graph
    assert ancestors(graph.inputs) == set()


@pytest.mark.parametrize(
    ("value", "wanted"), [("a", {"if", "last"}), ("s", {"last"}), ("c", {"if", "last"}), ("y", set())]
)
def test_descendants_names_the_node_of_the_main_graph_when_a_nested_graph_reads_a_value(
    value: str, wanted: set[str]
) -> None:
    graph = with_branch().graph
    assert names(descendants(graph, [value_named(graph, value)])) == wanted


def test_node_dependencies_leaves_out_what_a_nested_graph_makes_itself() -> None:
    graph = with_branch().graph
    node = value_named(graph, "k").producer()
    assert node is not None
    assert {value.name for value in node_dependencies(node)} == {"c", "a", "b"}


def test_holds_asks_for_everything_that_is_needed_once() -> None:
    needs = {"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": ["a"]}  # in a ring, too
    asked: list[str] = []

    def of(part: str) -> list[str]:
        asked.append(part)
        return needs[part]

    assert holds("a", of)
    assert sorted(asked) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("wrong", ["a", "b", "c", "d"])
def test_holds_is_false_when_one_part_is_wrong(wrong: str) -> None:
    needs = {"a": ["b", "c"], "b": [], "c": ["d"], "d": []}
    assert not holds("a", lambda part: None if part == wrong else needs[part])


def test_only_reader_is_the_one_node_that_reads_a_value() -> None:
    nodes = [
        helper.make_node("Tanh", ["x"], ["a"]),
        helper.make_node("Mul", ["a", "a"], ["b"]),
        helper.make_node("Neg", ["b"], ["c"]),
        helper.make_node("Add", ["b", "c"], ["y"]),
    ]
    graph = model(nodes, [tensor("x", [2])], [tensor("y", [2])], ()).graph
    assert only_reader(graph[0].outputs[0]) is graph[1]
    assert only_reader(graph[1].outputs[0]) is None
    assert only_reader(graph[3].outputs[0]) is None  # the graph's output


def test_only_reader_is_none_when_a_nested_graph_reads_a_value() -> None:
    then = helper.make_graph([helper.make_node("Neg", ["a"], ["n"])], "then", [], [tensor("n", [2])])
    other = helper.make_graph([helper.make_node("Constant", [], ["k"], value=constant("", [1.0, 2.0]))], "other", [],
                              [tensor("k", [2])])  # fmt: skip
    nodes = [
        helper.make_node("Tanh", ["x"], ["a"]),
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    graph = model(nodes, [tensor("x", [2]), tensor("c", [], onnx.TensorProto.BOOL)], [tensor("y", [2])], ()).graph
    assert only_reader(graph[0].outputs[0]) is None


def test_value_named_raises_when_there_is_none() -> None:
    with pytest.raises(KeyError):
        value_named(with_branch().graph, "nothing")


def test_varying_values_are_those_behind_inputs_and_noise() -> None:
    nodes = [
        helper.make_node("Exp", ["w"], ["fixed"], "fixed"),
        helper.make_node("RandomNormal", [], ["drawn"], "drawn", shape=[1, 4]),
        helper.make_node("Add", ["drawn", "fixed"], ["noisy"], "noisy"),
        helper.make_node("Add", ["x", "noisy"], ["y"], "last"),
    ]
    graph = model(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4])], [constant("w", [1.0] * 4)]).graph
    assert {value.name for value in varying_values(graph)} == {"x", "drawn", "noisy", "y"}


def test_varying_values_leave_out_a_weight_that_is_listed_as_an_input() -> None:
    nodes = [helper.make_node("Exp", ["w"], ["e"]), helper.make_node("Mul", ["x", "e"], ["y"])]
    inputs = [tensor("x", [1, 4]), tensor("w", [4])]
    graph = model(nodes, inputs, [tensor("y", [1, 4])], [constant("w", [1.0] * 4)]).graph
    assert {value.name for value in varying_values(graph)} == {"x", "y"}


CUT = {LATENT: "z", MASK: "y_mask"}


@pytest.mark.parametrize(
    "clash",
    [
        {},
        {"dec.conv_pre.weight": "z"},
        {"dec.conv_pre.bias": "y_mask", "dec.conv_post.weight": "audio"},
        {"/Mul_7_output_0": "z", "/dec/Tanh_output_0": "y_mask"},
        {"dec.conv_pre.weight": "z", "dec.conv_pre.bias": "z__original", "/dec/Tanh_output_0": "z__original__original"},
        {LATENT: "y_mask", MASK: "z"},
    ],
)
def test_extract_cuts_the_decoder_out_when_other_values_have_its_new_names(clash: dict[str, str]) -> None:
    recipe = Recipe()
    voice = ir.from_proto(renamed(voice_model(recipe), clash))
    before = serialised(voice)
    cut = extract(voice, {clash.get(old, old): new for old, new in CUT.items()}, {"output": "audio"})
    assert [value.name for value in cut.graph.inputs] == ["z", "y_mask"]
    assert [value.name for value in cut.graph.outputs] == ["audio"]
    feed = {
        "z": np.random.default_rng(3).standard_normal((1, recipe.latent, 12)).astype(np.float32),
        "y_mask": np.ones((1, 1, 12), np.float32),
    }
    for value, like in zip(cut.graph.inputs, feed.values(), strict=True):
        value.shape, value.dtype = ir.Shape(like.shape), ir.DataType.FLOAT
    np.testing.assert_array_equal(run(cut, feed)["audio"], run(decoder_model(recipe), feed)["audio"])
    assert serialised(voice) == before


def test_extract_raises_when_an_output_needs_an_input_that_is_not_named() -> None:
    voice = ir.from_proto(voice_model())
    with pytest.raises(ValueError, match="input"):
        extract(voice, {LATENT: "z"}, {"output": "audio"})


@pytest.mark.parametrize(("inputs", "outputs"), [({"nothing": "z"}, {"output": "a"}), (CUT, {"nothing": "a"})])
def test_extract_raises_when_a_name_is_unknown(inputs: dict[str, str], outputs: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="nothing"):
        extract(ir.from_proto(voice_model()), inputs, outputs)


def test_extract_keeps_nested_graphs_and_what_they_capture() -> None:
    cut = extract(with_branch(), {"x": "x", "c": "c"}, {"k": "out"})
    cut.graph.outputs[0].shape, cut.graph.outputs[0].dtype = ir.Shape([1, 4]), ir.DataType.FLOAT
    check(cut)
    x = row(-1, 2, -3, 4)
    np.testing.assert_array_equal(run(cut, {"x": x, "c": np.array(True)})["out"], np.maximum(-x, 0) + 1)


def test_extract_gives_the_same_bytes_each_time() -> None:
    cuts = [extract(ir.from_proto(voice_model()), CUT, {"output": "audio"}) for _ in range(4)]
    assert len({serialised(cut) for cut in cuts}) == 1


def _chain(*convolutions: tuple[str, dict[str, Any]]) -> list[ir.Node]:
    values = ["x", *(f"t{i}" for i in range(len(convolutions)))]
    nodes = [
        helper.make_node(op, [values[i], "w"], [values[i + 1]], f"n{i}", **sizes)
        for i, (op, sizes) in enumerate(convolutions)
    ]
    made = proto(
        nodes, [tensor("x", [1, 1, "n"])], [tensor(values[-1], [1, 1, "m"])], [constant("w", np.ones((1, 1, 2)))]
    )
    return list(ir.from_proto(made).graph)


def _rate(nodes: list[ir.Node]) -> int:
    start = nodes[0].inputs[0]
    assert start is not None
    return level_of_ratio(nodes, [start])[nodes[-1].outputs[0]]


@pytest.mark.parametrize("strides", [(8, 8, 4), (5, 3), (2, 2, 2, 2), (1,)])
def test_level_of_ratio_multiplies_the_strides_on_the_way(strides: tuple[int, ...]) -> None:
    assert _rate(_chain(*[("ConvTranspose", {"strides": [s]}) for s in strides])) == np.prod(strides)


def test_level_of_ratio_divides_by_the_stride_of_a_convolution() -> None:
    assert _rate(_chain(("ConvTranspose", {"strides": [6]}), ("Conv", {"strides": [3]}))) == 2


def test_level_of_ratio_raises_when_a_convolution_leaves_less_than_a_step() -> None:
    with pytest.raises(ValueError, match="n1"):
        _rate(_chain(("ConvTranspose", {"strides": [4]}), ("Conv", {"strides": [3]})))


def test_level_of_ratio_raises_when_an_output_shape_stands_for_the_rate() -> None:
    with pytest.raises(ValueError, match=r"n0 \(ConvTranspose\) states an output_shape"):
        _rate(_chain(("ConvTranspose", {"strides": [4], "output_shape": [9]})))


def test_level_of_ratio_passes_over_operators_of_other_domains() -> None:
    assert _rate(_chain(("ConvTranspose", {"strides": [4], "domain": "com.microsoft"}))) == 1


def test_level_of_ratio_takes_the_default_stride_when_none_is_stated() -> None:
    nodes = _chain(("ConvTranspose", {}), ("Conv", {}))
    assert _rate(nodes) == 1
    assert [time_stride(node) for node in nodes] == [1, 1]


def test_time_stride_is_that_of_the_last_axis() -> None:
    node = ir.node("Conv", [None, None], {"strides": [2, 7]})
    assert time_stride(node) == 7


@pytest.mark.parametrize(
    "strides",
    [
        ir.AttrInt64s("strides", [0]),
        ir.AttrInt64s("strides", [-2]),
        ir.AttrInt64s("strides", []),
        ir.AttrInt64("strides", 2),
        ir.AttrString("strides", "2"),
    ],
)
def test_time_stride_raises_when_it_is_no_whole_number_above_0(strides: ir.Attr) -> None:
    node = ir.Node("", "ConvTranspose", [None, None], [strides], name="up")
    with pytest.raises(ValueError, match=r"the node up \(ConvTranspose\) has the strides"):
        time_stride(node)


def test_level_of_ratio_raises_when_a_node_joins_two_rates() -> None:
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w"], ["fast"], "up", strides=[2]),
        helper.make_node("Add", ["fast", "x"], ["y"], "join"),
    ]
    made = model(nodes, [tensor("x", [1, 1, 8])], [tensor("y", [1, 1, 16])], [constant("w", np.ones((1, 1, 2)))])
    with pytest.raises(ValueError, match=r"join \(Add\) joins the rates \[1, 2\]"):
        level_of_ratio(list(made.graph), made.graph.inputs)
