"""What a file holds: an engine, a manifest, a layer table or an ONNX, told by its content, not by its name."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from rknn_tts_runtime.engine_file import MAGIC, EngineHeader, read_engine_header

from contracts.contract import Contract, contract_from_metadata
from contracts.errors import UserInput
from contracts.files import sha256_of
from contracts.manifest import (
    ENGINE_SCHEMA,
    SET_SCHEMA,
    Layers,
    Manifest,
    SetManifest,
    SharedAperture,
    read_manifest,
)
from contracts.serial import from_json
from cost.table import CostRow, LayerCost, by_operator, by_target, cpu_layers, cpu_layers_of_sums, dearest
from logs.layer_table import Layer
from rknn_tts.layer_file import layers_of, read_layers, sums_of

if TYPE_CHECKING:
    import onnx_ir as ir


@dataclass(frozen=True)
class OnnxTensor:
    """An input or output: its dimensions as numbers, or names where they are symbolic."""

    name: str
    shape: tuple[int | str, ...]
    dtype: str


@dataclass(frozen=True)
class OnnxFacts:
    """What a graph is made of.

    Attributes:
        ir_version: version of the file format.
        opsets: domain to version; the default domain is "".
        nodes: nodes in the graph, its subgraphs and functions.
        operators: operator (with its domain, where that is not the default one) to count, the most frequent first.
        inputs: the graph's inputs.
        outputs: the graph's outputs.
        parameters: elements of all initializers.
        contract: the contract that an export left in it.
    """

    ir_version: int
    opsets: dict[str, int]
    nodes: int
    operators: dict[str, int]
    inputs: tuple[OnnxTensor, ...]
    outputs: tuple[OnnxTensor, ...]
    parameters: int
    contract: Contract | None


@dataclass(frozen=True)
class Inspection:
    """What was found in one file.

    Attributes:
        file: the file.
        kind: "engine", "manifest", "set", "layers" or "onnx".
        bytes: its size.
        sha256: its digest, as hex digits.
        notes: what is missing, stale or does not agree, as sentences.
        engine: what the engine says of itself.
        manifest: the manifest, or the one beside the engine; None where that is missing or stale (the notes say so).
        members: the members of a set.
        aperture: which of them fit into one process together.
        layers: the sums over the layers; None where nothing says.
        cost: the modelled cost by operator; empty where the layers are not at hand.
        targets: the same by target.
        dearest: the layers that cost most, likewise.
        cpu: every layer on the CPU, the most expensive first; from the manifest where the layers are not at hand.
        onnx: what the graph is made of.
    """

    file: str
    kind: str
    bytes: int
    sha256: str
    notes: tuple[str, ...] = ()
    engine: EngineHeader | None = None
    manifest: Manifest | None = None
    members: tuple[str, ...] = ()
    aperture: SharedAperture | None = None
    layers: Layers | None = None
    cost: tuple[CostRow, ...] = ()
    targets: tuple[CostRow, ...] = ()
    dearest: tuple[LayerCost, ...] = ()
    cpu: tuple[LayerCost, ...] = ()
    onnx: OnnxFacts | None = None


def inspect_file(path: Path, workdir: Path) -> Inspection:
    """What the file `path` holds.

    Args:
        path: the file.
        workdir: where a manifest's `build-logs/` are looked for first.

    Raises:
        UserInput: it cannot be read, or is none of them.
        Refusal: an ONNX whose external data is missing or outside its folder.
    """
    if not path.exists():
        raise UserInput(f"{path}: there is no such file.")
    if not path.is_file():
        kinds = "an engine (.rknn), a manifest or a layer table (.json), or an ONNX (.onnx)"
        raise UserInput(f"{path}: is not a file; name {kinds}.")
    try:
        with path.open("rb") as file:
            head = file.read(4096)
        if head.startswith(MAGIC):
            return _inspect_engine(path, workdir)
        if head.lstrip()[:1] == b"{":
            return _inspect_json(path, workdir)
        if head.lstrip()[:1] == b"[":
            return _inspect_layers(path)
    except OSError as error:
        raise UserInput(f"{path}: cannot be read ({error.strerror or error}).") from error
    if not head:
        raise UserInput(f"{path}: is empty.")
    return _inspect_onnx(path)


def _inspect_engine(path: Path, workdir: Path) -> Inspection:
    digest = sha256_of(path)
    header = read_engine_header(path)
    beside = path.with_suffix(".json")
    notes = list(header.problems)
    manifest = _manifest_of(beside, digest, notes)
    if header.missing_bytes and not manifest:
        raise UserInput(
            f"{path}: is an engine that is cut off: {header.missing_bytes} of the bytes that it tells of are missing. "
            "Build or copy it again."
        )
    if manifest and header.contract and header.contract.get("target") != manifest.target:
        notes.append(f"The engine says it is for {header.contract.get('target')}, its manifest {manifest.target}.")
    layers, amiss = layers_of(manifest, beside, workdir)
    notes += [amiss] if amiss else []
    found = replace(_found(path, "engine", digest, notes), engine=header, manifest=manifest)
    return _with_cost(found, manifest.layers if manifest else None, layers)


def _manifest_of(beside: Path, digest: str, notes: list[str]) -> Manifest | None:
    """The manifest `beside` an engine with that digest; None where there is none of it, which `notes` tell."""
    if not beside.is_file():
        notes.append(f"There is no manifest beside it ({beside.name}): what it was made of and proven for is unknown.")
        return None
    try:
        manifest = read_manifest(beside)
    except UserInput as error:
        notes.append(f"The manifest beside it cannot be used: {error}")
        return None
    if manifest.engine.sha256 == digest:
        return manifest
    notes.append(
        f"STALE: the manifest {beside.name} is of another engine (sha256 {manifest.engine.sha256[:16]}, this one has "
        f"{digest[:16]}), so nothing it says is known of this one. Build it again."
    )
    return None


def _inspect_json(path: Path, workdir: Path) -> Inspection:
    digest = sha256_of(path)
    notes: list[str] = []
    try:
        data = json.loads(path.read_text("utf-8"))
        schema = data.get("schema") if isinstance(data, dict) else None
        if schema == SET_SCHEMA:
            found = from_json(SetManifest, data, "set")
            members = found.members
            notes += [f"The member {name} is missing." for name in members if not (path.parent / name).is_file()]
            return replace(_found(path, "set", digest, notes), members=members, aperture=found.aperture)
        if schema != ENGINE_SCHEMA:
            raise UserInput(f"{path}: is JSON, but no manifest: its schema is {schema!r}, not {ENGINE_SCHEMA!r}.")
        manifest = read_manifest(path)
    except (ValueError, RecursionError) as error:
        raise UserInput(f"{path}: is no manifest, or is cut off ({error}).") from error
    engine = path.parent / PurePosixPath(manifest.engine.file).name
    if not engine.is_file():
        notes.append(f"The engine {engine.name} is not beside it.")
    elif sha256_of(engine) != manifest.engine.sha256:
        notes.append(
            f"STALE: the engine {engine.name} beside it is another one than this manifest is of. Build it again."
        )
    layers, amiss = layers_of(manifest, path, workdir)
    notes += [amiss] if amiss else []
    return _with_cost(replace(_found(path, "manifest", digest, notes), manifest=manifest), manifest.layers, layers)


def _inspect_layers(path: Path) -> Inspection:
    try:
        layers = read_layers(path)
    except ValueError as error:
        raise UserInput(f"{path}: is a list, but no layer table of a build, or is cut off ({error}).") from error
    if not layers:
        raise UserInput(f"{path}: is a layer table without a layer.")
    notes = ["It is a layer table alone: what it was made of, its memory and its window stand in the manifest."]
    return _with_cost(_found(path, "layers", sha256_of(path), notes), sums_of(layers), layers)


def _with_cost(found: Inspection, sums: Layers | None, layers: tuple[Layer, ...]) -> Inspection:
    """`found` with what the layers cost; their sums, and those on the CPU, are known without `layers` too."""
    cpu = cpu_layers(layers) if layers else cpu_layers_of_sums(sums.cpu if sums else ())
    return replace(
        found,
        layers=sums,
        cost=by_operator(layers),
        targets=by_target(layers),
        dearest=dearest(layers),
        cpu=cpu,
    )


def _inspect_onnx(path: Path) -> Inspection:
    from converters.onnx_file import read_onnx

    try:
        model = read_onnx(path)
    except UserInput as error:
        raise UserInput(
            f"{path}: is neither an engine, nor a manifest, nor a layer table, nor an ONNX that can be read: {error}"
        ) from error
    notes: list[str] = []
    contract: Contract | None = None
    try:
        contract = contract_from_metadata(model.metadata_props)
    except ValueError as error:
        notes.append(f"The contract in it cannot be used: {error}.")
    if contract is None and not notes:
        notes.append("It carries no contract: it is no export of rknn-tts.")
    return replace(_found(path, "onnx", sha256_of(path), notes), onnx=_onnx_facts(model, contract))


def _onnx_facts(model: ir.Model, contract: Contract | None) -> OnnxFacts:
    graphs = [model.graph, *(graph for graph in model.graphs() if graph is not model.graph)]
    nodes = [node for graph in graphs for node in graph]
    counts = Counter(f"{node.domain}.{node.op_type}" if node.domain else node.op_type for node in nodes)
    tensors = [value.const_value for graph in graphs for value in graph.initializers.values()]
    return OnnxFacts(
        ir_version=model.ir_version,
        opsets=dict(model.opset_imports),
        nodes=len(nodes),
        operators=dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        inputs=tuple(map(_onnx_tensor, model.graph.inputs)),
        outputs=tuple(map(_onnx_tensor, model.graph.outputs)),
        parameters=sum(tensor.size for tensor in tensors if tensor is not None),
        contract=contract,
    )


def _onnx_tensor(value: ir.Value) -> OnnxTensor:
    shape: tuple[int | str, ...] = ("?",)
    if value.shape is not None:
        shape = tuple(dim if isinstance(dim, int) else str(dim.value or "?") for dim in value.shape)
    dtype = value.dtype.name.lower() if value.dtype is not None else "?"
    return OnnxTensor(value.name or "", shape, {"float": "float32", "double": "float64"}.get(dtype, dtype))


def _found(path: Path, kind: str, digest: str, notes: list[str]) -> Inspection:
    return Inspection(str(path), kind, path.stat().st_size, digest, tuple(notes))
