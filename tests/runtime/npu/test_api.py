from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from rknn_tts_runtime.npu import api

from tests.runtime.npu.fake_npu import compiled

OF_CORE_MASKS = {"CORE_AUTO": "auto", "CORE_ALL": "all"}


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """What a C compiler makes of the declarations in rknn_layout.h."""
    program = compiled("print_layout.c", tmp_path_factory.mktemp("layout") / "print_layout")
    text = subprocess.run([str(program)], check=True, capture_output=True, text=True, timeout=10).stdout
    return [line.split() for line in text.splitlines()]


def test_structures_are_laid_out_as_a_c_compiler_does(printed: list[list[str]]) -> None:
    expected = {row[0]: [int(number) for number in row[1:]] for row in printed if row[0].startswith("rknn_")}
    found: dict[str, list[int]] = {}
    for name, structure in api.STRUCTURES.items():
        found[name] = [ctypes.sizeof(structure)]
        for field, *_ in structure._fields_:
            place = getattr(structure, field)
            found[f"{name}.{field}"] = [place.offset, place.size]
    assert found == expected


def test_numbers_are_the_headers(printed: list[list[str]]) -> None:
    for name, number in (row for row in printed if not row[0].startswith("rknn_")):
        if name.startswith("CORE_"):
            found = api.CORE_MASKS[OF_CORE_MASKS.get(name, name[len("CORE_") :])]
        else:
            found = getattr(api, name)
        assert found == int(number), name
    assert len(api.CORE_MASKS) == sum(row[0].startswith("CORE_") for row in printed)


def test_attributes_have_the_size_that_a_real_library_says() -> None:
    # rknn_query of librknnrt 1.4.0: "info_len(372) < sizeof(rknn_tensor_attr)(376)" (rknn-toolkit2, issue 170)
    assert ctypes.sizeof(api.TensorAttr) == 376


def test_types_and_formats_have_the_headers_order() -> None:
    assert api.TYPE_NAMES[api.TENSOR_FLOAT32] == "float32"
    assert api.TYPE_NAMES[api.TENSOR_INT64] == "int64"
    assert [api.FORMAT_NAMES[number] for number in (0, 1, 2, 3)] == ["NCHW", "NHWC", "NC1HWC2", "UNDEFINED"]


def test_what_fails_without_a_compiler_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.fail.Exception, match="No C compiler"):
        compiled("print_layout.c", tmp_path / "program")
