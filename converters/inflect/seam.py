"""The seam of an Inflect v2 model in `decode.onnx`, found by structure: the latent in front of the flow, and its mask.

    z = m_p + exp(logs_p) zp_noise noise_scale;  waveform = dec(flow^-1(z, y_mask) y_mask)

The noise is an input here, where a Piper voice draws it (`converters.vits_seam`). So the latent is the sum of an input
and of a product in which inputs and an exponential stand, with the transposed convolutions behind it; and the one other
value that is read behind it is the mask. No name is used.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from contracts.errors import Refusal
from surgery.graph import ancestors, descendants, level_of_ratio, node_dependencies, varying_values

_FACTORS = ("Mul", "Cast", "Identity")
"""Operators between the noise and the sum."""

_NOISE_AXES = 3
"""Of the noise, [1, C, N]; its scale has none, or one."""


@dataclass(frozen=True)
class Seam:
    """Names of the values at the seam, and what lies behind it.

    Attributes:
        latent: z, [1, C, N] float32.
        mask: the frame mask, [1, 1, N] float32.
        mean: what the scaled noise is added to, [1, C, N].
        noise: the input that is scaled and added to the mean, [1, C, N].
        scale: the input that it is scaled by; None where nothing but its deviation scales it.
        output: the samples.
        hop: samples per frame, the product of the strides behind the seam.
    """

    latent: str
    mask: str
    mean: str
    noise: str
    scale: str | None
    output: str
    hop: int


def find_seam(model: ir.Model, where: str) -> Seam:
    """The seam of `decode.onnx`; `where` names the file in messages.

    Raises:
        Refusal: this is no Inflect decoder; the message says what is missing.
    """
    output = _audio_output(model.graph, where)
    needed = ancestors([output])
    in_order = [node for node in model.graph if node in needed]
    latent, mean, leaves = _latent(model.graph, in_order, where)
    noise = next(value for value in leaves if _rank(value) == _NOISE_AXES)
    scale = next((value for value in leaves if value is not noise), None)
    mask, hop = _behind(model.graph, in_order, latent, output, where)
    scale_name = None if scale is None else _name(scale)
    return Seam(_name(latent), mask, _name(mean), _name(noise), scale_name, _name(output), hop)


@dataclass(frozen=True)
class SliceSeam:
    """A graph that is all behind the seam: names of its inputs and its output, its sizes.

    Attributes:
        latent, mask, output: names.
        hop: samples per frame.
        channels: width of the latent.
        frames: that it is compiled for; None where it takes any number.
        masked: whether its decoder multiplies by the mask, too, at every rate.
    """

    latent: str
    mask: str
    output: str
    hop: int
    channels: int
    frames: int | None
    masked: bool


def find_slice(model: ir.Model, where: str) -> SliceSeam:
    """The ends of a slice: two inputs, of which the one of one channel is the mask.

    Raises:
        Refusal: it is no slice of an Inflect decoder; the message says what is missing.
    """
    output = _audio_output(model.graph, where)
    inputs = [value for value in model.graph.inputs if value.name not in model.graph.initializers]
    if len(inputs) != 2:
        raise _refused(where, f"a slice has two inputs, latent and mask, and this has {len(inputs)}")
    shapes = [tuple(value.shape or ()) for value in inputs]
    wide = [i for i, shape in enumerate(shapes) if len(shape) == _NOISE_AXES and shape[1] != 1]
    if len(wide) != 1 or len(shapes[1 - wide[0]]) != _NOISE_AXES:
        raise _refused(where, f"a latent [1, C, N] and a mask [1, 1, N] were expected, not {_told(shapes)}")
    channels, frames = shapes[wide[0]][1:]
    if not isinstance(channels, int):
        raise _refused(where, f"its inputs state {_told(shapes)}; state there how many channels its latent has")
    latent = inputs[wide[0]]
    needed = ancestors([output])
    in_order = [node for node in model.graph if node in needed]
    mask, hop = _behind(model.graph, in_order, latent, output, where)
    upsampled = any(
        node.op_type == "ConvTranspose" for value in inputs if value.name == mask for node in value.consumers()
    )
    fixed = frames if isinstance(frames, int) else None
    return SliceSeam(_name(latent), mask, _name(output), hop, channels, fixed, upsampled)


def _audio_output(graph: ir.Graph, where: str) -> ir.Value:
    for value in graph.outputs:
        if any(node.op_type == "ConvTranspose" for node in ancestors([value])):
            return value
    raise _refused(where, "no output comes from a transposed convolution (a VITS decoder's upsampling)")


def _latent(graph: ir.Graph, in_order: list[ir.Node], where: str) -> tuple[ir.Value, ir.Value, list[ir.Value]]:
    """The last sum of a mean and scaled noise, that mean, and the inputs that the noise is a product of."""
    inputs = {value for value in graph.inputs if value.name not in graph.initializers}
    for node in reversed(in_order):
        if node.op_type == "Add":
            for value, mean in zip(node.inputs, reversed(node.inputs), strict=True):
                leaves = _leaves(value)
                exponential = any((made := leaf.producer()) is not None and made.op_type == "Exp" for leaf in leaves)
                given = [leaf for leaf in leaves if leaf in inputs]
                if mean is not None and exponential and any(_rank(leaf) == _NOISE_AXES for leaf in given):
                    return node.outputs[0], mean, given
    raise _refused(where, "no sum of a mean and of noise times its deviation is there, so there is no latent")


def _leaves(value: ir.Value | None) -> list[ir.Value]:
    """The factors of the product that `value` is, each once; no recursion, for a graph may be deep."""
    found: list[ir.Value] = []
    seen: set[ir.Value] = set()
    todo = [value]
    while todo:
        read = todo.pop()
        if read is None or read in seen:
            continue
        seen.add(read)
        node = read.producer()
        if node is not None and node.op_type in _FACTORS:
            todo.extend(reversed(node.inputs))
        else:
            found.append(read)
    return found


def _behind(
    graph: ir.Graph, in_order: list[ir.Node], latent: ir.Value, output: ir.Value, where: str
) -> tuple[str, int]:
    """The mask's name and the hop, of what lies behind `latent`."""
    reached = descendants(graph, [latent])
    behind = [node for node in in_order if node in reached]
    if not any(node.op_type == "ConvTranspose" for node in behind):
        raise _refused(where, "no transposed convolution (a VITS decoder's upsampling) lies behind the latent")
    varying, inside = varying_values(graph), {value for node in behind for value in node.outputs}
    read = dict.fromkeys(
        value
        for node in behind
        for value in node_dependencies(node)
        if value is not latent and value not in inside and value in varying
    )
    # A mask that is upsampled beside the decoder is read there as it is here: its sources are what counts.
    sources = [value for value in read if not _comes_from(value, read)]
    if len(sources) != 1:
        names = ", ".join(map(_name, sources)) or "nothing"
        raise _refused(where, f"behind the latent, the frame mask alone should be read, not {names}")
    mask = sources[0]
    if not mask.is_graph_input():
        raise _refused(where, f"the frame mask should be an input, and {_name(mask)} is computed")
    if not any(node.op_type == "Mul" and mask in node.inputs for node in behind):
        raise _refused(where, f"{_name(mask)} is read behind the latent, and nothing is multiplied by it: no mask")
    masked = descendants(graph, [mask])
    counted = [node for node in in_order if node in reached or node in masked]
    try:
        hop = level_of_ratio(counted, [latent, mask])[output]
    except (ValueError, KeyError) as error:
        raise _refused(where, f"the samples per frame cannot be told ({error})") from error
    return _name(mask), hop


def _comes_from(value: ir.Value, others: dict[ir.Value, None]) -> bool:
    before = {made for node in ancestors([value]) for made in node_dependencies(node)}
    return any(other in before for other in others if other is not value)


def _rank(value: ir.Value) -> int | None:
    return None if value.shape is None else len(value.shape)


def _told(shapes: list[tuple[int | ir.SymbolicDim, ...]]) -> str:
    return " and ".join(f"[{', '.join(map(str, shape))}]" for shape in shapes)


def _refused(where: str, reason: str) -> Refusal:
    return Refusal(f"{where}: is not an Inflect v2 decoder: {reason}.")


def _name(value: ir.Value) -> str:
    if value.name is None:
        raise ValueError("a value of a loaded model has no name")
    return value.name
