"""Where a farm works, and with which profile."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.errors import UserInput
from farm.places import FarmPlaces
from rknn_tts import farm_places
from rknn_tts.farm_places import Profile, check_output, only_farm, profile_at


@pytest.mark.parametrize(
    ("text", "elsewhere"),
    [
        ("executor: slurm\njobs: 10", True),
        ('# executor: local\nexecutor: "kubernetes"', True),
        ("executor: local", False),
        ("jobs: 10\n", False),
        ("default-resources:\n  executor: slurm", False),
    ],
)
def test_a_profile_says_where_its_jobs_run(tmp_path: Path, text: str, elsewhere: bool) -> None:
    (tmp_path / "config.yaml").write_text(text)
    assert profile_at(str(tmp_path)) == Profile(tmp_path, elsewhere)


def test_a_profile_of_ours_is_named_without_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ours/slurm").mkdir(parents=True)
    (tmp_path / "ours/common").mkdir()
    (tmp_path / "ours/slurm/config.yaml").write_text("executor: slurm")
    monkeypatch.setattr(farm_places, "PROFILES", tmp_path / "ours")
    monkeypatch.chdir(tmp_path)
    assert profile_at("slurm") == Profile(tmp_path / "ours/slurm", elsewhere=True)
    with pytest.raises(UserInput, match=r"--profile slrm: there is no such folder, with a config.yaml of Snakemake's "):
        profile_at("slrm")
    with pytest.raises(UserInput, match="; of our own there are slurm"):
        profile_at("slrm")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none", "there is no such folder, with a config.yaml of Snakemake's options"),
        ("file", "is a file; name the folder it stands in, with a config.yaml of Snakemake's options"),
        ("empty", "holds no config.yaml of Snakemake's options"),
    ],
)
def test_a_profile_is_refused_when_it_is_none(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserInput) as refused:
        profile_at(f"{tmp_path}/{name}")
    assert str(refused.value).startswith(f"--profile {tmp_path}/{name}: {said}")


def test_output_is_refused_when_it_is_a_file_or_below_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check_output(tmp_path)
    check_output(tmp_path / "new" / "deep")
    for output in (tmp_path / "file", tmp_path / "file" / "deep"):
        with pytest.raises(UserInput) as refused:
            check_output(output)
        assert str(refused.value) == (
            f"{tmp_path}/file: is a file, and the engines go into a folder; --output names another folder."
        )


def test_a_second_farm_is_refused_while_one_is_at_work(tmp_path: Path) -> None:
    places = FarmPlaces(tmp_path / "out")
    program = f"""
import sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from contracts.errors import UserInput
from farm.places import FarmPlaces
from rknn_tts.farm_places import only_farm
try:
    with only_farm(FarmPlaces(Path({str(places.output)!r}))):
        print("alone")
except UserInput as error:
    print(error)
"""

    def second() -> str:
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    with only_farm(places):
        said = second()
    assert said.startswith(f"{places.output}: another farm is at work there (process {os.getpid()} on ")
    assert said.endswith("); wait for it, or --output names another folder.\n")
    assert second() == "alone\n"


def test_a_farm_is_refused_when_its_folder_cannot_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def locking(descriptor: int, how: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", locking)
    with (
        pytest.raises(UserInput, match=r"\.farm/lock: cannot be locked \(No locks available\); --output"),
        only_farm(FarmPlaces(tmp_path)),
    ):
        pass


def test_a_farm_is_refused_when_its_folder_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / ".farm").touch()
    with (
        pytest.raises(UserInput, match=r"\.farm: cannot be written \(File exists\); --output names"),
        only_farm(FarmPlaces(tmp_path)),
    ):
        pass
