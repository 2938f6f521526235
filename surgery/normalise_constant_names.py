"""Give a constant that several nodes read a name that the toolkit's copies of it can have.

Before: constants k, which three inputs of nodes read, and k_1. After: the same, k called k_normalise_constant_names.

The toolkit gives every reader of a constant one of its own: k, k_1, k_2. Whatever else has such a name is lost: other
constants hold the values of k then, without a word (-1 dB, as weights, scales or exponents; 70 dB with another name), a
Split of other sizes makes the build crash, a computed value the simulator (measured, 2.3.2, rk3588 and rk3566; 2.5.0
does it right). Exporters number names just so, and so do passes.

Exact: a name is not computed with.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.scopes import named, names_of

DECLARATION = Declaration(
    name="normalise_constant_names",
    summary="a constant of several readers is not called k where something is called k_1",
    exactness=Exact("a name is not computed with"),
    after=frozenset({"normalise_header"}),
)

_COPY = re.compile(r"(.+)_\d+", re.DOTALL)
"""A name that a copy may have. How many there will be only the toolkit knows, whose rules add readers."""


def normalise_constant_names() -> Pass:
    """The pass; its hits are the constants that have another name now."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    if not _in_the_way(model.graph):
        return Rewritten(model, 0)
    model = model.clone()
    found = _in_the_way(model.graph)
    names = set(names_of(model.graph))
    for value in found:
        fresh = _free_name(f"{value.name}_{DECLARATION.name}", names)
        names.add(fresh)
        _rename(model.graph, value, fresh)
    return Rewritten(model, hits=len(found))


def _in_the_way(graph: ir.Graph) -> list[ir.Value]:
    """The constants that several inputs read, and of whose copies one would be called as something else is."""
    taken = _originals(names_of(graph))
    return [
        value
        for name, value in graph.initializers.items()
        if name in taken and len(value.uses()) > 1 and not (value.is_graph_input() or value.is_graph_output())
    ]


def _originals(names: Collection[str]) -> set[str]:
    """What those of `names` that look like copies would be copies of."""
    return {match[1] for name in names if (match := _COPY.fullmatch(name))}


def _free_name(wanted: str, names: Collection[str]) -> str:
    """`wanted`, or with underscores behind it where something, or what looks like a copy, is called so."""
    originals = _originals(names)
    while wanted in names or wanted in originals:
        wanted += "_"
    return wanted


def _rename(graph: ir.Graph, value: ir.Value, name: str) -> None:
    tensor = value.const_value
    assert value.name is not None
    del graph.initializers[value.name]
    value.const_value = None  # another model may hold it too, under its old name
    value.name = name
    if tensor is not None:
        value.const_value = named(tensor, name)
    graph.initializers[name] = value
