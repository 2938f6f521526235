"""How often the board companion copies what goes to an engine and comes of it.

`make bench` runs it, half a minute. The stand-in of librknnrt takes the board's place, and its own time is taken out:
what is left are our checks, the turn of inputs of four axes from NCHW to NHWC, the arrays for outputs, filled with NaN,
and the calls. Ratios of one run, over one copy of the same bytes; a bound is one that holds on whatever machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rknn_tts_runtime.backends.engine import Array
from rknn_tts_runtime.backends.npu import NpuBackend
from rknn_tts_runtime.carried_state import State, walk_states, zero_states
from rknn_tts_runtime.npu.library import Library
from rknn_tts_runtime.speaking.qwen3 import open_qwen3
from rknn_tts_runtime.speaking.stopwatch import Stopwatch

from models.cosyvoice2.estimator_config import TRUE_CONFIG
from models.cosyvoice2.estimator_graphs import COND, MASK, MU, OUT, SPKS, TIME, X, carried_states, state_shapes
from rknn_tts.steps import ROOT
from tests.bench.ratios import ROUNDS, Figure, Table, ms_of
from tests.rknn_tts.engines import engine_bytes
from tests.runtime.fake_backends import FakeBackend, written_manifest
from tests.runtime.npu.fake_npu import FakeNpu, compiled_library
from tests.runtime.speaking.small_speech_decoders import plan_of

REPORT = ROOT / "build-logs" / "bench-runtime-copies.json"

TURNED_COPIES, PLAIN_COPIES = 40.0, 8.0
"""What our side of a run may take, in copies of the bytes: with inputs that are turned, which are read with strides (5
to 9 copies on an x86 PC); and with none, where only new pages are filled."""

CALLS_MS = 3.0
"""The same, what does not grow with the bytes: 134 tensors took 1 ms on an x86 PC."""

CACHE, CODES, SAMPLES_PER_CODE, CODEBOOKS = (1, 81464, 1, 16), 64, 1920, 16
"""Qwen3's step (docs/qwen3.md): its cache has 1,303,424 numbers."""

STEPS = 32

FRAMES, HISTORY, TIME_CHANNELS = 32, 256, 3584
"""CosyVoice2's step of the flow (docs/cosyvoice2.md)."""

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Case:
    """An engine by its tensors, and how many copies our side may take; `states` lie as a walk keeps them."""

    name: str
    inputs: Shapes
    outputs: Shapes
    copies: float
    states: tuple[State, ...] = ()


def flow_step(walked: bool) -> Case:
    """CosyVoice2's step of the flow at the published sizes; its states as a walk has them, or as arrays usually lie."""
    states = state_shapes(TRUE_CONFIG, HISTORY)
    mel = (2, TRUE_CONFIG.mel, 1, FRAMES)
    beside: Shapes = {MASK: (2, 1, 1, FRAMES), TIME: (2, TIME_CHANNELS, 1, 1), SPKS: (2, TRUE_CONFIG.mel)}
    outputs: dict[str, tuple[int, ...]] = {OUT: mel}
    for state in carried_states(TRUE_CONFIG):
        whole = states[state.input]
        outputs[state.output] = whole if state.axis is None else (*whole[:-1], FRAMES)
    inputs = {X: mel, MU: mel, COND: mel, **beside, **states}
    if not walked:
        return Case("CosyVoice2's flow, states in rows", inputs, outputs, TURNED_COPIES)
    kept = tuple(State(one.input, one.output, states[one.input], one.axis) for one in carried_states(TRUE_CONFIG))
    return Case("CosyVoice2's flow, as walk_states goes", inputs, outputs, PLAIN_COPIES, kept)


STEP_OUTPUTS: Shapes = {"audio": (1, 1, SAMPLES_PER_CODE * CODES, 1), "cache_out": CACHE}
FLAT = (prod(CACHE),)

