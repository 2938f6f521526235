from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.environments.stubs import REPOSITORY

# Prints the named variables as make handed them over, one a line.
PRINTER = """#!/bin/sh
echo "command=$*"
for name in FAMILY OUT CHECKPOINT FORCE TARGT RKNN_TTS_MAKE_OVERRIDES; do
    eval "printf '%s=%s\\n' $name \\"\\${$name-unset}\\""
done
exit ${STATUS:-0}
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The Makefile, and in the place of the launcher a script that prints variables."""
    shutil.copy(REPOSITORY / "Makefile", tmp_path)
    (tmp_path / "rknn-tts").write_text(PRINTER)
    (tmp_path / "rknn-tts").chmod(0o755)
    return tmp_path


def run_make(checkout: Path, *arguments: str, **variables: str) -> tuple[int, dict[str, str]]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        ["make", *arguments],
        cwd=checkout,
        env=kept | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


@pytest.mark.parametrize("target", ["engine", "export", "compile", "inspect", "diff", "families", "doctor", "clean"])
def test_make_runs_the_command_of_the_same_name_when_asked(checkout: Path, target: str) -> None:
    status, said = run_make(checkout, target)
    assert status == 0
    assert said["command"] == f"from-make {target}"


@pytest.mark.parametrize(
    "value", ["a b", "$HOME", "$(shell id)", "${x}", 'it\'s "q"', "`id`", "a;b|c&d", "#x", "a\\b", "*", "100%"]
)
def test_make_hands_a_value_over_unchanged_when_it_has_special_characters(checkout: Path, value: str) -> None:
    _, said = run_make(checkout, "engine", f"OUT={value}")
    assert said["OUT"] == value
    _, said = run_make(checkout, "engine", OUT=value)
    assert said["OUT"] == value


def test_make_lists_the_names_given_when_one_is_misspelt(checkout: Path) -> None:
    _, said = run_make(checkout, "engine", "FAMILY=piper", "TARGT=rk3588", "PYTHON=python3.11", CHECKPOINT="x.onnx")
    assert sorted(said["RKNN_TTS_MAKE_OVERRIDES"].split()) == ["FAMILY=", "TARGT="]
    assert (said["FAMILY"], said["TARGT"], said["CHECKPOINT"]) == ("piper", "rk3588", "x.onnx")


def test_make_sets_nothing_when_no_variable_is_given(checkout: Path) -> None:
    _, said = run_make(checkout, "engine")
    assert said["RKNN_TTS_MAKE_OVERRIDES"] == ""
    assert said["FAMILY"] == said["OUT"] == said["FORCE"] == "unset"


@pytest.mark.parametrize("status", ["1", "2"])
def test_make_ends_with_2_when_the_command_fails(checkout: Path, status: str) -> None:
    assert run_make(checkout, "engine", STATUS=status)[0] == 2


def test_make_shows_help_when_no_target_is_given(checkout: Path) -> None:
    done = subprocess.run(["make"], cwd=checkout, capture_output=True, text=True, check=True, timeout=60)
    assert "make engine " in done.stdout
    assert "make test " in done.stdout
