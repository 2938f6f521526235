"""The seam of a VITS voice, found by structure: the latent that enters the reverse flow, and its frame mask.

VITS infers as `z = m + noise * exp(logs) * scale; audio = dec(flow^-1(z, mask) * mask)`. So the latent is the sum of a
mean and scaled noise, with the transposed convolutions of the decoder behind it, and the mask is what multiplies on the
way. No name is used: exporters rename freely. The seam lies before the flow, not before `dec.conv_pre` (reference,
Piper decoder).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import onnx_ir as ir

from contracts.errors import Refusal
from surgery.graph import ancestors, descendants, level_of_ratio, node_dependencies, varying_values

_THROUGH_NOISE = ("Mul", "Cast", "Identity")
"""Operators between the random operator and the sum: the scales it is multiplied with."""

_WHOLE = (ir.DataType.INT64, ir.DataType.INT32)
"""Types of an id."""

_NAMED = 5
"""Values that a sentence names at most."""


@dataclass(frozen=True)
class VitsSeam:
    """Names of the values at the seam, and what lies behind it.

    Attributes:
        latent: z, [1, C, N] float32.
        mask: the frame mask, [1, 1, N] float32.
        noise: the random operator's output that is scaled and added to the mean.
        output: the samples.
        speaker: the speaker embedding that enters behind the seam, g; None for a voice of one speaker.
        hop: samples per frame, the product of the strides behind the seam.
        speaker_inputs: the voice's inputs that the speaker embedding is made of, ids of speakers and languages.
    """

    latent: str
    mask: str
    noise: str
    output: str
    speaker: str | None
    hop: int
    speaker_inputs: tuple[str, ...] = ()


def find_vits_seam(model: ir.Model, where: str) -> VitsSeam:
    """The seam of the VITS voice `model`; `where` names the file in messages.

    Raises:
        Refusal: this is no VITS voice; the message says what is missing.
    """
    output = _audio_output(model.graph, where)
    needed = ancestors([output])
    in_order = [node for node in model.graph if node in needed]
    latent, noise = _latent(in_order, where)
    behind = descendants(model.graph, [latent])
    behind_in_order = [node for node in in_order if node in behind]
    if not any(node.op_type == "ConvTranspose" for node in behind_in_order):
        raise _no_voice(where, "no transposed convolution (a VITS decoder's upsampling) lies behind the latent")
    free = _read_from_outside(behind_in_order, latent, varying_values(model.graph))
    mask = _mask(free, where)
    others = [value for value in free if value is not mask]
    speaker = _speaker(model.graph, others, where) if others else None
    try:
        hop = level_of_ratio(behind_in_order, [latent, mask])[output]
    except (ValueError, KeyError) as error:
        raise _no_voice(where, f"the samples per frame cannot be told ({error})") from error
    names = (_name(latent), _name(mask), _name(noise), _name(output))
    if speaker is None:
        return VitsSeam(*names, None, hop)
    ids = tuple(_name(value) for value in _inputs_behind(model.graph, [speaker]))
    return VitsSeam(*names, _name(speaker), hop, ids)


def _audio_output(graph: ir.Graph, where: str) -> ir.Value:
    for value in graph.outputs:
        if any(node.op_type == "ConvTranspose" for node in ancestors([value])):
            return value
    raise _no_voice(where, "no output comes from a transposed convolution (a VITS decoder's upsampling)")


def _latent(in_order: list[ir.Node], where: str) -> tuple[ir.Value, ir.Value]:
    """The last sum of something and scaled noise, and that noise."""
    silent: set[ir.Value] = set()
    for node in reversed(in_order):
        if node.op_type == "Add":
            for value in node.inputs:
                noise = _noise_behind(value, silent)
                if noise is not None:
                    return node.outputs[0], noise
    raise _no_voice(where, "no sum of a mean and scaled noise (RandomNormalLike) is there, so there is no latent")


def _noise_behind(value: ir.Value | None, silent: set[ir.Value]) -> ir.Value | None:
    """The noise that `value` is a scaled copy of; `silent` holds values with none behind them, and takes new ones.

    No recursion, and each value is looked at once: a graph from outside may be as deep and as woven as it likes.
    """
    todo = [value]
    while todo:
        read = todo.pop()
        node = read.producer() if read is not None else None
        if read is None or node is None or read in silent:
            continue
        if node.op_type.startswith("RandomNormal"):
            return read
        silent.add(read)
        if node.op_type in _THROUGH_NOISE:
            todo.extend(reversed(node.inputs))
    return None


def _read_from_outside(
    behind: list[ir.Node], latent: ir.Value, varying: set[ir.Value]
) -> dict[ir.Value, list[ir.Node]]:
    """Values that depend on the voice's inputs, not on the latent, and are read behind it; with their readers."""
    inside = {value for node in behind for value in node.outputs}
    found: dict[ir.Value, list[ir.Node]] = {}
    for node in behind:
        for value in node_dependencies(node):
            if value is not latent and value not in inside and value in varying:
                found.setdefault(value, []).append(node)
    return found


