"""Which backend runs where nothing says so."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from rknn_tts_runtime.commands.chosen_backend import add_backend_arguments, chosen_backend
from rknn_tts_runtime.faults import BadInput, Fault


def chosen(machine: str, *arguments: str) -> str:
    parser = argparse.ArgumentParser()
    add_backend_arguments(parser)
    return chosen_backend(parser.parse_args(arguments), machine).name


def test_twins_run_on_a_pc_unless_a_library_is_named(tmp_path: Path) -> None:
    assert chosen("x86_64") == "onnx"
    with pytest.raises(Fault, match=r"nothere\.so"):
        chosen("x86_64", "--library", str(tmp_path / "nothere.so"))


def test_an_npu_is_asked_for_on_an_arm_machine() -> None:
    assert chosen("aarch64", "--backend", "onnx") == "onnx"
    with pytest.raises(Fault, match="librknnrt"):  # which this machine does not have
        chosen("aarch64")


@pytest.mark.parametrize("machine", ["aarch64", "x86_64"])
def test_a_core_mask_that_there_is_not_is_no_option(machine: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        chosen(machine, "--core-mask", "0_2")
    assert ended.value.code == 2
    assert "invalid choice: '0_2'" in capsys.readouterr().err


def test_twins_take_no_library(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--library: is of the backend librknnrt"):
        chosen("aarch64", "--backend", "onnx", "--library", str(tmp_path / "librknnrt.so"))
