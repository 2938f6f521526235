"""What the manifests of Qwen3's engines tell of their steps, and whether the steps belong together.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from math import prod
from typing import Any, Mapping, NamedTuple

from rknn_tts_runtime.faults import BadInput, Mismatch
from rknn_tts_runtime.identity import check_stage
from rknn_tts_runtime.manifest import EngineManifest, StepInfo

FAMILY, STAGE = "qwen3", "speech_decoder"

MAIN, FIRST, WINDOW = "main", "first", "window"
"""Roles of a plan's artifacts: the large step, the small one that a stream begins with, the one of events."""

HIDDEN, CODES = "hidden", "codes"
"""What an engine takes: the state behind the quantizer, or the codes themselves."""

CACHE, AUDIO, CACHE_OUT = "cache", "audio", "cache_out"

USUAL_EVENT = (25, 12)
"""Context and new codes of an event, where the engine of `window` was not made for one (reference, `artifacts.window`:
a plan may name the main engine there)."""


class Step(NamedTuple):
    """One engine's step.

    Attributes:
        manifest: the engine's.
        geometry: codes of a step, samples of a code.
        seam: `HIDDEN` or `CODES`.
        channels: axis 1 of what it takes.
        cache_numel: elements of its cache.
    """

    manifest: EngineManifest
    geometry: StepInfo
    seam: str
    channels: int
    cache_numel: int


def step_of(manifest: EngineManifest) -> Step:
    """The step that the engine of `manifest` runs.

    Raises:
        Mismatch: it is of another stage, or takes and gives something else than a step.
    """
    check_stage(manifest, FAMILY, STAGE)
    taken = {info.name: info.shape for info in manifest.inputs}
    given = {info.name: info.shape for info in manifest.outputs}
    seam = next((name for name in (HIDDEN, CODES) if name in taken), "")
    geometry, numel, shape = manifest.step, manifest.cache_numel, taken.get(seam, ())
    if geometry is None or numel is None or set(taken) != {seam, CACHE} or not {AUDIO, CACHE_OUT} <= set(given):
        raise Mismatch(
            f"{manifest.path}: is no step of a speech decoder: it takes {_listed(taken)} and gives {_listed(given)}, "
            f"expected {HIDDEN} or {CODES}, {CACHE} and {AUDIO}, {CACHE_OUT}, and `step` and `cache` in its manifest. "
            "Export it again."
        )
    sizes = {
        seam: (prod(shape), (shape[1] if len(shape) > 1 else 0) * geometry.codes),
        CACHE: (prod(taken[CACHE]), numel),
        AUDIO: (prod(given[AUDIO]), geometry.codes * geometry.samples_per_code),
        CACHE_OUT: (prod(given[CACHE_OUT]), numel),
    }
    for name, (found, expected) in sizes.items():
        if found != expected:
            raise Mismatch(
                f"{manifest.path}: its {name} has {found} numbers, and by its step of {geometry.codes} codes and cache "
                f"of {numel} numbers they are {expected}. Export it again."
            )
    return Step(manifest, geometry, seam, shape[1], numel)


def event_of(step: Step) -> tuple[int, int]:
    """Context and new codes of an event on the engine `step`."""
    if step.geometry.context:
        return step.geometry.context, step.geometry.emitted
    return USUAL_EVENT


def check_alike(steps: Mapping[str, Step]) -> None:
    """Check that the engines of all roles decode one stream, and that main and first share a cache.

    Raises:
        BadInput: first is not smaller than main, or window is too small for an event.
        Mismatch: two are of two checkpoints, or take or give other things.
    """
    main, first, window = steps[MAIN], steps.get(FIRST), steps.get(WINDOW)
    for role, other in steps.items():
        for what, ours, theirs in _compared(main, other):
            if ours != theirs:
                raise Mismatch(
                    f"{main.manifest.engine.name} ({MAIN}) and {other.manifest.engine.name} ({role}) do not belong "
                    f"together: {what} is {ours} of the one, and {theirs} of the other. Name engines of one set."
                )
    if first is not None:
        _check_cache(main, first)
        if first.geometry.codes >= main.geometry.codes:
            raise BadInput(
                f"{first.manifest.engine.name} ({FIRST}) takes {first.geometry.codes} codes, and "
                f"{main.manifest.engine.name} ({MAIN}) {main.geometry.codes}: a stream begins with the smaller one. "
                "Change their places in the plan, or name no first."
            )
    if window is not None and sum(event_of(window)) > window.geometry.codes:
        context, emitted = event_of(window)
        raise BadInput(
            f"{window.manifest.engine.name} ({WINDOW}) takes {window.geometry.codes} codes, and an event has "
            f"{context}+{emitted}: build one for it, make engine FAMILY={FAMILY} WINDOW_ROLE={context}+{emitted}."
        )


def _compared(main: Step, other: Step) -> list[tuple[str, object, object]]:
    return [
        ("the checkpoint", _checkpoint(main), _checkpoint(other)),
        ("what they take", f"{main.seam} of {main.channels}", f"{other.seam} of {other.channels}"),
        ("samples of a code", main.geometry.samples_per_code, other.geometry.samples_per_code),
        ("the sample rate", main.geometry.sample_rate, other.geometry.sample_rate),
    ]


_DIGITS = 16
"""Of a digest that is shown."""


def _checkpoint(step: Step) -> str:
    return f"{step.manifest.source_name} {step.manifest.source_sha256[:_DIGITS]}".strip()


def _check_cache(main: Step, first: Step) -> None:
    """Check that both lay the cache out alike: what one leaves the other reads."""
    ours, theirs = _layout(main.manifest), _layout(first.manifest)
    if main.cache_numel == first.cache_numel and ours == theirs:
        return
    differing = next((name for name in (*ours, *theirs) if ours.get(name) != theirs.get(name)), None)
    where = f", and {differing} lies elsewhere in it" if differing is not None else ""
    raise Mismatch(
        f"{main.manifest.engine.name} ({MAIN}) and {first.manifest.engine.name} ({FIRST}) share no cache: of "
        f"{main.cache_numel} and {first.cache_numel} numbers{where}. Name engines of one set, built with one --cache."
    )


def _layout(manifest: EngineManifest) -> dict[str, tuple[Any, Any]]:
    """Offset and shape of each tensor in the cache, by name."""
    cache = manifest.data.get("cache")
    entries = cache.get("layout") if isinstance(cache, dict) else None
    if not isinstance(entries, list):
        return {}
    return {
        str(entry.get("name")): (entry.get("offset"), entry.get("shape"))
        for entry in entries
        if isinstance(entry, dict)
    }


def _listed(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items()) or "nothing"