def _mask(free: dict[ir.Value, list[ir.Node]], where: str) -> ir.Value:
    multiplying = Counter({v: sum(n.op_type == "Mul" for n in readers) for v, readers in free.items()})
    best = multiplying.most_common(1)
    if not best or best[0][1] == 0:
        raise _no_voice(where, "no frame mask multiplies behind the latent")
    return best[0][0]


def _speaker(graph: ir.Graph, others: list[ir.Value], where: str) -> ir.Value:
    """The value that everything in `others`, read behind the latent, comes from; it is made of ids alone.

    A voice's speaker embedding is read by convolutions in flow and decoder, whose outputs are such values: from these
    the way leads back, latest node first, until one value is left.
    """
    odd = [value for value in others if not _made_of_ids(graph, value)]
    if odd:
        names = ", ".join(_name(value) for value in odd[:_NAMED])
        inputs = ", ".join(_name(value) for value in _inputs_behind(graph, odd)) or "no input"
        raise _no_voice(
            where, f"the decoder half reads more than a latent, a mask and a speaker embedding: {names} (from {inputs})"
        )
    varying = varying_values(graph)
    position = {node: number for number, node in enumerate(graph)}
    sources = set(others)
    while len(sources) > 1:
        latest = max(sources, key=lambda v: -1 if (node := v.producer()) is None else position[node])
        node = latest.producer()
        if node is None:
            break
        sources.remove(latest)
        sources.update(value for value in node_dependencies(node) if value in varying)
    (first, *more) = sources
    if more or first.producer() is None:
        inputs = ", ".join(_name(value) for value in _inputs_behind(graph, others))
        raise _no_voice(where, f"the decoder half reads {inputs} otherwise than through one speaker embedding")
    return first


def _made_of_ids(graph: ir.Graph, value: ir.Value) -> bool:
    """Whether `value` comes from inputs alone, that are one whole number each, and nothing drawn."""
    inputs = _inputs_behind(graph, [value])
    drawn = any(node.op_type.startswith("Random") for node in ancestors([value]))
    return bool(inputs) and not drawn and all(_is_id(given) for given in inputs)


def _is_id(given: ir.Value) -> bool:
    return given.dtype in _WHOLE and given.shape is not None and len(given.shape) <= 1


def _inputs_behind(graph: ir.Graph, values: list[ir.Value]) -> list[ir.Value]:
    """The voice's inputs that `values` depend on, in its order."""
    read = {value for node in ancestors(values) for value in node_dependencies(node)} | set(values)
    return [value for value in graph.inputs if value in read and value.name not in graph.initializers]


def _no_voice(where: str, reason: str) -> Refusal:
    return Refusal(f"{where}: is not a VITS voice: {reason}; give one as piper's export_onnx writes it.")


def _name(value: ir.Value) -> str:
    if value.name is None:
        raise ValueError("a value of a loaded model has no name")
    return value.name
