"""Find an order of the channels for every value of a graph, so that permutations of the channels have nothing to do.

An order p of a value says how it stands in the graph to be made: before[:, i] = after[:, p[i]]. It is the identity
where the value is pinned (an input or output of the graph, or what an unknown operator reads or makes); the others
follow from it by the relations, which are what the operators between them ask for. Relations that have no value in
common are solved apart, so that one such set may have no answer and the others theirs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Value = TypeVar("Value", bound=Hashable)

Order = tuple[int, ...]


@dataclass(frozen=True)
class Turned(Generic[Value]):
    """made[:, i] = given[:, order[i]] before, and made = given after: a permutation that goes, or no change at all."""

    given: Value
    made: Value
    order: Order

    @property
    def values(self) -> tuple[Value, ...]:
        """What it ties together."""
        return self.given, self.made


@dataclass(frozen=True)
class Parts(Generic[Value]):
    """A value and blocks of its channels, by the first channel of each; each is a block afterwards too.

    Attributes:
        whole: the value.
        parts: the blocks; they may leave channels out, and overlap.
        fixed: the blocks must lie where such blocks lay before, of the same sizes.
    """

    whole: Value
    parts: tuple[tuple[int, Value], ...]
    fixed: bool = False

    @property
    def values(self) -> tuple[Value, ...]:
        """What it ties together."""
        return self.whole, *(value for _, value in self.parts)


Relation = Turned[Value] | Parts[Value]


@dataclass(frozen=True)
class Orders(Generic[Value]):
    """What is to be solved.

    Attributes:
        sizes: how many channels each value has, in the order of the graph.
        pinned: the values that must keep their order.
        relations: in the order of the graph.
        blocks: values whose channels must stay in their blocks, with the size of these.
    """

    sizes: Mapping[Value, int]
    pinned: Collection[Value]
    relations: Sequence[Relation[Value]]
    blocks: Mapping[Value, Collection[int]] = field(default_factory=dict)

    def tied_to(self, start: Iterable[Relation[Value]]) -> list[Orders[Value]]:
        """The relations that have values in common, and so on, with one of `start`, each such set once.

        A pinned value is not in common: whatever the one relation makes of it, the other knows its order.
        """
        by_value = _by_value(self.relations)
        found: list[Orders[Value]] = []
        seen: set[Relation[Value]] = set()
        for one in start:
            if one not in seen:
                tied = self._reached(one, by_value)
                seen |= tied
                relations = [relation for relation in self.relations if relation in tied]
                values = {value for relation in relations for value in relation.values}
                sizes = {value: size for value, size in self.sizes.items() if value in values}
                found.append(Orders(sizes, self.pinned, relations, self.blocks))
        return found

    def _reached(
        self, start: Relation[Value], by_value: Mapping[Value, Iterable[Relation[Value]]]
    ) -> set[Relation[Value]]:
        found = {start}
        todo = [start]
        while todo:
            values = [value for value in todo.pop().values if value not in self.pinned]
            new = {relation for value in values for relation in by_value[value]} - found
            found |= new
            todo.extend(new)
        return found

    def solve(self) -> dict[Value, Order] | None:
        """An order for every value; None where they contradict each other."""
        solving = _Solving(self)
        try:
            solving.run()
        except _ContradictionError:
            return None
        return solving.known


def inverse(order: Order) -> Order:
    """The order that takes `order` back."""
    back = [0] * len(order)
    for place, index in enumerate(order):
        back[index] = place
    return tuple(back)


def identity(size: int) -> Order:
    """No change."""
    return tuple(range(size))


def start_of(order: Order, start: int, size: int) -> int | None:
    """Where the block of `size` channels at `start` begins afterwards; None where it is no block then."""
    block = order[start : start + size]
    first = min(block)
    return first if max(block) - first == size - 1 else None


class _ContradictionError(Exception):
    """Two orders for one value, or one that it must not have."""


class _Solving(Generic[Value]):
    """The orders that are known, and the relations that may say more.

    A whole that only its parts are known of may be put together in any order. It is left as it was, but not before
    nothing else says how: two ways of putting it together may both be right, each in its own surroundings.
    """

    def __init__(self, given: Orders[Value]) -> None:
        self.given = given
        self.known: dict[Value, Order] = {}
        self.by_value = _by_value(given.relations)
        self.todo: deque[Relation[Value]] = deque()

    def run(self) -> None:
        """Find them all, or raise `_Contradiction`."""
        for value, size in self.given.sizes.items():
            if value in self.given.pinned:
                self.note(value, identity(size))
        self.follow()
        while len(self.known) < len(self.given.sizes):
            if not self.join_one():
                free = next(value for value in self.given.sizes if value not in self.known)
                self.note(free, identity(self.given.sizes[free]))
            self.follow()

    def note(self, value: Value, order: Order) -> None:
        """`value` has `order`."""
        if value in self.known:
            if self.known[value] != order:
                raise _ContradictionError
            return
        for size in self.given.blocks.get(value, ()):
            if any(index // size != place // size for place, index in enumerate(order)):
                raise _ContradictionError
        self.known[value] = order
        self.todo.extend(self.by_value.get(value, ()))

    def follow(self) -> None:
        """What the known orders leave no choice about."""
        while self.todo:
            relation = self.todo.popleft()
            if isinstance(relation, Parts):
                self.cut(relation)
            else:
                self.turn(relation)

    def turn(self, relation: Turned[Value]) -> None:
        """From one side to the other."""
        given, made = self.known.get(relation.given), self.known.get(relation.made)
        if given is not None:
            self.note(relation.made, tuple(given[index] for index in relation.order))
        elif made is not None:
            self.note(relation.given, tuple(made[index] for index in inverse(relation.order)))

    def cut(self, relation: Parts[Value]) -> None:
        """From the whole to its parts."""
        whole = self.known.get(relation.whole)
        if whole is None:
            return
        before = {(start, self.given.sizes[part]) for start, part in relation.parts}
        for start, part in relation.parts:
            size = self.given.sizes[part]
            first = start_of(whole, start, size)
            if first is None or (relation.fixed and (first, size) not in before):
                raise _ContradictionError
            self.note(part, tuple(index - first for index in whole[start : start + size]))

    def join_one(self) -> bool:
        """The first whole whose parts are all known, put together as it was; False where there is none."""
        for relation in self.given.relations:
            if not isinstance(relation, Parts) or relation.whole in self.known:
                continue
            parts = [(start, self.known.get(part)) for start, part in relation.parts]
            if all(order is not None for _, order in parts):
                whole = list(range(self.given.sizes[relation.whole]))
                for start, order in parts:
                    whole[start : start + len(order or ())] = [start + index for index in order or ()]
                if sorted(whole) != list(range(len(whole))):  # parts that overlap
                    raise _ContradictionError
                self.note(relation.whole, tuple(whole))
                return True
        return False


def _by_value(relations: Iterable[Relation[Value]]) -> dict[Value, list[Relation[Value]]]:
    found: dict[Value, list[Relation[Value]]] = {}
    for relation in relations:
        for value in set(relation.values):
            found.setdefault(value, []).append(relation)
    return found
