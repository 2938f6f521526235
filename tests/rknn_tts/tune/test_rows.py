"""Figures of a row, by hand."""

from __future__ import annotations

from dataclasses import replace

from rknn_tts_runtime.window_cover import Rung

from contracts.contract import CodeStep, Contract, Source, TensorSpec, Trim, Window
from contracts.manifest import CpuLayer, Layers, Memory
from rknn_tts.tune.rows import COSTED, Row, Size, size_of

BARE = Row("10t", "10t", "trimmed", None, "", False, COSTED)
KNOWN = replace(
    BARE,
    size=Size("frame", 10, 4, 3, 3, 6, 0.25, 16.0),
    layers=Layers(5, 1_000_000, 500.0, 2.0, (CpuLayer("Slice", "a", 1.0),), None),
    memory=Memory(3000.0, 1500.0),
)
CONTRACT = Contract(
    "twin",
    "net",
    Source("mini.json", "0" * 64, "checkpoint"),
    (TensorSpec("z", (1, 2, 10)), TensorSpec("place", (1, 3, 1, 1))),
    (TensorSpec("audio", (1, 24)),),
    window=Window(10, 4, 3, 3, 4, 64),
    trim=Trim("place", 6),
)


def test_row_tells_ms_of_a_second_when_its_size_and_cost_are_known() -> None:
    assert KNOWN.ms_per_s == 8.0  # 2 ms for 0.25 s
    assert KNOWN.run_ms == 2.0
    assert KNOWN.rung == Rung(10, 3, 3, 6, False, 2.0)


def test_row_tells_memory_by_its_estimate_when_it_was_built_whole() -> None:
    assert KNOWN.memory_mb == 4.5
    assert replace(KNOWN, aperture_bytes=7_000_000).memory_mb == 7.0


def test_row_tells_nothing_when_there_is_no_engine() -> None:
    assert (BARE.ms_per_s, BARE.run_ms, BARE.memory_mb, BARE.rung) == (None, None, None, None)
    assert replace(KNOWN, size=replace(KNOWN.size, audio_s=None)).ms_per_s is None  # type: ignore[type-var]


def test_row_is_weighed_by_cost_memory_size_and_what_it_takes() -> None:
    assert KNOWN.figures == (8.0, 2.0, 3000.0, None, 1, 1.0)
    assert replace(KNOWN, takes_short=True, engine_bytes=9).figures == (8.0, 2.0, 3000.0, 9, 1, 0.0)


def test_size_is_that_of_the_window_when_the_contract_states_one() -> None:
    # A frame of 4 samples at 64 a second: 16 frames a second, and 4 of them emitted.
    assert size_of(CONTRACT) == Size("frame", 10, 4, 3, 3, 6, 0.25, 16.0)
    assert size_of(replace(CONTRACT, trim=None)) == Size("frame", 10, 4, 3, 3, None, 0.25, 16.0)
    silent = replace(CONTRACT, window=replace(CONTRACT.window, sample_rate=None))  # type: ignore[type-var]
    assert size_of(silent) == Size("frame", 10, 4, 3, 3, 6, None, None)


def test_size_is_that_of_the_step_when_the_contract_states_one() -> None:
    step = CodeStep(12, 5, 100, None, None, 2, 10)
    found = size_of(replace(CONTRACT, window=None, trim=None, step=step))
    assert found == Size("code", 12, 10, 2, 0, None, 0.5, 20.0)


def test_size_is_none_when_the_contract_states_neither() -> None:
    assert size_of(replace(CONTRACT, window=None, trim=None)) is None
