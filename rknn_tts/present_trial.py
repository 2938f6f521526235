"""What a person sees of a turn of the researcher's loop."""

from __future__ import annotations

from contracts.verdicts import Status
from rknn_tts.blocks import Block, Facts, Notice, Row, Table, Tone
from rknn_tts.graph_cost import GraphCost
from rknn_tts.numbers import CYCLES_PER_MEGACYCLE, KB_PER_MB, number, size
from rknn_tts.present import MODELLED, cpu_texts
from rknn_tts.trial import Trial, Tried


def trial_blocks(trial: Trial) -> list[Block]:
    """A row for each graph; the layers on the CPU before and behind all passes; what is amiss."""
    blocks: list[Block] = [_table(trial)]
    pairs = [("file", trial.model)]
    if trial.whole_db is not None:
        pairs.append(("last against first", f"{number(trial.whole_db)} dB, judged on {trial.judged_on}"))
    pairs += _cost_pairs(trial)
    if trial.saved is not None:
        pairs.append(("saved", trial.saved))
    blocks.append(Facts(tuple(pairs)))
    for one in trial.tried:
        blocks += [Notice(one.name, f"refused {sentence}", "bad") for sentence in one.refused]
    faults = dict.fromkeys(one.cost.fault for one in trial.tried if one.cost is not None and one.cost.fault)
    for fault in faults:  # a pass that changes nothing has the engine, and the fault, of the one before it
        names = [one.name for one in trial.tried if one.cost is not None and one.cost.fault == fault]
        blocks.append(Notice("does not build", f"{', '.join(names)}: {fault}", "warn"))
    return blocks + [Notice("note", note) for note in trial.notes]


def _table(trial: Trial) -> Table:
    columns: tuple[str, ...] = ("pass", "places", "nodes", "snr_db", "owed_db")
    costed = trial.target is not None
    if costed:
        columns += ("layers", "cpu", "megacycles", "traffic_mb", "modelled_ms", "regtask")
    rows = tuple(
        Row((*_pass_cells(one), *(_cost_cells(one.cost) if costed else ())), _tone(one)) for one in trial.tried
    )
    return Table("Passes" + (f" on {trial.target} ({MODELLED})" if costed else ""), columns, rows, _numbers(columns))


def _numbers(columns: tuple[str, ...]) -> frozenset[int]:
    return frozenset(range(1, len(columns)))


def _pass_cells(one: Tried) -> tuple[str, ...]:
    measured, threshold = (one.verdict.measured, one.verdict.threshold) if one.verdict else (None, None)
    return (
        one.name,
        str(one.hits) if one.verdict or one.hits else "",
        str(one.nodes),
        number(measured),
        number(threshold),
    )


def _cost_cells(cost: GraphCost | None) -> tuple[str, ...]:
    if cost is None or cost.layers is None:
        return ("", "", "", "", "", "")
    layers = cost.layers
    return (
        str(layers.count),
        str(len(layers.cpu)),
        number(layers.cycles / CYCLES_PER_MEGACYCLE),
        number(layers.rw_kb / KB_PER_MB),
        number(layers.modelled_ms),
        str(cost.regtask_lines),
    )


def _tone(one: Tried) -> Tone:
    if one.refused or (one.verdict is not None and one.verdict.status is Status.FAILED):
        return "bad"
    return "plain"


def _cost_pairs(trial: Trial) -> list[tuple[str, str]]:
    """What the last engine costs beside the first, and where the layers of both are listed."""
    before, after = trial.tried[0].cost, trial.tried[-1].cost
    if before is None or after is None:
        return []
    pairs = [("on the CPU, " + when, text) for when, cost in _both(before, after) for text in _cpu_texts(cost)]
    if before.layers is not None and after.layers is not None and before.layers.modelled_ms > 0:
        ratio = after.layers.modelled_ms / before.layers.modelled_ms
        figures = f"{number(before.layers.modelled_ms)} to {number(after.layers.modelled_ms)} ms, {ratio:.3f} times"
        pairs.append(("time", f"{figures} ({MODELLED})"))
    if before.memory is not None and after.memory is not None:
        internal, weights = (
            f"{size(getattr(before.memory, kind))} to {size(getattr(after.memory, kind))}"
            for kind in ("internal_kb", "weight_kb")
        )
        pairs.append(("memory", f"internal {internal}, weights {weights}"))
    return pairs + [
        ("layers, " + when, cost.layers.file)
        for when, cost in _both(before, after)
        if cost.layers is not None and cost.layers.file is not None
    ]


def _both(before: GraphCost, after: GraphCost) -> list[tuple[str, GraphCost]]:
    return [("before", before)] if before is after else [("before", before), ("after", after)]


def _cpu_texts(cost: GraphCost) -> list[str]:
    if cost.layers is None:
        return ["unknown: no engine"]
    return cpu_texts(cost.layers.cpu) or ["none"]
