"""What a person sees of two engines that were compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cost.comparison import OperatorChange
from cost.table import LayerCost
from rknn_tts.blocks import Block, Facts, Notice, Row, Table, Tone
from rknn_tts.comparison import BOARD_TIME, RUN, Comparison, Figure
from rknn_tts.numbers import column, figures, number
from rknn_tts.present import MODELLED
from rknn_tts.present_inspection import node_name

_DIGITS = 3
"""Of differences and ratios."""

_NONE = "-"


def comparison_blocks(comparison: Comparison) -> list[Block]:
    """Which two they are, what is loud, the sums, the operators, what else differs, and the notes."""
    pairs = (("A", comparison.a.file), ("B", comparison.b.file), ("costs", _unit_text(comparison)))
    blocks: list[Block] = [Facts(pairs)]
    if comparison.targets:
        a, b = comparison.targets
        text = f"A is for {a}, B for {b}: what differs may be the target's doing, and none of a change to the graph."
        blocks.append(Notice("DIFFERENT TARGETS", text, "bad"))
    blocks.append(_figure_table(comparison))
    if not comparison.same:
        blocks += _differences(comparison)
    blocks += [Notice("note", note, "warn") for note in comparison.notes]
    if comparison.same:
        blocks.append(Notice("same", _same_text(comparison), "good"))
    return blocks


def _differences(comparison: Comparison) -> Iterable[Block]:
    if comparison.operators:
        yield _operator_table(comparison)
    if comparison.cpu_gone or comparison.cpu_come:
        rows = [_layer_row("A", layer, "good") for layer in comparison.cpu_gone]
        rows += [_layer_row("B", layer, "warn") for layer in comparison.cpu_come]
        columns = ("only in", "operator on the CPU", "KB", "node")
        title = "Layers on the CPU in one alone"
        yield Table(title, columns, tuple(rows), frozenset({2}), wraps=3)
    if comparison.passes:
        rows = [Row((change.name, _count(change.hits_a), _count(change.hits_b))) for change in comparison.passes]
        yield Table("Passes that differ", ("pass", "places A", "places B"), tuple(rows), frozenset({1, 2}))
    if comparison.facts:
        rows = [
            Row((fact.name, side, text)) for fact in comparison.facts for side, text in (("A", fact.a), ("B", fact.b))
        ]
        yield Table("Facts that differ", ("fact", "of", "value"), tuple(rows), wraps=2)


def _unit_text(comparison: Comparison) -> str:
    measured = any(figure.name == BOARD_TIME for figure in comparison.figures)
    modelled = f"modelled, but for the {BOARD_TIME}" if measured else MODELLED
    if comparison.unit == RUN:
        return f"of one run; {modelled}"
    a, b = comparison.a.units, comparison.b.units
    emitted = f"each run emits {a}" if a == b else f"a run of A emits {a}, one of B {b}"
    return f"of one {comparison.unit} ({emitted}); {modelled}"


def _figure_table(comparison: Comparison) -> Table:
    rows = tuple(map(_figure_row, comparison.figures))
    return Table("Sums", ("figure", "unit", "A", "B", "B-A", "B/A"), rows, frozenset({2, 3, 4, 5}))


def _figure_row(figure: Figure) -> Row:
    a, b = figures(figure.a, figure.b)
    difference = _signed(figure.difference)
    return Row((figure.name, figure.unit, a or _NONE, b or _NONE, difference, number(figure.ratio, _DIGITS) or _NONE))


def _operator_table(comparison: Comparison) -> Table:
    per = comparison.unit.removeprefix("emitted ")
    changed = [change for change in comparison.operators if change.differs]
    alike = [change for change in comparison.operators if not change.differs]
    shown = [*changed, *_in_one(alike)]
    times = column([ms for change in shown for ms in (change.ms_a, change.ms_b)])
    differences = column([change.difference_ms for change in shown])
    rows = [
        Row((change.name, str(change.layers_a), str(change.layers_b), ms_a, ms_b, _with_sign(difference)))
        for change, ms_a, ms_b, difference in zip(shown, times[::2], times[1::2], differences, strict=True)
    ]
    columns = ("operator", "layers A", "layers B", f"ms/{per} A", f"ms/{per} B", "B-A")
    return Table("Modelled time by operator", columns, tuple(rows), frozenset(range(1, 6)))


def _in_one(alike: Sequence[OperatorChange]) -> list[OperatorChange]:
    """What does not differ, as one row, so that the columns still add up."""
    if not alike:
        return []
    layers, ms = sum(change.layers_a for change in alike), sum(change.ms_a for change in alike)
    return [OperatorChange(f"({len(alike)} more, alike)", layers, layers, ms, ms, 0.0)]


def _layer_row(side: str, layer: LayerCost, tone: Tone) -> Row:
    return Row((side, layer.op, number(layer.rw_kb), node_name(layer)), tone)


def _signed(difference: float | None) -> str:
    if difference is None:
        return _NONE
    return _with_sign(number(difference, _DIGITS))


def _with_sign(figure: str) -> str:
    """`figure` with its sign; without one where it shows nothing but zeros."""
    if not figure.strip("-0."):
        return figure.removeprefix("-")
    return figure if figure.startswith("-") else f"+{figure}"


def _count(hits: int | None) -> str:
    return _NONE if hits is None else str(hits)


def _same_text(comparison: Comparison) -> str:
    a, b = comparison.a.engine_sha256, comparison.b.engine_sha256
    if a and a == b:
        return "Nothing differs: A and B are the same engine, byte for byte."
    if comparison.notes:
        return "Nothing differs in what is known of both; the notes say what is not."
    return "Nothing differs in what is compared, though the engines' bytes do."
