"""Which variant is the cheapest: one optional pass after the other, in the order in which they run.

Of each pass its variants are weighed while all other passes stand as they were chosen so far, and the one of the lowest
modelled time is kept that passes the gates. Where two are alike, the one that is there stays.

One that changes what the engine takes or gives has to save more: the rungs of a ladder are to be fed alike, and 4 us of
48 ms, which inputs of three axes save in one rung and cost in the next (measured, Piper, rk3588), are not worth that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from contracts.choices import WITHOUT, Choice, Variant
from rknn_tts.earning.offers import Offer, Picks

DECIMALS = 3
"""Of a modelled time in ms that count: what differs by less than a microsecond is alike."""

INTERFACE_SHARE = 0.01
"""Of the time, what a variant with other inputs or outputs has to save."""


@dataclass(frozen=True)
class Weighed:
    """A variant of the whole engine.

    Attributes:
        graph: digest of its graph: alike means that nothing was rewritten otherwise.
        figures: what it costs, under no name yet.
        idle: passes that run and find nothing to rewrite.
        interface: the shapes of its inputs and outputs.
    """

    graph: str
    figures: Variant
    idle: frozenset[str] = frozenset()
    interface: tuple[tuple[int, ...], ...] = ()


def choose(
    offers: Sequence[Offer],
    weigh: Callable[[Picks], Weighed],
    gates: Callable[[Picks], str],
    basis: str,
    weighed_on: str,
) -> tuple[Choice, ...]:
    """What is kept of each of `offers` that makes a difference, with the figures of all of its variants.

    Args:
        offers: the optional passes.
        weigh: what the engine costs whose variants these are.
        gates: why that engine does not pass; "" where it does. Asked of a cheaper one only.
        basis, weighed_on: what is said of every choice.
    """
    picks: dict[str, str] = {}
    choices = []
    for offer in offers:
        choice = _choice(offer, picks, weigh, gates)
        if choice is not None:
            kept, variants = choice
            choices.append(Choice(offer.name, kept, basis, weighed_on, variants))
            picks[offer.name] = kept
    return tuple(choices)


def _choice(
    offer: Offer, picks: Picks, weigh: Callable[[Picks], Weighed], gates: Callable[[Picks], str]
) -> tuple[str, tuple[Variant, ...]] | None:
    """The variant that is kept, and the figures of those that differ, the one that was there first; None where none
    does."""
    before = weigh(picks)
    found = {offer.usual: dataclasses.replace(before.figures, name=offer.usual)}
    graphs = {before.graph}
    spent = {offer.usual: _spent(before, before)}
    for name in offer.variants:
        if name == offer.usual or (name == WITHOUT and offer.name in before.idle):
            continue
        weighed = weigh({**picks, offer.name: name})
        if weighed.graph not in graphs:
            graphs.add(weighed.graph)
            found[name] = dataclasses.replace(weighed.figures, name=name)
            spent[name] = _spent(weighed, before)
    if len(found) == 1:
        return None
    for variant in sorted(found.values(), key=lambda one: spent[one.name]):  # of those alike, the one that is there
        if variant.name == offer.usual:
            break
        if variant.fault:
            continue
        fault = gates({**picks, offer.name: variant.name})
        if not fault:
            return variant.name, tuple(found.values())
        found[variant.name] = dataclasses.replace(variant, fault=fault)
    return offer.usual, tuple(found.values())


def _spent(weighed: Weighed, before: Weighed) -> float:
    """The modelled time that variants are ordered by, in ms; of one that does not build, the most there is."""
    spent = weighed.figures.modelled_ms
    if spent is None or weighed.figures.fault:
        return float("inf")
    alike = weighed.interface == before.interface
    return round(spent if alike else spent * (1 + INTERFACE_SHARE), DECIMALS)
