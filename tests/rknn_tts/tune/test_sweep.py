"""A sweep that builds, by a stand-in: each window's cost and gates, what fails, and what is found again."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import pytest

from rknn_tts.request import Request
from rknn_tts.tune.rows import Row
from rknn_tts.tune.tuning import Tuning, tune
from rknn_tts.tune.utterance_lengths import SCHEMA
from tests.rknn_tts.stand_in_stage import CHECKPOINT
from tests.rknn_tts.tune.windowed_stage import LEAVES_NOTHING, RUN_MS, tuning_workshop, windowed
from tests.rknn_tts.workshop import Heard, Workshop

LENGTHS = {"schema": SCHEMA, "name": "two kinds", "source": "invented", "lengths": [[1.5, 1], [7, 1]]}
"""3 and 14 frames, at 2 a second."""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with pytest.MonkeyPatch.context() as patch:
        made = tuning_workshop(tmp_path_factory, patch, windowed())
        (made.folder / "lengths.json").write_text(json.dumps(LENGTHS), encoding="utf-8")
        yield made


def tuned(workshop: Workshop, windows: str, said: Heard | None = None) -> Tuning:
    request = Request("tune", family="twin", checkpoint=CHECKPOINT, utterances="lengths.json", windows=windows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RKNN_TTS_CACHE", str(workshop.cache))
        return tune(request, said or Heard())


@pytest.fixture(scope="module")
def swept(workshop: Workshop) -> Tuning:
    """4 trimmed is refused, 4 and 8 masked are built, and 12, which would beat 8, fails in the simulator."""
    return tuned(workshop, "4t,4m,8m,12m")


def row(tuning: Tuning, name: str) -> Row:
    return next(one for one in tuning.rows if one.name == name)


def test_sweep_tells_cost_and_gates_of_a_window_when_it_is_built(swept: Tuning) -> None:
    assert [one.name for one in swept.rows] == ["4m", "4t", "8m", "12m"]
    best = row(swept, "8m")
    assert (best.status, best.reason) == ("passed", "")
    assert best.run_ms == pytest.approx(RUN_MS)
    assert best.ms_per_s == pytest.approx(RUN_MS / 3)  # 6 of 8 frames, at 2 a second
    assert best.simulator_db == pytest.approx(20 * math.log10(2 / 0.001), abs=0.1)
    assert best.memory is not None
    assert (best.memory.internal_kb, best.memory.weight_kb) == (12212.5, 17129.8)
    # Its tensors and weights in pages of 4096 bytes, and a page for each of its two tensors (test_sets.py).
    assert best.aperture_bytes == (3054 + 4283 + 2) * 4096
    assert best.engine_bytes is not None


def test_window_that_fails_a_gate_is_a_row_with_its_figure(swept: Tuning) -> None:
    failed = row(swept, "12m")
    assert (failed.status, failed.reason) == ("failed", "simulator: 12.04 dB, and 40 is the bound")
    assert failed.run_ms == pytest.approx(RUN_MS)


def test_window_that_the_stage_refuses_is_a_row_with_the_reason(swept: Tuning) -> None:
    assert (row(swept, "4t").status, row(swept, "4t").reason) == ("failed", LEAVES_NOTHING)
    assert row(swept, "4t").layers is None


def test_window_that_another_beats_is_not_proven(swept: Tuning) -> None:
    assert (row(swept, "4m").status, row(swept, "4m").reason) == ("beaten", "8m beats it")
    assert row(swept, "4m").simulator_db is None
    assert any(note.startswith("1 of 4 windows are beaten by another one") for note in swept.notes)
    assert swept.notes[0] == "a note"


def test_sweep_writes_no_engine(workshop: Workshop, swept: Tuning) -> None:
    assert not any(name.startswith("engines/") and not name.endswith("/") for name in workshop.files())
    assert f"build-logs/{CHECKPOINT.removesuffix('.json')}-twin-net-w8-m1-rk3588.log" in workshop.files()


def test_sweep_is_found_again_when_it_is_repeated(workshop: Workshop, swept: Tuning) -> None:
    said = Heard()
    again = tuned(workshop, "8m,4m", said)
    assert row(again, "8m") == row(swept, "8m")
    assert all(step.startswith("building for rk3588 for its cost: ") for step in said.steps)
