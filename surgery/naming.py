"""What nodes are called: in refusals, and in the names of what takes their place."""

from __future__ import annotations

import onnx_ir as ir


def node_label(node: ir.Node) -> str:
    """How a refusal names `node`: by its name, or by its first output where it has none."""
    if node.name:
        return f"node '{node.name}'"
    made = _first_made(node)
    return f"the unnamed node that makes '{made}'" if made else f"an unnamed {node.op_type}"


def node_stem(node: ir.Node) -> str:
    """What the names of nodes that take the place of `node` begin with."""
    return node.name or _first_made(node) or node.op_type


def _first_made(node: ir.Node) -> str | None:
    return next((value.name for value in node.outputs if value.name), None)
