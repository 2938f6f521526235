"""The versions that are stated, against those of the packages that read the file on the converter's side."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from onnx import helper

from contracts.onnx_versions import HIGHEST_IR_VERSION, HIGHEST_OPSET, LONGEST_NAME
from environments.locks import DEFAULT_TOOLKIT


def converter_onnx(lock: Path) -> str:
    """The release of onnx, as `1.16`, that the converter environment is locked to."""
    found = re.search(r"^onnx==(\d+\.\d+)", lock.read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("toolkit", [DEFAULT_TOOLKIT, "2.5.0"])
def test_versions_are_read_by_the_onnx_of_the_converter_environment(pytestconfig: pytest.Config, toolkit: str) -> None:
    release = converter_onnx(pytestconfig.rootpath / "requirements" / f"rknn-{toolkit}.txt")
    (versions,) = [row for row in helper.VERSION_TABLE if row[0].startswith(f"{release}.0")]  # release, IR, opset
    assert versions[1] == HIGHEST_IR_VERSION
    assert versions[2] >= HIGHEST_OPSET


def test_longest_name_is_a_c_buffer_of_128_bytes_without_its_end() -> None:
    assert len(b"x" * LONGEST_NAME + b"\0") == 128
