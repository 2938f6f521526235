"""What `rewrite_relative_attention` refuses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
from onnx import helper

from surgery.rewrite_relative_attention import LOGITS, WEIGHTS, WINDOW, rewrite_relative_attention
from tests.gates.small_graphs import model, tensor
from tests.surgery.refusals import Refusal
from tests.surgery.relative_graphs import Attention, Nodes, shifted_to_distances, shifted_to_positions

_OF = Attention(positions=4)


def _logits(produced: Callable[[Nodes], str]) -> ir.Model:
    """What `produced` makes, [1, 2, 4, 7], shifted."""
    made = Nodes()
    shifted_to_positions(made, produced(made), _OF)
    return _graph(made, (1, 2, 4, 4))


def _weights(read: Callable[[Nodes, str], object]) -> ir.Model:
    """Shifted weights [1, 2, 4, 7], which `read` reads."""
    made = Nodes()
    shifted = shifted_to_distances(made, made.add("Softmax", "p", axis=-1), _OF)
    read(made, shifted)
    return _graph(made, (1, 2, 4, "n"))


def _graph(made: Nodes, shape: tuple[int | str, ...]) -> ir.Model:
    made.nodes[-1].output[0] = "y"
    inputs = [tensor("q", _OF.shape), tensor("x", (1, 2, 4, 7)), tensor("p", (1, 2, 4, 4)), tensor("e", (1, 1, 6, 7))]
    return model(made.nodes, inputs, [tensor("y", shape)], made.weights)


def _wide() -> ir.Model:
    """Of 40 positions, each of whose 79 distances has an embedding."""
    of = Attention(heads=1, positions=40, window=39, depth=1)
    made = Nodes()
    keys = made.number("keys", np.ones((1, 1, 1, of.widest)))
    shifted_to_positions(made, made.add("MatMul", "q", keys), of)
    made.nodes[-1].output[0] = "y"
    return model(made.nodes, [tensor("q", of.shape)], [tensor("y", (1, 1, 40, 40))], made.weights)


def _read_twice(made: Nodes, shifted: str) -> None:
    made.add("MatMul", shifted, made.number("values", np.ones((1, 1, 7, 6))))
    made.nodes.append(helper.make_node("Neg", [shifted], ["n"]))


def _case(precondition: str, node: str, got: str, build: Callable[[], ir.Model]) -> Refusal:
    return Refusal(rewrite_relative_attention(), precondition, node, got, build)


REFUSALS = (
    _case(LOGITS, "Slice_4", "an input of the graph", lambda: _logits(lambda made: "x")),
    _case(LOGITS, "Slice_5", "the Neg of node 'Neg_0'", lambda: _logits(lambda made: made.add("Neg", "x"))),
    _case(LOGITS, "Slice_5", "depend on the input", lambda: _logits(lambda made: made.add("MatMul", "q", "e"))),
    _case(WEIGHTS, "Slice_5", "read by Neg", lambda: _weights(lambda made, shifted: made.add("Neg", shifted))),
    _case(WEIGHTS, "Slice_5", "read by MatMul, Neg", lambda: _weights(_read_twice)),
    _case(
        WEIGHTS,
        "Slice_5",
        "depend on the input",
        lambda: _weights(
            lambda made, shifted: made.add("MatMul", shifted, made.add("Transpose", "x", perm=[0, 1, 3, 2]))
        ),
    ),
    _case(WINDOW, "Slice_5", "79 that are not zero", _wide),
)
