"""What a person sees of an inspected file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rknn_tts_runtime.engine_file import EngineHeader

from contracts.contract import STAND_IN, Contract, PassRecord
from contracts.serial import Json
from contracts.verdicts import Measurement, Verdict
from cost.table import CostRow, LayerCost
from rknn_tts.blocks import Block, Facts, Notice, Row, Table
from rknn_tts.inspection import Inspection, OnnxFacts
from rknn_tts.numbers import CYCLES_PER_MEGACYCLE, column, number, size
from rknn_tts.present import (
    layers_pairs,
    manifest_pairs,
    measurement_table,
    source_text,
    step_pairs,
    unproven_notices,
    verdict_table,
    window_text,
)
from rknn_tts.present_aperture import together_blocks
from rknn_tts.present_choices import choice_blocks
from rknn_tts.roles import stage_text

_KINDS = {
    "engine": "RKNN engine",
    "manifest": "manifest of an engine",
    "set": "manifest of a set",
    "layers": "layer table of a build",
    "onnx": "ONNX model",
}


def inspection_blocks(inspection: Inspection) -> list[Block]:
    """The file, what it holds, what was proven, what it costs, and what is amiss."""
    manifest, engine, onnx = inspection.manifest, inspection.engine, inspection.onnx
    contract = onnx.contract if onnx else None
    pairs = [
        ("file", inspection.file),
        ("kind", f"{_KINDS[inspection.kind]}, {size(inspection.bytes / 1000)}, sha256 {inspection.sha256[:16]}"),
    ]
    if manifest:
        pairs += [
            ("stage", stage_text(manifest.family, manifest.stage, manifest.role)),
            *manifest_pairs(manifest, name_cpu_layers=False),
        ]
    elif engine:
        pairs += _engine_pairs(engine)
    if onnx:
        pairs += _onnx_pairs(onnx)
    if contract:
        pairs += _contract_pairs(contract)
    if inspection.layers and not manifest:
        pairs += layers_pairs(inspection.layers, None)
    pairs += [("member", member) for member in inspection.members]
    blocks: list[Block] = [Facts(tuple(pairs)), *_tensors(inspection)]
    if inspection.aperture:
        blocks += together_blocks(inspection.aperture)
    if proven := manifest or contract:
        blocks += _proof(proven.passes, proven.verdicts, proven.measurements)
        blocks += choice_blocks(proven.choices)
    if onnx:
        rows = tuple(Row((op, str(count))) for op, count in onnx.operators.items())
        blocks.append(Table("Operators", ("operator", "nodes"), rows, frozenset({1})))
    blocks += _cost_tables(inspection)
    blocks += [Notice("note", note, "warn") for note in inspection.notes]
    return blocks + (unproven_notices(proven.verdicts) if proven else [])


def _engine_pairs(engine: EngineHeader) -> list[tuple[str, str]]:
    toolkit = engine.toolkit or "unknown"
    pairs = [("target", ", ".join(engine.targets) or "unknown"), ("toolkit", toolkit)]
    if engine.contract:
        pairs += [
            (key, _value(engine.contract[key]))
            for key in ("family", "stage", "role", "source")
            if engine.contract.get(key)
        ]
        if engine.contract.get("stand_in"):
            pairs.append(("weights", STAND_IN))
        if window := engine.contract.get("window"):
            pairs.append(("window", f"{_value(window)} (frames, emitted, left, right, samples a frame, sample rate)"))
        if step := engine.contract.get("step"):
            pairs.append(("step", f"{_value(step)} (codes, samples a code, sample rate, emitted)"))
        if cache := engine.contract.get("cache"):
            pairs.append(("cache", f"{_value(cache)} numbers"))
    else:
        pairs.append(("contract", "none: it was not built by rknn-tts"))
    return pairs


def _onnx_pairs(onnx: OnnxFacts) -> list[tuple[str, str]]:
    opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in onnx.opsets.items())
    return [
        ("opset", f"{opsets} (IR {onnx.ir_version})"),
        ("nodes", str(onnx.nodes)),
        ("parameters", str(onnx.parameters)),
    ]


def _contract_pairs(contract: Contract) -> list[tuple[str, str]]:
    pairs = [
        ("stage", stage_text(contract.family, contract.stage, contract.role)),
        ("source", source_text(contract.source)),
    ]
    if contract.window:
        pairs.append(("window", window_text(contract.window)))
    pairs += step_pairs(contract.step, contract.cache)
    if contract.host:
        pairs.append(("host half", contract.host.file))
    return pairs


def _tensors(inspection: Inspection) -> Iterable[Block]:
    manifest, onnx, engine = inspection.manifest, inspection.onnx, inspection.engine
    if found := manifest or onnx:
        rows = [Row(("input", t.name, _shape(t.shape), t.dtype)) for t in found.inputs]
        rows += [Row(("output", t.name, _shape(t.shape), t.dtype)) for t in found.outputs]
        yield Table("Tensors", ("role", "name", "shape", "dtype"), tuple(rows), wraps=1)
    elif engine and engine.tensors:
        named = tuple(Row((tensor.name, _shape(tensor.shape))) for tensor in engine.tensors)
        yield Table("Tensors", ("name", "shape"), named)


def _proof(
    passes: Sequence[PassRecord], verdicts: Sequence[Verdict], measurements: Sequence[Measurement]
) -> Iterable[Block]:
    hit = [record for record in passes if record.hits]
    if hit:
        rows = tuple(
            Row((p.name, str(p.hits), "exact" if p.exact else "bounded", number(p.snr_db) or "-")) for p in hit
        )
        yield Table("Passes", ("pass", "places", "algebra", "snr_db"), rows, frozenset({1, 3}))
    if len(passes) > len(hit):
        yield Notice("passes", f"{len(passes) - len(hit)} others found nothing to rewrite (--json names them).")
    if verdicts:
        yield verdict_table(verdicts)
    if measurements:
        yield measurement_table(measurements)


def _cost_tables(inspection: Inspection) -> Iterable[Block]:
    if inspection.cost:
        yield _cost_table("Cost by operator (ms modelled)", "operator", inspection.cost)
        yield _cost_table("Cost by target (ms modelled)", "target", inspection.targets)
        yield _dearest_table(inspection.dearest)
    if inspection.cpu:
        yield _cpu_table(inspection.cpu)


def _cost_table(title: str, first: str, cost: Sequence[CostRow]) -> Table:
    rows = tuple(
        Row((row.name, str(row.layers), _megacycles(row.cycles), size(row.rw_kb), ms))
        for row, ms in zip(cost, column([row.modelled_ms for row in cost]), strict=True)
    )
    return Table(title, (first, "layers", "megacycles", "traffic", "ms"), rows, frozenset({1, 2, 3, 4}))


def _dearest_table(layers: Sequence[LayerCost]) -> Table:
    rows = tuple(
        Row((f"{layer.op} ({layer.target})", _megacycles(layer.cycles), size(layer.rw_kb), ms, node_name(layer)))
        for layer, ms in zip(layers, column([layer.modelled_ms for layer in layers]), strict=True)
    )
    columns = ("dearest layers", "megacycles", "traffic", "ms", "node")
    return Table("Dearest layers (ms modelled)", columns, rows, frozenset({1, 2, 3}), wraps=4)


def _cpu_table(layers: Sequence[LayerCost]) -> Table:
    rows = tuple(
        Row((layer.op, size(layer.rw_kb), ms, node_name(layer)))
        for layer, ms in zip(layers, column([layer.modelled_ms for layer in layers]), strict=True)
    )
    columns = ("on the CPU", "traffic", "ms", "node")
    return Table("Layers on the CPU (ms modelled)", columns, rows, frozenset({1, 2}), wraps=3)


def _megacycles(cycles: int) -> str:
    return f"{cycles / CYCLES_PER_MEGACYCLE:.2f}"


def node_name(layer: LayerCost) -> str:
    """The node that a layer was made from: its full name without the operator."""
    return layer.name.partition(":")[2] or layer.name or "(no name)"


def _shape(shape: Sequence[int | str]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _value(value: Json) -> str:
    return ", ".join(map(_value, value)) if isinstance(value, list) else str(value)
