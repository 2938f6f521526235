"""The speaker encoder's weights, found in the ONNX that is published of it. No torch.

An exporter folds the normalisations behind convolutions into these and calls what comes of it `onnx::Conv_1234`, so no
name tells what a weight is. The order does: nodes stand in the order in which the module ran, every convolution is
there, and a normalisation that stands behind none is one of those ahead of a Relu. Whether all that is right is proven
by running the graph itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.errors import Refusal
from converters.cosyvoice2.speaker_file import ADVICE, WHOSE
from models.cosyvoice2.speaker_config import (
    DILATIONS,
    FREQUENCY_STEPS,
    LARGEST_LAYERS,
    LOCAL_KERNEL,
    Conv,
    Norm,
    Shape,
    SpeakerConfig,
    parts,
)
from models.cosyvoice2.speaker_weights import Wide, affine_step, folded_conv
from surgery.graph import input_at, only_reader
from surgery.weights import tensor_of

Weights = dict[str, NDArray[np.float32]]

_EPSILON = 1e-5
"""Of a BatchNormalization that states none (ONNX operator specification)."""

_PER_LAYER = 4
"""Convolutions of a densely connected layer; the second is the only one that sees more than a step."""

_FIRST_LAYER = 1
"""Place of the first one's first convolution among those over time."""


def onnx_weights(model: ir.Model, path: Path) -> tuple[SpeakerConfig, Weights]:
    """Sizes and folded weights (`speaker_weights`) of the encoder `model`, read from `path`.

    Raises:
        Refusal: it is another graph, or not as an exporter writes this one.
    """
    convs = [node for node in model.graph if node.op_type == "Conv"]
    behind = {conv: reader for conv in convs if (reader := _norm_behind(conv)) is not None}
    norms = [node for node in model.graph if node.op_type == "BatchNormalization" and node not in behind.values()]
    config = _config([_shape(node) for node in convs])
    wanted = [] if config is None else list(parts(config))
    conv_parts = [part for part in wanted if isinstance(part, Conv)]
    norm_parts = [part for part in wanted if isinstance(part, Norm)]
    if config is None or [part.shape for part in conv_parts] != [_shape(node) for node in convs]:
        raise _other(path, f"its {len(convs)} convolutions are not that encoder's, in order")
    # The last one's normalisation may stand behind a Squeeze.
    last = norms[len(norm_parts) :]
    if len(norms) < len(norm_parts) or len(last) > 1:
        raise _other(path, f"{len(norms)} normalisations stand ahead of a Relu, and {len(norm_parts)} do there")
    weights: Weights = {}
    for part, node in zip(conv_parts, convs, strict=True):
        norm = behind.get(node) or (last[0] if last and part is conv_parts[-1] else None)
        step = None if norm is None else _step(norm, path, part.shape[0])
        bias = _array(input_at(node, 2), node, path) if input_at(node, 2) is not None else None
        weights |= folded_conv(part.name, _array(input_at(node, 1), node, path), bias, step)
    for norm_part, node in zip(norm_parts, norms, strict=False):
        scale, shift = _step(node, path, norm_part.channels)
        weights[f"{norm_part.name}.scale"] = np.asarray(scale, np.float32)
        weights[f"{norm_part.name}.shift"] = np.asarray(shift, np.float32)
    return config, weights


def _config(shapes: Sequence[Shape]) -> SpeakerConfig | None:
    """The sizes that convolutions' weights tell, in their order; None where they are another network's."""
    over_time = [shape for shape in shapes if len(shape) == 3]
    if len(shapes) == len(over_time) or len(over_time) < _FIRST_LAYER + _PER_LAYER or not all(map(all, shapes)):
        return None
    head, tdnn = shapes[0][0], over_time[0]
    first = over_time[_FIRST_LAYER : _FIRST_LAYER + _PER_LAYER]
    place, layers = _FIRST_LAYER, []
    for _ in DILATIONS:
        count = 0
        while over_time[place + 1 : place + 2] and over_time[place + 1][2] == LOCAL_KERNEL and count < LARGEST_LAYERS:
            place, count = place + _PER_LAYER, count + 1
        layers.append(count)
        place += 1  # what the block's channels are halved by
    if tdnn[1] % head or not all(layers):
        return None
    return SpeakerConfig(
        features=tdnn[1] // head * FREQUENCY_STEPS,
        head=head,
        initial=tdnn[0],
        growth=first[1][0],
        bottleneck=first[0][0],
        gate=first[2][0],
        layers=tuple(layers),
        embedding=over_time[-1][0],
    )


def _norm_behind(conv: ir.Node) -> ir.Node | None:
    reader = only_reader(conv.outputs[0])
    return reader if reader is not None and reader.op_type == "BatchNormalization" else None


def _shape(conv: ir.Node) -> Shape:
    """Of a convolution's weight; empty where it has none that is known."""
    tensor = tensor_of(_source(input_at(conv, 1)))
    return () if tensor is None else tuple(tensor.shape.numpy())


def _step(node: ir.Node, path: Path, channels: int) -> tuple[Wide, Wide]:
    arrays = [_array(input_at(node, place), node, path) for place in range(1, 5)]
    if any(array.shape != (channels,) for array in arrays):
        raise _other(path, f"the normalisation {node.name} is not of {channels} channels")
    scale, shift, mean, variance = arrays
    try:
        return affine_step(mean, variance, scale, shift, node.attributes.get_float("epsilon", _EPSILON))
    except ValueError as error:
        raise _other(path, f"of the normalisation {node.name} {error}") from error


def _array(value: ir.Value | None, node: ir.Node, path: Path) -> NDArray[np.float32]:
    tensor = tensor_of(_source(value))
    if tensor is None or tensor.dtype != ir.DataType.FLOAT:
        kind = "no weight" if tensor is None else str(tensor.dtype.name).lower()
        raise _other(path, f"the node {node.name} reads {kind} where float32 is needed")
    array: NDArray[np.float32] = tensor.numpy()
    if not np.isfinite(array).all():
        raise Refusal(
            f"{path}: the node {node.name} has weights that are NaN or infinite, so nothing right can come of it; get "
            "the checkpoint again."
        )
    return array


def _source(value: ir.Value | None) -> ir.Value | None:
    """What `value` is a copy of: exporters write equal weights once, and copies of them by Identity."""
    while value is not None and (node := value.producer()) is not None and node.op_type == "Identity":
        value = input_at(node, 0)
    return value


def _other(path: Path, reason: str) -> Refusal:
    return Refusal(f"{path}: is not {WHOSE} as torch's exporter writes it: {reason}; {ADVICE}.")
