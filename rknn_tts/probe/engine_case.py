"""The case of the engine itself: its real inputs, what is right for them, and the bounds that its gates had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rknn_tts_runtime.probing.arrays import DTYPES
from rknn_tts_runtime.probing.kit import ENGINE

from contracts.errors import UserInput
from contracts.manifest import Manifest
from contracts.thresholds import OF_OUTPUT, SIMULATOR
from gates.session import Session
from rknn_tts.carried import Feed, carried_feeds, carried_originals
from rknn_tts.feeds import stand_in_feed
from rknn_tts.probe.bounds import bounds_of
from rknn_tts.probe.kit_files import Draft
from rknn_tts.probe.subject import Probed
from rknn_tts.verify_gates import regtask_name

HELD = tuple(dtype.name for dtype in DTYPES.values())
"""Types of the arrays that a kit holds."""

Array = NDArray[Any]
Outputs = Mapping[str, Array]


def engine_draft(probed: Probed) -> tuple[Draft, tuple[str, ...]]:
    """The case of the whole engine of `probed`, and sentences for the user.

    It decides every hardware field that its build overflowed: none is proven without a board.

    Raises:
        UserInput: what its twin carries is damaged, or is not what its engine takes, or gives no numbers.
        ToolFailure: onnxruntime failed.
    """
    manifest, where = probed.manifest, str(probed.twin)
    _check_types(manifest, where)
    feeds, inputs, notes = _feeds(probed)
    run = Session(probed.model, name=where).run
    expected, by_original = _expected([run(feed) for feed in feeds], carried_originals(probed.model, where))
    expected, silent = _without_silence(expected, where)
    if silent:
        notes.append(f"Not compared, for they are all zero on these inputs: {', '.join(silent)}.")
    against = "the unpatched original" if by_original else "onnxruntime in fp32 on the twin"
    bounds_db, bounds = bounds_of(manifest)
    whole = " ".join(filter(None, (manifest.family, manifest.stage, manifest.role))) or probed.engine.stem
    files = (probed.engine, probed.place, probed.twin)
    draft = Draft(
        name=ENGINE,
        kind=ENGINE,
        what=f"{whole}, the whole engine on {inputs}, against {against}; {bounds}",
        proves=fields_of(manifest),
        manifest=probed.place.name,
        files=[(path.name, path) for path in files],
        feeds=feeds,
        expected=expected,
        bounds_db=bounds_db,
        simulator_db=_simulator_db(manifest),
    )
    return draft, tuple(notes)


def fields_of(manifest: Manifest) -> tuple[str, ...]:
    """The names of the verdicts on the hardware fields that an engine's build overflowed."""
    return tuple(map(regtask_name, manifest.log.regtask))


def _simulator_db(manifest: Manifest) -> float | None:
    """What the worst output reached in the simulator, as a gate or as a figure; None where it was not run."""
    gates = {SIMULATOR, *(f"{OF_OUTPUT}{spec.name}" for spec in manifest.outputs)}
    told = [verdict.measured for verdict in manifest.verdicts if verdict.gate in gates]
    told += [figure.measured for figure in manifest.measurements if figure.name in gates]
    return min((float(figure) for figure in told if isinstance(figure, (int, float))), default=None)


def _feeds(probed: Probed) -> tuple[Sequence[Feed], str, list[str]]:
    """Inputs of the engine, what they are, and what the user shall know of it."""
    where = str(probed.twin)
    feeds: Sequence[Feed] = carried_feeds(probed.model, where)
    inputs, notes = f"{len(feeds)} real feed{'s' * (len(feeds) > 1)}, which its twin carries", []
    if not feeds:
        feeds = (stand_in_feed(probed.model, where),)
        inputs = "seeded stand-ins for its inputs (its twin carries no real ones)"
        notes.append(f"{probed.twin.name} carries no real inputs: the kit has seeded ones.")
    for feed in feeds:
        _check_feed(feed, probed.manifest, where)
    return feeds, inputs, notes


def _check_types(manifest: Manifest, where: str) -> None:
    for spec in (*manifest.inputs, *manifest.outputs):
        if spec.dtype not in HELD:
            raise UserInput(f"{where}: {spec.name} is of {spec.dtype}, and a kit holds {' and '.join(HELD)} only.")


def _check_feed(feed: Feed, manifest: Manifest, where: str) -> None:
    specs = {spec.name: (spec.shape, spec.dtype) for spec in manifest.inputs}
    given = {name: (tuple(np.shape(array)), np.asarray(array).dtype.name) for name, array in feed.items()}
    if specs != given:
        raise UserInput(
            f"{where}: carries inputs {given!s:.200}, and the engine takes {specs!s:.200}: build the engine again."
        )


def _expected(own: Sequence[Outputs], originals: Sequence[Outputs]) -> tuple[tuple[Outputs, ...], bool]:
    """What is right for each feed: the original's output where it is carried and of the engine's size, else the twin's;
    and whether all is the original's.

    An original that is shorter than the engine's output says nothing of the padding behind it.
    """
    if len(originals) != len(own):
        return tuple(own), False
    chosen: list[Outputs] = []
    whole = True
    for outputs, original in zip(own, originals, strict=True):
        window: dict[str, Array] = {}
        for name, array in outputs.items():
            known = original.get(name)
            fits = known is not None and known.size == array.size and known.dtype == array.dtype
            whole = whole and fits
            window[name] = known.reshape(array.shape) if known is not None and fits else array
        chosen.append(window)
    return tuple(chosen), whole


def _without_silence(expected: Sequence[Outputs], where: str) -> tuple[tuple[Outputs, ...], list[str]]:
    """`expected` without outputs that are all zero, of which no ratio can be told, and their names.

    Raises:
        UserInput: nothing is left of a feed, or a value is not finite.
    """
    silent: list[str] = []
    kept: list[Outputs] = []
    for outputs in expected:
        for name, array in outputs.items():
            if not np.all(np.isfinite(array)):
                raise UserInput(f"{where}: gives numbers in {name} that are not finite, so nothing can be compared.")
            if not np.any(array) and name not in silent:
                silent.append(name)
        kept.append({name: array for name, array in outputs.items() if np.any(array)})
        if not kept[-1]:
            raise UserInput(f"{where}: every output is zero on its own inputs, so that nothing can be compared.")
    return tuple(kept), silent
