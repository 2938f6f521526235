"""Tells a streaming step of Qwen3's speech decoder by its graph alone, where the contract that it carried is lost.

It is one if its inputs are `hidden` or `codes`, `cache`, and perhaps tables, and its outputs samples and `cache_out`,
as large as `cache` (reference, Streaming step). From the sizes:

    codes B          the axes of `hidden` or `codes` behind its channels
    numel            the elements of `cache`
    samples a code   those of the other output, of each of the B codes
    head_dim D       scores [.., B, S] of a softmax, and their product with the values: [.., B, S] x [.., S, D], or
                     [.., D, S] x [.., S, B] where a head's numbers are ahead of time
    kv_len           S - B: what the scores have besides the step's own codes
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import onnx_ir as ir

from contracts.contract import CACHE_INPUT, CACHE_OUTPUT, Cache, CodeStep
from converters.qwen3.geometry import SEAMS
from surgery.inferred import inferred, static_shape
from surgery.matching import ONNX_DOMAINS

_BEHIND_CHANNELS = 2
"""First axis that counts codes: [1, channels, B], or [1, channels, 1, B]."""

Values = Mapping[str, ir.Value]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class StepShape:
    """What a step's graph tells of its sizes.

    Attributes:
        codes: codes that a step takes.
        numel: elements of the cache.
        samples_per_code: samples of audio a code.
        kv_len: earlier positions that attention sees; None where no attention, or more than one kind, is found.
        head_dim: numbers in a key or value of one head; None likewise.
        seam: what it takes: `hidden` or `codes`.
    """

    codes: int
    numel: int
    samples_per_code: int
    kv_len: int | None
    head_dim: int | None
    seam: str


def read_step(model: ir.Model) -> StepShape | None:
    """The sizes of the step that `model` is; None where it is none."""
    inputs = {str(value.name): static_shape(value) for value in model.graph.inputs}
    outputs = {str(value.name): static_shape(value) for value in model.graph.outputs}
    seam = next((name for name in SEAMS if name in inputs), None)
    if seam is None or CACHE_INPUT not in inputs or CACHE_OUTPUT not in outputs:
        return None
    taken, cache, kept = inputs[seam], inputs[CACHE_INPUT], outputs[CACHE_OUTPUT]
    others = [shape for name, shape in outputs.items() if name != CACHE_OUTPUT]
    if taken is None or cache is None or kept is None or prod(cache) != prod(kept) or len(others) != 1:
        return None
    codes, samples = prod(taken[_BEHIND_CHANNELS:]), prod(others[0] or ())
    if len(taken) <= _BEHIND_CHANNELS or min(codes, prod(cache)) < 1 or samples % codes:
        return None
    kv_len, head_dim = _attention(model, codes)
    return StepShape(codes, prod(cache), samples // codes, kv_len, head_dim, seam)


def recognised(model: ir.Model) -> tuple[CodeStep, Cache] | None:
    """The geometry and the cache of the step that `model` is, as far as its graph tells them; None where it is none.

    Nothing in it says how the cache is laid out, nor at which rate the samples are, nor whether the first codes are
    there to be dropped.
    """
    found = read_step(model)
    if found is None:
        return None
    step = CodeStep(found.codes, found.samples_per_code, None, found.kv_len, found.head_dim, 0, found.codes)
    return step, Cache(found.numel, ())


def _attention(model: ir.Model, codes: int) -> tuple[int | None, int | None]:
    """How many earlier positions attention sees, and the size of a head; None where it is not the same everywhere."""
    values = inferred(model)
    found = {
        (slots - codes, size)
        for node in model.graph
        if node.op_type == "Softmax" and node.domain in ONNX_DOMAINS
        for slots, size in _heads(_shape_of(node.outputs[0], values), model, values, codes)
    }
    return found.pop() if len(found) == 1 else (None, None)


def _heads(scores: Shape | None, model: ir.Model, values: Values, codes: int) -> Iterator[tuple[int, int]]:
    """Slots and sizes of the products of such `scores` [.., B, S] with values of S slots."""
    if scores is None or len(scores) < 2 or scores[-2] != codes or scores[-1] <= codes:
        return
    for node in model.graph:
        if node.op_type != "MatMul" or node.domain not in ONNX_DOMAINS:
            continue
        left, right, product = (_shape_of(value, values) for value in (*node.inputs, *node.outputs))
        if left is None or right is None or product is None or any(map(_is_constant, node.inputs)):
            continue
        if left[-2:] == scores[-2:] and right[-2:-1] == scores[-1:] and product[-2:-1] == (codes,):
            yield scores[-1], right[-1]
        elif right[-2:] == scores[:-3:-1] and left[-1:] == scores[-1:] and product[-1:] == (codes,):
            yield scores[-1], left[-2]


def _shape_of(value: ir.Value | None, values: Values) -> Shape | None:
    known = values.get(str(value.name)) if value is not None else None
    return static_shape(known) if known is not None else None


def _is_constant(value: ir.Value | None) -> bool:
    return value is None or ir.convenience.get_const_tensor(value) is not None
