"""Folders with an engine's files, written by the toolchain's own contract and manifest: small, but whole."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from contracts.contract import CodeStep, Contract, HostHalf, Source, TensorSpec, Trim, Window, short_contract
from contracts.manifest import Aperture, EngineFile, LogSummary, Manifest, OnnxTwin, Toolkit, manifest_text
from tests.rknn_tts.engines import engine_bytes

STEM = "piper-decoder-w6"
SOURCE = Source("voice.onnx", "0123456789abcdef" * 4, "checkpoint")
INPUTS = (TensorSpec("z", (1, 2, 1, 6)), TensorSpec("lengths", (1,), "int64"))
OUTPUTS = (TensorSpec("audio", (1, 1, 1, 12)),)
HOST_TEXT = b"a host half"
HOST_FILE = "piper-host.onnx"

WINDOW = Window(frames=6, emitted=2, left=2, right=2, hop=2, sample_rate=22050)
CONTRACT = Contract(
    family="piper",
    stage="decoder",
    source=SOURCE,
    inputs=INPUTS,
    outputs=OUTPUTS,
    window=WINDOW,
    host=HostHalf(HOST_FILE, hashlib.sha256(HOST_TEXT).hexdigest()),
)
TRIMMED_CONTRACT = replace(
    CONTRACT,
    inputs=(*INPUTS, TensorSpec("place", (1, 3, 1, 1))),
    outputs=(TensorSpec("audio", (1, 1, 1, 8)),),
    trim=Trim("place", 4),
)
STEP_CONTRACT = replace(
    CONTRACT, window=None, step=CodeStep(37, 1920, 24000, 71, 64, 25, 12), family="qwen3", stage="speech_decoder"
)


@dataclass(frozen=True)
class EngineFolder:
    """An engine with all that stands beside it."""

    engine: Path
    manifest: Path
    twin: Path
    host: Path


def twin_model() -> onnx.ModelProto:
    """z [1, 2, 1, 6] and a length to twice z, its channels side by side and the length added: audio [1, 1, 1, 12]."""
    nodes = [
        helper.make_node("Reshape", ["z", "flat"], ["line"]),
        helper.make_node("Cast", ["lengths"], ["length"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["line", "line"], ["twice"]),
        helper.make_node("Add", ["twice", "length"], ["audio"]),
    ]
    graph = helper.make_graph(
        nodes,
        "twin",
        [_value("z", INPUTS[0].shape), helper.make_tensor_value_info("lengths", TensorProto.INT64, [1])],
        [_value("audio", OUTPUTS[0].shape)],
        [numpy_helper.from_array(np.array([1, 1, 1, 12], np.int64), "flat")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


def write_engine(
    folder: Path,
    contract: Contract = CONTRACT,
    inside: Contract | None = CONTRACT,
    target: str = "rk3588",
    twin: onnx.ModelProto | None = None,
) -> EngineFolder:
    """An engine, its manifest of `contract`, twin and host half in `folder`; the engine carries `inside`."""
    files = EngineFolder(folder / f"{STEM}.rknn", folder / f"{STEM}.json", folder / f"{STEM}.onnx", folder / HOST_FILE)
    text = short_contract(inside, target, "2.3.2") if inside is not None else ""
    files.engine.write_bytes(engine_bytes(text.encode()))
    files.twin.write_bytes((twin or twin_model()).SerializeToString())
    files.host.write_bytes(HOST_TEXT)
    files.manifest.write_text(manifest_text(_manifest(contract, files, target)), encoding="utf-8")
    return files


def _manifest(contract: Contract, files: EngineFolder, target: str) -> Manifest:
    engine = files.engine.read_bytes()
    return Manifest(
        family=contract.family,
        stage=contract.stage,
        target=target,
        toolkit=Toolkit("rknn-toolkit2", "2.3.2"),
        source=contract.source,
        onnx=OnnxTwin(files.twin.name, hashlib.sha256(files.twin.read_bytes()).hexdigest(), 15, 4),
        engine=EngineFile(files.engine.name, hashlib.sha256(engine).hexdigest(), len(engine)),
        inputs=contract.inputs,
        outputs=contract.outputs,
        layers=None,
        memory=None,
        log=LogSummary(),
        aperture=Aperture(context_bytes=33316864, largest_mapping_bytes=19709952),
        host=contract.host,
        window=contract.window,
        cache=contract.cache,
        role=contract.role,
        step=contract.step,
        quantisation=contract.quantisation,
        trim=contract.trim,
        passes=contract.passes,
    )


def _value(name: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))
