"""What changed from one engine to another: what they cost per emitted frame, and what else is known of both."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from contracts.contract import PassRecord, TensorSpec
from contracts.errors import UserInput
from contracts.manifest import Manifest
from cost.comparison import OperatorChange, compare_operators, only_in_first, ratio
from cost.emission import Emission, emission_of
from cost.table import LayerCost
from gates.simulator import GATE as SIMULATOR
from rknn_tts.inspection import Inspection, inspect_file
from rknn_tts.numbers import BYTES_PER_MB, CYCLES_PER_MEGACYCLE, KB_PER_MB
from rknn_tts.present import cache_text, source_text, step_text, window_text
from rknn_tts.roles import stage_text

COMPARED = ("engine", "manifest", "layers")
"""Kinds of `Inspection` that are compared."""

BOARD_TIME = "time on a board"
"""The figure that a probe measured; all others are the compiler's, or modelled."""

FRAME, CODE, RUN = "emitted frame", "emitted code", "run"
"""Units of work."""

_DIGEST_DIGITS = 16
"""Hex digits of a source's digest that an engine carries inside (`contracts.contract.short_contract`)."""


@dataclass(frozen=True)
class Side:
    """One of the two.

    Attributes:
        file: the file that was named.
        kind: "engine", "manifest" or "layers".
        engine_sha256: the engine's digest; None where only its layers are known.
        units: units of work of one run: the frames or codes that it emits, or 1.
    """

    file: str
    kind: str
    engine_sha256: str | None
    units: int


@dataclass(frozen=True)
class Figure:
    """One figure of both engines.

    Attributes:
        name: what it is ("modelled time").
        unit: its unit ("ms/frame"); "" for counts.
        a, b: the figures; None where they are not known.
        difference: `b - a`; None where one is not known or not finite.
        ratio: `b / a`; None where it has none, or means nothing (dB).
    """

    name: str
    unit: str
    a: float | None
    b: float | None
    difference: float | None
    ratio: float | None


@dataclass(frozen=True)
class PassChange:
    """A pass that did not do the same in both: how many places it rewrote, None where it did not run."""

    name: str
    hits_a: int | None
    hits_b: int | None


@dataclass(frozen=True)
class FactChange:
    """A fact that is known of both and differs."""

    name: str
    a: str
    b: str


@dataclass(frozen=True)
class Comparison:
    """Two engines side by side.

    Attributes:
        a, b: which they are.
        unit: what the costs are divided by: an emitted frame where both have a window, an emitted code where both are
            steps, else a run.
        same: whether nothing that is known of both differs.
        targets: the targets, where they differ.
        figures: sums of both.
        operators: the modelled time by operator and target; empty where the layers of one are not at hand.
        cpu_gone: layers on the CPU that only A has.
        cpu_come: layers on the CPU that only B has.
        passes: passes that differ.
        facts: facts that differ.
        notes: what is missing, stale or not comparable, as sentences.
    """

    a: Side
    b: Side
    unit: str
    same: bool
    targets: tuple[str, str] | None
    figures: tuple[Figure, ...]
    operators: tuple[OperatorChange, ...]
    cpu_gone: tuple[LayerCost, ...]
    cpu_come: tuple[LayerCost, ...]
    passes: tuple[PassChange, ...]
    facts: tuple[FactChange, ...]
    notes: tuple[str, ...]


def compare_files(a: Path, b: Path, workdir: Path) -> Comparison:
    """Compare the engines that `a` and `b` are, or whose manifest or layer table they are.

    Args:
        a: the one to compare with.
        b: the one that is compared.
        workdir: where a manifest's `build-logs/` are looked for first.

    Raises:
        UserInput: one cannot be read, or is none of the three.
        Refusal: one is an ONNX whose external data is missing.
    """
    return compare(_inspected(a, workdir), _inspected(b, workdir))


