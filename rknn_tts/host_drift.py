"""The drift of what the host half makes of an engine's outputs: run on the simulator's, and on onnxruntime's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.contract import Drift
from contracts.errors import RknnTtsError
from contracts.seed import SEED
from contracts.verdicts import Measurement, Verdict, failure
from converters.onnx_file import load_external, read_onnx
from gates.drift import GATE, UNIT, judge_drift
from rknn_tts.carried import Feed, Outputs
from surgery.graph import ancestors, extract

Arrays = Mapping[str, NDArray[np.generic]]


def measure_drift(
    drift: Drift,
    host: Path | None,
    feeds: Sequence[Feed],
    owed: Sequence[Outputs],
    simulated: Sequence[Outputs],
    called: str = "",
) -> Verdict | Measurement:
    """Judge the drift of each feed's sentence.

    Args:
        drift: what is compared.
        host: the host half's file; None where it is not at hand, which fails.
        feeds: inputs of the engine; those that the host half takes too, by name, are given to it.
        owed: the engine's outputs in fp32.
        simulated: its outputs in the simulator.
        called: the host half's file name, for messages.
    """
    if host is None:
        text = (
            f"{called or 'the host half'} that was exported with this ONNX does not stand beside it, so nobody knows "
            "what becomes of fp16 behind it: put it there, or export both again"
        )
        return failure(GATE, text, unit=UNIT)
    if not len(feeds) == len(owed) == len(simulated):
        return failure(GATE, f"{len(simulated)} runs came back instead of {len(feeds)}", unit=UNIT)
    try:
        half = _part_for(host, drift.output)
        sums = [
            [_sum(half, drift, {**feed, **outputs}) for feed, outputs in zip(feeds, side, strict=True)]
            for side in (owed, simulated)
        ]
    except (RknnTtsError, ValueError, KeyError) as error:
        return failure(GATE, f"it could not run: {error}", unit=UNIT)
    return judge_drift(sums[0], sums[1], drift.most_percent, f"the sum of {drift.output}, {drift.remark}")


@dataclass(frozen=True)
class _Half:
    """The part of the host half that one of its outputs needs, opened: its inputs by name, and how it is run."""

    inputs: Mapping[str, ir.Value]
    run: Callable[[Arrays], dict[str, NDArray[np.generic]]]


def _part_for(host: Path, output: str) -> _Half:
    model = read_onnx(host)
    load_external(model)
    wanted = [value for value in model.graph.outputs if value.name == output]
    if not wanted:
        raise ValueError(f"the host half {host.name} has no output {output}")
    needed = ancestors(wanted)
    names = [str(v.name) for v in model.graph.inputs if any(node in needed for node in v.consumers())]
    part = extract(model, {name: name for name in names}, {output: output})
    from gates.session import Session  # onnxruntime: only where a drift is measured

    return _Half({str(value.name): value for value in part.graph.inputs}, Session(part, name=host.name).run)


def _sum(half: _Half, drift: Drift, at_hand: Arrays) -> float:
    feed: dict[str, NDArray[np.generic]] = {}
    for name, value in half.inputs.items():
        if name in drift.settings:
            feed[name] = np.array(drift.settings[name], np.float32)
        elif name in drift.noises:
            feed[name] = np.random.default_rng(SEED).standard_normal(drift.noises[name]).astype(np.float32)
        elif name in at_hand:
            feed[name] = fitted(at_hand[name], value, name)
        else:
            raise ValueError(f"the host half's input {name} is no output or input of the engine, and nothing states it")
    return float(np.sum(half.run(feed)[drift.output], dtype=np.float64))


def fitted(array: NDArray[np.generic], value: ir.Value, name: str) -> NDArray[np.generic]:
    """`array` of an engine as the input `value` of a host half takes it: its type, and without the engine's unit axes.

    Raises:
        ValueError: it has not so many axes of size 1 behind the first.
    """
    rank = None if value.shape is None else len(value.shape)
    spare = array.ndim - rank if rank is not None else 0
    units = [axis for axis in range(1, array.ndim) if array.shape[axis] == 1]
    if spare < 0 or spare > len(units):
        raise ValueError(f"the engine gives {name} as {list(array.shape)}, and the host half takes {rank} axes")
    squeezed = np.squeeze(array, axis=tuple(units[:spare])) if spare else array
    return squeezed.astype(value.dtype.numpy()) if value.dtype is not None else squeezed
