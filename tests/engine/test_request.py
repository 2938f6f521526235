"""What is found out about a request before anything is started."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.errors import UserInput
from contracts.quantisation import Quantisation
from engine.request import BuildRequest, check_request


@pytest.fixture
def good(tmp_path: Path) -> BuildRequest:
    (tmp_path / "a.onnx").touch()
    return BuildRequest(
        onnx=tmp_path / "a.onnx",
        target="rk3588",
        toolkit="2.3.2",
        converter_python=Path(sys.executable),
        result_folder=tmp_path / "result",
        log=tmp_path / "log",
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"custom_string": ""},
        {"custom_string": "x" * 1023},
        {"feeds": [{"a": np.zeros(1), "b": np.zeros(1)}, {"b": np.zeros(1), "a": np.zeros(1)}]},
        {"quantisation": Quantisation(), "calibration": [{"a": np.zeros(1)}]},
    ],
)
def test_request_is_accepted_when_it_can_work(good: BuildRequest, changes: dict[str, Any]) -> None:
    check_request(dataclasses.replace(good, **changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"converter_python": Path("/nowhere/python")}, "Python /nowhere/python is missing or cannot be run"),
        ({"converter_python": Path("/proc/version")}, "/proc/version is missing or cannot be run"),
        ({"onnx": Path("/nowhere/a.onnx")}, r"The ONNX /nowhere/a\.onnx is missing"),
        ({"onnx": Path("/etc")}, "The ONNX /etc is missing"),
        ({"custom_string": "x" * 1024}, "ASCII and under 1024 bytes"),
        ({"custom_string": "ü"}, "ASCII and under 1024 bytes: ü"),
        (
            {"quantisation": Quantisation(algorithm="gdq"), "calibration": [{"a": np.zeros(1)}]},
            "algorithm 'gdq' needs a torch that computes.* there are normal, mmse, kl_divergence",
        ),
    ],
)
def test_request_is_refused_when_it_cannot_work(good: BuildRequest, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UserInput, match=words):
        check_request(dataclasses.replace(good, **changes))


@pytest.mark.parametrize("second", [{}, {"b": np.zeros(1)}, {"a": np.zeros(1), "b": np.zeros(1)}])
def test_request_is_a_mistake_of_ours_when_windows_of_feeds_differ_in_names(
    good: BuildRequest, second: dict[str, Any]
) -> None:
    fed: dict[str, Any] = {"feeds": [{"a": np.zeros(1)}, second]}
    for windows in (fed, {"calibration": fed["feeds"]}):
        with pytest.raises(ValueError, match="every window of feeds must have the same inputs"):
            check_request(dataclasses.replace(good, **windows))


@pytest.mark.parametrize("changes", [{"quantisation": Quantisation()}, {"calibration": [{"a": np.zeros(1)}]}])
def test_request_is_a_mistake_of_ours_when_quantisation_or_calibration_stands_alone(
    good: BuildRequest, changes: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="an engine is quantised on a calibration set, and any other has none"):
        check_request(dataclasses.replace(good, **changes))
