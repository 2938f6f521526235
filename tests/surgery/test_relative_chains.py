"""What a chain of moving operators shifts, told by running it on the numbers of its elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
import pytest

from surgery.inferred import infer_types
from surgery.relative_chains import Kind, Shift, find_shift
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.relative_graphs import Attention, Nodes, shifted_to_distances, shifted_to_positions

SPELLINGS = ("pad", "concat", "between")


def found(of: Attention, shape: tuple[int, ...], chain: Callable[[Nodes, str, Attention], str]) -> Shift | None:
    """What the last node of the chain from `x` of that shape ends."""
    made = Nodes()
    chain(made, made.add("Neg", "x"), of)
    made.nodes[-1].output[0] = "y"
    graph = model(made.nodes, [tensor("x", shape)], [tensor("y", ("a", "b", "c", "d"))], made.weights)
    infer_types(graph)
    return find_shift(last_of(graph))


def last_of(graph: ir.Model) -> ir.Node:
    return list(graph.graph)[-1]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("positions", [2, 3, 7])
def test_shift_is_found_with_what_goes_in_and_comes_out(positions: int, spelling: str) -> None:
    of = Attention(positions=positions, spelling=spelling)
    wide, square = (1, 2, positions, of.widest), (1, 2, positions, positions)
    for shape, chain, kind, made in (
        (wide, shifted_to_positions, Kind.TO_POSITIONS, square),
        (square, shifted_to_distances, Kind.TO_DISTANCES, wide),
    ):
        shift = found(of, shape, chain)
        assert shift is not None
        producer = shift.source.producer()
        assert producer is not None
        assert producer.op_type == "Neg"
        assert (shift.kind, shift.positions, shift.given, shift.made) == (kind, positions, shape, made)


@pytest.mark.parametrize("chain", [shifted_to_positions, shifted_to_distances])
def test_shift_of_one_position_is_none(chain: Callable[[Nodes, str, Attention], str]) -> None:
    shift = found(Attention(positions=1), (1, 2, 1, 1), chain)
    assert shift is not None
    assert shift.kind is Kind.NONE


def test_no_shift_is_found_when_something_is_added_that_is_not_zero() -> None:
    def with_ones(made: Nodes, value: str, of: Attention) -> str:
        end = shifted_to_positions(made, value, of)
        made.weights = [
            constant(weight.name, np.ones(weight.dims)) if weight.name.startswith("zeros") else weight
            for weight in made.weights
        ]
        return end

    assert found(Attention(positions=4, spelling="concat"), (1, 2, 4, 7), with_ones) is None


def test_no_shift_is_found_when_the_cut_is_one_column_earlier() -> None:
    def earlier(made: Nodes, value: str, of: Attention) -> str:
        end = shifted_to_distances(made, value, of)
        made.nodes[-1].input[1] = made.whole("before", [0])  # [.., N, 2N]
        return end

    assert found(Attention(positions=4), (1, 2, 4, 4), earlier) is None


def test_no_shift_is_found_when_nothing_is_padded() -> None:
    def cut(made: Nodes, value: str, of: Attention) -> str:
        return made.cut(made.add("Reshape", value, made.whole("rows", [1, 2, 7, 4])), [2], [0], [4])

    assert found(Attention(positions=4), (1, 2, 4, 7), cut) is None
