"""The weights of a flow estimator, found in the ONNX that upstream exports of it. No torch.

Queries, keys and values have no biases to be found by (`converters.onnx_linear_weights`): they are the three layers
that read what a transformer layer's first norm gives, in the order in which the module ran.
"""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from converters.onnx_linear_weights import WEIGHT, Exported, Weights, matrix

INPUTS = ("x", "mask", "mu", "t", "spks", "cond")
OUTPUT = "estimator_out"

_NORM = ".norm1.weight"
_PROJECTIONS = ("to_q", "to_k", "to_v")


def onnx_weights(model: ir.Model, path: Path, whose: str, advice: str) -> Weights:
    """The weights of the estimator `model`, read from `path`, by upstream's names; views of what the file holds.

    Args:
        model: the graph.
        path: its file.
        whose, advice: for sentences (`Exported`).

    Raises:
        Refusal: it is another graph, or a linear layer's weight cannot be found; it is named.
    """
    exported = Exported(model, path, whose, advice)
    exported.check_ends(INPUTS, OUTPUT)
    found = exported.weights()
    order = {node: place for place, node in enumerate(model.graph)}
    for norm in [name for name in found if name.endswith(_NORM)]:
        layer = norm.removesuffix(_NORM)
        readers = {
            usage.node
            for norm_use in model.graph.initializers[norm].uses()
            for usage in norm_use.node.outputs[0].uses()
            if matrix(usage.node) is not None
        }
        if len(readers) != len(_PROJECTIONS):
            why = f"{len(readers)} MatMuls and not {len(_PROJECTIONS)} read what the norm of {norm} gives"
            raise exported.not_found(f"{layer}.attn1.{_PROJECTIONS[0]}{WEIGHT}", why)
        for part, node in zip(_PROJECTIONS, sorted(readers, key=lambda node: order[node]), strict=True):
            factor, name = matrix(node), f"{layer}.attn1.{part}{WEIGHT}"
            assert factor is not None  # it would be none of the readers
            found[name] = exported.array(factor, name).T
    return found