def compare(a: Inspection, b: Inspection) -> Comparison:
    """Compare two engines by what was found of them."""
    emissions = (emission_of(a.manifest), emission_of(b.manifest))
    unit = _shared_unit(*emissions)
    units_a, units_b = (emission.count if emission and unit != RUN else 1 for emission in emissions)
    figures = _figures(a, b, units_a, units_b, unit)
    operators = compare_operators(a.cost, b.cost, units_a, units_b) if a.cost and b.cost else ()
    layers_known = a.layers is not None and b.layers is not None
    cpu_gone = only_in_first(a.cpu, b.cpu) if layers_known else ()
    cpu_come = only_in_first(b.cpu, a.cpu) if layers_known else ()
    passes = _pass_changes(a.manifest.passes, b.manifest.passes) if a.manifest and b.manifest else ()
    facts = _fact_changes(a, b)
    same = not any(
        (
            any(figure.a != figure.b for figure in figures if figure.a is not None and figure.b is not None),
            any(change.differs for change in operators),
            cpu_gone or cpu_come or passes or facts,
        )
    )
    return Comparison(
        a=_side(a, units_a),
        b=_side(b, units_b),
        unit=unit,
        same=same,
        targets=next(((fact.a, fact.b) for fact in facts if fact.name == "target"), None),
        figures=figures,
        operators=operators,
        cpu_gone=cpu_gone,
        cpu_come=cpu_come,
        passes=passes,
        facts=facts,
        notes=_notes(a, b, emissions),
    )


def _inspected(path: Path, workdir: Path) -> Inspection:
    found = inspect_file(path, workdir)
    if found.kind == "set":
        members = ", ".join(found.members) or "it has none"
        raise UserInput(f"{path}: is the manifest of a set; compare its members one by one: {members}.")
    if found.kind not in COMPARED:
        raise UserInput(
            f"{path}: is an ONNX, which has no layers yet; diff takes engines (.rknn), their manifests or layer tables "
            "(.json). Compile it first."
        )
    return found


def _side(found: Inspection, units: int) -> Side:
    return Side(found.file, found.kind, _engine_sha256(found), units)


def _engine_sha256(found: Inspection) -> str | None:
    if found.kind == "engine":
        return found.sha256
    return found.manifest.engine.sha256 if found.manifest else None


def _shared_unit(a: Emission | None, b: Emission | None) -> str:
    if a is None or b is None or a.unit != b.unit:
        return RUN
    return f"emitted {a.unit}"


def _figures(a: Inspection, b: Inspection, units_a: int, units_b: int, unit: str) -> tuple[Figure, ...]:
    per = unit.removeprefix("emitted ")
    costs = [
        ("engine file", "MB", _engine_mb(a), _engine_mb(b)),
        ("layers", "", _layer_count(a), _layer_count(b)),
        ("layers on the CPU", "", _cpu_count(a), _cpu_count(b)),
        ("cycles", f"M/{per}", _megacycles(a, units_a), _megacycles(b, units_b)),
        ("traffic", f"MB/{per}", _traffic_mb(a, units_a), _traffic_mb(b, units_b)),
        ("modelled time", f"ms/{per}", _modelled_ms(a, units_a), _modelled_ms(b, units_b)),
    ]
    emission_a, emission_b = emission_of(a.manifest), emission_of(b.manifest)
    if _stretches_differ(emission_a, emission_b):
        seconds_a, seconds_b = _audio_s(emission_a), _audio_s(emission_b)
        costs.append(("modelled time", "ms/s of audio", _modelled_ms(a, seconds_a), _modelled_ms(b, seconds_b)))
    if (measured := (_measured_ms(a, units_a), _measured_ms(b, units_b))) != (None, None):
        costs.append((BOARD_TIME, f"ms/{per}", *measured))
    (internal_a, weights_a), (internal_b, weights_b) = _memory_mb(a), _memory_mb(b)
    costs += [
        ("internal memory", "MB", internal_a, internal_b),
        ("weight memory", "MB", weights_a, weights_b),
    ]
    judged_a, judged_b = _simulator_dbs(a.manifest), _simulator_dbs(b.manifest)
    gates = dict.fromkeys((*judged_a, *judged_b)) or (SIMULATOR,)
    simulated = (_decibels(gate, judged_a.get(gate), judged_b.get(gate)) for gate in gates)
    return (*(_figure(*cost) for cost in costs), *simulated)


