"""The examples of CI: their jobs are run as the services run them, each on a machine of its own, on a small voice."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from engine.environment import converter_python
from tests.docs.ci_machine import CONVERTER, Machine
from tests.docs.github_jobs import SUMMARY, Github, JobRun, read_workflow
from tests.docs.gitlab_jobs import Gitlab, read_pipeline
from tests.docs.pages import ROOT
from tests.logs.build_logs import NEW_FIELD, WIDE_ADDRESS
from tests.vits_writer.voice import write_voice

GITHUB, GITLAB = ROOT / "examples/ci/github.yml", ROOT / "examples/ci/gitlab.yml"
SUMS = "MANIFEST.sha256"
TARGET = "rk3588"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's repository: a voice where the examples have it."""
    folder = tmp_path_factory.mktemp("repository")
    voice = folder / read_workflow(GITHUB)["env"]["VOICE"]
    voice.parent.mkdir(parents=True)
    write_voice(voice)
    return folder


@pytest.fixture(scope="module")
def exported(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Github, JobRun]:
    """The workflow behind its first job, for one target."""
    place = tmp_path_factory.mktemp("github")
    workflow = read_workflow(GITHUB)
    workflow["env"]["TARGETS"] = TARGET
    service = Github(workflow, repository, place / "store")
    return service, service.run("export", Machine(place / "exporting"))


def second_stage(exported: tuple[Github, JobRun], folder: Path) -> Github:
    """The service as the first job left it, to be gone on with in `folder`."""
    shutil.copytree(exported[0].store, folder / "store")
    return Github(exported[0].workflow, exported[0].repository, folder / "store")


def with_one_engine(exported: tuple[Github, JobRun], folder: Path) -> Github:
    """As `second_stage`, with the first of the engines alone: one is enough to see what a machine does of it."""
    service = second_stage(exported, folder)
    handed = service.store / "exported"
    for onnx in sorted(handed.glob("*/piper-decoder-*.onnx"))[1:]:
        onnx.unlink()
    lines = (handed / SUMS).read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if (handed / line.split()[1]).is_file()]
    (handed / SUMS).write_text("".join(kept), encoding="utf-8")
    return service


@pytest.fixture(scope="module")
def compiled(exported: tuple[Github, JobRun], tmp_path_factory: pytest.TempPathFactory) -> tuple[Github, JobRun]:
    """The workflow behind its second job, on another machine."""
    place = tmp_path_factory.mktemp("compiled")
    service = second_stage(exported, place)
    return service, service.run("compile", Machine(place / "compiling"), target=TARGET)


def printing_converter(folder: Path, line: str) -> dict[str, str]:
    """The settings of a machine whose toolkit prints `line` before it builds."""
    folder.mkdir(exist_ok=True)
    (folder / "line").write_text(line, encoding="utf-8")
    real = converter_python()
    program = f'#!/bin/sh\n[ "$1" = -c ] || cat "{folder}/line"\nexec "{real}" "$@"\n'
    (folder / "python").write_text(program, encoding="utf-8")
    (folder / "python").chmod(0o755)
    return {CONVERTER: str(folder / "python")}


def checked(folder: Path) -> int:
    """What sha256sum says of the list of the folder."""
    command = ["sha256sum", "--check", "--strict", "--quiet", SUMS]
    return subprocess.run(command, cwd=folder, check=False, timeout=60).returncode


