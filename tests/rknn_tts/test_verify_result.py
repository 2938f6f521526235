"""Results that are not what a board found of the engine at hand are refused, and nothing is written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rknn_tts_runtime.backends.twins import TwinBackend

from rknn_tts.verify import verify
from tests.rknn_tts.signed_results import probe, refused, write_probed_engine

NAN = '{"schema": "rknn-tts/probe/1", "kit_sha256": NaN}'
"""What Python reads and no JSON is."""


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """The engine that `rknn-tts probe` made a kit of."""
    return write_probed_engine(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(schema="rknn-tts/probe/2"), "schema is 'rknn-tts/probe/2'"),
        (lambda d: d.update(kit_sha256=7), "result.kit_sha256: str was expected"),
        (lambda d: d.update(backend="onnx"), "is of the backend onnx, which proves nothing about a board"),
        (lambda d: d["subject"].update(engine_sha256="0" * 64), "is of net.rknn (sha256 0000000000000000)"),
        (lambda d: d["cases"][0].update(passed=False), "says that its case net failed, and its figures say otherwise"),
        (lambda d: d["cases"][0].update(outputs=[]), "says that its case net passed"),
        (lambda d: d["cases"][0].update(problem="it broke"), "says that its case net passed"),
        (lambda d: d["cases"][0].update(engine_sha256="0" * 64), "has no case of the engine itself"),
        (lambda d: d["cases"][0].update(kind="operator"), "has no case of the engine itself"),
        (
            lambda d: d["cases"][0]["outputs"][0].update(bound_db=39.9),
            "asks 39.9 dB of 'y', and the engine's own",
        ),
        (lambda d: d["cases"][1].update(kind="engine"), "its case field is of another engine"),
        (lambda d: d["cases"][0]["outputs"][0].update(name="z"), "compares 'z', which is no output of the engine"),
        (
            lambda d: d["cases"][1]["outputs"][0].update(bound_db=39.9),
            "its case field asks 39.9 dB of 'y', and no case of a kit asks less than 40 dB",
        ),
        (lambda d: d["cases"][1].update(proves=["log.regtask:v2:0x1:0:0x1"]), "has no verdict"),
        (lambda d: d["cases"][1].update(proves=["structure.operators"]), "to prove structure.operators, which no case"),
        (lambda d: d["cases"][0]["outputs"][0].update(snr_db=[]), "snr_db: float was expected"),
        (lambda d: d["cases"].append(d["cases"][1]), "has two cases of the name field"),
        (lambda d: d["cases"][0].update(ms=-5.0), "its case net took -5 ms, which no run does"),
        (lambda d: d["cases"][0].update(least_ms=-0.5), "its case net took -0.5 ms, which no run does"),
        (
            lambda d: d["cases"][0].update(memory={"weight_bytes": -1, "internal_bytes": 0, "measured": True}),
            "takes -1 bytes",
        ),
        (lambda d: d["signed_off"].update(by="Ada\x1b[2J"), r"'Ada\x1b[2J' cannot be printed"),
        (lambda d: d["conditions"].update(board="a\nb"), r"'a\nb' cannot be printed"),
    ],
)
def test_result_that_is_not_of_this_engine_on_a_board_is_refused(
    engine: Path, tmp_path: Path, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    place = probe(tmp_path, change=change)
    assert said in refused(engine, place)


def test_result_of_another_chip_is_refused(engine: Path, tmp_path: Path) -> None:
    place = probe(tmp_path, soc="rk3576")
    assert "is of a board with an rk3576, and the engine is for rk3588" in refused(engine, place)


@pytest.mark.parametrize("soc", ["rk3588s", "rk3588s2"])
def test_what_a_board_calls_its_rk3588_is_one(soc: str, engine: Path, tmp_path: Path) -> None:
    assert verify(engine, probe(tmp_path, soc=soc)).failure is None


def test_real_result_of_twins_is_refused(engine: Path, tmp_path: Path) -> None:
    place = probe(tmp_path, TwinBackend())
    assert "is of the backend onnx" in refused(engine, place)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["cases"][0]["outputs"][0].update(snr_db=99.0),
        lambda d: d["signed_off"].update(by="Eve"),
        lambda d: d["conditions"].update(governor="performance"),
    ],
)
def test_result_that_was_edited_is_refused(
    engine: Path, tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    place = probe(tmp_path)
    data = json.loads(place.read_text(encoding="utf-8"))
    change(data)
    place.write_text(json.dumps(data), encoding="utf-8")
    assert "was changed since" in refused(engine, place)


def test_result_that_nobody_signed_off_is_refused(engine: Path, tmp_path: Path) -> None:
    place = probe(tmp_path)
    data = json.loads(place.read_text(encoding="utf-8"))
    data["signed_off"] = None
    place.write_text(json.dumps(data), encoding="utf-8")
    assert "is not signed off" in refused(engine, place)


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, "\udcff", '{"schema": "rknn-tts/probe/1"}', NAN])
def test_file_that_is_no_result_is_refused(engine: Path, tmp_path: Path, text: str) -> None:
    place = tmp_path / "r.json"
    place.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert refused(engine, place).startswith(f"{place}: ")


def test_huge_or_missing_result_is_refused_unread(engine: Path, tmp_path: Path) -> None:
    place = tmp_path / "r.json"
    assert "cannot be read (No such file" in refused(engine, place)
    with place.open("wb") as file:
        file.truncate(1 << 40)
    assert "is larger than any result" in refused(engine, place)


def test_pipe_or_device_is_refused_unread(engine: Path, tmp_path: Path) -> None:
    # A device has no end: read whole, it takes all memory that the machine has.
    place = tmp_path / "r.json"
    place.symlink_to("/dev/zero")
    assert "is no file" in refused(engine, place)
    place.unlink()
    os.mkfifo(place)
    assert "is no file" in refused(engine, place)
