"""What a board reads of an engine's manifest (schema rknn-tts/engine/1).

A manifest is data from a file: its size is checked before it is read, and every key that is used before it is used.
Keys that are not known are left alone, so that a newer manifest can be read.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.json_keys import LARGEST_BYTES as LARGEST_BYTES
from rknn_tts_runtime.json_keys import KeyReader
from rknn_tts_runtime.json_keys import read_json as read_json

ENGINE_SCHEMA = "rknn-tts/engine/1"

LARGEST_TENSOR_BYTES = (1 << 32) - 1
"""Of a tensor that is believed: the RKNN API has sizes of 32 bits."""

HIGHEST_SAMPLE_RATE = 768_000
"""In Hz, of a voice that is believed: the highest that sound cards take; speech has 48000 at most."""

MOST_MAPPED = 1 << 48
"""Of bytes that an engine is believed to map: one of 900 frames asked for 4710850560, more than there are addresses
(reference, "The IOVA ceiling"), and its manifest is to tell so."""

MOST_AXES = 16
"""Of a tensor: RKNN_MAX_DIMS of the RKNN API."""

PLACE_SHAPE = (1, 3, 1, 1)
"""Of the input that tells a trimmed engine where in an utterance its window stands."""

MASKING = "mask_decoder"
"""The surgery pass that makes an engine exact on utterances shorter than its window."""

RANDOM = "random"
"""Kind of a source of seeded random weights, which stand in for a checkpoint."""

DTYPES = (
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
"""Of a tensor, as numpy calls them."""

_REMEDY = "export the engine again"


class TensorInfo(NamedTuple):
    """Name, static shape and dtype ("float32", "int64") of an input or output."""

    name: str
    shape: tuple[int, ...]
    dtype: str


class WindowInfo(NamedTuple):
    """Geometry of a fixed window: `left + emitted + right == frames`; `hop` samples a frame."""

    frames: int
    emitted: int
    left: int
    right: int
    hop: int
    sample_rate: int | None


class TrimInfo(NamedTuple):
    """What of its window an engine trims (docs/manifest.md): the input that tells where, and the frames that remain."""

    input: str
    frames: int


class StepInfo(NamedTuple):
    """Geometry of a step of codes: `context + emitted == codes`."""

    codes: int
    samples_per_code: int
    sample_rate: int | None
    context: int
    emitted: int


class StateInfo(NamedTuple):
    """A tensor that a step takes from the one before it, see `carried_state.State`."""

    input: str
    output: str
    axis: int | None


@dataclass(frozen=True)
class EngineManifest:
    """One engine, as its manifest tells of it.

    Attributes:
        path: the manifest's file.
        family, stage, role: None for a foreign ONNX, or where it has none.
        target: the chip.
        toolkit: version of the toolkit that compiled it.
        engine: the engine's file; it may be missing where only twins are run.
        engine_sha256: its digest.
        engine_bytes: its size.
        twin: the ONNX it was compiled from.
        host: the host half's file; None where the stage has none.
        inputs, outputs: its tensors, in order.
        window, step: its geometry, where it has one.
        cache_numel: elements of its flat cache, where it has one.
        state: what goes from step to step.
        modelled_ms: modelled time of a run; None where it is not known.
        context_bytes: what a loaded engine maps, estimated; None where it is not known.
        stand_in: whether its weights are seeded random ones.
        data: the whole manifest.
        largest_mapping_bytes: of what it maps, the largest mapping, estimated; None likewise.
        twin_sha256: the twin's digest.
        host_sha256: the host half's; None where the stage has none.
        measured_ms: time of a run that a probe measured on a board; None where none did.
        source_sha256: digest of the checkpoint.
        source_name: the checkpoint.
        source_kind: "checkpoint" (a file of the user's), "package" or "random".
        precision: "w8a8" of an engine of 8 bits; None of one in fp16.
        trim: what it drops of its window's context on the way; None where it computes all of it to the end.
        masked: whether padding behind an utterance's end leaves its samples alone.
    """

    path: Path
    family: str | None
    stage: str | None
    role: str | None
    target: str
    toolkit: str
    engine: Path
    engine_sha256: str
    engine_bytes: int
    twin: Path
    host: Path | None
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    window: WindowInfo | None
    step: StepInfo | None
    cache_numel: int | None
    state: tuple[StateInfo, ...]
    modelled_ms: float | None
    context_bytes: int | None
    stand_in: bool
    data: dict[str, Any]
    largest_mapping_bytes: int | None = None
    twin_sha256: str = ""
    host_sha256: str | None = None
    measured_ms: float | None = None
    source_sha256: str = ""
    source_name: str = ""
    source_kind: str = ""
    precision: str | None = None
    trim: TrimInfo | None = None
    masked: bool = False


def manifest_of(engine: Path) -> EngineManifest:
    """The manifest of the engine file `engine`: the JSON beside it, of the same stem.

    Raises:
        BadInput: there is none, or it tells of another file.
    """
    path = engine.with_suffix(".json")
    try:
        found = path.is_file()
    except OSError:  # the name is too long for that of a file
        found = False
    if not found:
        raise BadInput(
            f"{engine}: its manifest {path.name} is not beside it; an engine and its manifest are copied together."
        )
    manifest = read_manifest(path)
    if manifest.engine.name != engine.name:
        raise BadInput(f"{path}: is the manifest of {manifest.engine.name}, not of {engine.name}; copy the right one.")
    return manifest


def read_manifest(path: Path) -> EngineManifest:
    """The manifest in the file `path`.

    Raises:
        BadInput: it cannot be read, is no engine manifest, or a key of it is missing or of another kind.
    """
    read = reader_of(path, ENGINE_SCHEMA, "engine manifest")
    layers, aperture, quantisation = read.table("layers"), read.table("aperture"), read.table("quantisation")
    host = read.table("host")
    inputs, outputs = _tensors(read, "inputs"), _tensors(read, "outputs")
    source_kind = read.optional_text("source.kind") or ""
    window = _window(read) if read.table("window") else None
    return EngineManifest(
        path=path,
        family=read.optional_text("family"),
        stage=read.optional_text("stage"),
        role=read.optional_text("role"),
        target=read.text("target"),
        toolkit=read.text("toolkit.version"),
        engine=read.as_file("engine.file", read.found("engine.file")),
        engine_sha256=read.text("engine.sha256"),
        engine_bytes=read.whole("engine.bytes", least=1),
        twin=read.as_file("onnx.file", read.found("onnx.file")),
        host=read.as_file("host.file", read.found("host.file")) if host else None,
        inputs=inputs,
        outputs=outputs,
        window=window,
        step=_step(read) if read.table("step") else None,
        cache_numel=cache_numel_of(read),
        state=_states(read, inputs, outputs),
        modelled_ms=read.number("layers.modelled_ms") if layers else None,
        context_bytes=read.whole("aperture.context_bytes", 0, MOST_MAPPED) if aperture else None,
        stand_in=source_kind == RANDOM,
        data=read.data,
        largest_mapping_bytes=read.whole("aperture.largest_mapping_bytes", 0, MOST_MAPPED) if aperture else None,
        twin_sha256=read.optional_text("onnx.sha256") or "",
        host_sha256=read.optional_text("host.sha256"),
        measured_ms=_measured_ms(read),
        source_sha256=read.optional_text("source.sha256") or "",
        source_name=read.optional_text("source.name") or "",
        source_kind=source_kind,
        precision=read.text("quantisation.dtype") if quantisation else None,
        trim=_trim(read, window, inputs, outputs) if read.table("trim") else None,
        masked=_masked(read),
    )


def _measured_ms(read: KeyReader) -> float | None:
    board = read.found("board")
    return read.number("board.ms") if isinstance(board, dict) and board.get("ms") is not None else None


def reader_of(path: Path, schema: str, noun: str) -> KeyReader:
    """Of the manifest in the file `path`, which is to be of `schema`: "engine manifest".

    Raises:
        BadInput: it cannot be read, or is of another schema.
    """
    data = read_json(path, "a manifest")
    if not isinstance(data, dict) or data.get("schema") != schema:
        found = data.get("schema") if isinstance(data, dict) else None
        raise BadInput(f"{path}: is no {noun}: its schema is {found!r:.80}, expected {schema!r}.")
    return KeyReader(path, data, _REMEDY)


def _tensors(read: KeyReader, key: str) -> tuple[TensorInfo, ...]:
    tensors = tuple(_tensor(read, place, item) for place, item in read.items(key))
    names = [tensor.name for tensor in tensors]
    if len(set(names)) != len(names):
        raise read.wrong(key, names, "names that differ")
    return tensors


def _tensor(read: KeyReader, key: str, item: object) -> TensorInfo:
    shape = item.get("shape") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(shape, list):
        raise read.wrong(key, item, "a tensor's name, shape and dtype")
    name, dtype = read.as_text(f"{key}.name", item.get("name")), item.get("dtype", "float32")
    if dtype not in DTYPES:
        raise read.wrong(f"{key}.dtype", dtype, f"one of {', '.join(DTYPES)}")
    if len(shape) > MOST_AXES:
        raise read.wrong(f"{key}.shape", shape, f"at most {MOST_AXES} axes")
    axes = tuple(read.as_whole(f"{key}.shape", axis, 1) for axis in shape)
    size_bytes = np.dtype(dtype).itemsize
    for axis in axes:
        size_bytes *= axis
    if size_bytes > LARGEST_TENSOR_BYTES:
        raise read.wrong(f"{key}.shape", shape, f"at most {LARGEST_TENSOR_BYTES} bytes")
    return TensorInfo(name, axes, dtype)


def _window(read: KeyReader) -> WindowInfo:
    least = {"frames": 1, "emitted": 1, "left": 0, "right": 0, "hop": 1}
    sizes = {name: read.whole(f"window.{name}", bound) for name, bound in least.items()}
    if sizes["left"] + sizes["emitted"] + sizes["right"] != sizes["frames"]:
        raise read.wrong("window", sizes, "left + emitted + right = frames")
    return WindowInfo(**sizes, sample_rate=read.optional_whole("window.sample_rate", 1, HIGHEST_SAMPLE_RATE))


def _trim(
    read: KeyReader, window: WindowInfo | None, inputs: tuple[TensorInfo, ...], outputs: tuple[TensorInfo, ...]
) -> TrimInfo:
    trim = TrimInfo(read.text("trim.input"), read.whole("trim.frames", 1))
    shapes = {info.name: info.shape for info in inputs}
    if shapes.get(trim.input) != PLACE_SHAPE:
        raise read.wrong("trim.input", trim.input, f"the name of an input of the shape {list(PLACE_SHAPE)}")
    edges = -1 if window is None else trim.frames - window.emitted
    if window is None or edges < 0 or edges % 2 or window.left != window.right or trim.frames > window.frames:
        raise read.wrong("trim.frames", trim.frames, "a window's emitted frames and as many more on either side")
    samples = [int(np.prod(info.shape, dtype=np.int64)) for info in outputs]
    if samples != [trim.frames * window.hop]:
        raise read.wrong("trim.frames", trim.frames, f"as many as its output has, {window.hop} samples each")
    return trim


def _masked(read: KeyReader) -> bool:
    """Whether the surgery that makes it so was done."""
    passes = read.items("passes") if read.found("passes") is not None else []
    return any(isinstance(item, dict) and item.get("name") == MASKING and bool(item.get("hits")) for _, item in passes)


def _step(read: KeyReader) -> StepInfo:
    least = {"codes": 1, "samples_per_code": 1, "context": 0, "emitted": 1}
    sizes = {name: read.whole(f"step.{name}", bound) for name, bound in least.items()}
    if sizes["context"] + sizes["emitted"] != sizes["codes"]:
        raise read.wrong("step", sizes, "context + emitted = codes")
    return StepInfo(**sizes, sample_rate=read.optional_whole("step.sample_rate", 1, HIGHEST_SAMPLE_RATE))


def cache_numel_of(read: KeyReader) -> int | None:
    """Elements of the flat float32 cache that a manifest tells of; None where it tells of none."""
    most = LARGEST_TENSOR_BYTES // np.dtype(np.float32).itemsize
    return read.whole("cache.numel", 1, most) if read.table("cache") else None


def _states(read: KeyReader, inputs: tuple[TensorInfo, ...], outputs: tuple[TensorInfo, ...]) -> tuple[StateInfo, ...]:
    taken, given = {info.name: info for info in inputs}, {info.name: info for info in outputs}
    states = []
    for key, item in read.items("state") if read.found("state") is not None else []:
        source, sink = (item.get("input"), item.get("output")) if isinstance(item, dict) else (None, None)
        before = taken.get(source) if isinstance(source, str) else None
        after = given.get(sink) if isinstance(sink, str) else None
        if before is None or after is None:
            raise read.wrong(key, item, "the names of an input and an output of the engine")
        axis = None if item.get("axis") is None else read.as_whole(f"{key}.axis", item["axis"], 0, MOST_AXES)
        if axis is not None and axis >= min(len(before.shape), len(after.shape)):
            raise read.wrong(f"{key}.axis", axis, "an axis that both tensors have")
        states.append(StateInfo(before.name, after.name, axis))
    return tuple(states)
