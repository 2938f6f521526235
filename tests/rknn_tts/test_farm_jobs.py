"""The jobs of a matrix: which there are, and their commands (what their ids hold: test_farm_job_ids.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts.errors import UserInput
from farm.jobs import Kind
from rknn_tts.farm_jobs import plan_of
from rknn_tts.known_files import KnownFiles
from tests.rknn_tts.farm_matrices import PIPER, matrix, of_kind, planned, touch


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    touch(tmp_path, "voices/a.onnx", "voices/b.onnx")
    return tmp_path


def test_each_step_is_a_job_and_needs_stand_first(folder: Path) -> None:
    jobs = planned(folder, PIPER).jobs
    kinds = [job.kind for job in jobs]
    assert {kind: kinds.count(kind) for kind in Kind} == {
        Kind.EXPORT: 2,
        Kind.COMPILE: 4,
        Kind.PAGE: 4,
        Kind.TWICE: 1,
    }
    for number, job in enumerate(jobs):
        earlier = {one.id: one for one in jobs[:number]}
        assert set(job.needs) <= earlier.keys()
        needed = {earlier[need].kind for need in job.needs}
        wanted = {Kind.EXPORT: set(), Kind.COMPILE: {Kind.EXPORT}}
        assert needed == wanted.get(job.kind, {Kind.COMPILE})
        assert all(earlier[need].voice == job.voice for need in job.needs)


def test_each_command_is_the_one_that_a_person_would_run(folder: Path) -> None:
    plan = planned(folder, f"{PIPER}\nwidths = [{{window = 109, decoder_mask = true}}]")
    told = {
        (job.kind, job.voice, job.target): (job.folder, job.commands) for job in plan.jobs if job.kind is not Kind.TWICE
    }
    width = "window-109-decoder-mask"
    export = ("export", "piper", "--stage=decoder", f"--checkpoint={folder}/voices/a.onnx", "--window=109")
    assert told[Kind.EXPORT, "a", None] == (
        f"onnx/a/{width}",
        ((*export, "--decoder-mask", "--output=./", "--json"),),
    )
    assert told[Kind.COMPILE, "a", "rk3566"] == (
        f"rk3566/a/{width}",
        (("compile", "@exports", "--target=rk3566", "--toolkit=2.3.2", "--output=./", "--json"),),
    )
    assert told[Kind.PAGE, "b", "rk3588"] == (
        f"rk3588/b/{width}",
        (("report", "@engines", "--no-sample", "--output=piper-decoder.html", "--json"),),
    )


def test_what_is_made_twice_starts_from_the_checkpoint_in_a_folder_of_its_own(folder: Path) -> None:
    plan = planned(folder, PIPER, top='targets = ["rk3588"]\ntwice = 1.0')
    twice = of_kind(plan, Kind.TWICE)
    assert [job.needs for job in twice] == [(job.id,) for job in of_kind(plan, Kind.COMPILE)]
    job = next(job for job in twice if job.voice == "a")
    assert job.folder == f".farm/twice/{job.id}"
    assert job.commands == (
        ("export", "piper", "--stage=decoder", f"--checkpoint={folder}/voices/a.onnx", "--output=onnx/", "--json"),
        ("compile", "@exports", "--target=rk3588", "--toolkit=2.3.2", "--output=./", "--json"),
    )


@pytest.mark.parametrize(("share", "count"), [("0", 0), ("0.01", 1), ("0.5", 2), ("0.51", 3), ("1", 4)])
def test_as_many_are_made_twice_as_the_share_says_and_the_same_ones_each_time(
    folder: Path, share: str, count: int
) -> None:
    top = f'targets = ["rk3588", "rk3566"]\ntwice = {share}'
    twice = [job.id for job in of_kind(planned(folder, PIPER, top=top), Kind.TWICE)]
    assert len(twice) == count
    assert twice == [job.id for job in of_kind(planned(folder, PIPER, top=top), Kind.TWICE)]


def test_there_are_no_pages_when_the_matrix_wants_none(folder: Path) -> None:
    assert of_kind(planned(folder, PIPER, top='targets = ["rk3588"]\npages = false'), Kind.PAGE) == []


def test_each_target_has_its_own_export_when_the_cuts_are_its_own(folder: Path) -> None:
    plan = planned(folder, PIPER, top='targets = "all"\ncuts = "own"')
    exports = {job.id: job for job in of_kind(plan, Kind.EXPORT)}
    assert len(exports) == 2 * 5
    assert all(f"--target={job.target}" in job.commands[0] for job in exports.values())
    assert all(job.folder == f"onnx/{job.target}/{job.voice}" for job in exports.values())
    assert all(exports[job.needs[0]].target == job.target for job in of_kind(plan, Kind.COMPILE))


def test_steps_are_done_again_when_that_is_asked_for_and_ids_stay(folder: Path) -> None:
    wanted = matrix(folder, PIPER)
    plain, forced = plan_of(wanted, KnownFiles()).plan, plan_of(wanted, KnownFiles(), force=True).plan
    assert [job.id for job in plain.jobs] == [job.id for job in forced.jobs]
    for job in forced.jobs:  # what is made twice finds nothing anyway
        assert all(("--force" in words) is (job.kind is not Kind.TWICE) for words in job.commands)


def test_rows_that_overlap_make_each_job_once(folder: Path) -> None:
    once = planned(folder, PIPER, top='targets = ["rk3588", "rk3566"]\ntwice = 0')
    rows = (f'{PIPER}\ntargets = ["rk3588"]', f'{PIPER}\ntargets = ["rk3566", "rk3588"]')
    again = planned(folder, *rows, top="twice = 0")
    assert {job.id for job in again.jobs} == {job.id for job in once.jobs}
    assert len(again.jobs) == len(once.jobs)


def test_two_checkpoints_of_one_name_are_refused_when_they_would_go_to_one_place(folder: Path) -> None:
    touch(folder, "more/a.onnx")
    rows = (PIPER, 'family = "piper"\ncheckpoints = ["more/a.onnx"]')
    with pytest.raises(UserInput) as refused:
        planned(folder, *rows)
    assert str(refused.value) == (
        f"{folder}/m.toml: [[voices]] 2 (line 5): {folder}/voices/a.onnx and {folder}/more/a.onnx would both go to a "
        "folder a; rename one, or build them by two matrices with an output each."
    )


def test_two_checkpoints_of_one_name_are_planned_when_they_are_of_two_stages(folder: Path) -> None:
    touch(folder, "more/a.onnx")
    second = 'family = "piper"\nstages = "duration_encoder"\ncheckpoints = ["more/a.onnx"]'
    assert len(of_kind(planned(folder, PIPER, second), Kind.EXPORT)) == 3


def test_two_geometries_of_one_name_are_refused_when_they_are_of_two_rows(folder: Path) -> None:
    rows = [f'{PIPER}\nwidths = [{{windows = "{windows}"}}]' for windows in ("112m,128t", "112m, 128t")]
    with pytest.raises(UserInput, match=r"would both go to a folder a/windows-112m,128t; leave one out|--windows"):
        planned(folder, rows[0], rows[1].replace("112m, 128t", "112m,128t "))


def test_voices_say_their_language_and_the_row_where_they_do_not(folder: Path) -> None:
    told = {"language": {"code": "en_GB"}, "espeak": {"voice": "en-gb-x-rp"}}
    (folder / "voices/a.onnx.json").write_text(json.dumps(told))
    jobs = planned(folder, f'{PIPER}\nlanguage = "de"').jobs
    assert {(job.voice, job.language) for job in jobs} == {("a", "en-GB"), ("b", "de")}
    assert {job.language for job in planned(folder, PIPER).jobs} == {"en-GB", None}


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ('{"espeak": {"voice": "en-us"}}', "en-us"),
        ('{"language": {"code": "<b>"}, "espeak": {"voice": "fr"}}', "fr"),
        ('{"language": "en"}', None),
        ("no JSON", None),
        ("[" * 100_000, None),
        (" " * 2_000_000 + "{}", None),
    ],
)
def test_language_is_read_with_care(folder: Path, text: str, language: str | None) -> None:
    (folder / "voices/b.onnx").unlink()
    (folder / "voices/a.onnx.json").write_text(text)
    assert {job.language for job in planned(folder, PIPER).jobs} == {language}


def test_every_stage_of_a_family_is_planned_when_all_are_wanted(folder: Path) -> None:
    jobs = of_kind(planned(folder, f'{PIPER}\nstages = "all"'), Kind.COMPILE)
    assert {(job.stage, job.folder) for job in jobs if job.target == "rk3588" and job.voice == "a"} == {
        ("decoder", "rk3588/a"),
        ("duration_encoder", "rk3588/a"),
    }


def test_jobs_say_how_large_their_checkpoint_is(folder: Path) -> None:
    (folder / "voices/a.onnx.json").write_text("{}")
    sizes = {job.voice: job.checkpoint_bytes for job in planned(folder, PIPER).jobs}
    assert sizes == {"a": len("voices/a.onnx{}"), "b": len("voices/b.onnx")}
