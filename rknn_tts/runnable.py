"""A file's graph in a form that onnxruntime runs, and draws the same each time: what every graph is compared with.

Nothing is computed otherwise: only what onnxruntime stumbles over, or would draw anew, is set right.
"""

from __future__ import annotations

from collections import Counter
from itertools import count

import onnx_ir as ir

from surgery.branch_outputs import own_branch_outputs

READ_IR_VERSION = 11
"""The highest that onnxruntime 1.23 reads ("Unsupported model IR version: 12")."""

DRAWING = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Operators with an attribute `seed` (ONNX operator specification)."""


def make_runnable(model: ir.Model) -> None:
    """Change `model`, as it was read, in place.

    No branch puts out a tensor that it did not make, no two nodes have one name (onnxruntime refuses both), each part
    of a Split has a name (1.23 dies of one without, while it runs), each node that draws has a seed, and the IR version
    is one that onnxruntime reads (of versions 12 to 14 nothing that is read here has another meaning).
    """
    model.ir_version = min(model.ir_version, READ_IR_VERSION)
    own_branch_outputs(model)
    _name_nodes_apart(model)
    _name_parts(model)
    _seed(model)


def _name_nodes_apart(model: ir.Model) -> None:
    """Another name for each node whose name an earlier one has."""
    taken = Counter(node.name for node in model.graph.all_nodes() if node.name)
    seen: set[str] = set()
    for node in model.graph.all_nodes():
        if node.name and node.name in seen:
            node.name = next(name for number in count(2) if (name := f"{node.name}_{number}") not in taken)
            taken[node.name] += 1
        seen.add(node.name or "")


def _name_parts(model: ir.Model) -> None:
    nodes = [node for node in model.graph.all_nodes() if node.op_type == "Split"]
    nameless = [value for node in nodes for value in node.outputs if not value.name]
    taken = {value.name for node in model.graph.all_nodes() for value in node.outputs} if nameless else set()
    for value in nameless:
        value.name = next(name for number in count(1) if (name := f"unread_part_{number}") not in taken)
        taken.add(value.name)


def _seed(model: ir.Model) -> None:
    """A seed for each node that draws without one, so that graphs made of this one draw the same."""
    drawing = [node for node in model.graph.all_nodes() if node.op_type in DRAWING]
    for number, node in enumerate(drawing, start=1):
        if "seed" not in node.attributes:
            node.attributes["seed"] = ir.AttrFloat32("seed", float(number))