CASES = [
    Case(  # docs/piper.md
        "Piper's decoder, w109",
        {"z": (1, 192, 1, 109), "y_mask": (1, 1, 1, 109)},
        {"audio": (1, 1, 1, 27904)},
        TURNED_COPIES,
    ),
    Case("Qwen3's step", {"hidden": (1, 512, 1, CODES), "cache": CACHE}, STEP_OUTPUTS, TURNED_COPIES),
    Case(  # the reference's, which has no tensor of four axes
        "Qwen3's step, flat",
        {"hidden": (1, 512, CODES), "cache": FLAT},
        {"audio": (1, 1, SAMPLES_PER_CODE * CODES), "cache_out": FLAT},
        PLAIN_COPIES,
    ),
    flow_step(walked=False),
    flow_step(walked=True),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in of librknnrt."""
    return compiled_library(tmp_path_factory.mktemp("librknnrt"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_our_side_of_a_run_is_a_few_copies(
    case: Case, library: Path, tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    npu = FakeNpu(library, tmp_path, tmp_path / "calls.log")
    monkeypatch.setenv("FAKE_RKNN_RECORDINGS", str(tmp_path))
    feed, given = drawn(case.inputs), drawn(case.outputs)
    for name, kept in zero_states(case.states).items():
        kept[...] = feed[name]
        feed[name] = kept
    (tmp_path / "engine.rknn").write_bytes(engine_bytes())
    manifest = written_manifest(
        tmp_path,
        "engine",
        engine={"file": "engine.rknn", "sha256": "0" * 64, "bytes": len(engine_bytes())},
        inputs=told(case.inputs),
        outputs=told(case.outputs),
    )
    npu.record(manifest, [(feed, given)], custom="")
    theirs = times_of_calls(monkeypatch)
    engine = NpuBackend(library, root=tmp_path).open(manifest)
    moved = {**{f"in {name}": array for name, array in feed.items()}, **given}
    copies = {name: array.copy(order="K") for name, array in moved.items()}
    ours, copied = [], []
    for _ in range(ROUNDS):
        theirs.clear()
        whole = ms_of(lambda: engine.run(feed))
        ours.append(whole - sum(theirs))
        copied.append(ms_of(lambda: copy_all(copies, moved)))
    engine.close()
    ms, copy_ms = statistics.median(ours), statistics.median(copied)
    megabytes = sum(array.nbytes for array in moved.values()) / 1e6
    bound = case.copies + CALLS_MS / copy_ms
    table.add(Figure(f"{case.name}, {megabytes:.1f} MB: our side of a run, over a copy", "ms", ms, copy_ms, bound))


def test_a_walk_writes_no_more_than_is_new(table: Table) -> None:
    """Of the states of CosyVoice2's flow a step gives an eighth: 32 frames of 256."""
    shapes, carried = state_shapes(TRUE_CONFIG, HISTORY), carried_states(TRUE_CONFIG)
    states = [State(one.input, one.output, shapes[one.input], one.axis) for one in carried if one.axis is not None]
    given = drawn({one.output: (*one.shape[:-1], FRAMES) for one in states})
    kept = drawn({one.input: one.shape for one in states})
    copies = {name: array.copy() for name, array in kept.items()}
    walk_ms = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for _ in walk_states(lambda _: given, states, [{}] * (HISTORY // FRAMES)):
            pass
        walk_ms.append((time.perf_counter() - begun) * 1e3 * FRAMES / HISTORY)
    step_ms = statistics.median(walk_ms)
    copy_ms = statistics.median(ms_of(lambda: copy_all(copies, kept)) for _ in range(ROUNDS))
    table.add(Figure("CosyVoice2's flow: a step's states written, over a copy of all", "ms", step_ms, copy_ms, 4.0))


def test_steps_do_not_copy_their_cache(tmp_path: Path, table: Table) -> None:
    codes, cache = told({"codes": (1, CODEBOOKS, CODES), "cache": CACHE})
    written_manifest(
        tmp_path,
        "main",
        family="qwen3",
        stage="speech_decoder",
        source={"name": "random", "kind": "random", "sha256": "a" * 64},
        inputs=[{**codes, "dtype": "int64"}, cache],
        outputs=told(STEP_OUTPUTS),
        step={
            "codes": CODES,
            "samples_per_code": SAMPLES_PER_CODE,
            "sample_rate": 24000,
            "context": 0,
            "emitted": CODES,
        },
        cache={"numel": prod(CACHE), "layout": []},
    )
    (tmp_path / "main.rknn").write_bytes(b"RKNN")
    given = drawn(STEP_OUTPUTS)
    decoder = open_qwen3(plan_of(tmp_path, main="main.rknn"), FakeBackend(compute=lambda _: given))
    stream, other = np.zeros((1, CODEBOOKS, CODES * STEPS), np.int64), given["cache_out"].copy()
    beside, copied = [], []
    for _ in range(ROUNDS):
        stopwatch = Stopwatch()
        whole = time.monotonic()
        samples = sum(piece.size for piece in decoder.stream([stream], stopwatch))
        whole = time.monotonic() - whole
        assert samples == STEPS * CODES * SAMPLES_PER_CODE
        beside.append((whole - sum(stage.seconds for stage in stopwatch.stages.values())) * 1e3 / STEPS)
        copied.append(ms_of(lambda: np.copyto(other, given["cache_out"])))
    decoder.close()
    ms, copy_ms = statistics.median(beside), statistics.median(copied)
    table.add(Figure("Qwen3: a step beside its engine, over a copy of the cache", "ms", ms, copy_ms, bound=1.0))


def drawn(shapes: Shapes) -> dict[str, Array]:
    """Numbers for each tensor."""
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}


def told(shapes: Shapes) -> list[dict[str, Any]]:
    """Tensors as a manifest tells of them."""
    return [{"name": name, "shape": list(shape), "dtype": "float32"} for name, shape in shapes.items()]


def copy_all(copies: Mapping[str, Array], arrays: Mapping[str, Array]) -> None:
    """Copy each of `arrays` once."""
    for name, array in arrays.items():
        np.copyto(copies[name], array)


def times_of_calls(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times in ms of all calls of the library from now on."""
    times: list[float] = []
    call = Library.call

    def timed(library: Library, name: str, *arguments: object) -> int:
        begun = time.perf_counter()
        try:
            return call(library, name, *arguments)
        finally:
            times.append((time.perf_counter() - begun) * 1e3)

    monkeypatch.setattr(Library, "call", timed)
    return times
