"""What nodes are called."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from surgery.naming import node_label, node_stem


def node(name: str | None, *outputs: str) -> ir.Node:
    return ir.node("Split", [], outputs=[ir.Value(name=output or None) for output in outputs], name=name)


@pytest.mark.parametrize(
    ("made", "label", "stem"),
    [
        (node("cut", "a", "b"), "node 'cut'", "cut"),
        (node(None, "a", "b"), "the unnamed node that makes 'a'", "a"),
        (node("", "", "b"), "the unnamed node that makes 'b'", "b"),
        (node(None, ""), "an unnamed Split", "Split"),
    ],
)
def test_node_is_called_by_its_name_or_by_what_it_makes(made: ir.Node, label: str, stem: str) -> None:
    assert (node_label(made), node_stem(made)) == (label, stem)
