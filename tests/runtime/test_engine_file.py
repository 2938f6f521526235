from __future__ import annotations

import struct
from pathlib import Path

import pytest
from rknn_tts_runtime import engine_file
from rknn_tts_runtime.engine_file import read_engine_header, short_contract_of
from rknn_tts_runtime.faults import BadInput

from contracts.contract import METADATA_KEY, SHORT_CONTRACT_LIMIT, short_contract
from engine.endings import ENGINE_MAGIC
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


def test_magic_and_schema_and_limit_are_those_of_the_toolchain() -> None:
    assert (engine_file.MAGIC, engine_file.CONTRACT_SCHEMA, engine_file.CONTRACT_LIMIT) == (
        ENGINE_MAGIC,
        METADATA_KEY,
        SHORT_CONTRACT_LIMIT,
    )


def test_engine_header_reads_no_more_of_a_description_than_one_can_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_file, "DESCRIPTION_LIMIT", 20)
    header = read_engine_header(write(tmp_path, engine_bytes()))
    assert (header.targets, header.tensors) == ((), ())
    assert header.problems == (
        "Its description cannot be read: it is damaged, or of a form that rknn-tts does not know.",
    )


def test_engine_header_reads_no_number_of_a_million_digits(tmp_path: Path) -> None:
    description = b'{"version": ' + b"1" * 1_000_000 + b"}"
    assert read_engine_header(write(tmp_path, engine_bytes(description=description))).toolkit is None


def test_short_contract_is_what_the_toolchain_put_in(tmp_path: Path) -> None:
    text = short_contract(CONTRACT, "rk3576", "2.5.0")
    assert short_contract_of(write(tmp_path, engine_bytes(text.encode()))) == {
        "schema": "rknn-tts/contract/1",
        "family": "piper",
        "stage": "decoder",
        "target": "rk3576",
        "toolkit": "2.5.0",
        "source": "ab" * 8,
        "in": [["z", [1, 192, 109], "float32"]],
        "out": [["output", [1, 1, 27904], "float32"]],
        "window": None,
        "cache": None,
    }


def test_short_contract_is_none_when_the_engine_carries_none(tmp_path: Path) -> None:
    assert short_contract_of(write(tmp_path, engine_bytes())) is None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", r"is no engine: it begins with b'', expected b'RKNN'; copy it again\."),
        (b"PK\3\4 archive", r"is no engine: it begins with b'PK"),
        (b"RKNN", r"is cut off: at least 60 bytes are missing; copy it again\."),
        (engine_bytes()[:-5], r"is cut off: at least 5 bytes are missing"),
        (engine_bytes(b'{"schema":"rknn-tts/contract/1",'), r"is damaged: The contract in it is damaged\. Copy it"),
        (engine_bytes(b'{"schema":"rknn-tts/contract/1","a":' + b"[" * 900), r"is damaged: The contract in it"),
    ],
)
def test_short_contract_of_refuses_what_is_no_whole_engine(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        short_contract_of(write(tmp_path, data))


def test_short_contract_of_refuses_a_folder_and_what_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.rknn"):
        with pytest.raises(BadInput, match="there is no such engine"):
            short_contract_of(path)
