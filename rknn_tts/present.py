"""What a person sees of a report, as blocks for the terminal or for plain text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from contracts.board import Board
from contracts.contract import RANDOM, STAND_IN, Cache, CodeStep, Source, Window
from contracts.manifest import CpuLayer, Layers, LogSummary, Manifest, RegtaskCount
from contracts.quantisation import FROM_FILE, SYNTHETIC, Quantisation
from contracts.verdicts import Measurement, Status, Verdict
from cost.emission import Emission, emission_of
from rknn_tts.blocks import Block, Facts, Notice, Row, Table, Tone
from rknn_tts.numbers import CYCLES_PER_MEGACYCLE, figures, number, size
from rknn_tts.outcome import Outcome
from rknn_tts.present_aperture import aperture_text, together_blocks
from rknn_tts.present_board import MEASURED, board_pairs
from rknn_tts.report import Report

MODELLED = "modelled, not measured on a board"

_ATTENTION = ("keys", "values")
"""Ends of the names of a cache's slices that attention looks back at."""

_CACHE_BYTES = 4
"""Of one float32."""

_TONES: dict[Status, Tone] = {Status.PASSED: "good", Status.FAILED: "bad", Status.UNPROVEN: "warn"}

_FILE_LABELS = (
    ("-host.onnx", "host half"),
    (".onnx", "onnx"),
    (".rknn", "engine"),
    (".layers.json", "layer table"),
    (".set.json", "set"),
    (".json", "manifest"),
)
"""What a file is, by how its name ends (design, Names); the first that fits."""

_NAMES_SHOWN = 4
"""CPU layers named in a line of the summary; all of them are in the manifest."""


def outcome_blocks(report: Report) -> list[Block]:
    """What a command that builds came to: verdicts, measurements, summary, notes, and what is unproven."""
    outcome = report.outcome
    blocks: list[Block] = []
    if outcome.verdicts:
        blocks.append(verdict_table(outcome.verdicts))
    if outcome.measurements:
        blocks.append(measurement_table(outcome.measurements))
    of_members = {file for member in outcome.members for file in member.files}
    for member in outcome.members:
        role = member.manifest.role if member.manifest is not None else None
        blocks.append(Facts((("engine of", f"{role}"), *_pairs(member))))
    if outcome.aperture is not None:
        blocks += together_blocks(outcome.aperture)
    pairs = [(_file_label(file), file) for file in outcome.files if file not in of_members]
    pairs += _pairs(outcome)[len(outcome.files) :]
    if outcome.reused:
        pairs.append(("reused", f"{', '.join(outcome.reused)} (finished before; --force does every step again)"))
    if pairs and (report.error is None or outcome.files):  # done, but for its JUnit file
        blocks.append(Facts(tuple(pairs)))
    blocks += [Notice("note", note) for note in outcome.notes]
    blocks += unproven_notices(outcome.verdicts)
    return blocks


def _pairs(outcome: Outcome) -> list[tuple[str, str]]:
    """The files of an outcome, and what is known of its engine."""
    pairs = [(_file_label(file), file) for file in outcome.files]
    if outcome.manifest:
        pairs += manifest_pairs(outcome.manifest)
    if outcome.log:
        pairs.append(("log", outcome.log))
    return pairs


def error_blocks(report: Report) -> list[Block]:
    """Why a command failed: the sentence, each failed verdict, and where the log is."""
    error = report.error or ""
    blocks: list[Block] = [Notice("error", error, "bad")]
    # The sentence tells the first failure's detail already.
    blocks += [
        Notice(verdict.gate, verdict.detail, "bad")
        for verdict in report.outcome.verdicts
        if verdict.status is Status.FAILED and verdict.detail and verdict.detail.rstrip(".") not in error
    ]
    if report.outcome.log:
        blocks.append(Notice("log", report.outcome.log))
    return blocks


def family_blocks(report: Report) -> list[Block]:
    """Every family and stage, and what is converted where no checkpoint is named."""
    rows = []
    for stage in report.extra["families"]:
        default = stage["default_checkpoint"]
        rows.append(Row((stage["family"], stage["stage"], default["packages"] if default else "-", stage["summary"])))
    columns = ("family", "stage", "default checkpoint", "summary")
    return [Table("Families", columns, tuple(rows), prose="below")]


