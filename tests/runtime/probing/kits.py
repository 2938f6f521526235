"""Small kits, ready made: engines that double their input, one of which has a layer behind a hardware field."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from rknn_tts_runtime.probing.arrays import Array, npy_bytes
from rknn_tts_runtime.probing.kit import KIT_FILE, Case, CaseInput, CaseOutput, CaseRun, Kit, Subject, kit_text

from contracts.contract import Source, TensorSpec
from contracts.files import sha256_of, sha256_of_bytes
from contracts.manifest import EngineFile, LogSummary, Manifest, OnnxTwin, RegtaskCount, Toolkit, manifest_text
from contracts.verdicts import passed, unproven
from tests.gates.small_graphs import scale_proto

FIELD = RegtaskCount("v2", "0x4038", 0, "0x1fff", "0x3d58", 4)
OTHER_FIELD = RegtaskCount("v2", "0x5048", 0, "0x1fff", "0x2001", 1)
PROVES = "log.regtask:v2:0x4038:0:0x1fff"
OTHER_PROVES = "log.regtask:v2:0x5048:0:0x1fff"

GIVEN = np.array([[1, 2, 3, 4]], np.float32)
DOUBLED = np.array([[2, 4, 6, 8]], np.float32)
OTHER_GIVEN = np.array([[-1, 0.5, 0, 3]], np.float32)
OTHER_DOUBLED = np.array([[-2, 1, 0, 6]], np.float32)

ENGINE_BYTES = b"RKNN the engine"
PART_BYTES = b"RKNN a part of it"

BOUND_DB = 40.0


def engine_manifest(stem: str, engine: bytes, twin: bytes, **keys: Any) -> Manifest:
    """The manifest of an engine that doubles `x` into `y`."""
    return Manifest(
        family=None,
        stage=None,
        target="rk3588",
        toolkit=Toolkit("rknn-toolkit2", "2.3.2"),
        source=Source("net.onnx", "ab" * 32, "checkpoint"),
        onnx=OnnxTwin(f"{stem}.onnx", sha256_of_bytes(twin), 17, 1),
        engine=EngineFile(f"{stem}.rknn", sha256_of_bytes(engine), len(engine)),
        inputs=(TensorSpec("x", (1, 4)),),
        outputs=(TensorSpec("y", (1, 4)),),
        layers=None,
        memory=None,
        log=keys.pop("log", LogSummary()),
        **keys,
    )


def write_engine(folder: Path, stem: str, engine: bytes, factor: float = 2.0, **keys: Any) -> Manifest:
    """An engine of these bytes in `folder`, with its manifest and a twin that multiplies by `factor`."""
    twin = scale_proto(factor).SerializeToString()
    manifest = engine_manifest(stem, engine, twin, **keys)
    (folder / f"{stem}.rknn").write_bytes(engine)
    (folder / f"{stem}.onnx").write_bytes(twin)
    (folder / f"{stem}.json").write_text(manifest_text(manifest), encoding="utf-8")
    return manifest


def write_subject(folder: Path, factor: float = 2.0) -> Manifest:
    """The engine that kits are of, whose log has two hardware fields that only a board can judge."""
    return write_engine(
        folder,
        "net",
        ENGINE_BYTES,
        factor,
        log=LogSummary(regtask=(FIELD, OTHER_FIELD)),
        thresholds={"simulator": BOUND_DB},
        verdicts=(
            passed("structure.operators", "fine"),
            unproven("log.regtask", "field 0x4038: only a board can tell", FIELD.max_value),
            unproven("log.regtask", "field 0x5048: only a board can tell", OTHER_FIELD.max_value),
            passed("pass.rewrite_sine", "2 hits"),
        ),
    )


def write_kit(folder: Path, factor: float = 2.0, part_factor: float = 2.0) -> Kit:
    """A kit in `folder`: the engine on two feeds, and a part that proves the first of its fields."""
    folder.mkdir(exist_ok=True)
    subject = write_subject(folder, factor)
    write_engine(folder, "part", PART_BYTES, part_factor)
    arrays = {"x0": GIVEN, "y0": DOUBLED, "x1": OTHER_GIVEN, "y1": OTHER_DOUBLED}
    for name, array in arrays.items():
        (folder / f"{name}.npy").write_bytes(npy_bytes(array))
    runs = tuple(
        CaseRun((CaseInput("x", f"x{at}.npy"),), (CaseOutput("y", f"y{at}.npy", BOUND_DB),)) for at in range(2)
    )
    cases = (
        Case("net", "engine", "The engine on two feeds.", "net.json", runs, ("pass.rewrite_sine",)),
        Case("field", "regtask", "The layer behind 0x4038, alone.", "part.json", runs[:1], (PROVES,)),
    )
    kit = Kit(
        Subject(None, None, None, "rk3588", "2.3.2", subject.engine.sha256, "net.rknn"), cases, digests_of(folder)
    )
    write_kit_file(folder, kit)
    return kit


def write_kit_file(folder: Path, kit: Kit, **changes: Any) -> None:
    """`probe.json` of `kit` with these fields of its own, and the files' digests as they are."""
    changed = dataclasses.replace(kit, files=digests_of(folder), **changes)
    (folder / KIT_FILE).write_text(kit_text(changed), encoding="utf-8")


def replace_array(folder: Path, name: str, array: Array, kit: Kit) -> None:
    """Another array in one of the kit's files, its digest told."""
    (folder / name).write_bytes(npy_bytes(array))
    write_kit_file(folder, kit)


def digests_of(folder: Path) -> dict[str, str]:
    """The digests of all files but `probe.json`."""
    return {path.name: sha256_of(path) for path in sorted(folder.iterdir()) if path.name != KIT_FILE}
