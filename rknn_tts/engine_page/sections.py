"""The sections of one engine's part: what its manifest, its layer table and its log say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from contracts.choices import Choice
from contracts.contract import PassRecord
from contracts.errors import UserInput
from contracts.manifest import Manifest, RegtaskCount
from contracts.verdicts import Status, Verdict
from cost.aperture import BUDGET_BYTES, MIB
from cost.emission import emission_of
from cost.table import CostRow, LayerCost, by_operator, by_target, cpu_layers, cpu_layers_of_sums, dearest
from logs.layer_table import Layer
from logs.regtask import evidence_of, parse_accepted
from rknn_tts.blocks import Facts, Notice, Row, Table
from rknn_tts.engine_page.build_log import LogClasses
from rknn_tts.engine_page.elements import Badge, Element, Folded, Meter, Section
from rknn_tts.engine_page.figures import operator_figure
from rknn_tts.inspection import Inspection
from rknn_tts.numbers import CYCLES_PER_MEGACYCLE, column, number, size
from rknn_tts.present import (
    MODELLED,
    cache_text,
    manifest_pairs,
    measurement_table,
    source_text,
    step_text,
    unproven_notices,
    verdict_table,
    window_text,
)
from rknn_tts.present_aperture import aperture_text
from rknn_tts.present_inspection import inspection_blocks, node_name

DEAREST = 20
"""Layers that are listed one by one."""

_TONES = {Status.FAILED: "bad", Status.UNPROVEN: "warn", Status.PASSED: "good"}


def badges_of(verdicts: Iterable[Verdict]) -> tuple[Badge, ...]:
    """How many verdicts there are of each kind, the worst first."""
    counts = Counter(verdict.status for verdict in verdicts)
    return tuple(Badge(f"{counts[status]} {status.value}", tone) for status, tone in _TONES.items() if counts[status])


def sections_of(found: Inspection, layers: tuple[Layer, ...], log: LogClasses | None, log_note: str) -> list[Section]:
    """Every section that the files tell, in order; without a manifest, only what the engine says of itself.

    Args:
        found: the engine or its manifest.
        layers: every layer of the build; none where they are not at hand.
        log: the lines of its log by class; None where it is not at hand.
        log_note: why not, a sentence.
    """
    manifest = found.manifest
    if manifest is None:
        blocks = tuple(inspection_blocks(found))
        return [Section("summary", "What is known", blocks)]
    return [
        Section("summary", "Summary", tuple(_summary(found, manifest))),
        Section("verdicts", "Verdicts", tuple(_verdicts(manifest))),
        Section("contract", "Contract", tuple(_contract(manifest))),
        Section("passes", "Passes", tuple(_passes(manifest))),
        Section("cost", "Cost", tuple(_cost(manifest, layers))),
        Section("placement", "Placement", tuple(_placement(manifest, layers))),
        Section("memory", "Memory and address space", tuple(_memory(manifest))),
        Section("log", "Build log", tuple(_log(manifest, log, log_note))),
    ]


def per_second_ms(manifest: Manifest) -> float | None:
    """Milliseconds of a run for each second of audio that it emits, measured where a board did, else modelled."""
    emission, ms = emission_of(manifest), run_ms(manifest)
    return ms / emission.audio_s if ms is not None and emission and emission.audio_s else None


def run_ms(manifest: Manifest) -> float | None:
    """Milliseconds of a run, measured where a board did, else modelled; None where neither is known."""
    if manifest.board is not None and manifest.board.ms is not None:
        return manifest.board.ms
    return manifest.layers.modelled_ms if manifest.layers else None


def _summary(found: Inspection, manifest: Manifest) -> Iterator[Element]:
    pairs = [("engine", f"{manifest.engine.file}, sha256 {manifest.engine.sha256}")]
    pairs += manifest_pairs(manifest, name_cpu_layers=False)
    per_second = per_second_ms(manifest)
    if per_second is not None:
        how = "measured on a board" if manifest.board and manifest.board.ms is not None else MODELLED
        told = f"{number(per_second)} ms of a run for each second of audio that it emits ({how})"
        at = next((i + 1 for i, (label, _) in enumerate(pairs) if label == "time"), len(pairs))
        pairs.insert(at, ("per second", told))
    yield Facts(tuple(pairs))
    for note in found.notes:
        yield Notice("note", note, "warn")
    yield from unproven_notices(manifest.verdicts)


def _verdicts(manifest: Manifest) -> Iterator[Element]:
    failed = [verdict for verdict in manifest.verdicts if verdict.status is Status.FAILED]
    for verdict in failed:
        yield Notice(verdict.gate, verdict.detail, "bad")
    if manifest.verdicts:
        yield verdict_table(manifest.verdicts)
    else:
        yield Notice("note", "The manifest has no verdicts.", "warn")
    if manifest.measurements:
        yield measurement_table(manifest.measurements)


def _contract(manifest: Manifest) -> Iterator[Element]:
    rows = [Row(("input", t.name, _shape(t.shape), t.dtype)) for t in manifest.inputs]
    rows += [Row(("output", t.name, _shape(t.shape), t.dtype)) for t in manifest.outputs]
    yield Table("Tensors", ("role", "name", "shape", "dtype"), tuple(rows))
    pairs = [("source", source_text(manifest.source))]
    if manifest.window:
        pairs.append(("window", window_text(manifest.window)))
    if manifest.trim:
        pairs.append(
            ("trimmed", f"samples of {manifest.trim.frames} of its frames come out; {manifest.trim.input} tells which")
        )
    if manifest.step:
        pairs.append(("step", step_text(manifest.step)))
    if manifest.cache:
        pairs.append(("cache", cache_text(manifest.cache)))
    pairs += [("state", f"{state.input} takes what {state.output} gave") for state in manifest.state]
    pairs += [("noise", f"{n.input}: {n.distribution} ({number(n.a)}, {number(n.b)})") for n in manifest.noise]
    if manifest.host:
        pairs.append(("host half", f"{manifest.host.file}, sha256 {manifest.host.sha256}"))
    twin = manifest.onnx
    pairs.append(("twin", f"{twin.file}, {twin.nodes} nodes, opset {twin.opset}, sha256 {twin.sha256}"))
    pairs += [
        ("threshold", f"{name}: at least {number(bound)} dB") for name, bound in sorted(manifest.thresholds.items())
    ]
    yield Facts(tuple(pairs))


def _passes(manifest: Manifest) -> Iterator[Element]:
    hit = [record for record in manifest.passes if record.hits]
    if hit:
        yield _pass_table("Passes that rewrote something", hit)
    idle = [record for record in manifest.passes if not record.hits]
    if idle:
        yield Folded(f"{len(idle)} others found nothing to rewrite", (_pass_table("Passes without a hit", idle),))
    for name in manifest.skipped:
        yield Notice("left out", f"{name} (--no-pass)", "warn")
    for rule in manifest.toolkit.disabled_rules:
        yield Notice("switched off", f"the toolkit's own fuse rule {rule}, which crashed", "warn")
    if manifest.choices:
        yield _choice_table(manifest.choices)
    if not manifest.passes:
        yield Notice("note", "The manifest names no passes.")


def _pass_table(title: str, passes: Iterable[PassRecord]) -> Table:
    rows = tuple(Row((p.name, str(p.hits), "exact" if p.exact else "bounded", number(p.snr_db) or "-")) for p in passes)
    return Table(title, ("pass", "places", "algebra", "SNR, dB"), rows, frozenset({1, 3}))


def _choice_table(choices: Iterable[Choice]) -> Table:
    rows = []
    for choice in choices:
        for variant in choice.variants:
            kept = variant.name == choice.kept
            cells = (
                choice.name,
                f"{variant.name}{' (kept)' if kept else ''}",
                number(variant.modelled_ms) or "-",
                "-" if variant.cycles is None else _megacycles(variant.cycles),
                "-" if variant.rw_kb is None else size(variant.rw_kb),
                variant.fault or f"{choice.basis}: {choice.weighed_on}",
            )
            rows.append(Row(cells, "bad" if variant.fault else "good" if kept else "plain"))
        if not choice.variants:
            rows.append(
                Row((choice.name, f"{choice.kept} (kept)", "-", "-", "-", f"{choice.basis}: {choice.weighed_on}"))
            )
    columns = ("choice", "variant", "modelled ms", "megacycles", "traffic", "why")
    return Table("Variants that were weighed", columns, tuple(rows), frozenset({2, 3, 4}))


def _cost(manifest: Manifest, layers: tuple[Layer, ...]) -> Iterator[Element]:
    if manifest.layers is None:
        yield Notice("note", "The manifest does not tell what its layers cost.", "warn")
        return
    if not layers:
        yield Notice("note", "The layers are not at hand one by one, so only their sums are shown above.", "warn")
        return
    rows = by_operator(layers)
    yield operator_figure(rows)
    yield _cost_table("Cost by operator", "operator", rows)
    yield _dearest_table(dearest(layers, DEAREST))


def _placement(manifest: Manifest, layers: tuple[Layer, ...]) -> Iterator[Element]:
    if layers:
        yield _cost_table("Where layers run", "target", by_target(layers))
    sums = manifest.layers.cpu if manifest.layers else ()
    cpu = cpu_layers(layers) if layers else cpu_layers_of_sums(sums)
    if cpu:
        yield _cpu_table(cpu)
    elif manifest.layers:
        yield Notice("on the CPU", "No layer, but for what hands tensors in and out.", "good")
    else:
        yield Notice("note", "The manifest does not tell where its layers run.", "warn")


def _cost_table(title: str, first: str, rows: Iterable[CostRow]) -> Table:
    rows = tuple(rows)
    cells = tuple(
        Row((row.name, str(row.layers), _megacycles(row.cycles), size(row.rw_kb), ms))
        for row, ms in zip(rows, column([row.modelled_ms for row in rows]), strict=True)
    )
    return Table(title, (first, "layers", "megacycles", "traffic", "modelled ms"), cells, frozenset({1, 2, 3, 4}))


def _dearest_table(layers: Iterable[LayerCost]) -> Table:
    layers = tuple(layers)
    cells = tuple(
        Row((f"{layer.op} ({layer.target})", _megacycles(layer.cycles), size(layer.rw_kb), ms, node_name(layer)))
        for layer, ms in zip(layers, column([layer.modelled_ms for layer in layers]), strict=True)
    )
    columns = ("layer", "megacycles", "traffic", "modelled ms", "node")
    return Table(f"The {len(cells)} dearest layers", columns, cells, frozenset({1, 2, 3}))


def _cpu_table(layers: tuple[LayerCost, ...]) -> Table:
    cells = tuple(
        Row((layer.op, size(layer.rw_kb), ms, node_name(layer)), "warn")
        for layer, ms in zip(layers, column([layer.modelled_ms for layer in layers]), strict=True)
    )
    return Table("Layers on the CPU", ("operator", "traffic", "modelled ms", "node"), cells, frozenset({1, 2}))


def _memory(manifest: Manifest) -> Iterator[Element]:
    pairs = [("engine file", size(manifest.engine.bytes / 1000))]
    if manifest.memory:
        pairs.append(("between layers", size(manifest.memory.internal_kb)))
        pairs.append(("weights", size(manifest.memory.weight_kb)))
    yield Facts(tuple(pairs))
    if manifest.aperture:
        taken = manifest.aperture.context_bytes
        yield Meter(f"address space: {aperture_text(manifest.aperture)}", taken / BUDGET_BYTES)
    else:
        told = (
            f"The manifest has no estimate of what it takes of the {BUDGET_BYTES // MIB} MiB that a process can load."
        )
        yield Notice("note", told, "warn")


def _log(manifest: Manifest, log: LogClasses | None, log_note: str) -> Iterator[Element]:
    if log is not None:
        rows = tuple(Row((name, str(count))) for name, count in log.counts)
        yield Table(f"Lines of {log.file} by class", ("class", "lines"), rows, frozenset({1}))
    else:
        yield Notice("note", log_note, "warn")
    told = manifest.log
    if told.regtask:
        rows = tuple(
            Row((k.target, k.offset, str(k.shift), k.limit, k.max_value, str(k.count), *_evidence(k)), "warn")
            for k in told.regtask
        )
        columns = ("core", "offset", "shift", "limit", "largest value", "lines", "known", "why")
        yield Table("REGTASK keys", columns, rows, frozenset({1, 2, 3, 4, 5}))
    else:
        yield Notice("REGTASK", "No hardware field overflowed.", "good")
    yield from (Notice("accepted", f"{key} (--accept-regtask)", "warn") for key in told.accepted)
    yield from (Notice("fallback", f"{text} ({count} lines)", "warn") for text, count in Counter(told.fallback).items())
    yield Facts((("unknown op target", f"{told.unknown_target} lines, which ordinary graphs print"),))


def _evidence(key: RegtaskCount) -> tuple[str, str]:
    """What is known of the hardware field, and why; of what is none, that."""
    try:
        evidence, why = evidence_of(parse_accepted(f"{key.target}:{key.offset}:{key.shift}:{key.limit}"))
    except UserInput:
        return "-", "this is no key that a compiler prints"
    return evidence.value, why


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _megacycles(cycles: int) -> str:
    return f"{cycles / CYCLES_PER_MEGACYCLE:.2f}"
