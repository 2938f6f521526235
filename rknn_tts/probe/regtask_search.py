"""Which part of a graph overflows a hardware field: the compiler says that one did, and not in which layer.

So parts of the graph are built by themselves, ever smaller ones, as long as one of them logs the field. A part is a run
of nodes in the graph's order: neighbours stay together, which the compiler makes one layer of.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil

import onnx_ir as ir

from surgery.graph import extract
from surgery.normalise_header import normalise_header
from surgery.rewrite_interface_axes import rewrite_interface_axes

MOST_BUILDS = 24
"""For one field. Halving 300 nodes down to one takes nine rounds of at most five builds, of which most need two."""

MOST_S = 600.0
"""For all fields of an engine; a build of half of Kokoro's generator takes 20 s (measured, 2.3.2)."""


@dataclass(frozen=True)
class Span:
    """The nodes of a graph from `start` up to, but not including, `end`."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    def narrower(self) -> Iterator[Span]:
        """What is tried in its place, smaller ones first: its halves, the one in the middle, and all but a quarter."""
        half, quarter = ceil(len(self) / 2), max(1, len(self) // 4)
        middle = self.start + (len(self) - half) // 2
        starts = dict.fromkeys((self.start, self.end - half, middle))
        spans = [Span(start, start + half) for start in starts]
        spans += [Span(self.start + quarter, self.end), Span(self.start, self.end - quarter)]
        for span in dict.fromkeys(spans):
            if 0 < len(span) < len(self):
                yield span


class Patience:
    """How much more may be built: so many builds for a field, and seconds for all."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._end_s, self._left = clock, clock() + MOST_S, MOST_BUILDS

    def renew(self) -> None:
        """Begin another field."""
        self._left = MOST_BUILDS

    def spend(self) -> bool:
        """Whether one more may be built."""
        self._left -= 1
        return self._left >= 0 and self._clock() < self._end_s


def narrowed(count: int, shows: Callable[[Span], bool], patience: Patience) -> Span | None:
    """The smallest part found of a graph of `count` nodes that still shows what the whole does.

    Args:
        count: of the graph's nodes.
        shows: whether a part shows it; asked of parts only.
        patience: ends the search; what was found by then counts.

    Returns:
        None where no smaller part shows it, or none was found in time.
    """
    whole = found = Span(0, count)
    going_on = True
    while going_on:
        going_on = False
        for span in found.narrower():
            if not patience.spend():
                return found if found != whole else None
            if shows(span):
                found, going_on = span, True
                break
    return found if found != whole else None


def part_of(model: ir.Model, span: Span) -> ir.Model | None:
    """The nodes of `span` as a graph of their own; its inputs and outputs keep the names that they have in `model`.

    Returns:
        None where they cannot be one: something that is taken or given is no float32 tensor of static shape, or what is
        taken would be given unchanged.
    """
    nodes = list(model.graph)[span.start : span.end]
    made = {value for node in nodes for value in node.outputs}
    read = dict.fromkeys(value for node in nodes for value in node.inputs if value is not None)
    taken = [value for value in read if value not in made and not value.is_initializer()]
    inside = set(nodes)
    given = [value for node in nodes for value in node.outputs if _leaves(value, inside)]
    if not taken or not given or not all(map(_is_plain, (*taken, *given))):
        return None
    try:
        part = extract(model, *({str(value.name): str(value.name) for value in side} for side in (taken, given)))
    except ValueError:  # a node with a graph of its own that reads what is outside
        return None
    # Axes as an engine's own inputs have them, or the compiler would turn long tensors at a part's edge, which logs
    # fields of its own. The header: what the whole carries is not about a part.
    return normalise_header().rewrite(rewrite_interface_axes().rewrite(part).model).model


def _leaves(value: ir.Value, inside: set[ir.Node]) -> bool:
    return value.is_graph_output() or any(node not in inside for node, _ in value.uses())


def _is_plain(value: ir.Value) -> bool:
    static = value.shape is not None and all(isinstance(size, int) for size in value.shape)
    return bool(value.name) and static and value.dtype == ir.DataType.FLOAT
