"""One full contract and one full manifest, every optional field set."""

from __future__ import annotations

import math

from contracts.board import Board, BoardCase, BoardConditions, BoardMemory, BoardOutput
from contracts.choices import ON_THIS_ENGINE, Choice, Variant
from contracts.contract import (
    Cache,
    CacheSlice,
    CodeStep,
    Contract,
    Drift,
    HostHalf,
    PassRecord,
    Source,
    TensorSpec,
    Window,
)
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
from contracts.verdicts import Measurement, Status, Verdict

SHA = "0123456789abcdef" * 4
INPUTS = (TensorSpec("z", (1, 192, 109)), TensorSpec("ids", (1, 7), "int64"))
OUTPUTS = (TensorSpec("output", (1, 1, 1, 27904)),)
SOURCE = Source("voice.onnx", SHA, "checkpoint")
WINDOW = Window(frames=109, emitted=45, left=32, right=32, hop=256, sample_rate=22050)
CACHE = Cache(12, (CacheSlice("keys", 0, (2, 3)), CacheSlice("values", 6, (2, 3))))
PASSES = (PassRecord("fold_flip", 4, True, math.inf), PassRecord("mask_decoder", 3, False))
VERDICTS = (
    Verdict(gate="fp32.whole", measured=101.5, threshold=95.0, unit="dB", status=Status.PASSED, detail="one"),
    Verdict(gate="parity", measured=math.inf, threshold=120.0, unit="dB", status=Status.PASSED),
    Verdict(gate="structure", measured="If, node 'if0'", status=Status.FAILED, detail="µ"),
    Verdict(gate="log.regtask", status=Status.UNPROVEN),
)
MEASUREMENTS = (Measurement(name="fp32.short", measured=-math.inf, unit="dB", reason="padding"),)
HOST = HostHalf("piper-host.onnx", SHA)
CHOICES = (
    Choice(
        name="fold_flip",
        kept="with",
        basis=ON_THIS_ENGINE,
        weighed_on="piper-decoder-w109 for rk3588 by rknn-toolkit2 2.3.2",
        variants=(
            Variant("with", 236, 0, 8_300_000, 85154.0, 26.0),
            Variant("without", 240, 4, 8_300_000, 85300.5, 26.25, fault="fp32.whole failed"),
        ),
    ),
)
DRIFT = Drift("durations", {"scales": (0.667, 1.0, 0.8)}, {"noise_duration": (1, 2, 128)}, 7.0, "rounded up")

CONTRACT = Contract(
    family="piper",
    stage="decoder",
    source=SOURCE,
    inputs=INPUTS,
    outputs=OUTPUTS,
    window=WINDOW,
    cache=CACHE,
    thresholds={"simulator": 40.0},
    passes=PASSES,
    verdicts=VERDICTS,
    measurements=MEASUREMENTS,
    host=HOST,
    drift=DRIFT,
    choices=CHOICES,
)

STEP = CodeStep(codes=37, samples_per_code=1920, sample_rate=24000, kv_len=71, head_dim=64, context=25, emitted=12)
STEP_CONTRACT = Contract(
    family="qwen3",
    stage="speech_decoder",
    source=Source("random", SHA, "random"),
    inputs=(TensorSpec("hidden", (1, 512, 37)), TensorSpec("cache", (1303424,))),
    outputs=(TensorSpec("audio", (1, 1, 71040)), TensorSpec("cache_out", (1303424,))),
    cache=Cache(
        1303424,
        (
            CacheSlice("layers.0.keys", 0, (16, 71, 64)),
            CacheSlice("layers.0.values", 72704, (16, 71, 64)),
            CacheSlice("valid", 145408, (71,)),
        ),
    ),
    thresholds={"simulator.audio": 33.0, "simulator.cache_out": 43.0},
    role="window",
    step=STEP,
)

BOARD = Board(
    ms=20.7,
    least_ms=20.1,
    repeats=5,
    outputs=(BoardOutput("output", 48.2, 40.0, 0.01),),
    memory=BoardMemory(17_000_000, 13_000_000),
    conditions=BoardConditions(
        soc="rk3588",
        model="Orange Pi 5 Plus",
        kernel="6.1.43",
        governor="rknpu_ondemand",
        least_hz=10**9,
        most_hz=10**9,
        core_mask="0_1_2",
        api="2.3.2",
        driver=None,
    ),
    warnings=("slow",),
    cases=(
        BoardCase("net", "engine", "The engine.", True, 20.7, (BoardOutput("output", 48.2, 40.0, 0.01),), "", ()),
        BoardCase("field", "regtask", "A layer.", False, None, (), "it could not be loaded", ("log.regtask:v2:1:0:3",)),
    ),
    before={"log.regtask:v2:1:0:3": Verdict(gate="log.regtask", status=Status.UNPROVEN)},
    date="2026-11-30T12:00:00+00:00",
    by="Ada",
    kit_sha256=SHA,
    probe_sha256=SHA,
)

MANIFEST = Manifest(
    family="piper",
    stage="decoder",
    target="rk3588",
    toolkit=Toolkit("rknn-toolkit2", "2.3.2"),
    source=SOURCE,
    onnx=OnnxTwin("piper-decoder-w109.onnx", SHA, 15, 281),
    engine=EngineFile("piper-decoder-w109.rknn", SHA, 19_600_977),
    inputs=INPUTS,
    outputs=OUTPUTS,
    layers=Layers(
        count=236,
        cycles=8_300_000,
        rw_kb=85154.0,
        modelled_ms=26.0,
        cpu=(CpuLayer("Slice", "flip", 12.5),),
        file="build-logs/piper-decoder-w109.layers.json",
    ),
    memory=Memory(10_400.0, 17_000.5),
    log=LogSummary(
        regtask=(RegtaskCount("v2", "0x4038", 0, "0x1fff", "0x3d58", 4),),
        unknown_target=4,
        fallback=("channel is too large",),
        accepted=("v2:0x7abc:0:0x3",),
    ),
    host=HOST,
    window=WINDOW,
    cache=CACHE,
    thresholds={"simulator": 40.0},
    passes=PASSES,
    verdicts=VERDICTS,
    measurements=MEASUREMENTS,
    board=BOARD,
    choices=CHOICES,
)
