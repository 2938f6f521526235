"""What an engine tells of its tensors on the board, held against its manifest, and how they are handed over.

Order of elements. The manifest's shapes, and all that the walks compute, are in the ONNX's order: N, C, H, W where
there are four axes. `rknn_query` tells an input of four axes as NHWC, of fp16 engines too, and `rknn_inputs_set` takes
nothing else for it: it logs "Meet unsupported src layout for normalize: NCHW, only support NHWC src layout!", and by
some reports still returns success. So an input is turned here into the format that was told, and handed over as that.
Inputs of other ranks are told as UNDEFINED and handed over as they are. Outputs are told as NCHW; one that is told as
NHWC is turned back.

Types. Floats go and come as float32, whatever the engine computes in: the runtime converts (`pass_through` 0,
`want_float` 1). Identifiers go as int64.

All this is known from public reports and programs, and not measured on a board by rknn-tts: a probe kit shows it.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import NamedTuple, Sequence

import numpy as np

from rknn_tts_runtime.backends.engine import Array
from rknn_tts_runtime.backends.feeds import without_ones
from rknn_tts_runtime.faults import Mismatch
from rknn_tts_runtime.manifest import TensorInfo
from rknn_tts_runtime.npu import api

_TYPES = {"float32": api.TENSOR_FLOAT32, "int64": api.TENSOR_INT64}
"""`rknn_tensor_type` of what is handed over, by the manifest's dtype."""

_IMAGE_AXES = 4
"""Only tensors of so many axes have a format other than UNDEFINED."""

_TO_NHWC, _TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


class Attributes(NamedTuple):
    """A tensor as `rknn_query` tells it.

    Attributes:
        name: the ONNX's.
        shape: its axes in the order of `format`.
        elements: their product, as told.
        format: `rknn_tensor_format`.
        type: what the engine computes in, `rknn_tensor_type`.
        raw: all of it.
    """

    name: str
    shape: tuple[int, ...]
    elements: int
    format: int
    type: int
    raw: api.TensorAttr

    def __str__(self) -> str:
        format_name, type_name = _named(api.FORMAT_NAMES, self.format), _named(api.TYPE_NAMES, self.type)
        return f"'{self.name}' {list(self.shape)} {format_name} {type_name}"


class Port(NamedTuple):
    """A tensor of the manifest where it enters or leaves the engine.

    Attributes:
        info: the tensor of the manifest.
        number: its index in the API.
        format: `rknn_tensor_format` that it is handed over in.
        type: `rknn_tensor_type` that it is handed over in.
        shape: its axes as they were told.
        turned: whether they are in another order than the manifest's.
        raw: what was told of it.
    """

    info: TensorInfo
    number: int
    format: int
    type: int
    shape: tuple[int, ...]
    turned: bool
    raw: api.TensorAttr

    @property
    def nbytes(self) -> int:
        """Of the tensor as it is handed over."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.info.dtype).itemsize

    def handed_over(self, array: Array) -> Array:
        """`array`, of the manifest's shape, in the order that the engine takes; contiguous, copied where it must be."""
        return np.ascontiguousarray(array.transpose(_TO_NHWC) if self.turned else array)

    def taken_back(self, array: Array) -> Array:
        """`array`, as it came of the engine, in the manifest's shape and order; contiguous."""
        given = array.reshape(self.shape)
        return np.ascontiguousarray(given.transpose(_TO_NCHW) if self.turned else given).reshape(self.info.shape)


def read_attributes(raw: api.TensorAttr) -> Attributes:
    """What `rknn_query` filled in `raw`."""
    axes = min(raw.n_dims, api.MAX_DIMS)
    shape = tuple(int(size) for size in raw.dims[:axes])
    return Attributes(raw.name.decode("utf-8", "replace"), shape, raw.n_elems, raw.fmt, raw.type, raw)


def ports(engine: object, kind: str, infos: Sequence[TensorInfo], told: Sequence[Attributes]) -> tuple[Port, ...]:
    """The tensors `infos` of a manifest at those that the engine told, by name, in the manifest's order.

    Args:
        engine: how messages call the engine.
        kind: "inputs" or "outputs".
        infos: of the manifest.
        told: of the loaded engine, in the API's order.

    Raises:
        Mismatch: names, shapes or numbers of elements differ, or one cannot be handed over.
    """
    by_name = {attributes.name: index for index, attributes in enumerate(told)}
    if len(told) != len(infos) or set(by_name) != {info.name for info in infos}:
        raise Mismatch(
            f"{engine}: its {kind} are {', '.join(map(str, told)) or 'none'}; its manifest tells of "
            f"{', '.join(f'{info.name!r} {list(info.shape)}' for info in infos) or 'none'}. Copy the engine and its "
            "manifest together."
        )
    return tuple(_port(engine, kind, info, by_name[info.name], told[by_name[info.name]]) for info in infos)


def _port(engine: object, kind: str, info: TensorInfo, index: int, told: Attributes) -> Port:
    if info.dtype not in _TYPES or (kind == "outputs" and _TYPES[info.dtype] != api.TENSOR_FLOAT32):
        raise Mismatch(
            f"{engine}: '{info.name}' of its {kind} is {info.dtype} by its manifest; inputs can be float32 and int64 "
            "here, outputs float32."
        )
    turned = told.format == api.FORMAT_NHWC and len(told.shape) == len(info.shape) == _IMAGE_AXES
    expected = tuple(info.shape[axis] for axis in _TO_NHWC) if turned else info.shape
    elements = int(np.prod(info.shape, dtype=np.int64))
    if (
        told.format not in (api.FORMAT_NCHW, api.FORMAT_NHWC, api.FORMAT_UNDEFINED)
        or told.elements != elements
        or (told.shape != expected if turned else without_ones(told.shape) != without_ones(expected))
    ):
        raise Mismatch(
            f"{engine}: it tells of {told} with {told.elements} elements; its manifest of {info.name!r} "
            f"{list(info.shape)} with {elements}. Copy the engine and its manifest together, or compile it again."
        )
    return Port(info, index, told.format, _TYPES[info.dtype], told.shape, turned, told.raw)


def _named(names: Sequence[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else f"({number})"