def _figure(name: str, unit: str, a: float | None, b: float | None) -> Figure:
    a, b = _of_a_build(a), _of_a_build(b)
    return Figure(name, unit, a, b, None if a is None or b is None else b - a, ratio(a, b))


def _decibels(name: str, a: float | None, b: float | None) -> Figure:
    difference = None if a is None or b is None else b - a
    return Figure(name, "dB", a, b, difference if difference is not None and math.isfinite(difference) else None, None)


def _of_a_build(figure: float | None) -> float | None:
    """`figure`, or None where it is one that no build has: negative, infinite or no number."""
    return figure if figure is not None and 0 <= figure < math.inf else None


def _engine_mb(found: Inspection) -> float | None:
    if found.kind == "engine":
        return found.bytes / BYTES_PER_MB
    return found.manifest.engine.bytes / BYTES_PER_MB if found.manifest else None


def _layer_count(found: Inspection) -> int | None:
    return found.layers.count if found.layers else None


def _cpu_count(found: Inspection) -> int | None:
    return len(found.cpu) if found.layers else None


def _megacycles(found: Inspection, units: float) -> float | None:
    return found.layers.cycles / CYCLES_PER_MEGACYCLE / units if found.layers else None


def _traffic_mb(found: Inspection, units: float) -> float | None:
    return found.layers.rw_kb / KB_PER_MB / units if found.layers else None


def _modelled_ms(found: Inspection, units: float | None) -> float | None:
    return found.layers.modelled_ms / units if found.layers and units else None


def _measured_ms(found: Inspection, units: float) -> float | None:
    """What a probe measured on a board; None where none did."""
    board = found.manifest.board if found.manifest else None
    return board.ms / units if board and board.ms is not None else None


def _memory_mb(found: Inspection) -> tuple[float | None, float | None]:
    """Internal memory and that of the weights."""
    memory = found.manifest.memory if found.manifest else None
    return (memory.internal_kb / KB_PER_MB, memory.weight_kb / KB_PER_MB) if memory else (None, None)


def _simulator_dbs(manifest: Manifest | None) -> dict[str, float | None]:
    """The simulator's figures by gate: of all outputs, and of those that are judged alone."""
    found: dict[str, float | None] = {}
    for verdict in manifest.verdicts if manifest else ():
        if verdict.gate == SIMULATOR or verdict.gate.startswith(f"{SIMULATOR}."):
            measured = verdict.measured
            found.setdefault(verdict.gate, float(measured) if isinstance(measured, (int, float)) else None)
    return found


def _stretches_differ(a: Emission | None, b: Emission | None) -> bool:
    """Whether a frame or code of `a` is another stretch of audio than one of `b`."""
    return a is not None and b is not None and (a.samples, a.sample_rate) != (b.samples, b.sample_rate)


def _audio_s(emission: Emission | None) -> float | None:
    """Seconds of audio that a run emits; None where nothing says."""
    return emission.audio_s if emission else None


def _pass_changes(a: Iterable[PassRecord], b: Iterable[PassRecord]) -> tuple[PassChange, ...]:
    """The passes that rewrote another number of places; one that found nothing is as good as one that did not run."""
    hits_a, hits_b = {record.name: record.hits for record in a}, {record.name: record.hits for record in b}
    changes = (PassChange(name, hits_a.get(name), hits_b.get(name)) for name in hits_a | hits_b)
    return tuple(change for change in changes if (change.hits_a or 0) != (change.hits_b or 0))


def _fact_changes(a: Inspection, b: Inspection) -> tuple[FactChange, ...]:
    """The facts that differ, of those that are known of both."""
    if a.manifest and b.manifest:
        facts_a, facts_b = _manifest_facts(a.manifest), _manifest_facts(b.manifest)
    else:
        facts_a, facts_b = _carried_facts(a), _carried_facts(b)
    return tuple(
        FactChange(name, facts_a[name], facts_b[name])
        for name in facts_a
        if name in facts_b and facts_a[name] != facts_b[name]
    )


