"""What a person sees of the choices among an engine's variants: what was kept, what the others would cost, and how that
is known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from contracts.choices import Choice, Variant
from rknn_tts.blocks import Block, Notice, Row, Table
from rknn_tts.numbers import CYCLES_PER_MEGACYCLE, column, size

_COLUMNS = ("choice", "variant", "layers", "CPU", "megacycles", "traffic", "ms")


def choice_blocks(choices: Sequence[Choice]) -> Iterable[Block]:
    """A table of the variants that were weighed, and a line for each kind of evidence."""
    weighed = [choice for choice in choices if choice.variants]
    if weighed:
        rows = [(choice, variant) for choice in weighed for variant in choice.variants]
        spent = column([math.nan if variant.modelled_ms is None else variant.modelled_ms for _, variant in rows])
        told = tuple(Row(_cells(choice, variant, ms)) for (choice, variant), ms in zip(rows, spent, strict=True))
        yield Table("Variants (ms modelled)", _COLUMNS, told, frozenset({2, 3, 4, 5, 6}))
    for basis, weighed_on in dict.fromkeys((choice.basis, choice.weighed_on) for choice in choices):
        alike = [choice for choice in choices if (choice.basis, choice.weighed_on) == (basis, weighed_on)]
        kept = ", ".join(f"{choice.name} {choice.kept}" for choice in alike)
        yield Notice("choices", f"{basis} ({weighed_on}): {kept}.")
    for choice in weighed:
        for variant in choice.variants:
            if variant.fault:
                yield Notice("choices", f"{choice.name} {variant.name} cannot be kept: {variant.fault}.")


def _cells(choice: Choice, variant: Variant, ms: str) -> tuple[str, ...]:
    name = f"{variant.name} (kept)" if variant.name == choice.kept else variant.name
    if variant.cycles is None or variant.rw_kb is None:
        return (choice.name, name, *["-"] * (len(_COLUMNS) - 2))
    cycles = f"{variant.cycles / CYCLES_PER_MEGACYCLE:.2f}"
    return (choice.name, name, f"{variant.layers}", f"{variant.cpu_layers}", cycles, size(variant.rw_kb), ms)
