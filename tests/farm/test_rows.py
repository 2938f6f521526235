from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.errors import UserInput
from farm.jobs import Kind
from farm.rows import SEED, Row, Table, merged, read_table, size_class, write_table

ROW = Row(
    kind=Kind.COMPILE,
    family="piper",
    stage="decoder",
    width="window-109",
    target="rk3588",
    toolkit="2.3.2",
    checkpoint_bytes=63_201_294,
    times=1,
    peak_bytes=1_000,
    wall_s=10.0,
    largest_wall_s=10.0,
    cpu_s=8.0,
    largest_cpu_s=8.0,
    disk_bytes=500,
    cache_bytes=400,
)
EXPORT = replace(ROW, kind=Kind.EXPORT, target=None, checkpoint_bytes=0)


def test_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    table = Table((ROW, EXPORT), learnt_until_s=1_790_000_000.25)
    write_table(table, tmp_path / "farm" / "measured.json")  # the folder is made
    assert read_table(tmp_path / "farm" / "measured.json") == table
    assert [path.name for path in (tmp_path / "farm").iterdir()] == ["measured.json"]


def test_table_is_empty_where_no_file_is(tmp_path: Path) -> None:
    assert read_table(tmp_path / "measured.json", tmp_path / "none.json") == Table()


def test_later_file_wins_where_both_have_the_row(tmp_path: Path) -> None:
    write_table(Table((ROW, EXPORT), 5.0), tmp_path / "seed.json")
    write_table(Table((replace(ROW, peak_bytes=7, checkpoint_bytes=63_511_038),), 3.0), tmp_path / "own.json")
    table = read_table(tmp_path / "seed.json", tmp_path / "own.json")
    assert {(row.kind, row.peak_bytes) for row in table.rows} == {(Kind.COMPILE, 7), (Kind.EXPORT, 1_000)}
    assert table.learnt_until_s == 5.0


def test_room_in_the_cache_stays_known_where_the_later_file_has_not_looked(tmp_path: Path) -> None:
    write_table(Table((ROW, EXPORT)), tmp_path / "seed.json")
    later = replace(ROW, peak_bytes=7, cache_bytes=0), replace(EXPORT, cache_bytes=9)
    write_table(Table(later), tmp_path / "own.json")
    table = read_table(tmp_path / "seed.json", tmp_path / "own.json")
    assert {(row.kind, row.cache_bytes) for row in table.rows} == {(Kind.COMPILE, 400), (Kind.EXPORT, 9)}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is no table"),
        ("[]", "its schema is not rknn-tts/farm-measured/1"),
        ('{"schema": "rknn-tts/farm/1"}', "its schema is not rknn-tts/farm-measured/1"),
        ('{"schema": "rknn-tts/farm-measured/1", "rows": [{}]}', "'kind' is missing"),
    ],
)
def test_damaged_table_is_refused_in_a_sentence(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "measured.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserInput) as caught:
        read_table(path)
    assert str(caught.value).startswith(f"{path}: is no table of what jobs took (")
    assert why in str(caught.value)
    assert "remove it" in str(caught.value)


def test_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match="cannot be read"):
        read_table(tmp_path)


def test_voices_of_one_quality_are_one_size() -> None:
    # Sizes of released voices: joe, lessac and amy (medium), libritts (high), amy (x_low: 20,628,813).
    medium = [63_201_294, 63_201_294 + 300_000, 63_104_526]
    assert len({size_class(size) for size in medium}) == 1
    assert len({size_class(size) for size in (20_628_813, 63_201_294, 113_895_201)}) == 3
    assert size_class(0) is None


@pytest.mark.parametrize("size", [1, 1_000, 63_201_294, 1 << 26, (1 << 26) + 1, 5_000_000_000])
def test_sizes_of_one_row_differ_by_less_than_the_margin(size: int) -> None:
    assert size_class(size) != size_class(size * 6 // 5 + 1)


def test_rows_are_merged_into_largest_and_mean() -> None:
    second = replace(
        ROW,
        checkpoint_bytes=63_104_526,
        times=3,
        peak_bytes=900,
        wall_s=20.0,
        largest_wall_s=30.0,
        cpu_s=16.0,
        largest_cpu_s=17.0,
        disk_bytes=600,
        cache_bytes=0,
        least_bytes=950,
    )
    assert merged(ROW, second) == replace(
        ROW,
        checkpoint_bytes=63_104_526,
        times=4,
        peak_bytes=1_000,
        wall_s=17.5,  # (10 + 3 * 20) / 4
        largest_wall_s=30.0,
        cpu_s=14.0,  # (8 + 3 * 16) / 4
        largest_cpu_s=17.0,
        disk_bytes=600,
        cache_bytes=400,
        least_bytes=950,
    )


def test_rows_that_measured_nothing_merge() -> None:
    died = replace(EXPORT, times=0, wall_s=0.0, least_bytes=5)
    assert (merged(died, died).times, merged(died, died).wall_s) == (0, 0.0)
    assert merged(died, ROW).wall_s == ROW.wall_s


def test_repository_has_rows_that_can_be_read() -> None:
    table = read_table(SEED)
    assert json.loads(SEED.read_text(encoding="utf-8"))["schema"] == table.schema
    assert len({row.key for row in table.rows}) == len(table.rows)
    measured = {(row.kind, row.family, row.stage) for row in table.rows}
    assert {(kind, "piper", "decoder") for kind in (Kind.EXPORT, Kind.COMPILE, Kind.PAGE)} <= measured
