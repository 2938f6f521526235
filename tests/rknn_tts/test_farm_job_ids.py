"""What the ids of jobs hold: all that decides a result, and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from converters.stages import PackagedCheckpoint, Stage
from engine.environment import CONVERTER_PYTHON
from environments.locks import read_lock
from farm.jobs import Kind
from farm.matrix import Matrix
from rknn_tts import farm_jobs
from rknn_tts.farm_rows import RowStage, rows_of
from rknn_tts.steps import ROOT
from tests.rknn_tts.farm_matrices import PIPER, of_kind, planned, touch


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    touch(tmp_path, "voices/a.onnx", "voices/b.onnx")
    return tmp_path


def ids(folder: Path, *rows: str, top: str = 'targets = ["rk3588", "rk3566"]') -> set[str]:
    return {job.id for job in planned(folder, *rows, top=top).jobs}


def test_ids_do_not_tell_where_anything_stands(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "x"
    shutil.copytree(folder, elsewhere)
    other = f"{PIPER.replace('voices', 'voices/.')}"
    assert ids(folder, PIPER) == ids(elsewhere, other, top='targets = ["rk3588", "rk3566"]\noutput = "/far/away"')


CHANGES: dict[str, Callable[[Path, pytest.MonkeyPatch], object]] = {
    "the checkpoint": lambda folder, patch: (folder / "voices/a.onnx").write_text("other"),
    "its JSON": lambda folder, patch: (folder / "voices/a.onnx.json").write_text("{}"),
    "its name": lambda folder, patch: (folder / "voices/a.onnx").rename(folder / "voices/c.onnx"),
    "our code": lambda folder, patch: patch.setattr(farm_jobs, "_code", lambda rooms: "other"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_ids_are_others_when_what_decides_the_result_changes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    (folder / "voices/b.onnx").unlink()
    before = ids(folder, PIPER)
    CHANGES[change](folder, monkeypatch)
    assert ids(folder, PIPER).isdisjoint(before)


KOKORO = 'family = "kokoro"\ncheckpoints = ["package"]'


def with_package(name: str, digest: str) -> Callable[[Matrix], tuple[RowStage, ...]]:
    """`rows_of` whose stages have a package, as `name` of a stage calls it, of this digest."""

    def rows(wanted: Matrix) -> tuple[RowStage, ...]:
        return tuple(replace(row, stage=_with_package(row.stage, name, digest)) for row in rows_of(wanted))

    return rows


def _with_package(stage: Stage, name: str, digest: str) -> Stage:
    package = getattr(stage, name)
    assert isinstance(package, PackagedCheckpoint)
    more: dict[str, Any] = {name: replace(package, sha256=digest)}
    return replace(stage, **more)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("rows_of", (with_package("material", "1"), with_package("material", "2"))),
        ("rows_of", (with_package("default_checkpoint", "1"), with_package("default_checkpoint", "2"))),
        ("pinned_text", (lambda extras: f"{sorted(extras)} 1", lambda extras: f"{sorted(extras)} 2")),
    ],
)
def test_ids_hold_what_packages_carry_and_what_opens_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, values: tuple[object, object]
) -> None:
    seen = []
    for value in values:
        monkeypatch.setattr(farm_jobs, name, value)
        seen.append(ids(folder, KOKORO))
    assert seen[0].isdisjoint(seen[1])


def test_ids_hold_what_a_file_of_the_geometry_holds_and_not_where_it_stands(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    row = f'{KOKORO}\nwidths = [{{config = "c.json"}}]'
    for place in (folder, elsewhere):
        touch(place, "c.json")
    assert ids(folder, row) == ids(elsewhere, row)
    (elsewhere / "c.json").write_text("other")
    assert ids(folder, row).isdisjoint(ids(elsewhere, row))


def test_ids_hold_owner_and_revision_of_a_place_on_a_hub(folder: Path) -> None:
    rows = [f'family = "qwen3"\ncheckpoints = ["hf://{place}"]' for place in ("o/voice@1", "o/voice@2", "p/voice@1")]
    found = [ids(folder, row) for row in rows]
    assert len(set[str]().union(*found)) == sum(map(len, found))
    assert ids(folder, rows[0]) == found[0]


def test_ids_hold_the_ending_of_a_checkpoint(folder: Path) -> None:
    row = PIPER.replace("*.onnx", "a.*")
    before = ids(folder, row)
    (folder / "voices/a.onnx").rename(folder / "voices/a.pt")
    assert ids(folder, row).isdisjoint(before)


def test_pages_are_drawn_again_when_their_theme_is_another_and_engines_stay(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = planned(folder, PIPER)
    code = farm_jobs._code
    monkeypatch.setattr(farm_jobs, "_code", lambda rooms: "other" if "pages" in rooms else code(rooms))
    after = planned(folder, PIPER)
    for kind in Kind:
        found = [{job.id for job in of_kind(plan, kind)} for plan in (before, after)]
        assert found[0].isdisjoint(found[1]) if kind is Kind.PAGE else found[0] == found[1]


def test_ids_are_others_when_the_geometry_does_and_the_same_in_other_order(folder: Path) -> None:
    widths = [ids(folder, f"{PIPER}\nwidths = [{width}]") for width in ("{}", "{window = 109}", "{window = 110}")]
    assert not widths[0] & widths[1] and not widths[1] & widths[2]  # noqa: PT018 - one claim
    assert ids(folder, f"{PIPER}\nwidths = [{{window = 110}}, {{}}]") >= widths[0] - {
        job.id for job in of_kind(planned(folder, PIPER), Kind.TWICE)
    }


def test_an_export_outlives_another_toolkit_and_an_engine_does_not(folder: Path) -> None:
    first, second = (planned(folder, PIPER, top=f'targets = ["rk3588"]\ntoolkit = "{v}"') for v in ("2.3.2", "2.5.0"))
    for kind, same in ((Kind.EXPORT, True), (Kind.COMPILE, False), (Kind.PAGE, False)):
        found = [{job.id for job in of_kind(plan, kind)} for plan in (first, second)]
        assert (found[0] == found[1]) is same


def test_ids_hold_the_lock_of_the_toolkit_and_an_environment_of_ones_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = of_kind(planned(folder, PIPER), Kind.COMPILE)
    with monkeypatch.context() as patch:
        patch.setattr(farm_jobs, "read_lock", lambda root, name: read_lock(root, name)._replace(digest="other"))
        changed = of_kind(planned(folder, PIPER), Kind.COMPILE)
    monkeypatch.setenv(CONVERTER_PYTHON, "/mine/bin/python")
    for other in (changed, of_kind(planned(folder, PIPER), Kind.COMPILE)):
        assert {job.id for job in before}.isdisjoint(job.id for job in other)


@pytest.mark.parametrize("name", ["LD_LIBRARY_PATH", "RKNN_TTS_TORCH"])
def test_ids_of_engines_hold_the_variables_that_the_toolkit_sees(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv(name, raising=False)
    before = planned(folder, PIPER)
    monkeypatch.setenv(name, "other")
    after = planned(folder, PIPER)
    assert [job.id for job in of_kind(before, Kind.EXPORT)] == [job.id for job in of_kind(after, Kind.EXPORT)]
    assert {job.id for job in of_kind(before, Kind.COMPILE)}.isdisjoint(job.id for job in after.jobs)


def test_ids_hold_what_our_code_reads_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(farm_jobs, "ROOT", tmp_path)
    monkeypatch.setattr(farm_jobs, "code_digest", " ".join)
    touch(tmp_path, "room/deep/weighed.json", "room/page.html.j2", "room/style.css", "other/x.json")

    def code(*rooms: str) -> str:
        digest = farm_jobs._code.__wrapped__(rooms)
        assert isinstance(digest, str)
        return digest

    seen = {code("room"), code("other")}
    for name in ("deep/weighed.json", "page.html.j2", "style.css"):
        (tmp_path / "room" / name).write_text("edited")
        seen.add(code("room"))
    assert len(seen) == 2 + 3
    (tmp_path / "other/x.json").write_text("edited")
    touch(tmp_path, "room/.cache/x.json", "room/notes.md")
    assert code("room") in seen


def test_every_file_that_our_code_may_read_is_held_by_the_ids() -> None:
    plain = {".py", ".pyc", ".md", ".toml", ".typed"}  # code has its own digest; the rest is of the runtime's package
    rooms = [ROOT / room for room in farm_jobs._PAGE_ROOMS]
    data = {path for room in rooms for path in room.rglob("*") if path.is_file() and path.suffix not in plain}
    assert {path for path in data if not farm_jobs._is_hidden(path)} == set(
        farm_jobs._data_files(farm_jobs._PAGE_ROOMS)
    )
