from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import pytest
from onnx import NodeProto, TensorProto

from surgery.normalise_constant_names import normalise_constant_names
from surgery.preflight import preflight
from tests.gates.small_graphs import constant, model, proto, tensor
from tests.onnx_runs import run
from tests.surgery.interfaces import applied, left_alone, node, noise, same

PASS = normalise_constant_names()
SHAPE = [1, 4, 6]
FEED = {"x": noise(*SHAPE, seed=9)}
RENAMED = "k_normalise_constant_names"


def scaled(
    *scales: str, made: Sequence[str] = (), called: Sequence[str] = (), output: str = "y", given: str = "x"
) -> ir.Model:
    """x times each of the constants `scales` in turn; `made` names what the first products are, `called` nodes."""
    results = [*made, *(f"m{place}" for place in range(len(made), len(scales) - 1)), output]
    sources = [given, *results]
    nodes = [node("Mul", f"{source} {k}", result) for source, k, result in zip(sources, scales, results, strict=False)]
    for one, name in zip(nodes, called, strict=False):
        one.name = name
    weights = [constant(name, noise(*SHAPE, seed=place)) for place, name in enumerate(sorted(set(scales)))]
    return model(nodes, [tensor(given, SHAPE)], [tensor(output, SHAPE)], weights)


def constants(of: ir.Model) -> list[str]:
    return sorted(of.graph.initializers)


RENAMES = {
    "a copy of the first kind": (scaled("k", "k", "k_1"), ["k_1", RENAMED]),
    "a copy past the readers": (scaled("k", "k", "k_7"), ["k_7", RENAMED]),
    "twice by one node": (
        model(
            [node("Mul", "k k", "kk"), node("Mul", "x kk", "m"), node("Mul", "m k_1", "y")],
            [tensor("x", SHAPE)],
            [tensor("y", SHAPE)],
            [constant("k", noise(*SHAPE)), constant("k_1", noise(*SHAPE, seed=2))],
        ),
        ["k_1", RENAMED],
    ),
    "a computed value": (scaled("k", "k", "q", made=["k_1"]), [RENAMED, "q"]),
    "the output": (scaled("k", "k", output="k_1"), [RENAMED]),
    "copies of copies": (scaled("k", "k", "k_1", "k_1", "k_1_2"), ["k_1_2", "k_1_normalise_constant_names", RENAMED]),
    "the new name taken": (scaled("k", "k", "k_1", RENAMED), ["k_1", RENAMED, f"{RENAMED}_"]),
    "the new name's copy taken": (scaled("k", "k", "k_1", f"{RENAMED}_3"), ["k_1", f"{RENAMED}_", f"{RENAMED}_3"]),
}


@pytest.mark.parametrize("name", RENAMES)
def test_constant_of_several_readers_gets_another_name_when_a_copy_of_it_would_take_one(name: str) -> None:
    original, wanted = RENAMES[name]
    done = applied(PASS, original)
    assert constants(done.model) == sorted(wanted)
    assert done.hits == len(set(wanted) - set(constants(original)))
    same(original, done.model, FEED)
    left_alone(PASS, done.model)


def test_input_keeps_its_name_when_a_constant_would_take_it() -> None:
    original = scaled("k", "k", given="k_1")
    done = applied(PASS, original)
    assert [value.name for value in done.model.graph.inputs] == ["k_1"]
    assert constants(done.model) == [RENAMED]
    same(original, done.model, {"k_1": FEED["x"]})


@pytest.mark.parametrize(
    "original",
    [
        scaled("k", "k", "q"),
        scaled("k", "k_1"),
        scaled("k", "k", "k1", "k_", "k_a", "k_1a", "k#1"),
        scaled("k", "k_1", "k_1"),
        scaled("k", "k", "K_1"),
        scaled("k", "k", called=["k_1"]),
    ],
    ids=["one name", "one reader", "no numbers", "a copy that several read", "another case", "a node"],
)
def test_names_stay_when_no_copy_would_take_one(original: ir.Model) -> None:
    left_alone(PASS, original)


def constant_nodes() -> list[NodeProto]:
    return [
        node("Constant", "", name, value=constant(name, noise(*SHAPE, seed=place)))
        for place, name in enumerate(("k", "k_1"))
    ]


def test_preflight_leaves_no_such_name_when_constants_are_nodes() -> None:
    nodes = [
        *constant_nodes(),
        node("Add", "x k", "a"),
        node("Sigmoid", "a", "s"),
        node("Add", "s k", "b"),
        node("Sigmoid", "b", "t"),
        node("Add", "t k_1", "y"),
    ]
    original = ir.from_proto(proto(nodes, [tensor("x", SHAPE, TensorProto.FLOAT)], [tensor("y", SHAPE)]))
    done = original
    for one in preflight():
        done = one.rewrite(done).model
    assert "Constant" not in [made.op_type for made in done.graph]
    left_alone(PASS, done)
    assert len([value for value in done.graph.initializers.values() if len(value.uses()) > 1]) == 1
    same(original, done, FEED)
    assert run(done, FEED)["y"].shape == tuple(SHAPE)