def pass_blocks(report: Report) -> list[Block]:
    """Every pass, in the order in which they run."""
    rows = [
        Row((entry["name"], entry["bound"], entry["targets"], entry["summary"])) for entry in report.extra["passes"]
    ]
    return [Table("Passes", ("pass", "algebra", "for", "what it does"), tuple(rows), prose="below")]


def finding_blocks(report: Report) -> list[Block]:
    """What the doctor found, and what to do about it."""
    tones: dict[str, Tone] = {"ok": "good", "warning": "warn", "problem": "bad"}
    findings = report.extra["findings"]
    rows = tuple(Row((finding.status, finding.name, finding.found), tones[finding.status]) for finding in findings)
    blocks: list[Block] = [Table("Findings", ("status", "what", "found"), rows, wraps=2)]
    blocks += [Notice(finding.name, finding.remedy, tones[finding.status]) for finding in findings if finding.remedy]
    return blocks


def removal_blocks(report: Report) -> list[Block]:
    """What was removed."""
    return [Notice("clean", sentence) for sentence in report.extra["removed"]]


def verdict_table(verdicts: Iterable[Verdict]) -> Table:
    """The verdicts, one a row, in the order in which they were reached."""
    rows = tuple(
        Row(
            (
                verdict.status.value,
                verdict.gate,
                *figures(verdict.measured, verdict.threshold),
                verdict.unit,
                verdict.detail,
            ),
            _TONES[verdict.status],
        )
        for verdict in verdicts
    )
    columns = ("status", "gate", "measured", "threshold", "unit", "detail")
    return Table("Verdicts", columns, rows, right=frozenset({2, 3}), wraps=1, prose="wide")


def measurement_table(measurements: Iterable[Measurement]) -> Table:
    """Figures that decide nothing, each with the reason."""
    rows = tuple(Row((m.name, number(m.measured), m.unit, m.reason)) for m in measurements)
    return Table(
        "Measured, deciding nothing", ("figure", "measured", "unit", "reason"), rows, frozenset({1}), prose="below"
    )


def unproven_notices(verdicts: Iterable[Verdict]) -> list[Block]:
    """What only a board can tell, loudly."""
    return [
        Notice("UNPROVEN", f"{verdict.gate}: {verdict.detail or 'only a board can tell.'}", "warn")
        for verdict in verdicts
        if verdict.status is Status.UNPROVEN
    ]


def manifest_pairs(manifest: Manifest, *, name_cpu_layers: bool = True) -> list[tuple[str, str]]:
    """The summary of an engine: what it is for, what it is made of, what it costs.

    Args:
        manifest: what is known of it.
        name_cpu_layers: whether to name layers on the CPU, operator by operator; not where a table shows them all.
    """
    pairs = [
        ("target", f"{manifest.target}, {manifest.toolkit.name} {manifest.toolkit.version}"),
        ("size", size(manifest.engine.bytes / 1000)),
        ("source", source_text(manifest.source)),
    ]
    if manifest.quantisation:
        pairs.append(("precision", precision_text(manifest.quantisation)))
    if manifest.window:
        pairs.append(("window", window_text(manifest.window)))
    pairs += step_pairs(manifest.step, manifest.cache)
    if manifest.layers:
        pairs += layers_pairs(manifest.layers, emission_of(manifest), manifest.board)
        pairs += [("on the CPU", text) for text in cpu_texts(manifest.layers.cpu)] if name_cpu_layers else []
    if manifest.memory:
        internal, weights = size(manifest.memory.internal_kb), size(manifest.memory.weight_kb)
        pairs.append(("memory", f"{internal} internal, {weights} weights"))
    if manifest.aperture:
        pairs.append(("loaded", aperture_text(manifest.aperture)))
    if manifest.board:
        pairs += board_pairs(manifest.board)
    return pairs + log_pairs(manifest.log)


def step_pairs(step: CodeStep | None, cache: Cache | None) -> list[tuple[str, str]]:
    """What a stage that keeps a state takes, and keeps."""
    pairs = [("step", step_text(step))] if step else []
    return [*pairs, ("cache", cache_text(cache))] if cache else pairs


def layers_pairs(layers: Layers, emission: Emission | None, board: Board | None = None) -> list[tuple[str, str]]:
    """What the layers come to: the time, how many they are, cycles and traffic.

    Args:
        layers: their sums, the modelled time among them.
        emission: what a run emits; None where that is not known.
        board: what a board measured, which is told in the place of what is modelled.
    """
    time = f"{_time(layers.modelled_ms, emission)} ({MODELLED})"
    if board is not None and board.ms is not None:
        time = f"{_time(board.ms, emission)} ({MEASURED}; {number(layers.modelled_ms, 3)} modelled)"
    return [
        ("time", time),
        ("layers", f"{layers.count}, {len(layers.cpu)} of them on the CPU"),
        ("work", f"{number(layers.cycles / CYCLES_PER_MEGACYCLE, 3)} megacycles, {size(layers.rw_kb)} of traffic"),
    ]