def _manifest_facts(manifest: Manifest) -> dict[str, str]:
    rules = ", ".join(manifest.toolkit.disabled_rules)
    return {
        "target": manifest.target,
        "toolkit": f"{manifest.toolkit.name} {manifest.toolkit.version}",
        "rules off": rules or "none",
        "stage": stage_text(manifest.family, manifest.stage, manifest.role),
        "source": source_text(manifest.source),
        "window": window_text(manifest.window) if manifest.window else "none",
        "step": step_text(manifest.step) if manifest.step else "none",
        "cache": cache_text(manifest.cache) if manifest.cache else "none",
        "inputs": _tensors(manifest.inputs),
        "outputs": _tensors(manifest.outputs),
        "graph": f"{manifest.onnx.nodes} nodes, opset {manifest.onnx.opset}",
        "passes left out": ", ".join(manifest.skipped) or "none",
    }


def _carried_facts(found: Inspection) -> dict[str, str]:
    """What an engine says of itself, without a manifest; of one with a manifest, the same from there."""
    if found.manifest:
        manifest = found.manifest
        return {
            "target": manifest.target,
            "toolkit": manifest.toolkit.version,
            "stage": stage_text(manifest.family, manifest.stage, manifest.role),
            "source": f"sha256 {manifest.source.sha256[:_DIGEST_DIGITS]}",
        }
    if not found.engine:
        return {}
    facts = {"target": ", ".join(found.engine.targets), "toolkit": found.engine.toolkit or ""}
    if contract := found.engine.contract:
        family, stage, role, source = (contract.get(key) for key in ("family", "stage", "role", "source"))
        facts["stage"] = stage_text(family, stage, role)
        facts["source"] = f"sha256 {source}" if source else ""
    return {name: text for name, text in facts.items() if text}


def _tensors(tensors: Iterable[TensorSpec]) -> str:
    return ", ".join(f"{tensor.name} {list(tensor.shape)} {tensor.dtype}" for tensor in tensors) or "none"


def _notes(a: Inspection, b: Inspection, emissions: tuple[Emission | None, Emission | None]) -> tuple[str, ...]:
    notes = [f"A and B: {note}" for note in a.notes if note in b.notes]
    notes += [f"A: {note}" for note in a.notes if note not in b.notes]
    notes += [f"B: {note}" for note in b.notes if note not in a.notes]
    for name, found in (("A", a), ("B", b)):
        if found.layers is None:
            notes.append(f"What {name} costs is not known: nothing says which layers it has.")
        elif bad := _impossible(found):
            notes.append(f"The manifest of {name} states {bad}, which no build has: it is left out.")
    emission_a, emission_b = emissions
    if a.layers and b.layers and (known := emission_a or emission_b) and not (emission_a and emission_b):
        which, what = "A" if emission_a else "B", "have a window" if known.unit == "frame" else "be a step"
        notes.append(f"Only {which} is known to {what}: costs are of a run, not of an emitted {known.unit}.")
    if emission_a and emission_b and emission_a.unit != emission_b.unit:
        notes.append(f"A emits {emission_a.unit}s and B {emission_b.unit}s: costs are of a run.")
    elif emission_a and emission_b and _stretches_differ(emission_a, emission_b):
        notes.append(_stretch_note(emission_a, emission_b))
    return tuple(notes)


def _stretch_note(a: Emission, b: Emission) -> str:
    told = f"A {a.unit} of A is another stretch of audio than one of B"
    if _audio_s(a) is None or _audio_s(b) is None:
        return f"{told}, and without a sample rate of both nothing compares them."
    return f"{told}: compare by second of audio."


def _impossible(found: Inspection) -> str:
    """The figures that no build has, in words; "" where all are sound."""
    assert found.layers is not None
    memory = found.manifest.memory if found.manifest else None
    figures: dict[str, float] = {
        "count": found.layers.count,
        "cycles": found.layers.cycles,
        "rw_kb": found.layers.rw_kb,
        "modelled_ms": found.layers.modelled_ms,
        **({"internal_kb": memory.internal_kb, "weight_kb": memory.weight_kb} if memory else {}),
    }
    return ", ".join(f"{name} {figure:g}" for name, figure in figures.items() if _of_a_build(figure) is None)
