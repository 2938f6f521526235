"""A stand-in of a board's NPU, for tests of what runs on one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.npu.fake_npu import SETTINGS, FakeNpu, compiled_library


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in of librknnrt.so."""
    return compiled_library(tmp_path_factory.mktemp("librknnrt"))


@pytest.fixture
def fake_npu(fake_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNpu]:
    """It without recordings and failures; whatever was loaded must be given back when the test ends."""
    folder = tmp_path / "fake-npu"
    folder.mkdir()
    for name in SETTINGS:
        monkeypatch.delenv(f"FAKE_RKNN_{name}", raising=False)
    npu = FakeNpu(fake_library, folder, folder / "calls.log")
    monkeypatch.setenv("FAKE_RKNN_RECORDINGS", str(folder))
    monkeypatch.setenv("FAKE_RKNN_LOG", str(npu.log))
    npu.handle.fake_reset()
    yield npu
    assert (npu.live_contexts, npu.live_memories) == (0, 0), "contexts or buffers of the NPU were not given back"
