from __future__ import annotations

import struct
from pathlib import Path

import pytest
from rknn_tts_runtime.engine_file import read_engine_header

from contracts.contract import short_contract
from tests.rknn_tts.engines import CONTRACT, engine_bytes


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "x.rknn"
    path.write_bytes(data)
    return path


def test_engine_header_tells_target_tensors_and_contract(tmp_path: Path) -> None:
    text = short_contract(CONTRACT, "rk3588", "2.3.2")
    header = read_engine_header(write(tmp_path, engine_bytes(text.encode())))
    assert (header.targets, header.toolkit, header.missing_bytes, header.problems) == (("rk3588",), "2.3.2", 0, ())
    assert [(tensor.name, tensor.shape) for tensor in header.tensors] == [
        ("z", (1, 192, 109)),
        ("output", (1, 1, 1, 27904)),
    ]
    assert header.contract is not None
    assert (header.contract["stage"], header.contract["source"]) == ("decoder", "ab" * 8)


def test_engine_header_has_no_contract_when_the_engine_carries_none(tmp_path: Path) -> None:
    assert read_engine_header(write(tmp_path, engine_bytes())).contract is None


@pytest.mark.parametrize("keep", [63, 64, 100, 120, 140, 200])
def test_engine_header_counts_what_is_missing_when_it_is_cut_off(tmp_path: Path, keep: int) -> None:
    data = engine_bytes()
    header = read_engine_header(write(tmp_path, data[:keep]))
    assert header.targets == ()
    assert 0 < header.missing_bytes <= len(data) - keep


@pytest.mark.parametrize("description", [b"{", b"\xff\xfe", b"[1]", b"{}", b'{"norm_tensor": [1, {}], "version": 3}'])
def test_engine_header_is_empty_when_the_description_is_damaged(tmp_path: Path, description: bytes) -> None:
    header = read_engine_header(write(tmp_path, engine_bytes(description=description)))
    assert (header.targets, header.toolkit, header.tensors) == ((), None, ())


@pytest.mark.parametrize("length", [2**64 - 1, 2**63, 2**40])
def test_engine_header_counts_what_is_missing_when_a_length_is_absurd(tmp_path: Path, length: int) -> None:
    data = engine_bytes()
    header = read_engine_header(write(tmp_path, data[:16] + struct.pack("<Q", length) + data[24:]))
    assert header.missing_bytes > length - len(data)


def test_engine_header_says_so_when_the_contract_is_damaged(tmp_path: Path) -> None:
    text = short_contract(CONTRACT, "rk3588", "2.3.2")
    header = read_engine_header(write(tmp_path, engine_bytes(text[:60].encode())))
    assert header.contract is None
    assert header.problems == ("The contract in it is damaged.",)
