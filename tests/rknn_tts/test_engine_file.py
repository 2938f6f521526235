from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from contracts.contract import Contract, Source, TensorSpec, short_contract
from rknn_tts.engine_file import read_engine_header

CONTRACT = Contract(
    family="piper",
    stage="decoder",
    source=Source("voice.onnx", "ab" * 32, "checkpoint"),
    inputs=(TensorSpec("z", (1, 192, 109)),),
    outputs=(TensorSpec("output", (1, 1, 27904)),),
)

DESCRIPTION = {
    "norm_tensor": [{"size": [1, 192, 109], "url": "z"}, {"size": [1, 1, 1, 27904], "url": "output"}],
    "target_platform": ["rk3588"],
    "version": "2.3.2",
}


def engine_bytes(custom: bytes = b"", description: bytes | None = None) -> bytes:
    """A file laid out as rknn-toolkit2 2.3.2 lays out its engines: see the module under test."""
    model = b"\x00model\x00" + custom + b"\x00" * 40
    told = json.dumps(DESCRIPTION).encode() if description is None else description
    header = b"RKNN\0\0\0\0" + struct.pack("<QQ", 6, len(model))
    return header.ljust(64, b"\0") + model + struct.pack("<Q", len(told)) + told


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "x.rknn"
    path.write_bytes(data)
    return path


def test_engine_header_tells_target_tensors_and_contract(tmp_path: Path) -> None:
    text = short_contract(CONTRACT, "rk3588", "2.3.2")
    header = read_engine_header(write(tmp_path, engine_bytes(text.encode())))
    assert (header.targets, header.toolkit, header.problems) == (("rk3588",), "2.3.2", ())
    assert [(tensor.name, tensor.shape) for tensor in header.tensors] == [
        ("z", (1, 192, 109)),
        ("output", (1, 1, 1, 27904)),
    ]
    assert header.contract is not None
    assert (header.contract["stage"], header.contract["source"]) == ("decoder", "ab" * 8)


def test_engine_header_has_no_contract_when_the_engine_carries_none(tmp_path: Path) -> None:
    assert read_engine_header(write(tmp_path, engine_bytes())).contract is None


@pytest.mark.parametrize("keep", [4, 63, 64, 100, 120, 140, 200])
def test_engine_header_says_cut_off_when_bytes_are_missing(tmp_path: Path, keep: int) -> None:
    data = engine_bytes()
    assert keep < len(data)
    header = read_engine_header(write(tmp_path, data[:keep]))
    assert header.targets == ()
    assert "cut off" in header.problems[0]


@pytest.mark.parametrize("description", [b"{", b"\xff\xfe", b"[1]", b"{}", b'{"norm_tensor": [1, {}], "version": 3}'])
def test_engine_header_is_empty_when_the_description_is_damaged(tmp_path: Path, description: bytes) -> None:
    header = read_engine_header(write(tmp_path, engine_bytes(description=description)))
    assert (header.targets, header.toolkit, header.tensors) == ((), None, ())


@pytest.mark.parametrize("length", [2**64 - 1, 2**63, 2**40])
def test_engine_header_says_cut_off_when_a_length_is_absurd(tmp_path: Path, length: int) -> None:
    data = engine_bytes()
    header = read_engine_header(write(tmp_path, data[:16] + struct.pack("<Q", length) + data[24:]))
    assert "cut off" in header.problems[0]


def test_engine_header_says_so_when_the_contract_is_damaged(tmp_path: Path) -> None:
    text = short_contract(CONTRACT, "rk3588", "2.3.2")
    header = read_engine_header(write(tmp_path, engine_bytes(text[:60].encode())))
    assert header.contract is None
    assert header.problems == ("The contract in it is damaged.",)
