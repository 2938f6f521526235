"""What CosyVoice3's flow takes and gives at its published depth of 22: an engine of 200 mel frames, then a shorter one.

`make bench` runs it, in ten minutes on a machine that does nothing else; it fails where a bound of issue 8 is not met,
or where docs/cosyvoice3.md shows another cost. All figures are in `build-logs/bench-cosyvoice3.json`.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from cost.aperture import BUDGET_BYTES, MIB
from cost.model import CPU_MS_PER_MB
from rknn_tts.steps import ROOT
from tests.bench.cosyvoice_costs import Cost, Run, lines_of, rows_told, run, told_otherwise, write_figures
from tests.cost.test_aperture import REFERENCE_MIB

LENGTH, SHORTER = 200, 110
"""Mel frames; the issue states its bound for the first."""

MOST_MB = 10_000.0
"""Issue 8: of the largest process at 200 frames."""

LEAST_DB, LEAST_FP32_DB = 40.0, 100.0
"""Issue 8: of the simulator, and of a padded run against the exact one."""

LEAST_COSINE = 0.9999
"""Our own bound (docs/cosyvoice3.md): the reference reports no cosine of this flow."""

CPU_OPERATORS = {"Reshape", "Floor", "Sin"}
MOST_CPU_SHARE = 0.01
"""The time's layers, two numbers each, and at a length that is no multiple of 8 some reshapes of the first head; what
they take at most of the modelled time."""

PAGE = ROOT / "docs" / "cosyvoice3.md"
REPORT = ROOT / "build-logs" / "bench-cosyvoice3.json"


@dataclass(frozen=True)
class Ladder:
    """Two commands over one cache of finished steps: `first` for one length, then `second` for a shorter one too."""

    first: Run
    second: Run

    @property
    def engine(self) -> Cost:
        """Of 200 frames."""
        return self.first.engines[stem(LENGTH)]

    @property
    def shorter(self) -> Cost:
        """Of 110 frames."""
        return self.second.engines[stem(SHORTER)]


def stem(length: int) -> str:
    """Of the engine's files."""
    return f"cosyvoice3-flow-s{length}"


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Ladder:
    folder = tmp_path_factory.mktemp("cosyvoice3")
    first = run("cosyvoice3", folder / "first", folder / "cache", "--lengths", f"{LENGTH}")
    second = run("cosyvoice3", folder / "second", folder / "cache", "--lengths", f"{SHORTER},{LENGTH}")
    return Ladder(first, second)


def test_figures_are_shown(ladder: Ladder, capsys: pytest.CaptureFixture[str]) -> None:
    write_figures(REPORT, vars(ladder))
    with capsys.disabled():
        print("\n".join(["", *lines_of((ladder.first, ladder.second)), f"All figures: {REPORT}"]))  # noqa: T201
    assert ladder.engine.nodes


def test_a_conversion_of_depth_22_fits_in_ten_gigabytes(ladder: Ladder) -> None:
    assert ladder.engine.build["peak_memory"] < MOST_MB
    assert ladder.first.measured.process_peak_mb < MOST_MB


def test_a_command_goes_on_at_the_next_length(ladder: Ladder) -> None:
    assert ladder.first.built == {stem(LENGTH)}
    assert ladder.second.built == {stem(SHORTER)}
    assert ladder.second.engines.keys() == {stem(LENGTH), stem(SHORTER)}


@pytest.mark.parametrize("length", [LENGTH, SHORTER])
def test_an_engine_computes_right_on_the_npu(ladder: Ladder, length: int) -> None:
    cost = ladder.second.engines[stem(length)]
    assert cost.regtask == 0
    assert cost.cpu.keys() <= CPU_OPERATORS
    assert cost.cpu_rw_mb * CPU_MS_PER_MB / cost.modelled_ms <= MOST_CPU_SHARE, cost.cpu
    assert cost.gates["simulator"] >= LEAST_DB
    assert cost.gates["quality.mel_cosine"] >= LEAST_COSINE
    padded = {name: db for name, db in cost.gates.items() if name.startswith("fp32.padded_")}
    assert padded.keys() == {f"fp32.padded_n{frames}" for frames in (1, length - 1, length)}
    assert min(padded.values()) >= LEAST_FP32_DB


@pytest.mark.parametrize("length", [LENGTH, SHORTER])
def test_an_engine_takes_less_of_the_address_space_than_the_reference_s(ladder: Ladder, length: int) -> None:
    cost = ladder.second.engines[stem(length)]
    assert cost.context_mib / REFERENCE_MIB[f"s{length}"] < 1
    assert cost.mapping_mib < cost.context_mib


def test_both_lengths_fit_into_one_process(ladder: Ladder) -> None:
    assert ladder.engine.context_mib + ladder.shorter.context_mib < BUDGET_BYTES / MIB


def test_the_page_shows_what_an_engine_costs(ladder: Ladder) -> None:
    rows = {int(name.split()[0]): row for name, row in rows_told(PAGE).items()}
    wrong = {
        length: told_otherwise(ladder.second.engines[stem(length)], rows[length])
        for length in (LENGTH, SHORTER)
        if length in rows
    }
    assert not any(wrong.values()), wrong
    assert LENGTH in wrong
