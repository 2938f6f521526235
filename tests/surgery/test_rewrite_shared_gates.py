from __future__ import annotations

import onnx_ir as ir
import pytest
from onnx import NodeProto, helper

from surgery.rewrite_shared_gates import rewrite_shared_gates
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.one_operator import equal_after, left_alone, operators

PASS = rewrite_shared_gates()
GATE = helper.make_node("Sigmoid", ["x"], ["s"], "gate")
SCALED = (helper.make_node("Mul", ["x", "k"], ["kx"], "scale"), helper.make_node("Sigmoid", ["kx"], ["s"], "gate"))


def product(*factors: str) -> NodeProto:
    return helper.make_node("Mul", factors, ["m"], "swish")


def added(*terms: str) -> NodeProto:
    return helper.make_node("Sum", terms, ["y"], "sum")


def graph(*nodes: NodeProto, outputs: str = "y") -> ir.Model:
    shape = [1, 4, 12]
    made = [tensor(name, shape) for name in outputs.split()]
    return model([*nodes], [tensor("x", shape)], made, [constant("k", 1.702)])


@pytest.mark.parametrize(
    "original",
    [
        graph(GATE, product("x", "s"), added("m", "s")),
        graph(GATE, product("s", "x"), added("m", "s")),
        graph(GATE, product("s", "x"), helper.make_node("Log", ["s"], ["y"], "log"), outputs="m y"),
        graph(*SCALED, product("s", "kx"), added("m", "s", "kx")),
        graph(GATE, product("x", "s"), helper.make_node("Mul", ["m", "s"], ["y"], "again")),
    ],
    ids=["left", "right", "two outputs", "of the scaled", "gated twice"],
)
def test_swish_gets_its_own_sigmoid_when_something_else_reads_its_gate(original: ir.Model) -> None:
    made = equal_after(PASS, original)
    assert operators(made).count("Sigmoid") == 2
    assert {len(node.outputs[0].uses()) for node in made.graph if node.op_type == "Sigmoid"} == {1}


def test_each_of_several_swishes_has_one_sigmoid() -> None:
    swishes = [helper.make_node("Mul", ["x", "s"], [f"m{number}"], f"swish{number}") for number in range(3)]
    made = equal_after(PASS, graph(GATE, *swishes, added("m0", "m1", "m2")), hits=2)
    assert operators(made).count("Sigmoid") == 3


@pytest.mark.parametrize(
    "original",
    [
        graph(*SCALED, product("x", "s"), added("m", "s")),
        graph(*SCALED, product("s", "x"), added("m", "kx")),
        graph(*SCALED, product("s", "x"), helper.make_node("Mul", ["x", "s"], ["n"], "again"), added("m", "n")),
        graph(
            *SCALED,
            helper.make_node("Sigmoid", ["kx"], ["t"], "another"),
            product("s", "x"),
            helper.make_node("Mul", ["x", "t"], ["n"], "again"),
            added("m", "n", "s", "t"),
        ),
    ],
    ids=["gate", "scale", "two swishes", "two gates"],
)
def test_scale_is_turned_round_when_a_part_of_the_swish_is_read_elsewhere(original: ir.Model) -> None:
    made = equal_after(PASS, original)
    scale = next(node for node in made.graph if node.name == "scale")
    assert [value.name for value in scale.inputs if value is not None] == ["k", "x"]
    assert operators(made) == operators(original)


@pytest.mark.parametrize(
    "original",
    [
        graph(GATE, product("x", "s"), added("m", "x")),
        graph(*SCALED, product("x", "s"), added("m", "x")),
        graph(*SCALED, product("x", "s"), added("m", "s"), outputs="y kx"),
        graph(GATE, product("x", "s"), added("m", "s"), outputs="y s"),
        graph(GATE, helper.make_node("Mul", ["k", "s"], ["m"], "scaled"), added("m", "s")),
        graph(GATE, product("s", "s"), added("m", "m")),
        graph(helper.make_node("HardSigmoid", ["x"], ["s"], "gate"), product("x", "s"), added("m", "s")),
    ],
    ids=["own already", "scaled alone", "scale an output", "an output", "no swish", "squared", "another gate"],
)
def test_graph_is_left_alone_when_no_swish_shares_its_gate(original: ir.Model) -> None:
    left_alone(PASS, original)
