"""How Snakemake is started; test_workflow.py runs it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from contracts.errors import UserInput
from farm.launch import COMMON_PROFILE, SNAKEFILE, run_workflow, workflow_command
from farm.places import FarmPlaces
from farm.settings import read_settings
from tests.farm.stub_farms import MB, job, stub_farm

PYTHON = Path("/environment/bin/python")


def command(cores: int | None = None, profile: Path | None = None, memory_mb: int = 2000) -> list[str]:
    return workflow_command(
        FarmPlaces(Path("/farm")), python=PYTHON, cores=cores, memory_bytes=memory_mb * MB, profile=profile
    )


def quiet(_: str) -> None:
    """Takes what is said."""


def value(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


def test_jobs_share_the_machine_when_there_is_no_profile() -> None:
    words = command(cores=3)
    assert words[0] == str(PYTHON)
    assert (value(words, "--cores"), value(words, "--resources")) == ("3", "mem_mb=2000")
    assert (value(words, "--profile"), value(words, "--workflow-profile")) == (str(COMMON_PROFILE), "none")
    assert (value(words, "--snakefile"), value(words, "--directory")) == (str(SNAKEFILE), "/farm/.farm")
    assert value(command(), "--cores") == str(len(os.sched_getaffinity(0)))


def test_jobs_share_the_machine_when_a_profile_is_for_it() -> None:
    words = command(profile=Path("/my/profile"))
    assert (value(words, "--cores"), value(words, "--resources")) == (str(len(os.sched_getaffinity(0))), "mem_mb=2000")
    assert value(words, "--workflow-profile") == "/my/profile"
    assert "--jobs" not in words


def test_profile_says_how_many_run_when_it_is_for_a_cluster() -> None:
    words = command(profile=Path("/my/profile"), memory_mb=0)
    assert value(words, "--workflow-profile") == "/my/profile"
    assert value(words, "--profile") == str(COMMON_PROFILE)
    assert not {"--cores", "--jobs", "--resources"} & set(words)
    assert value(command(cores=7, profile=Path("/my/profile"), memory_mb=0), "--jobs") == "7"


@pytest.mark.parametrize("memory_mb", [2000, 0])
def test_workflow_is_told_what_the_machine_may_give(memory_mb: int, tmp_path: Path) -> None:
    farm = stub_farm(tmp_path / "farm")
    farm.plan([job("anna")])
    with pytest.raises(FileNotFoundError):  # there is no such Python; all else is written by then
        run_workflow(
            farm.places, python=PYTHON, cores=1, memory_bytes=memory_mb * MB, profile=Path("/nowhere"), say=quiet
        )
    assert read_settings(farm.places.settings).memory_bytes == memory_mb * MB
    assert read_settings(farm.places.settings).python == str(PYTHON)
    assert Path(read_settings(farm.places.settings).program).is_file()
    assert str(PYTHON) in farm.places.workflow_log.read_text(encoding="utf-8")


def test_workflow_is_refused_when_there_is_no_plan(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match=r"plan\.json: cannot be read"):
        run_workflow(FarmPlaces(tmp_path), python=PYTHON, cores=1, memory_bytes=MB, profile=None, say=quiet)