def cases(folder: Path) -> dict[str, str]:
    """By gate, how the test cases of the folder's JUnit files ended."""
    ended = {}
    for path in sorted(folder.rglob("*.xml")):
        for case in ET.parse(path).iter("testcase"):
            ended[case.attrib["name"]] = next((child.tag for child in case if child.tag != "system-out"), "passed")
    return ended


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_github_hands_an_engine_with_its_digests_and_verdicts_over(
    exported: tuple[Github, JobRun], compiled: tuple[Github, JobRun]
) -> None:
    first, (service, second) = exported[1], compiled
    assert (first.succeeded, second.succeeded) == (True, True), first.machine.output + second.machine.output

    handed = service.store / "exported"
    stems = {Path(name).stem for name in names(handed) if "decoder" in name}
    assert stems
    assert names(handed) == {f"{TARGET}/{stem}.onnx" for stem in {*stems, "piper-host"}} | {SUMS}
    assert checked(handed) == 0
    assert not list(first.machine.folder.glob("**/*.rknn"))

    engines = service.store / f"engines-{TARGET}" / TARGET
    files = {f"{stem}{ending}" for stem in stems for ending in (".rknn", ".json", ".onnx")}
    assert names(engines) == {*files, "piper-host.onnx", "plan.json", SUMS}
    assert checked(engines) == 0
    assert len((engines / SUMS).read_text().splitlines()) == len(files) + 2

    gates = cases(service.store / f"verdicts-{TARGET}")
    assert gates.keys() >= {"fp32.cut", "log.regtask", "simulator"}
    assert set(gates.values()) == {"passed"}
    assert names(service.store / "verdicts-export") == {f"export-{TARGET}.xml", f"export-{TARGET}.json"}
    assert set(cases(service.store / "verdicts-export").values()) == {"passed"}
    told = (second.machine.folder / SUMMARY).read_text()
    assert told.count("exit code 0") == len(stems)
    assert "| passed | simulator |" in told


def test_github_hands_a_page_of_all_engines_over(compiled: tuple[Github, JobRun], tmp_path: Path) -> None:
    service, _ = compiled
    done = service.run("report", Machine(tmp_path / "reporting"))
    assert done.succeeded, done.machine.output
    page = (service.store / "report" / "report.html").read_text(encoding="utf-8")
    engines = list((service.store / f"engines-{TARGET}" / TARGET).glob("*.rknn"))
    assert engines
    assert all(hashlib.sha256(path.read_bytes()).hexdigest() in page for path in engines)


def test_github_shows_what_only_a_board_can_tell_as_skipped_and_stays_green(
    exported: tuple[Github, JobRun], tmp_path: Path
) -> None:
    service = with_one_engine(exported, tmp_path)
    settings = printing_converter(tmp_path / "converter", WIDE_ADDRESS)
    done = service.run("compile", Machine(tmp_path / "compiling", settings), target=TARGET)
    assert done.succeeded, done.machine.output
    gates = cases(service.store / f"verdicts-{TARGET}")
    assert {gate for gate, ended in gates.items() if ended == "skipped"} == {"log.regtask"}
    assert set(gates.values()) == {"passed", "skipped"}
    assert "| unproven | log.regtask |" in (done.machine.folder / SUMMARY).read_text()


def test_github_ends_red_with_the_verdicts_handed_over_when_a_gate_fails(
    exported: tuple[Github, JobRun], tmp_path: Path
) -> None:
    service = with_one_engine(exported, tmp_path)
    settings = printing_converter(tmp_path / "converter", NEW_FIELD)
    done = service.run("compile", Machine(tmp_path / "compiling", settings), target=TARGET)
    assert not done.succeeded
    assert 1 in done.codes
    assert "::a gate or the build failed" in done.machine.output
    handed = service.store / f"verdicts-{TARGET}"
    assert cases(handed)["log.regtask"] == "failure"
    assert {"build-logs", "reports"} == {path.name for path in handed.iterdir()}
    assert {json.loads(path.read_text())["exit_code"] for path in handed.glob("reports/rk*.json")} == {1}
    assert not (service.store / f"engines-{TARGET}").exists()
    assert "| failed | log.regtask |" in (done.machine.folder / SUMMARY).read_text()


def test_github_tells_a_refusal_from_a_failed_gate(exported: tuple[Github, JobRun], tmp_path: Path) -> None:
    service = second_stage(exported, tmp_path)
    done = service.run("compile", Machine(tmp_path / "compiling"), target="rk3566")
    assert not done.succeeded
    assert 2 in done.codes
    assert "::refused before it started" in done.machine.output
    assert (service.store / "verdicts-rk3566").is_dir()


