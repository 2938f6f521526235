"""What changed from an earlier catalogue to this one: what is better, worse, new or gone, and what is mended.

What counts is one table, `RULES`: from how much on a figure is better or worse, and why from there. An engine is told
by what it is (family, stage, role, voice, width, target), whatever its file is called; where a folder has several of
one kind, by their paths too. Nothing that was measured (`measured`) is compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from contracts.verdicts import Status
from farm.catalogue import Catalogue, EngineEntry, Failure, Fault

Key = tuple[str, ...]


@dataclass(frozen=True)
class Rule:
    """When a figure of an engine is better or worse than it was.

    Attributes:
        figure: its name.
        unit: its unit.
        of: the figure; None where it is not known: then nothing is compared.
        least: what it has to differ by more than: in its unit, or of the earlier figure.
        relative: whether `least` is a share of the earlier figure.
        more_is_better: whether a larger figure is better.
        why: where `least` comes from.
    """

    figure: str
    unit: str
    of: Callable[[EngineEntry], float | None]
    least: float
    relative: bool
    more_is_better: bool
    why: str


RULES = (
    Rule(
        "modelled time",
        "ms",
        lambda entry: entry.cost.modelled_ms if entry.cost else None,
        0.01,
        relative=True,
        more_is_better=False,
        why="twice what the model can tell apart, half a percent (rknn_tts/tune/ladder_choice.py, TIE)",
    ),
    Rule(
        "simulator",
        "dB",
        lambda entry: entry.simulator_db,
        1.0,
        relative=False,
        more_is_better=True,
        why="what our engines may be lower than the reference's (docs/cost.md, Beside the reference)",
    ),
    Rule(
        "size",
        "bytes",
        lambda entry: float(entry.bytes),
        0.01,
        relative=True,
        more_is_better=False,
        why="as the modelled time",
    ),
    Rule(
        "layers on the CPU",
        "",
        lambda entry: float(entry.cost.cpu_layers) if entry.cost else None,
        0.0,
        relative=False,
        more_is_better=False,
        why="one more is worse: each costs the way there and back (docs/cost.md, The model)",
    ),
)
"""Verdicts are compared besides, by their gates: failed is worse than unproven, and that than passed."""

_RANK = {Status.FAILED: 2, Status.UNPROVEN: 1}
"""Of a verdict; 0 of one that passed, which the catalogue only counts."""


@dataclass(frozen=True)
class Difference:
    """A figure, or a gate, that is better or worse.

    Attributes:
        figure: its name ("modelled time"), or the gate.
        before, after: what it was and is: a number in `unit`, or a gate's status.
        unit: of both.
        better: whether it is better now.
    """

    figure: str
    before: float | str
    after: float | str
    unit: str
    better: bool


@dataclass(frozen=True)
class EngineChange:
    """An engine that is in both catalogues, with other bytes or other figures.

    Attributes:
        engine: what it is, in words.
        path: its file now.
        differences: what is better or worse; none where only the bytes are others.
        other: what else changed that its bytes depend on: "checkpoint", "graph", "toolkit", "precision".
        sha256_before, sha256: its digests.
    """

    engine: str
    path: str
    differences: tuple[Difference, ...]
    other: tuple[str, ...]
    sha256_before: str
    sha256: str


@dataclass(frozen=True)
class Named:
    """An engine or a failure that only one of the catalogues has: what it is, and its file or sentence there."""

    what: str
    told: str


@dataclass(frozen=True)
class Changes:
    """What changed.

    Attributes:
        against: the earlier catalogue, as it was named.
        new, gone: engines that only this one, or only the earlier one, has.
        better, worse: engines of which something is; one with both is worse.
        other_bytes: engines with the same figures and other bytes.
        same: how many engines are the same bytes, or differ in what was measured alone.
        failed: failures that the earlier catalogue does not have.
        mended: failures of the earlier one whose job is done now.
    """

    against: str
    new: tuple[Named, ...]
    gone: tuple[Named, ...]
    better: tuple[EngineChange, ...]
    worse: tuple[EngineChange, ...]
    other_bytes: tuple[EngineChange, ...]
    same: int
    failed: tuple[Named, ...]
    mended: tuple[Named, ...]


def changes_since(earlier: Catalogue, now: Catalogue, against: str) -> Changes:
    """What changed from `earlier`, which `against` names, to `now`."""
    before, after = _by_key(earlier.engines), _by_key(now.engines)
    both = [(before[key], after[key]) for key in after if key in before]
    changed = [change for pair in both if (change := _change(*pair)) is not None]
    worse = tuple(change for change in changed if any(not one.better for one in change.differences))
    better = tuple(change for change in changed if change.differences and change not in worse)
    failed_before, failed_now = _failures(earlier), _failures(now)
    done, paths = _done(now), frozenset(entry.path for entry in now.engines if not entry.verdicts.failed)
    return Changes(
        against=against,
        new=tuple(Named(engine_text(after[key]), after[key].path) for key in after if key not in before),
        gone=tuple(Named(engine_text(before[key]), before[key].path) for key in before if key not in after),
        better=better,
        worse=worse,
        other_bytes=tuple(change for change in changed if not change.differences),
        same=len(both) - len(changed),
        failed=tuple(Named(failure_text(f), f.sentence) for key, f in failed_now.items() if key not in failed_before),
        mended=tuple(
            Named(failure_text(failure), failure.sentence)
            for key, failure in failed_before.items()
            if key not in failed_now and (_is_mended(failure, done) if failure.path is None else failure.path in paths)
        ),
    )


def engine_text(entry: EngineEntry) -> str:
    """What an engine is, in words: `piper decoder w128, en_US-joe-medium, rk3588`."""
    stage = " ".join(part for part in (entry.family, entry.stage, entry.role) if part) or "a foreign ONNX"
    return ", ".join(part for part in (stage, entry.voice, entry.width, entry.target) if part)


def failure_text(failure: Failure) -> str:
    """What a failure is of, in words: `compile of piper decoder, en_US-joe-medium, rk3588`."""
    stage = " ".join(part for part in (failure.family, failure.stage) if part)
    of = ", ".join(part for part in (stage, failure.voice, failure.width, failure.target) if part)
    return f"{failure.kind} of {of or failure.path or 'an engine'}"


def _by_key(engines: Iterable[EngineEntry]) -> dict[Key, EngineEntry]:
    """The engines by what they are; those of which a folder has several, by their paths too."""
    entries = tuple(engines)
    counts = Counter(map(_key, entries))
    return {(*_key(entry), entry.path) if counts[_key(entry)] > 1 else _key(entry): entry for entry in entries}


def _key(entry: EngineEntry) -> Key:
    names = (entry.family, entry.stage, entry.role, entry.voice, entry.width, entry.target)
    return tuple(name or "" for name in names)


def _change(before: EngineEntry, after: EngineEntry) -> EngineChange | None:
    """What changed of an engine; None where nothing did that counts, and its bytes are the same."""
    differences = (*_figures(before, after), *_gates(before, after))
    if not differences and before.sha256 == after.sha256:
        return None
    facts = {
        "checkpoint": before.source_sha256 != after.source_sha256,
        "graph": before.onnx_sha256 != after.onnx_sha256,
        "toolkit": before.toolkit != after.toolkit,
        "precision": before.precision != after.precision,
    }
    other = tuple(name for name, differs in facts.items() if differs)
    return EngineChange(engine_text(after), after.path, differences, other, before.sha256, after.sha256)


def _figures(before: EngineEntry, after: EngineEntry) -> Iterator[Difference]:
    for rule in RULES:
        old, new = rule.of(before), rule.of(after)
        if old is None or new is None or old == new:
            continue
        least = rule.least * abs(old) if rule.relative else rule.least
        if abs(new - old) > least:  # never of NaN
            yield Difference(rule.figure, old, new, rule.unit, (new > old) is rule.more_is_better)


def _gates(before: EngineEntry, after: EngineEntry) -> Iterator[Difference]:
    """Gates whose status is another; one that the other engine does not name passed there, or was not owed."""
    old = {verdict.gate: verdict.status for verdict in before.notable}
    new = {verdict.gate: verdict.status for verdict in after.notable}
    for gate in dict.fromkeys((*old, *new)):
        was, now = old.get(gate, Status.PASSED), new.get(gate, Status.PASSED)
        if was is not now:
            yield Difference(gate, was.value, now.value, "", _RANK.get(now, 0) < _RANK.get(was, 0))


def _failures(catalogue: Catalogue) -> dict[Key, Failure]:
    """Failures by what they are of; what only waits for another is none of its own."""
    return {
        tuple(name or "" for name in (f.kind, f.family, f.stage, f.voice, f.width, f.target, f.path)): f
        for f in catalogue.failures
        if f.fault is not Fault.WAITING
    }


def _done(catalogue: Catalogue) -> Mapping[str, frozenset[Key]]:
    """What is done by kind: of what engines were exported, compiled and shown on a page, and what came out the same."""

    def of(entries: Sequence[EngineEntry], *, target: bool) -> frozenset[Key]:
        return frozenset(
            (entry.family or "", entry.stage or "", entry.voice, entry.width, entry.target if target else "")
            for entry in entries
        )

    sound = [entry for entry in catalogue.engines if not entry.verdicts.failed]
    compiled = of(sound, target=True)
    return {
        "export": of(sound, target=False) | compiled,
        "compile": compiled,
        "engine": compiled,
        "page": of([entry for entry in sound if entry.page], target=True),
        "twice": frozenset(
            (repeat.family, repeat.stage, repeat.voice, repeat.width, repeat.target or "")
            for repeat in catalogue.repeats
            if repeat.same
        ),
    }


def _is_mended(failure: Failure, done: Mapping[str, frozenset[Key]]) -> bool:
    names = (failure.family, failure.stage, failure.voice, failure.width, failure.target)
    return tuple(name or "" for name in names) in done.get(failure.kind, frozenset())
