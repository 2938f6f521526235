"""A voice that cannot be opened lets go of what is open already."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rknn_tts_runtime.backends.twins import TwinBackend
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.plans.plan import Component, Plan
from rknn_tts_runtime.speaking import durations, inflect, piper

PLAN = Plan(Path("plan.json"), "piper", {"decoder": Component("decoder", {}, {})}, ())


@pytest.mark.parametrize("module", [piper, inflect])
def test_decoder_and_host_half_are_closed_when_the_host_half_tells_of_no_voice(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    decoder = SimpleNamespace(manifests=(), close=lambda: closed.append("decoder"))
    host = SimpleNamespace(metadata={}, path=Path("host.onnx"), close=lambda: closed.append("host"))
    monkeypatch.setattr(module, "open_decoder", lambda *_: decoder)
    monkeypatch.setattr(module, "host_of", lambda *_: Path("host.onnx"))
    monkeypatch.setattr(module, "open_host", lambda *_: host)
    open_voice = module.open_piper if module is piper else module.open_inflect
    with pytest.raises(BadInput, match=r"host\.onnx: tells nothing of its voice"):
        open_voice(PLAN, TwinBackend())
    assert closed == ["host", "decoder"]


def test_the_host_half_of_durations_is_closed_when_it_tells_of_no_voice(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    host = SimpleNamespace(metadata={}, path=Path("host.onnx"), close=lambda: closed.append("host"))
    monkeypatch.setattr(durations, "host_of", lambda *_: Path("host.onnx"))
    monkeypatch.setattr(durations, "open_host", lambda *_: host)
    with pytest.raises(BadInput, match=r"host\.onnx: tells nothing of its voice"):
        durations.open_durations(Component("duration_encoder", {"main": ()}, {}), TwinBackend())
    assert closed == ["host"]
