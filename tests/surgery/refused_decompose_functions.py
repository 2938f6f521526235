"""Functions that `decompose_functions` refuses."""

from __future__ import annotations

from surgery.decompose_functions import decompose_functions
from tests.surgery.local_functions import of_another_opset, recursive, unfolding, with_a_graph_parameter
from tests.surgery.refusals import Refusal

REFUSALS = (
    Refusal(
        decompose_functions(),
        "functions of operators that mean the same in the model's opset",
        "function 'Old'",
        "it uses Softmax of opset 12",
        lambda: of_another_opset("Softmax"),
    ),
    Refusal(
        decompose_functions(),
        "functions of operators that mean the same in the model's opset",
        "function 'Old'",
        "it uses Gelu of opset 20",
        lambda: of_another_opset("Gelu", 20),
    ),
    Refusal(
        decompose_functions(), "functions whose parameters are no graphs", "call", "passes one", with_a_graph_parameter
    ),
    Refusal(decompose_functions(), "functions that do not call themselves", "function 'Ping'", "through", recursive),
    Refusal(
        decompose_functions(),
        "functions that unfold to a graph that can be compiled",
        "the graph",
        "unfold to 10000000000 nodes",
        lambda: unfolding(10),
    ),
)
