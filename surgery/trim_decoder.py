"""Drop the context of a decoder's window on the way, once nothing that is emitted needs it further on.

Before:  y = D(x)                          D the decoder behind the frame mask, W frames of x, W frames of samples
After:   y = D2(crop(D1(crop(x, V1)), V2)) D1 up to the last crop, D2 behind it; V2 frames of samples

with the crop of a value v of L frames (r steps each) to V of them, s = r (L - V) / 2 steps, T = r V steps:

    crop(v, V) = p0 v[..., : T] + p1 v[..., s : s + T] + p2 v[..., 2 s : 2 s + T]

p0, p1, p2 is the new input `place` [1, 3, 1, 1]: 1, 0, 0 where the window begins an utterance, 0, 1, 0 between, 0, 0, 1
where it ends one. So the first and the last window of an utterance keep its true edges, where each convolution reads
zeros, and one engine serves all three.

The flow in front of the mask's last use needs dozens of frames around those that are emitted, at the frames' rate; the
decoder's first upsampling a dozen, and what is behind that about two. How many is computed from the kernels, strides,
dilations and pads (`surgery.receptive_fields`): c frames on either side of a value. The first crop is where the decoder
starts, to emitted + 2 c frames; further ones in front of transposed convolutions, as early as c is as small as there,
where at least 4 frames on either side fall away. With c = m at the last crop the samples are those of emitted + 2 m
frames, `contracts.contract.Trim` says of which frames of the window, and which of them are right.

The numbers p come out of `place` by a 1x1 Conv each, as many channels as v has. Measured (rknn-toolkit2 2.3.2, rk3588):
no layer of it is on the CPU, and a crop reads 3 L + 7 V of v; a MatMul over the three stacked parts reads nearly twice
as much, through Reshapes on the CPU.

A run of 256 frames that emits 192, modelled ms, untrimmed, of one crop, of two: Piper's decoder 57.6, 50.3, 47.8;
Inflect Micro's 170.4, 146.2, 134.7 (the same).

Exact: products with 1 and 0 and sums with zero, in fp16 too; frames that are promised read no value that was dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from contracts.errors import Refusal
from surgery import convolution_length
from surgery.behind_mask import MASK_MULTIPLIES, Behind, behind_mask
from surgery.convolution_length import CONV, CONV_TRANSPOSE, length_fault
from surgery.declaration import Cropped, Declaration, Exact, GivenInput, Interface, Pass, Refused, Rewritten
from surgery.elementwise import ELEMENTWISE
from surgery.graph import level_of_ratio
from surgery.graph_builder import Builder, sizes_of
from surgery.inferred import inferred, static_shape
from surgery.interface import fresh_name, numpy_dtype
from surgery.matching import Matched, is_one_of
from surgery.naming import node_label
from surgery.receptive_fields import bottlenecks, context_frames

ONE_RATE = "one rate a node"
STEPS_KEPT = "each step kept between the convolutions"
CONVOLUTION_BEHIND = "a convolution behind the mask's last use"
ONE_OUTPUT = "one output"
KNOWN_STEPS = "the window's frames times the rate as the last size of every value"
ONE_STEP_BESIDE = "one step, or all, of what is computed beside the frames"
SAME_SIDES = "as much context on the left of what is emitted as on the right"
SPARE_CONTEXT = "more context than the decoder needs behind the mask"

CONVOLUTIONS = (CONV, CONV_TRANSPOSE)

_AXES = "the last size is compared with the window's steps"
RANKS = (Matched("Squeeze", irrelevant={"axes": _AXES}), Matched("Unsqueeze", irrelevant={"axes": _AXES}))
"""What may stand there besides `ELEMENTWISE`: an axis of one that comes or goes."""

LEAST_FRAMES = 4
"""That a further crop takes off either side; it reads ten times what it gives (above), and what is behind it falls off.
In the decoders here there is one such place, in front of the second upsampling, and it takes off 10 or 11."""

PLACE_SHAPE = (1, 3, 1, 1)

PLACES = (0.0, 1.0, 0.0)
"""The one-hot of a window between others, which promises least."""

DECLARATION = Declaration(
    name="trim_decoder",
    summary="drop a decoder window's context once nothing needs it, at the place in the utterance that an input tells",
    exactness=Exact("products with 1 and 0; what is promised reads nothing that was dropped"),
    after=frozenset({"normalise_static_inputs"}),
    matches=(*CONVOLUTIONS, *ELEMENTWISE, *RANKS),
    preconditions=(
        MASK_MULTIPLIES, CONVOLUTION_BEHIND, ONE_OUTPUT, ONE_RATE, STEPS_KEPT, KNOWN_STEPS, ONE_STEP_BESIDE,
        SAME_SIDES, SPARE_CONTEXT, *convolution_length.PRECONDITIONS,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class _Crop:
    """A value to crop, its steps a frame, and the frames that it keeps on either side of the emitted ones."""

    value: ir.Value
    rate: int
    context: int


@dataclass(frozen=True)
class _Plan:
    """The decoder and its crops, in order."""

    decoder: Behind
    rate_of: Mapping[ir.Value, int]
    crops: tuple[_Crop, ...]


def trim_decoder(mask_name: str, window_left: int, emitted: int, place_name: str = "place") -> Pass:
    """The pass; its hits are crops.

    Args:
        mask_name: the mask input, [1, 1, W], whose last use is where the decoder starts.
        window_left: frames of context on the left of the emitted ones, and on the right.
        emitted: frames that a window between others emits.
        place_name: of the new input.

    Raises:
        ValueError: a window of no emitted frames.
    """
    if emitted < 1:
        raise ValueError(f"a window emits one frame at least, not {emitted}")

    def rewrite(model: ir.Model) -> Rewritten:
        return _rewrite(model, mask_name, window_left, emitted, place_name)

    return Pass(DECLARATION, rewrite)


def trimmed_frames(model: ir.Model, mask_name: str, emitted: int) -> int:
    """The frames whose samples come out of `model` behind the pass; its sizes need not be known.

    Raises:
        Refusal: the pass refuses the graph; the sentence says for which precondition.
    """
    plan = _plan(model.graph, mask_name)
    if not isinstance(plan, _Plan):
        first = plan[0]
        raise Refusal(
            f"A window of this graph cannot be trimmed: {first.precondition} is needed at {first.node} "
            f"({first.limit}), and there is {first.got}; leave it untrimmed."
        )
    return emitted + 2 * plan.crops[-1].context


def _rewrite(model: ir.Model, mask_name: str, window_left: int, emitted: int, place_name: str) -> Rewritten:
    copy = model.clone()
    plan = _plan(copy.graph, mask_name)
    refused = plan if not isinstance(plan, _Plan) else _faults(copy, plan, window_left, emitted)
    if refused or not isinstance(plan, _Plan):
        return Rewritten(model, 0, refused)
    known, graph = inferred(copy), copy.graph
    shapes = {value: list(static_shape(known[str(value.name)]) or ()) for value in plan.rate_of}
    place = _place_input(graph, place_name, known[str(plan.crops[0].value.name)])
    for value in plan.rate_of:
        value.type, value.shape = known[str(value.name)].type, None  # what the file said of its size is true no more
    frames = emitted + 2 * window_left
    for crop in plan.crops:
        kept = emitted + 2 * crop.context
        crop.value.shape = ir.Shape([*shapes[crop.value][:-1], frames * crop.rate])
        _insert(graph, crop, (frames - kept) * crop.rate // 2, kept * crop.rate, place)
        frames = kept
    (output,) = graph.outputs
    hop = plan.rate_of[output]
    output.shape = ir.Shape([*shapes[output][:-1], frames * hop])
    before, after = window_left * hop, (frames - emitted) // 2 * hop
    samples = emitted * hop
    return Rewritten(
        copy,
        hits=len(plan.crops),
        interface=Interface(
            given=(GivenInput(str(place.name), PLACE_SHAPE, PLACES, numpy_dtype(place)),),
            cropped=(Cropped(str(output.name), (before, before + samples), (after, after + samples)),),
        ),
    )


def _plan(graph: ir.Graph, mask_name: str) -> _Plan | tuple[Refused, ...]:
    """What can be told without sizes."""
    decoder = behind_mask(graph, mask_name)
    if isinstance(decoder, Refused):
        return (decoder,)
    convolutions = [node for node in decoder.nodes if is_one_of(node, CONVOLUTIONS)]
    where = f"input '{mask_name}'"
    if not convolutions:
        return (Refused(where, CONVOLUTION_BEHIND, "one at least", "none"),)
    if len(graph.outputs) != 1:
        return (Refused("the graph", ONE_OUTPUT, "1", str(len(graph.outputs))),)
    refused = [
        Refused(
            node_label(node), STEPS_KEPT, "an operator of surgery/elementwise.py, Squeeze or Unsqueeze", node.op_type
        )
        for node in decoder.nodes
        if not is_one_of(node, (*CONVOLUTIONS, *ELEMENTWISE, *RANKS))
    ]
    refused += [fault for node in convolutions if (fault := length_fault(node)) is not None]
    if refused:
        return tuple(refused)
    try:
        rate_of = level_of_ratio(decoder.nodes, [decoder.start])
    except ValueError as error:
        return (Refused(where, ONE_RATE, "1", str(error)),)
    return _Plan(decoder, rate_of, _crops(decoder, rate_of, graph.outputs[0]))


def _crops(decoder: Behind, rate_of: Mapping[ir.Value, int], output: ir.Value) -> tuple[_Crop, ...]:
    context = context_frames(decoder.nodes, rate_of, [output])
    narrow = bottlenecks(decoder.nodes, decoder.start, rate_of)
    crops = [_Crop(decoder.start, 1, context[decoder.start])]
    upsampled = {node.inputs[0] for node in decoder.nodes if is_one_of(node, (CONV_TRANSPOSE,))}
    for value in narrow:
        rate, frames = rate_of[value], context[value]
        if value in upsampled and frames <= crops[-1].context - LEAST_FRAMES:
            first = next(v for v in narrow if (rate_of[v], context[v]) == (rate, frames))
            crops.append(_Crop(first, rate, frames))
    return tuple(crops)


def _faults(model: ir.Model, plan: _Plan, window_left: int, emitted: int) -> tuple[Refused, ...]:
    """What the sizes break."""
    known, decoder = inferred(model), plan.decoder
    window = emitted + 2 * window_left
    frames = (static_shape(decoder.mask) or (0,))[-1]
    where = f"input '{decoder.mask.name}'"
    if frames != window:
        limit = f"{window_left} + {emitted} + {window_left} frames"
        return (Refused(where, SAME_SIDES, limit, f"{frames} frames" if frames else "a size that is not known"),)
    if window_left <= plan.crops[0].context:
        limit = f"at least {plan.crops[0].context + 1} frames on either side"
        return (Refused(where, SPARE_CONTEXT, limit, f"{window_left}"),)
    refused = []
    for value, rate in plan.rate_of.items():
        shape = static_shape(known.get(str(value.name)))
        if not shape or shape[-1] != frames * rate:
            got = "a shape that is not known" if not shape else f"the shape {list(shape)}"
            refused.append(Refused(f"value '{value.name}'", KNOWN_STEPS, str(frames * rate), got))
    refused += [fault for node in decoder.nodes for fault in _beside(node, plan.rate_of, known)]
    return tuple(refused)


def _beside(node: ir.Node, rate_of: Mapping[ir.Value, int], known: Mapping[str, ir.Value]) -> Sequence[Refused]:
    """What `node` reads that has no frames and would have to be cropped too."""
    if is_one_of(node, (*CONVOLUTIONS, *RANKS)):
        framed = [value for value in node.inputs[1:] if value in rate_of]
        return [Refused(node_label(node), ONE_STEP_BESIDE, "weights of no frames", f"'{v.name}'") for v in framed if v]
    refused = []
    for value in node.inputs:
        if value is None or value in rate_of:
            continue
        shape = static_shape(known.get(str(value.name)))
        if shape is None or (shape and shape[-1] != 1):
            got = f"'{value.name}' of " + ("a shape that is not known" if shape is None else f"the shape {list(shape)}")
            refused.append(Refused(node_label(node), ONE_STEP_BESIDE, "a last size of 1", got))
    return refused


def _place_input(graph: ir.Graph, name: str, like: ir.Value) -> ir.Value:
    place = ir.Value(name=fresh_name(graph, name), shape=ir.Shape(PLACE_SHAPE), type=like.type)
    graph.inputs.append(place)
    return place


def _insert(graph: ir.Graph, crop: _Crop, shift: int, steps: int, place: ir.Value) -> None:
    """Let all readers of a value read `steps` of it: the sum of three parts, `shift` apart, each by its share."""
    value, sizes = crop.value, sizes_of(crop.value)
    axis, channels = len(sizes) - 1, sizes[1]
    readers = [(use.node, use.idx) for use in value.uses()]
    reading = {node for node, _ in readers}
    make = Builder(graph, next(node for node in graph if node in reading), f"{DECLARATION.name}/{value.name}")
    cropped = [*sizes[:-1], steps]
    parts = []
    for number in range(len(PLACES)):
        chosen = np.zeros((channels, *PLACE_SHAPE[1:]), np.dtype(numpy_dtype(value)))
        chosen[:, number] = 1
        weight = make.constant(f"place{number}_weight", chosen)
        share = make.add("Conv", [place, weight], [1, channels, 1, 1], f"place{number}", kernel_shape=[1, 1])
        share = make.reshape(share, [1, channels, *[1] * (axis - 1)], f"share{number}")
        part = make.part(value, axis, number * shift, steps, f"part{number}")
        parts.append(make.add("Mul", [part, share], cropped, f"chosen{number}"))
    made = make.add("Add", [make.add("Add", parts[:2], cropped, "begin_or_between"), parts[2]], cropped, "cropped")
    for reader, position in readers:
        reader.replace_input_with(position, made)
