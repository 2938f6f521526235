"""What a person sees of two engines that were compared."""

from __future__ import annotations

from collections.abc import Iterable

from cost.comparison import OperatorChange
from cost.table import LayerCost
from rknn_tts.blocks import Block, Facts, Notice, Row, Table, Tone
from rknn_tts.comparison import FRAME, Comparison, Figure
from rknn_tts.numbers import figures, number
from rknn_tts.present import MODELLED
from rknn_tts.present_inspection import node_name

_DIGITS = 3
"""Of differences and ratios."""

_NONE = "-"


def comparison_blocks(comparison: Comparison) -> list[Block]:
    """Which two they are, what is loud, the sums, the operators, what else differs, and the notes."""
    blocks: list[Block] = [Facts((("A", comparison.a.file), ("B", comparison.b.file)))]
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
        columns = ("only in", "operator on the CPU", "KB", "layer")
        title = "Layers on the CPU that went (only in A) and came (only in B)"
        yield Table(title, columns, tuple(rows), frozenset({2}), wraps=3)
    if comparison.passes:
        rows = [Row((change.name, _count(change.hits_a), _count(change.hits_b))) for change in comparison.passes]
        yield Table("Passes that differ", ("pass", "places A", "places B"), tuple(rows), frozenset({1, 2}))
    if comparison.facts:
        rows = [
            Row((fact.name, side, text)) for fact in comparison.facts for side, text in (("A", fact.a), ("B", fact.b))
        ]
        yield Table("Facts that differ", ("fact", "of", "value"), tuple(rows), wraps=2)


def _figure_table(comparison: Comparison) -> Table:
    rows = tuple(map(_figure_row, comparison.figures))
    per = "emitted frame" if comparison.unit == FRAME else "run"
    title = f"Sums, costs of one {per} ({MODELLED})"
    return Table(title, ("figure", "unit", "A", "B", "B-A", "B/A"), rows, frozenset({2, 3, 4, 5}))


def _figure_row(figure: Figure) -> Row:
    a, b = figures(figure.a, figure.b)
    difference = _signed(figure.difference)
    return Row((figure.name, figure.unit, a or _NONE, b or _NONE, difference, number(figure.ratio, _DIGITS) or _NONE))


def _operator_table(comparison: Comparison) -> Table:
    per = "frame" if comparison.unit == FRAME else "run"
    rows = tuple(map(_operator_row, comparison.operators))
    columns = ("operator", "layers A", "layers B", f"ms/{per} A", f"ms/{per} B", "B-A")
    return Table(f"Modelled time by operator ({MODELLED})", columns, rows, frozenset(range(1, 6)))


def _operator_row(change: OperatorChange) -> Row:
    a, b = figures(change.ms_a, change.ms_b)
    return Row((change.name, str(change.layers_a), str(change.layers_b), a, b, _signed(change.difference_ms)))


def _layer_row(side: str, layer: LayerCost, tone: Tone) -> Row:
    return Row((side, layer.op, number(layer.rw_kb), node_name(layer)), tone)


def _signed(difference: float | None) -> str:
    if difference is None:
        return _NONE
    text = number(difference, _DIGITS)
    return f"+{text}" if difference > 0 else text


def _count(hits: int | None) -> str:
    return _NONE if hits is None else str(hits)


def _same_text(comparison: Comparison) -> str:
    a, b = comparison.a.engine_sha256, comparison.b.engine_sha256
    if a and a == b:
        return "Nothing differs: A and B are the same engine, byte for byte."
    if comparison.notes:
        return "Nothing differs in what is known of both; the notes say what is not."
    return "Nothing differs in what is compared, though the engines' bytes do."
