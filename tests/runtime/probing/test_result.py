from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pytest
from rknn_tts_runtime.probing.comparison import OutputFigure
from rknn_tts_runtime.probing.kit_reading import open_kit
from rknn_tts_runtime.probing.result import ProbeResult, result_text, sign_off_digest, signed_off
from rknn_tts_runtime.probing.run import run_kit
from rknn_tts_runtime.probing.serial import as_data

from contracts.serial import from_json
from tests.runtime.probing.boards import BoardBackend, write_board
from tests.runtime.probing.kits import write_kit


@pytest.fixture
def result(tmp_path: Path) -> ProbeResult:
    write_kit(tmp_path / "kit")
    kit = open_kit(tmp_path / "kit")
    found = run_kit(kit, BoardBackend(), lambda line: None, repeats=1, root=write_board(tmp_path / "board"))
    return signed_off(found, "Ada", "2026-11-30T12:00:00+00:00")


def written(result: ProbeResult) -> dict[str, Any]:
    data = json.loads(result_text(result))
    assert isinstance(data, dict)
    return data


def test_result_states_the_digest_over_all_the_rest(result: ProbeResult) -> None:
    data = written(result)
    stated = data["signed_off"].pop("sha256")
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    assert stated == hashlib.sha256(text.encode("ascii")).hexdigest()


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["cases"][0]["outputs"][0].update(snr_db=99.0),
        lambda data: data["signed_off"].update(by="Eve"),
        lambda data: data["signed_off"].update(at="2026-12-01"),
        lambda data: data.update(backend="onnx"),
        lambda data: data.update(more=1),
    ],
)
def test_change_of_anything_is_seen(result: ProbeResult, change: Any) -> None:
    data = written(result)
    assert sign_off_digest(data) == data["signed_off"]["sha256"]
    change(data)
    assert sign_off_digest(data) != data["signed_off"]["sha256"]


def test_order_of_keys_and_blanks_do_not_count(result: ProbeResult) -> None:
    data = json.loads(json.dumps(written(result), sort_keys=True, indent=8))
    assert sign_off_digest(data) == data["signed_off"]["sha256"]


def test_toolchain_reads_what_the_board_wrote(result: ProbeResult) -> None:
    read = from_json(ProbeResult, written(result))
    assert read == result
    assert read.cases[0].outputs[0].snr_db == math.inf


def test_figures_that_are_no_numbers_of_json_are_texts() -> None:
    assert as_data(OutputFigure("y", math.inf, 40.0, math.nan)) == {
        "name": "y",
        "snr_db": "inf",
        "bound_db": 40.0,
        "max_abs": "nan",
        "problem": "",
    }