def test_github_compiles_nothing_when_what_came_is_not_what_was_handed_in(
    exported: tuple[Github, JobRun], tmp_path: Path
) -> None:
    service = second_stage(exported, tmp_path)
    host = service.store / "exported" / TARGET / "piper-host.onnx"
    host.write_bytes(host.read_bytes()[:-1] + b"!")
    done = service.run("compile", Machine(tmp_path / "compiling"), target=TARGET)
    assert not done.succeeded
    assert "piper-host.onnx: FAILED" in done.machine.output
    assert not list(done.machine.folder.glob("engines/**/*.rknn"))


def test_gitlab_hands_an_engine_with_its_digests_and_verdicts_over(
    repository: Path, exported: tuple[Github, JobRun], compiled: tuple[Github, JobRun], tmp_path: Path
) -> None:
    pipeline = read_pipeline(GITLAB)
    pipeline["variables"]["TARGETS"] = TARGET
    service = Gitlab(pipeline, repository, tmp_path / "store")
    first = Machine(tmp_path / "exporting", steps_of(exported[1]))
    second = Machine(tmp_path / "compiling", steps_of(compiled[1]))
    assert service.run("export", first), first.output
    assert service.run("compile", second, TARGET=TARGET), second.output
    handed = service.store / f"compile-{TARGET}"
    engines = handed / "engines" / TARGET
    assert checked(engines) == 0
    assert names(engines) == names(compiled[0].store / f"engines-{TARGET}" / TARGET)
    assert pipeline["compile"]["artifacts"]["reports"]["junit"] == "reports/compile/*.xml"
    assert cases(handed / "reports/compile") == cases(compiled[0].store / f"verdicts-{TARGET}")
    assert cases(handed / "reports/export") == cases(compiled[0].store / "verdicts-export")
    assert not (second.folder / "voices").exists()
    third = Machine(tmp_path / "reporting")
    assert service.run("report", third), third.output
    assert (service.store / "report" / "report.html").is_file()


def test_gitlab_ends_red_with_the_verdicts_handed_over_when_nothing_can_be_compiled(
    repository: Path, exported: tuple[Github, JobRun], tmp_path: Path
) -> None:
    service = Gitlab(read_pipeline(GITLAB), repository, tmp_path / "store")
    shutil.copytree(exported[0].store / "exported", service.store / "export" / "exported")
    machine = Machine(tmp_path / "compiling")
    assert not service.run("compile", machine, TARGET="rk3566")
    assert ": refused before it started" in machine.output
    handed = service.store / "compile-rk3566"
    assert [json.loads(path.read_text())["exit_code"] for path in handed.glob("reports/compile/*.json")] == [2]
    assert not list(handed.glob("engines/**/*.rknn"))


def steps_of(ran: JobRun) -> dict[str, str]:
    """The settings of a machine that has the finished steps of another service's, which are the same."""
    return {"RKNN_TTS_CACHE": str(ran.machine.folder / ".rknn-tts-steps")}


def matrix_of(example: dict[str, Any]) -> list[str]:
    targets: list[str] = (
        example["strategy"]["matrix"]["target"] if "strategy" in example else example["parallel"]["matrix"][0]["TARGET"]
    )
    return targets


def test_examples_export_the_targets_that_they_compile() -> None:
    github, gitlab = read_workflow(GITHUB), read_pipeline(GITLAB)
    assert matrix_of(github["jobs"]["compile"]) == github["env"]["TARGETS"].split()
    assert matrix_of(gitlab["compile"]) == gitlab["variables"]["TARGETS"].split()


def test_github_keeps_environments_by_the_locks_that_made_them(exported: tuple[Github, JobRun], tmp_path: Path) -> None:
    environment, steps = exported[1].cache_keys
    assert re.fullmatch(r"toolchain-Linux-3\.11\.7-[0-9a-f]{64}", environment)
    assert steps == "export-steps-1"


def test_github_uses_actions_by_commit_with_their_versions_beside() -> None:
    used = re.findall(r"uses: (.+)", GITHUB.read_text(encoding="utf-8"))
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line) for line in used)
