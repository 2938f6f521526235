from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rknn_tts_runtime.npu.failures import MEANINGS, Loaded, Versions, call_failure, is_older, load_failure

BOARD = Versions("2.3.2 (429f97ae6b@2025-04-09T09:09:27)", "0.9.8")
"""The reference's."""

KNOWN = Loaded(
    engine=Path("flow.rknn"),
    target="rk3588",
    toolkit="2.3.2",
    context_bytes=1426 << 20,
    rebuild="make engine FAMILY=cosyvoice3 STAGE=flow TARGET=CHIP TOOLKIT=2.3.2",
    file_fault=None,
    soc="rk3588",
)


def known(**changes: Any) -> Loaded:
    return Loaded(**{**vars(KNOWN), **changes})


def test_every_code_of_the_header_has_its_name() -> None:
    names = {code: meaning.name for code, meaning in MEANINGS.items()}
    assert sorted(names) == list(range(-13, 0))
    assert names[-4] == "RKNN_ERR_MALLOC_FAIL"
    assert names[-6] == "RKNN_ERR_MODEL_INVALID"
    assert names[-13] == "RKNN_ERR_TARGET_PLATFORM_UNMATCH"


def test_failure_of_a_call_names_call_code_meaning_remedy_and_versions() -> None:
    for code in range(-13, 0):
        fault = call_failure("a.rknn", "rknn_run", code, BOARD)
        assert fault.code == code
        assert str(fault).startswith(f"a.rknn: rknn_run failed with code {code} ({MEANINGS[code].name}: ")
        assert "What to do: " in str(fault)
        assert str(fault).endswith(" (driver 0.9.8, api 2.3.2 (429f97ae6b@2025-04-09T09:09:27))")


def test_code_that_is_not_known_is_told_as_it_is() -> None:
    assert str(call_failure("a.rknn", "rknn_run", -99, Versions())) == "a.rknn: rknn_run failed with code -99."
    said = str(load_failure(KNOWN, -99, Versions(driver="0.9.8")))
    assert said.endswith(": rknn_init failed with code -99. (driver 0.9.8)")


def test_engine_of_another_chip_names_both_and_the_command() -> None:
    text = str(load_failure(known(soc=None), -13, BOARD))
    assert "RKNN_ERR_TARGET_PLATFORM_UNMATCH" in text
    assert "compiled for rk3588, and this board does not say which chip it has" in text
    assert "make engine FAMILY=cosyvoice3 STAGE=flow TARGET=CHIP TOOLKIT=2.3.2" in text


@pytest.mark.parametrize("code", [-4, -6])
def test_refusal_by_the_driver_tells_what_is_loaded_and_what_was_asked_for(code: int) -> None:
    others = [("w200.rknn", 1129 << 20), ("w110.rknn", 786 << 20)]
    text = str(load_failure(known(others=others), code, BOARD))
    assert "The file is whole, so the driver refused it" in text
    assert "Loaded are w200.rknn 1129 MiB, w110.rknn 786 MiB, together 1915 MiB; this one takes 1426 MiB" in text
    assert "dmesg | grep -i rknpu" in text
    assert text.endswith("(driver 0.9.8, api 2.3.2 (429f97ae6b@2025-04-09T09:09:27))")


def test_refusal_of_the_only_engine_says_that_nothing_else_is_loaded() -> None:
    text = str(load_failure(known(context_bytes=None), -4, Versions()))
    assert "No other engine of this process is loaded; what this one takes is not known" in text
    assert text.endswith("refused.")


@pytest.mark.parametrize("code", [-1, -6])
def test_library_older_than_the_toolkit_is_a_version_skew(code: int) -> None:
    # librknnrt 1.4.0 and 1.5.0 refuse engines of 2.x so: "Invalid RKNN model version 6" (rknn-toolkit2, 281 and 316)
    text = str(load_failure(KNOWN, code, Versions("1.5.0 (e6fe0c678@2023-05-25T08:09:20)", "0.9.0")))
    assert "this librknnrt is 1.5.0, older than the 2.3.2 of the toolkit" in text
    assert "install librknnrt.so 2.3.2" in text
    assert "address space" not in text


def test_library_of_no_known_version_may_be_the_older_one() -> None:
    assert "does not tell its version, is older than 2.3.2." in str(load_failure(KNOWN, -6, Versions()))
    assert "older" not in str(load_failure(KNOWN, -6, BOARD))
    assert "older" not in str(load_failure(KNOWN, -4, Versions()))


def test_bad_file_is_told_first_whatever_the_versions_are() -> None:
    fault = "The file is bad: flow.rknn: its digest is 12, and flow.json has the digest 34 of its engine."
    text = str(load_failure(known(file_fault=fault), -6, Versions("1.5.0", None)))
    assert fault in text
    assert "older" not in text
    assert "address space" not in text
    assert text.endswith(" (api 1.5.0)")


def test_want_of_memory_and_of_a_device_is_not_put_down_to_versions() -> None:
    assert "address space" in str(load_failure(KNOWN, -4, Versions("1.5.0", None)))
    assert "older" not in str(load_failure(KNOWN, -3, Versions("1.5.0", None)))


def test_other_codes_of_init_carry_their_remedy() -> None:
    assert "the driver is loaded" in str(load_failure(KNOWN, -3, BOARD))


@pytest.mark.parametrize(
    ("version", "than", "older"),
    [
        ("2.3.0 (c949ad889d@2024-11-07T11:35:33)", "2.3.2", True),
        ("2.3.2 (429f97ae6b@2025-04-09T09:09:27)", "2.3.2", False),
        ("2.10.0", "2.3.2", False),
        ("1.4.0", "2.3.2", True),
        ("2.0.0b0", "2.3.2", True),
        ("2.3", "2.3.2", True),
        ("unknown", "2.3.2", False),
        ("2.3.0", "", False),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, than: str, older: bool) -> None:
    assert is_older(version, than) == older
