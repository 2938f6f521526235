"""The parts of an engine's graph that overflow its unproven hardware fields, as graphs that are compiled themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.manifest import Manifest
from gates.graphs import with_shapes
from gates.session import Session
from rknn_tts.carried import Feed
from rknn_tts.export_step import Proof
from rknn_tts.hints import called
from rknn_tts.probe.micro_engines import MicroGraph
from rknn_tts.probe.regtask_search import Patience, Span, narrowed, part_of
from rknn_tts.progress import Say

STEM = "regtask-"
"""Begins the names of the files of a field's engine, and those of its build logs."""

_NAMED_OPERATORS = 4
"""So many kinds of operators are named in a sentence."""


@dataclass(frozen=True)
class FieldPart:
    """A part of a graph that overflows fields.

    Attributes:
        fields: the names of their verdicts.
        model: the part.
        what: its nodes, for sentences.
    """

    fields: tuple[str, ...]
    model: ir.Model
    what: str


def field_parts(
    model: ir.Model,
    fields: Sequence[str],
    fields_of: Callable[[ir.Model], frozenset[str]],
    say: Say,
    patience: Patience | None = None,
) -> list[FieldPart]:
    """The smallest parts found of `model` that overflow `fields`; a field that none overflows alone is in none.

    Args:
        model: the graph.
        fields: the names of the verdicts on them.
        fields_of: which of all fields overflow where a graph is built.
        say: gets the progress.
        patience: ends the search.
    """
    shaped = with_shapes(model)
    count = len(list(shaped.graph))
    patience = Patience() if patience is None else patience
    seen: dict[Span, frozenset[str]] = {}

    def overflowing(span: Span) -> frozenset[str]:
        if span not in seen:
            part = part_of(shaped, span)
            seen[span] = fields_of(part) if part is not None else frozenset()
        return seen[span]

    def shows(field: str, span: Span) -> bool:
        say.step(f"looking for what overflows {field}: {len(span)} of {count} nodes")
        return field in overflowing(span)

    found: list[FieldPart] = []
    for field in fields:
        if any(field in part.fields for part in found):
            continue
        patience.renew()
        span = narrowed(count, lambda span, field=field: shows(field, span), patience)  # type: ignore[misc]
        part = part_of(shaped, span) if span is not None else None
        if span is not None and part is not None:
            both = tuple(name for name in fields if name in overflowing(span))
            found.append(FieldPart(both, part, _called(shaped, span)))
    return found


def _called(model: ir.Model, span: Span) -> str:
    """The nodes of a span, for sentences."""
    nodes = list(model.graph)[span.start : span.end]
    kinds = list(dict.fromkeys(node.op_type for node in nodes))
    named = ", ".join(kinds[:_NAMED_OPERATORS]) + (", ..." if len(kinds) > _NAMED_OPERATORS else "")
    if len(nodes) == 1:
        return f"one {named}, {called(str(nodes[0].name or nodes[0].outputs[0].name))}"
    return f"{len(nodes)} nodes ({named}), from {called(str(nodes[0].name or nodes[0].outputs[0].name))} on"


def field_graph(part: FieldPart, number: int, model: ir.Model, feed: Feed, whole: Manifest) -> MicroGraph:
    """The graph of `part`, the `number`th of its kit: it takes, and should give, what `model` has there on `feed`.

    Its weights, and the toolkit's rules that are left out, are those of the engine of `whole`.

    Raises:
        ToolFailure: onnxruntime failed.
    """
    taken, given = list(part.model.graph.inputs), list(part.model.graph.outputs)
    have = _run_for(model, [str(value.name) for value in (*taken, *given)], feed)
    inputs, outputs = ({str(value.name): _as(value, have) for value in side} for side in (taken, given))
    return MicroGraph(
        stem=f"{STEM}{number}",
        model=part.model,
        source=whole.source,
        feeds=[inputs],
        expected=[outputs],
        proof=Proof((), (), ()),
        disabled_rules=whole.toolkit.disabled_rules,
    )


def _as(value: ir.Value, have: Feed) -> NDArray[Any]:
    """The tensor of `value`'s name in the shape that `value` has."""
    assert value.shape is not None
    return np.asarray(have[str(value.name)]).reshape(value.shape.numpy())


def _run_for(model: ir.Model, names: Sequence[str], feed: Feed) -> Feed:
    """The tensors `names` of `model` on `feed`."""
    copy = model.clone()
    outputs = {value.name for value in copy.graph.outputs}
    made = {value.name: value for node in copy.graph for value in node.outputs}
    copy.graph.outputs.extend(made[name] for name in dict.fromkeys(names) if name in made and name not in outputs)
    return {**feed, **Session(copy).run(feed)}
