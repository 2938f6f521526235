"""The two parts of a Piper voice ahead of its decoder: the duration encoder, and what is left to the host then.

    ids [1, T] int64, lengths [1] int64 -> encoder -> stats [1, 2C, T], conditioning [1, H, T]
    stats, conditioning, lengths, scales, noises -> host -> z [1, C, N], y_mask [1, 1, N], durations [1, 1, T]

Where it matters who speaks, the encoder also takes the speaker's embedding `g` [1, G, 1], which the host half gives.

The engine has a fixed width, so the host is given wider statistics than there are tokens and cuts them to `lengths`:
then it computes what the voice does of that many tokens. The voice takes the number of tokens from the shape of its
ids; `lengths` stands for it here:

    ids   ->   ConstantOfShape([1, lengths])          (only their shape counts behind the seam)
    stats ->   Slice(stats, starts=0, ends=lengths, axes=2), conditioning likewise
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from contracts.errors import Refusal
from converters.piper.duration_seam import DurationSeam, find_duration_seam
from converters.piper.host_half import host_half, noise_inputs
from converters.piper.names import CONDITIONING, DURATIONS, NOISE_LATENT, SPEAKER, STATS
from converters.piper.voice import Voice
from converters.piper.voice_metadata import tell_voice
from converters.vits_windows import LATENT, MASK
from surgery.graph import ancestors, extract, input_at, node_dependencies, value_named

_TOKEN_AXIS = 2
"""Of `stats`, `conditioning` and `durations`."""


@dataclass(frozen=True)
class DurationParts:
    """A voice ahead of its decoder, parted at the duration encoder's seam.

    Attributes:
        encoder: ids and their count to `stats` and `conditioning`, of any width: the original's nodes, unpatched.
        host: from there to the latent, its mask and the durations.
        embedding: the voice's ids of who speaks to `g`, where the encoder takes that.
        duration_noises: names of the host's noises for durations: none where the voice draws none.
    """

    encoder: ir.Model
    host: ir.Model
    embedding: ir.Model | None
    duration_noises: tuple[str, ...]


def duration_parts(voice: Voice) -> DurationParts:
    """The duration encoder of `voice`, and its host half.

    Raises:
        Refusal: the voice cannot be parted there; the message says why.
    """
    half = host_half(voice)
    graph, noises = half.graph, tuple(noise_inputs(voice).values())
    latent, mask = (value_named(graph, name) for name in (LATENT, MASK))
    sampled = [value_named(graph, name) for name in (voice.inputs.scales, *noises)]
    seam = find_duration_seam(graph, latent, mask, sampled, str(voice.path))
    embedding = _embedding(half, seam)
    return DurationParts(
        encoder=_encoder(voice, half, seam, () if embedding is None else (SPEAKER,)),
        host=_host(voice, half, seam),
        embedding=embedding,
        duration_noises=tuple(name for name in noises if name != NOISE_LATENT),
    )


def _embedding(half: ir.Model, seam: DurationSeam) -> ir.Model | None:
    """The part of the host half that makes `g`; None where there is none that the encoder reads."""
    ahead = ancestors([value_named(half.graph, name) for name in (seam.stats, seam.conditioning)])
    made = [value for value in half.graph.outputs if value.name == SPEAKER and value.producer() in ahead]
    makers = ancestors(made)
    names = [str(value.name) for value in half.graph.inputs if any(node in makers for node in value.consumers())]
    return extract(half, {name: name for name in names}, {SPEAKER: SPEAKER}) if made else None


def _encoder(voice: Voice, half: ir.Model, seam: DurationSeam, further: tuple[str, ...]) -> ir.Model:
    names = (voice.inputs.ids, voice.inputs.lengths, *further)
    others = _other_inputs(half, seam, names)
    if others:
        raise Refusal(
            f"{voice.path}: its duration encoder also reads {', '.join(others)}; it is supported where it reads "
            f"{', '.join(names)} and nothing else."
        )
    model = extract(
        half,
        inputs=dict(zip(names, names, strict=True)),
        outputs={seam.stats: STATS, seam.conditioning: CONDITIONING},
    )
    # Exporters state no types inside a graph; an output needs one.
    for value in model.graph.outputs:
        value.dtype, value.shape = ir.DataType.FLOAT, ir.Shape(["batch", _channels(value), "tokens"])
    return model


def _other_inputs(half: ir.Model, seam: DurationSeam, names: tuple[str, ...]) -> list[str]:
    """The inputs of the host half that the encoder depends on beside `names`."""
    graph = half.graph
    ahead = ancestors([value_named(graph, name) for name in (seam.stats, seam.conditioning)])
    # What an embedding is made of does not count where the encoder takes that.
    ahead -= ancestors([value for value in graph.outputs if value.name in names])
    read = {value for node in ahead for value in node_dependencies(node)}
    return [str(value.name) for value in graph.inputs if value in read and value.name not in names]


def _host(voice: Voice, half: ir.Model, seam: DurationSeam) -> ir.Model:
    ids, lengths = voice.inputs.ids, voice.inputs.lengths
    channels = [_channels(value_named(half.graph, name)) for name in (seam.stats, seam.conditioning)]
    given = [str(value.name) for value in half.graph.inputs if value.name != ids]
    made = [str(value.name) for value in half.graph.outputs]
    model = extract(
        half,
        inputs={seam.stats: STATS, seam.conditioning: CONDITIONING, ids: ids, **{name: name for name in given}},
        outputs={**{name: name for name in made}, seam.durations: DURATIONS},
    )
    graph = model.graph
    counted = value_named(graph, lengths)
    for value, size in zip(graph.inputs[:2], channels, strict=True):
        value.dtype, value.shape = ir.DataType.FLOAT, ir.Shape([1, size, "width"])
        _cut_to(graph, value, counted)
    durations = graph.outputs[-1]
    durations.dtype, durations.shape = ir.DataType.FLOAT, ir.Shape(["batch", 1, "tokens"])
    _shape_for(graph, value_named(graph, ids), counted)
    graph.sort()
    return tell_voice(model, voice)


def _channels(value: ir.Value) -> int | None:
    """The channels that the convolution behind `value` gives; None where its weights are no constant."""
    node = value.producer()
    weight = input_at(node, 1) if node is not None else None
    size = weight.shape[0] if weight is not None and weight.shape is not None else None
    return size if isinstance(size, int) else None


def _cut_to(graph: ir.Graph, value: ir.Value, counted: ir.Value) -> None:
    """Give the readers of `value` its first tokens, as many as `counted` says."""
    readers = list(value.uses())
    name = str(value.name)
    starts, axes = _integers(graph, f"{name}/starts", 0), _integers(graph, f"{name}/axes", _TOKEN_AXIS)
    cut = _node("Slice", [value, starts, counted, axes], f"{name}/cut")
    for use in readers:
        use.node.replace_input_with(use.idx, cut.outputs[0])
    graph.append(cut)


def _shape_for(graph: ir.Graph, ids: ir.Value, counted: ir.Value) -> None:
    """Put ids of as many tokens as `counted` says in the place of the input `ids`."""
    name = str(ids.name)
    if ids.uses():
        size = _node("Concat", [_integers(graph, f"{name}/batch", 1), counted], f"{name}/size")
        size.attributes["axis"] = ir.AttrInt64("axis", 0)
        zeros = _node("ConstantOfShape", [size.outputs[0]], f"{name}/zeros")
        zeros.attributes["value"] = ir.AttrTensor("value", ir.tensor(np.zeros(1, np.int64)))
        ids.replace_all_uses_with(zeros.outputs[0])
        graph.extend([size, zeros])
    graph.inputs.remove(ids)


def _integers(graph: ir.Graph, name: str, *values: int) -> ir.Value:
    value = ir.val(name, const_value=ir.tensor(np.array(values, np.int64), name=name))
    graph.register_initializer(value)
    return value


def _node(operator: str, inputs: list[ir.Value], name: str) -> ir.Node:
    node = ir.node(operator, inputs, name=name)
    node.outputs[0].name = name
    return node
