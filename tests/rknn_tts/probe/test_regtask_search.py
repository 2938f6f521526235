"""How the part of a graph is found that overflows a field: what a part is, and how parts get smaller."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from gates.graphs import with_shapes
from rknn_tts.probe.regtask_graphs import field_graph, field_parts
from rknn_tts.probe.regtask_search import MOST_BUILDS, MOST_S, Patience, Span, narrowed, part_of
from tests.gates.small_graphs import chain, constant, model, tensor
from tests.onnx_runs import run
from tests.rknn_tts.workshop import Heard
from tests.runtime.probing.kits import engine_manifest


def holding(*places: int) -> Callable[[Span], bool]:
    """Shows what the whole does while a part holds all nodes in `places`."""
    return lambda span: all(span.start <= place < span.end for place in places)


@pytest.mark.parametrize("place", [0, 1, 77, 145, 289])
def test_one_node_of_many_is_found_in_time(place: int) -> None:
    asked: list[Span] = []

    def shows(span: Span) -> bool:
        asked.append(span)
        return holding(place)(span)

    assert narrowed(290, shows, Patience()) == Span(place, place + 1)
    assert len(asked) <= MOST_BUILDS


@pytest.mark.parametrize("first", [0, 63, 64, 126])
def test_neighbours_that_show_it_only_together_stay_together(first: int) -> None:
    found = narrowed(128, holding(first, first + 1), Patience())
    assert found is not None
    assert found.start <= first < first + 1 < found.end
    assert len(found) <= 3


def test_nothing_is_found_when_only_the_whole_shows_it() -> None:
    assert narrowed(64, holding(0, 63), Patience()) is None
    assert narrowed(1, holding(0), Patience()) is None


def test_what_was_found_counts_when_builds_or_time_run_out() -> None:
    moments = iter([0.0, 1.0, 2.0, MOST_S + 1])
    found = narrowed(64, holding(5), Patience(lambda: next(moments)))
    assert found == Span(0, 16)
    assert narrowed(64, lambda span: False, Patience(iter([0.0, MOST_S + 1]).__next__)) is None


def test_patience_is_renewed_for_another_field_and_time_is_not() -> None:
    patience = Patience(lambda: 0.0)
    assert [patience.spend() for _ in range(MOST_BUILDS + 1)] == [True] * MOST_BUILDS + [False]
    patience.renew()
    assert patience.spend()


def forked() -> ir.Model:
    """n0 makes a, which n1 and n3 read; y = a^2 + relu(a)."""
    nodes = [
        helper.make_node("Mul", ["x", "k"], ["a"], "n0"),
        helper.make_node("Relu", ["a"], ["b"], "n1"),
        helper.make_node("Abs", ["b"], ["c"], "n2"),
        helper.make_node("Add", ["a", "c"], ["y"], "n3"),
    ]
    return with_shapes(model(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4])], [constant("k", [2.0])]))


@pytest.mark.parametrize(
    ("span", "takes", "gives"),
    [
        (Span(0, 1), ["x"], ["a"]),
        (Span(1, 3), ["a"], ["c"]),
        (Span(0, 2), ["x"], ["a", "b"]),
        (Span(3, 4), ["a", "c"], ["y"]),
    ],
)
def test_part_takes_what_is_made_before_it_and_gives_what_is_read_behind(
    span: Span, takes: list[str], gives: list[str]
) -> None:
    part = part_of(forked(), span)
    assert part is not None
    assert [value.name for value in part.graph.inputs] == takes
    assert [value.name for value in part.graph.outputs] == gives


def test_part_has_the_axes_of_an_engine_and_nothing_of_what_the_whole_carries() -> None:
    whole = with_shapes(chain("Abs", "Relu", "Tanh", shape=(1, 2, 8)))
    whole.metadata_props["rknn-tts/contract/1"] = "{}"
    part = part_of(whole, Span(1, 2))
    assert part is not None
    assert [list(value.shape or ()) for value in (*part.graph.inputs, *part.graph.outputs)] == [[1, 2, 1, 8]] * 2
    assert not part.metadata_props


def test_there_is_no_part_when_what_crosses_its_edge_is_no_float_tensor() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["i"], "n0", to=TensorProto.INT64),
        helper.make_node("Cast", ["i"], ["y"], "n1", to=TensorProto.FLOAT),
    ]
    whole = with_shapes(model(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4])]))
    assert part_of(whole, Span(0, 1)) is None
    assert part_of(whole, Span(0, 2)) is not None


def overflowing(operators: dict[str, str]) -> Callable[[ir.Model], frozenset[str]]:
    """A compiler that logs a field for each of these operators."""

    def fields(part: ir.Model) -> frozenset[str]:
        kinds = {node.op_type for node in part.graph}
        return frozenset(field for operator, field in operators.items() if operator in kinds)

    return fields


OPERATORS = ("Abs", "Relu", "Tanh", "Sigmoid", "Neg", "Softplus", "Elu", "Sin")


def test_each_field_gets_its_part_and_one_part_serves_two_fields() -> None:
    whole = chain(*OPERATORS)
    fields_of = overflowing({"Tanh": "one", "Elu": "two"})

    def fields(part: ir.Model) -> frozenset[str]:
        found = fields_of(part)
        return found | {"other"} if "one" in found else found

    parts = field_parts(whole, ["one", "other", "two", "nowhere"], fields, Heard())
    found = [(part.fields, [node.op_type for node in part.model.graph if node.op_type in OPERATORS]) for part in parts]
    assert found == [
        (("one", "other"), ["Tanh"]),
        (("two",), ["Elu"]),
    ]
    assert parts[0].what == "one Tanh, n2"


def test_part_is_fed_what_the_whole_graph_has_there() -> None:
    whole = chain("Abs", "Relu", "Tanh", "Neg", shape=(1, 2, 4))
    x = np.linspace(-2, 2, 8, dtype=np.float32).reshape(1, 2, 4)
    (part,) = field_parts(whole, ["one"], overflowing({"Tanh": "one"}), Heard())
    graph = field_graph(part, 1, whole, {"x": x}, engine_manifest("net", b"RKNN", b""))
    (given,), (right,) = graph.feeds[0].values(), graph.expected[0].values()
    np.testing.assert_array_equal(given.ravel(), np.abs(x).ravel())
    np.testing.assert_allclose(right.ravel(), np.tanh(np.abs(x)).ravel(), rtol=1e-6)
    made = run(part.model, dict(graph.feeds[0]))
    np.testing.assert_array_equal(next(iter(made.values())), right)
