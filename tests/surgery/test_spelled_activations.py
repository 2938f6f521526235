"""Which nodes are a part of an activation that is spelled out."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import NodeProto, helper

from surgery.fold_scales import fold_scales
from surgery.fuse_affine_steps import fuse_affine_steps
from surgery.rewrite_affine_as_depthwise import rewrite_affine_as_depthwise
from surgery.spelled_activations import is_spelled
from tests.surgery.affine_graphs import affine_graph, node
from tests.surgery.one_operator import left_alone
from tests.surgery.spelled import CLIPPED, CUBIC, GATE, GELU, HALF, LAST, ON_THE_GATE, POWER, SIXTH, SPELLED, TANH


@pytest.mark.parametrize("name", SPELLED)
def test_is_spelled_is_every_node_of_an_activation_and_no_other(name: str) -> None:
    nodes, constants = SPELLED[name]
    behind = (node("Mul", "y k", "z"), node("LeakyRelu", "z", "end"))
    made = affine_graph(*nodes, *behind, outputs=("end",), **constants)
    assert [is_spelled(one) for one in made.graph] == [False, *[True] * len(nodes), False, False]


FACTOR = node("Mul", "p half", "y")
OTHERS: dict[str, tuple[tuple[NodeProto, ...], dict[str, Any]]] = {
    "a gate of what it is not of": ((*GATE, node("Abs", "h", "i"), node("Mul", "i g", "p"), FACTOR), GELU),
    "a gate that is added": ((*GATE, node("Add", "h g", "p"), FACTOR), GELU),
    "a gate that is not shifted": ((*GATE[:2], node("Mul", "h e", "p"), FACTOR), GELU),
    "a gate that is read twice": ((*GATE, node("Mul", "h g", "q"), node("Add", "q g", "p"), FACTOR), GELU),
    "an argument that is not scaled": ((node("Erf", "h", "e"), GATE[2], *LAST), GELU),
    "an argument scaled by channels": ((node("Mul", "h s", "d"), *GATE[1:], *LAST), GELU),
    "a sigmoid by tanh": ((node("Mul", "h half", "d"), node("Tanh", "d", "e"), GATE[2], *ON_THE_GATE), HALF),
    "a tanh of another sum": ((node("Abs", "h", "c"), *CUBIC, *LAST), TANH),
    "a clip that is no gate": ((*CLIPPED, node("Div", "g six", "y")), SIXTH),
    "a clip of what is not shifted": ((node("Clip", "h low six", "g"), *LAST), SIXTH | HALF),
    "another domain": ((GATE[0], helper.make_node("Erf", ["d"], ["e"], domain="other"), GATE[2], *LAST), GELU),
}


@pytest.mark.parametrize("name", OTHERS)
def test_is_spelled_is_false_when_the_chain_is_another(name: str) -> None:
    nodes, constants = OTHERS[name]
    made = affine_graph(*nodes, **constants)
    assert not any(is_spelled(one) for one in made.graph)


def test_is_spelled_is_false_when_the_graph_gives_the_gate() -> None:
    made = affine_graph(*GATE, *LAST, outputs=("y", "g"), **GELU)
    assert not any(is_spelled(one) for one in made.graph)


def test_a_factor_for_each_channel_is_no_part_when_it_stands_behind() -> None:
    made = affine_graph(POWER, *CUBIC, LAST[0], node("Mul", "p s", "y"), **TANH)
    assert [is_spelled(one) for one in made.graph][-2:] == [True, False]


@pytest.mark.parametrize("bound", [fold_scales(), fuse_affine_steps(), rewrite_affine_as_depthwise()])
@pytest.mark.parametrize("name", SPELLED)
def test_passes_leave_an_activation_alone_when_the_compiler_makes_one_layer_of_it(name: str, bound: Any) -> None:
    nodes, constants = SPELLED[name]
    left_alone(bound, affine_graph(*nodes, node("Conv", "y w", "z"), outputs=("z",), **constants))
