"""What our default engines cost beside the reference's graphs and windows, all built here: the table of issue 10.

Ours is made by `rknn-tts engine`, with all its gates, as a user runs it; of a ladder of windows the one counts that
serves five seconds, by the board's own walk. Figures are per emitted frame or code. The simulator's dB are of the same
five seconds on both sides where a stage is walked in windows. `make bench` runs it; all figures are in
`build-logs/bench-reach.json`, and docs/cost.md shows them. It fails where a bound is not met.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cache import CACHE_FOLDER
from rknn_tts.steps import CHECKPOINTS_FOLDER, ROOT
from tests.bench import reach_kokoro, reach_qwen3
from tests.bench.reach_figures import Row, lines_of, read_stages, write_rows
from tests.bench.reach_vits import Voice, five_seconds, ours, reference

REPORT = ROOT / "build-logs" / "bench-reach.json"
PAGE = ROOT / "docs" / "cost.md"

PIPER = Voice("piper", None, 93, 24)
INFLECT = Voice("inflect", "random", 256, 32)

PUBLIC_KCYCLES, PUBLIC_KB = 88.5, 799.0
"""A frame of Piper in a public pipeline that ignores seams: windows of 256, no context, 8.8 dB over a whole utterance
(issue 10)."""

SAME_WALK = "the mean of six utterances of five seconds by windows, against the whole decode"


@pytest.fixture(scope="module")
def folder(
    tmp_path_factory: pytest.TempPathFactory, fetched_voice: Path, fetched_kokoro: Path, fetched_kokoro_voices: Path
) -> Path:
    """Where all is built, with a cache that has the default checkpoints."""
    made = tmp_path_factory.mktemp("reach")
    checkpoints = made / "cache" / CHECKPOINTS_FOLDER
    checkpoints.mkdir(parents=True)
    for fetched in (fetched_voice, fetched_kokoro, fetched_kokoro_voices):
        (checkpoints / fetched.name).symlink_to(fetched)
    return made


@pytest.fixture
def in_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_FOLDER, str(folder / "cache"))


@pytest.mark.usefixtures("in_cache")
def test_piper_decoder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = five_seconds(PIPER)
    mine = ours(said, folder / "piper", "piper")
    row = Row(
        "Piper decoder", "frame", mine, reference(PIPER, said, folder / "piper-theirs"),
        {"mcycles": 0.43, "rw_mb": 0.50, "modelled_ms": 0.48}, 0, SAME_WALK,
    )  # fmt: skip
    cheaper = row.ours.per_unit("mcycles") * 1e3 < PUBLIC_KCYCLES
    public = f"  public pipeline that ignores seams: {PUBLIC_KCYCLES:g} kcycles and {PUBLIC_KB:g} KB a frame"
    shown([row], capsys, public)
    assert cheaper, public
    assert row.faults == []


@pytest.mark.usefixtures("in_cache")
def test_inflect_decoder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = five_seconds(INFLECT)
    mine = ours(said, folder / "inflect", "inflect", "--checkpoint", "random")
    row = Row(
        "Inflect decoder", "frame", mine, reference(INFLECT, said, folder / "inflect-theirs"),
        {"mcycles": 0.70, "rw_mb": 0.85, "modelled_ms": 0.75}, 0, SAME_WALK,
    )  # fmt: skip
    shown([row], capsys)
    assert row.faults == []


@pytest.mark.usefixtures("in_cache")
def test_kokoro_generator(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = Row(
        "Kokoro generator, full", "frame",
        reach_kokoro.ours(folder / "kokoro"), reach_kokoro.reference(folder / "kokoro-theirs"),
        {"mcycles": 0.85, "rw_mb": 0.80, "modelled_ms": 0.45}, 5, "one window, against the original generator",
    )  # fmt: skip
    shown([row], capsys)
    assert row.faults == []


@pytest.mark.usefixtures("in_cache")
def test_qwen3_step(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = Row(
        "Qwen3 step", "code", reach_qwen3.ours(folder / "qwen3"), reach_qwen3.reference(folder / "qwen3-theirs"),
        reach_qwen3.BOUNDS, 10, "audio of the step of 16 codes, against the whole decode", reach_qwen3.WHY_MISSED,
    )  # fmt: skip
    shown([row], capsys)
    assert row.faults == []


def test_page_shows_the_table() -> None:
    """As the runs above left it, and what was built before where only some of them ran."""
    page = PAGE.read_text(encoding="utf-8")
    missing = [stage["page"] for stage in read_stages(REPORT).values() if stage["page"] not in page]
    assert missing == [], "\n".join(missing)


def shown(rows: list[Row], capsys: pytest.CaptureFixture[str], *notes: str) -> None:
    """Print and keep `rows`."""
    write_rows(REPORT, rows)
    with capsys.disabled():
        lines = [line for row in rows for line in lines_of(row)]
        print("\n".join(["", *lines, *notes, f"All figures: {REPORT}"]))  # noqa: T201
