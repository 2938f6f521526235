from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.json_keys import LARGEST_BYTES, KeyReader, read_json


def written(folder: Path, text: bytes) -> Path:
    path = folder / "plan.json"
    path.write_bytes(text)
    return path


def reader(data: dict[str, Any]) -> KeyReader:
    return KeyReader(Path("x/plan.json"), data, "write it again")


def test_read_json_reads_what_stands_there(tmp_path: Path) -> None:
    assert read_json(written(tmp_path, '{"a": [1, -2.5, null, true, "ü"]}'.encode()), "a plan") == {
        "a": [1, -2.5, None, True, "ü"]
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "is not JSON, so no plan"),
        (b"{", "is not JSON, so no plan"),
        (b"\xff\xfe{}", "is not JSON, so no plan"),
        (b'{"a": NaN}', "NaN is no number of JSON"),
        (b'{"a": -Infinity}', "-Infinity is no number of JSON"),
        (b'{"a": ' + b"1" * 5_000_000 + b"}", "a number of 5000000 digits"),
        (b"[" * 100_000, "is nested too deep to be a plan"),
        (b" " * (LARGEST_BYTES + 1), "too many for a plan"),
    ],
    ids=["empty", "cut off", "no UTF-8", "NaN", "infinity", "digits", "deep", "large"],
)
def test_read_json_refuses_in_one_sentence_when_it_is_no_json_of_ours(tmp_path: Path, text: bytes, said: str) -> None:
    with pytest.raises(BadInput) as raised:
        read_json(written(tmp_path, text), "a plan")
    assert said in str(raised.value)
    assert str(raised.value).startswith(str(tmp_path / "plan.json"))
    assert "\n" not in str(raised.value)


def test_read_json_refuses_when_there_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no such file"):
        read_json(tmp_path / "none.json", "a plan")


def test_read_json_refuses_a_folder_a_device_and_a_pipe_unread(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, Path("/dev/zero"), tmp_path / "pipe"):
        with pytest.raises(BadInput, match="or it is none"):
            read_json(path, "a plan")


@pytest.mark.parametrize("value", [None, 0, -1, 2**33, True, 109.0, "109", [109]])
def test_whole_refuses_what_is_no_whole_number_within_bounds(value: object) -> None:
    with pytest.raises(BadInput) as raised:
        reader({"window": {"frames": value}}).whole("window.frames", least=1)
    assert str(raised.value) == (
        f"x/plan.json: window.frames is {value!r}, expected a whole number from 1 to 4294967296; write it again."
    )


@pytest.mark.parametrize("value", [None, -0.5, float("inf"), True, "1"])
def test_number_refuses_what_is_no_finite_number_from_zero(value: object) -> None:
    with pytest.raises(BadInput, match=r"layers\.modelled_ms is .*, expected a number from 0"):
        reader({"layers": {"modelled_ms": value}}).number("layers.modelled_ms")


@pytest.mark.parametrize("value", [None, "", 3, "a\nb", "\x1b[31mred"])
def test_text_refuses_what_cannot_be_printed(value: object) -> None:
    with pytest.raises(BadInput) as raised:
        reader({"family": value}).text("family")
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    "name", ["../x.onnx", "/etc/passwd", "a/b", "a\\b", ".", "..", "", "nul\0", "x" * 256, "é" * 128]
)
def test_as_file_refuses_what_is_no_name_beside_it(name: str) -> None:
    with pytest.raises(BadInput, match=r"onnx\.file is "):
        reader({}).as_file("onnx.file", name)


def test_as_file_is_beside_the_file_that_names_it() -> None:
    assert reader({}).as_file("onnx.file", "voice..onnx") == Path("x/voice..onnx")


def test_messages_show_a_key_that_cannot_be_printed_escaped() -> None:
    message = str(reader({}).wrong("roles.\x1b[31m", "x", "y"))
    assert message == "x/plan.json: 'roles.\\x1b[31m' is 'x', expected y; write it again."


def test_messages_show_no_more_than_the_beginning_of_a_value() -> None:
    with pytest.raises(BadInput) as raised:
        reader({"family": ["x" * 100_000]}).text("family")
    assert len(str(raised.value)) < 200