def cpu_texts(layers: Iterable[CpuLayer]) -> list[str]:
    """The layers on the CPU, an operator a line: how many, their traffic, the first names."""
    by_op: dict[str, list[CpuLayer]] = {}
    for layer in layers:
        by_op.setdefault(layer.op, []).append(layer)
    texts = []
    for op, group in sorted(by_op.items(), key=lambda item: -sum(layer.rw_kb for layer in item[1])):
        names = [layer.name.removeprefix(f"{op}:") or "(no name)" for layer in group]
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        traffic = size(sum(layer.rw_kb for layer in group))
        texts.append(f"{len(group)} {op}, {traffic} of traffic: {', '.join(names[:_NAMES_SHOWN])}{more}")
    return texts


def log_pairs(log: LogSummary) -> list[tuple[str, str]]:
    """What the build log said that a user should know."""
    pairs = [("REGTASK", _regtask_text(key)) for key in log.regtask]
    pairs += [("accepted", f"{text} (--accept-regtask)") for text in log.accepted]
    pairs += [("fallback", text) for text in Counter(log.fallback)]
    return pairs


def _regtask_text(key: RegtaskCount) -> str:
    field = f"{key.target} {key.offset} shift {key.shift} limit {key.limit}"
    return f"{field}: largest value {key.max_value}, {key.count} {'line' if key.count == 1 else 'lines'}"


def source_text(source: Source) -> str:
    """Where the weights come from."""
    digest = f"sha256 {source.sha256[:16]}"
    return f"{STAND_IN}, {digest}" if source.kind == RANDOM else f"{source.name} ({source.kind}), {digest}"


def precision_text(quantisation: Quantisation) -> str:
    """Of how many bits an engine is, and what that was found on."""
    told = {FROM_FILE: "given inputs", SYNTHETIC: "seeded random inputs"}
    inputs = told.get(quantisation.calibration, "of the inputs that it is judged on")
    how = f"{quantisation.algorithm}, by {quantisation.method}"
    insisted = ", insisted on" if quantisation.insisted else ""
    return f"{quantisation.dtype}{insisted}, ranges found on {quantisation.windows} {inputs} ({how})"


def window_text(window: Window) -> str:
    """The geometry of a window, in frames and samples."""
    rate = f" at {window.sample_rate} Hz" if window.sample_rate else ""
    return (
        f"{window.frames} frames = {window.left} + {window.emitted} + {window.right} (context, emitted, context), "
        f"{window.hop} samples a frame{rate}"
    )


def step_text(step: CodeStep) -> str:
    """The geometry of a step of codes."""
    rate = f" at {step.sample_rate} Hz" if step.sample_rate else ""
    dropped = f" = {step.context} + {step.emitted} (context, emitted)" if step.context else ""
    seen = f"; sees {step.kv_len} earlier" if step.kv_len else ""
    heads = f", heads of {step.head_dim}" if step.head_dim else ""
    return f"{step.codes} codes{dropped}, {step.samples_per_code} samples a code{rate}{seen}{heads}"


def cache_text(cache: Cache) -> str:
    """How large a state is, and what lies in it: `1303424 numbers (5.2 MB): 8 keys, 8 values, 4 others`."""
    text = f"{cache.numel} numbers ({size(cache.numel * _CACHE_BYTES / 1000)})"
    last = [part.name.rpartition(".")[2] for part in cache.layout]
    attention = [f"{last.count(name)} {name}" for name in _ATTENTION if name in last]
    others = sum(name not in _ATTENTION for name in last)
    told = [*attention, *([f"{others} other{'s' * (others > 1)}"] if others else [])]
    return f"{text}: {', '.join(told)}" if told else text


def _time(modelled_ms: float, emission: Emission | None) -> str:
    text = f"{number(modelled_ms, 3)} ms a run"
    if emission and emission.audio_s:
        text += f" for {1000 * emission.audio_s:.0f} ms of audio"
    return text


def _file_label(file: str) -> str:
    return next((label for ending, label in _FILE_LABELS if file.endswith(ending)), "file")
