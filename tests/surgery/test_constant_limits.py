"""Folding is bounded in memory and time, and its result does not depend on the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from surgery import constant_limits
from surgery.fold_constants import fold_constants
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.branches import node

ROOT = Path(__file__).parents[2]


def beside(*nodes: object, weights: object = (), outputs: object = ()) -> ir.Model:
    """`nodes` of constants, beside y = -x."""
    return model([node("Neg", ["x"], "y"), *nodes], [tensor("x", [1])], [tensor("y", [1]), *outputs], weights)  # type: ignore[misc]


def filled(elements: int, times: int = 1) -> ir.Model:
    """`times` tensors of zeros of `elements` float32."""
    made = [node("ConstantOfShape", ["size"], f"z{i}") for i in range(times)]
    outputs = [tensor(f"z{i}", [elements]) for i in range(times)]
    return beside(*made, weights=[constant("size", [elements], np.int64)], outputs=outputs)


def folded_operators(original: ir.Model) -> list[str]:
    return sorted(node.op_type for node in fold_constants().rewrite(original).model.graph if node.op_type != "Neg")


@pytest.mark.parametrize(("elements", "wanted"), [(16, "Identity"), (17, "ConstantOfShape")])
def test_fold_constants_leaves_a_constant_when_it_is_larger_than_the_limit(
    monkeypatch: pytest.MonkeyPatch, elements: int, wanted: str
) -> None:
    monkeypatch.setattr(constant_limits, "LARGEST_FOLDED_BYTES", 64)
    assert folded_operators(filled(elements)) == [wanted]


def test_fold_constants_folds_a_large_weight_when_it_stays_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constant_limits, "LARGEST_FOLDED_BYTES", 64)
    weights = [constant("w", np.zeros((30, 40))), constant("b", np.zeros((1, 40)), np.int8)]
    nodes = [node("Transpose", ["w"], "z"), node("Cast", ["b"], "v", to=1)]
    outputs = [tensor("z", [40, 30]), tensor("v", [1, 40])]
    assert folded_operators(beside(*nodes, weights=weights, outputs=outputs)) == ["Identity", "Identity"]


def test_fold_constants_stops_when_the_weights_would_grow_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surgery.fold_constants.Budget", lambda: constant_limits.Budget(grown=160))
    assert folded_operators(filled(10, times=6)) == ["ConstantOfShape"] * 2 + ["Identity"] * 4


def test_fold_constants_goes_on_when_each_constant_frees_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surgery.fold_constants.Budget", lambda: constant_limits.Budget(grown=160))
    names = ["w", *(f"t{i}" for i in range(9)), "z"]
    chain = [node("Abs", [names[i]], names[i + 1]) for i in range(10)]
    original = beside(*chain, weights=[constant("w", np.zeros(40))], outputs=[tensor("z", [40])])
    assert folded_operators(original) == ["Identity"]


@pytest.mark.parametrize(
    ("op", "weights"),
    [
        ("Abs", [constant("a", np.zeros(600))]),
        ("Erf", [constant("a", np.zeros(3))]),
        ("MatMul", [constant("a", np.zeros((1, 600))), constant("b", np.zeros((600, 2)))]),
    ],
)
def test_fold_constants_stops_when_it_would_compute_too_much(
    monkeypatch: pytest.MonkeyPatch, op: str, weights: object
) -> None:
    names = ["a", "b"][: len(weights)]  # type: ignore[arg-type]
    original = beside(node(op, names, "z"), weights=weights, outputs=[tensor("z", "pq" if op == "MatMul" else "p")])
    assert folded_operators(original) == ["Identity"]
    monkeypatch.setattr("surgery.fold_constants.Budget", lambda: constant_limits.Budget(work=4000))
    assert folded_operators(original) == [op]


def test_fold_constants_leaves_a_node_when_it_cannot_be_computed() -> None:
    """Concat of shapes that do not fit: onnxruntime says so better."""
    weights = [constant("a", np.zeros((2, 3))), constant("b", np.zeros((3, 2)))]
    made = node("Concat", ["a", "b"], "z", axis=0)
    assert folded_operators(beside(made, weights=weights, outputs=[tensor("z", ["p", "q"])])) == ["Concat"]


def test_fold_constants_makes_the_same_bytes_when_run_in_other_processes() -> None:
    program = (
        "import hashlib; from tests.surgery import branches as b, test_fold_constants as t;"
        "from surgery.fold_constants import fold_constants as f; from tests.surgery.graphs import serialised as s;"
        "made = [b.nested(), b.weights_of_one_name(), b.captured_outputs(), t.f_pad()];"
        "print(hashlib.sha256(b''.join(s(f().rewrite(m).model) for m in made)).hexdigest())"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT}:{ROOT / 'runtime'}"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert len(runs[0].strip()) == 64
