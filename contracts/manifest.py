"""The manifest beside an engine, schema "rknn-tts/engine/1" (design, Manifest), and the manifest of a set of engines.

More keys may be added, none renamed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from contracts.board import Board
from contracts.choices import Choice
from contracts.contract import (
    Cache,
    CarriedState,
    CodeStep,
    HostHalf,
    Noise,
    PassRecord,
    Source,
    TensorSpec,
    Trim,
    Window,
)
from contracts.errors import UserInput
from contracts.quality import Quality
from contracts.quantisation import Quantisation
from contracts.serial import TooDeep, from_json, parse_json, to_json
from contracts.verdicts import Measurement, Verdict

ENGINE_SCHEMA = "rknn-tts/engine/1"
SET_SCHEMA = "rknn-tts/set/1"


@dataclass(frozen=True)
class Toolkit:
    """Name and version of the compiler, and those of its fuse rules that were switched off because they crash."""

    name: str
    version: str
    disabled_rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class OnnxTwin:
    """The ONNX an engine was compiled from: file name, digest, opset of the default domain, node count."""

    file: str
    sha256: str
    opset: int
    nodes: int


@dataclass(frozen=True)
class EngineFile:
    """The engine: file name, digest, size."""

    file: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class CpuLayer:
    """A layer that runs on the CPU: operator, name, traffic in KB."""

    op: str
    name: str
    rw_kb: float


@dataclass(frozen=True)
class Layers:
    """The compiler's layer table in sum; `cpu` without input and output operators; `file` holds every layer."""

    count: int
    cycles: int
    rw_kb: float
    modelled_ms: float
    cpu: tuple[CpuLayer, ...]
    file: str | None


@dataclass(frozen=True)
class Memory:
    """Memory totals of the compiler's tables, in KB."""

    internal_kb: float
    weight_kb: float


@dataclass(frozen=True)
class Aperture:
    """What an engine takes of the NPU's 32-bit address space, in bytes: estimates from the build, no board was asked.

    Attributes:
        context_bytes: all that one loaded engine maps.
        largest_mapping_bytes: the largest of these mappings.
    """

    context_bytes: int
    largest_mapping_bytes: int


@dataclass(frozen=True)
class SharedAperture:
    """Which engines of a set fit into one process together, by the estimates in their manifests.

    Attributes:
        budget_bytes: what all engines that a process has loaded may take together.
        context_bytes: member to what it takes when it is loaded.
        together: sets of members that fit, each as large as it can be; a member in none does not fit alone.
    """

    budget_bytes: int
    context_bytes: dict[str, int]
    together: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class RegtaskCount:
    """REGTASK lines of one key: hardware field (target, offset, shift), its limit, largest value, line count."""

    target: str
    offset: str
    shift: int
    limit: str
    max_value: str
    count: int


@dataclass(frozen=True)
class LogSummary:
    """What the build log said: REGTASK keys, count of `Unkown op target`, CPU fallback lines."""

    regtask: tuple[RegtaskCount, ...] = ()
    unknown_target: int = 0
    fallback: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Manifest:
    """What is known of one engine. Field names are the keys of the JSON file."""

    family: str | None
    stage: str | None
    target: str
    toolkit: Toolkit
    source: Source
    onnx: OnnxTwin
    engine: EngineFile
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    layers: Layers | None
    memory: Memory | None
    log: LogSummary
    aperture: Aperture | None = None
    host: HostHalf | None = None
    window: Window | None = None
    cache: Cache | None = None
    thresholds: dict[str, float] = field(default_factory=dict)
    noise: tuple[Noise, ...] = ()
    passes: tuple[PassRecord, ...] = ()
    skipped: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    board: Board | None = None
    role: str | None = None
    step: CodeStep | None = None
    state: tuple[CarriedState, ...] = ()
    quantisation: Quantisation | None = None
    quality: tuple[Quality, ...] = ()
    trim: Trim | None = None
    choices: tuple[Choice, ...] = ()
    schema: str = ENGINE_SCHEMA


@dataclass(frozen=True)
class SetManifest:
    """Names the manifests of engines that belong together (a ladder, a pair, `--all`).

    Attributes:
        members: their manifests.
        roles: role to engine, both as the members' manifests have them.
        cache: the state that they share, so that one may go on where another ended; None where they keep none.
        aperture: which of them fit into one process together; None where that is not known of all.
    """

    members: tuple[str, ...]
    roles: dict[str, str] = field(default_factory=dict)
    cache: Cache | None = None
    aperture: SharedAperture | None = None
    schema: str = SET_SCHEMA


def manifest_text(manifest: Manifest | SetManifest) -> str:
    """The manifest as the text of its file."""
    data = to_json(manifest)
    assert isinstance(data, dict)
    return json.dumps({"schema": data.pop("schema"), **data}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_manifest(path: Path) -> Manifest:
    """The manifest in the file `path`.

    Raises:
        UserInput: the file cannot be read, or is no engine manifest of this schema.
    """
    try:
        data = parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserInput(f"{path}: cannot be read ({error.strerror}).") from error
    except TooDeep as error:
        raise UserInput(f"{path}: is nested too deep to be a manifest ({error}).") from error
    except ValueError as error:
        raise UserInput(f"{path}: is not JSON ({error}).") from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != ENGINE_SCHEMA:
        raise UserInput(f"{path}: is no engine manifest: its schema is {schema!r}, expected {ENGINE_SCHEMA!r}.")
    try:
        return from_json(Manifest, data, "manifest")
    except ValueError as error:
        raise UserInput(f"{path}: {error}.") from error
