"""What makes a contract that was read from a file unfit to be worked with."""

from __future__ import annotations

import math
import re

from contracts.contract import (
    CACHE_INPUT,
    CACHE_OUTPUT,
    LARGEST_NOISE,
    Cache,
    CodeStep,
    Contract,
    Drift,
    Trim,
    is_file_name,
)
from contracts.quality import quality_fault
from contracts.quantisation import quantisation_fault

_NAME_CHARACTERS = 64
_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{_NAME_CHARACTERS}}}")

_BEHIND_CHANNELS = 2
"""First axis that counts codes in what a step takes beside its cache: [1, channels, B], or [1, channels, 1, B]."""

_PLACE_SHAPE = (1, 3, 1, 1)
"""Of the input that tells where a trimmed window lies (`Trim`)."""


def contract_fault(contract: Contract) -> str | None:
    """What makes `contract`, read from a file, unfit to be worked with: it names files and becomes part of paths.

    A fault ends as a clause ("its host half ../x is no plain file name"); None where there is none.
    """
    host = contract.host.file if contract.host is not None else None
    if host is not None and not (is_file_name(host) and host.endswith(".onnx")):
        return f"its host half {host!r:.60} is no plain file name that ends in .onnx"
    if not is_file_name(contract.source.name):
        return f"its source {contract.source.name!r:.60} is no plain file name"
    if (fault := _cache_fault(contract.cache)) is not None:
        return fault
    if contract.step is not None and (fault := _step_fault(contract, contract.step)) is not None:
        return fault
    if contract.drift is not None and (fault := _drift_fault(contract.drift)) is not None:
        return fault
    if contract.trim is not None and (fault := _trim_fault(contract, contract.trim)) is not None:
        return fault
    if (fault := _state_fault(contract)) is not None:
        return fault
    inputs, outputs = ({spec.name for spec in specs} for specs in (contract.inputs, contract.outputs))
    if (fault := quality_fault(contract.quality, inputs, outputs)) is not None:
        return fault
    if contract.quantisation is not None and (fault := quantisation_fault(contract.quantisation)) is not None:
        return fault
    for rule in contract.disabled_rules:
        if not _NAME.fullmatch(rule):
            return f"its disabled rule {rule!r:.60} is no name of a rule"
    for what, name in (("family", contract.family), ("stage", contract.stage), ("role", contract.role)):
        if name is not None and not _NAME.fullmatch(name):
            return f"its {what} {name!r:.60} is none: letters, digits, - and _ are, at most {_NAME_CHARACTERS} of them"
    return None


def _cache_fault(cache: Cache | None) -> str | None:
    if cache is None:
        return None
    if cache.numel < 1:
        return f"its cache has {cache.numel} numbers"
    end, before = 0, ""
    for part in sorted(cache.layout, key=lambda part: part.offset):
        size = math.prod(part.shape)
        if min(part.shape, default=1) < 1 or part.offset < 0 or part.offset + size > cache.numel:
            return f"its cache slice {part.name!r:.60} does not lie within the {cache.numel} numbers of the cache"
        if part.offset < end:
            return f"its cache slice {part.name!r:.60} overlaps {before!r:.60}"
        end, before = part.offset + size, part.name
    return None


def _drift_fault(drift: Drift) -> str | None:
    for name, shape in drift.noises.items():
        if min(shape, default=1) < 1 or math.prod(shape) > LARGEST_NOISE:
            return f"its drift's noise {name!r:.60} has the shape {list(shape)!s:.60}"
    return None


def _step_fault(contract: Contract, step: CodeStep) -> str | None:
    """How the tensors contradict the step or its cache."""
    if contract.cache is not None:
        for which, specs, name in (("input", contract.inputs, CACHE_INPUT), ("output", contract.outputs, CACHE_OUTPUT)):
            found = next((math.prod(spec.shape) for spec in specs if spec.name == name), 0)
            if found != contract.cache.numel:
                return f"its cache has {contract.cache.numel} numbers and its {which} {name!r} {found}"
    for spec in contract.inputs:
        if spec.name != CACHE_INPUT and math.prod(spec.shape[_BEHIND_CHANNELS:]) != step.codes:
            return f"its step takes {step.codes} codes and its input {spec.name!r:.60} {list(spec.shape)!s:.60}"
    owed = {step.codes * step.samples_per_code, step.emitted * step.samples_per_code}
    if not owed & {math.prod(spec.shape) for spec in contract.outputs}:
        return f"its step of {step.codes} codes gives {max(owed)} samples and none of its outputs has so many"
    return None


def _trim_fault(contract: Contract, trim: Trim) -> str | None:
    """How the tensors contradict what is said to be trimmed."""
    if _PLACE_SHAPE not in [spec.shape for spec in contract.inputs if spec.name == trim.input]:
        return f"its trim's input {trim.input!r:.60} is no input of the shape {list(_PLACE_SHAPE)}"
    samples = [math.prod(spec.shape) for spec in contract.outputs]
    hop = contract.window.hop if contract.window is not None else 0
    if samples != [trim.frames * hop]:
        has = f"its output has {samples[0]}" if len(samples) == 1 else f"it has {len(samples)} outputs"
        return f"its trim leaves {trim.frames} frames of {hop} samples and {has}"
    return None


def _state_fault(contract: Contract) -> str | None:
    """How the tensors contradict what is said to go from step to step."""
    taken = {spec.name: spec for spec in contract.inputs}
    given = {spec.name: spec for spec in contract.outputs}
    for kept in contract.state:
        if kept.input not in taken or kept.output not in given:
            return f"its state {kept.input!r:.60} is no input, or {kept.output!r:.60} no output"
        one, other = taken[kept.input], given[kept.output]
        shapes = [list(one.shape), list(other.shape)]
        if kept.axis is not None:
            if len(one.shape) != len(other.shape) or not 0 <= kept.axis < len(one.shape):
                return f"its state {kept.input!r:.60} has no axis {kept.axis} that {kept.output!r:.60} is written along"
            if not 1 <= other.shape[kept.axis] <= one.shape[kept.axis]:
                return f"its state {kept.input!r:.60} has no room for what {kept.output!r:.60} gives of a step"
            for shape in shapes:
                del shape[kept.axis]
        if shapes[0] != shapes[1] or one.dtype != other.dtype:
            return f"its state {kept.input!r:.60} is not what {kept.output!r:.60} gives"
    return None
