from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rknn_tts_runtime.faults import RunFault
from rknn_tts_runtime.manifest import EngineManifest, read_manifest
from rknn_tts_runtime.npu.attributes import ports
from rknn_tts_runtime.npu.context import Context
from rknn_tts_runtime.npu.library import Library
from rknn_tts_runtime.npu.zero_copy import BoundTensors

from tests.runtime.engine_folders import write_engine
from tests.runtime.npu.fake_npu import FakeNpu, Run

Z = np.arange(12, dtype=np.float32).reshape(1, 2, 1, 6)
LENGTHS = np.array([3], np.int64)
AUDIO = np.arange(100, 112, dtype=np.float32)
RUNS: list[Run] = [
    ({"z": Z, "lengths": LENGTHS}, {"audio": AUDIO}),
    ({"z": -Z, "lengths": LENGTHS + 1}, {"audio": -AUDIO}),
]


@pytest.fixture
def manifest(tmp_path: Path) -> EngineManifest:
    return read_manifest(write_engine(tmp_path).manifest)


@pytest.fixture
def library(fake_library: Path) -> Library:
    library = Library(fake_library)
    library.bind_zero_copy()
    return library


def results(context: Context, manifest: EngineManifest) -> list[list[float]]:
    """What the two runs give through bound buffers, which are given back."""
    told_inputs, told_outputs = context.attributes()
    ins = ports("engine", "inputs", manifest.inputs, told_inputs)
    outs = ports("engine", "outputs", manifest.outputs, told_outputs)
    given = []
    bound = BoundTensors(context, ins, outs)
    try:
        for feed, _ in RUNS:
            got = [(port, np.full(port.shape, np.nan, np.float32)) for port in outs]
            bound.run([(port, port.handed_over(feed[port.info.name])) for port in ins], got)
            given.append(got[0][1].ravel().tolist())
    finally:
        bound.close()
        bound.close()
    return given


def test_runs_through_bound_buffers_give_what_was_recorded(
    fake_npu: FakeNpu, library: Library, manifest: EngineManifest
) -> None:
    fake_npu.record(manifest, RUNS)
    context = Context(library, manifest.engine)
    assert results(context, manifest) == [AUDIO.tolist(), (-AUDIO).tolist()]
    assert fake_npu.live_memories == 0
    context.close()
    assert not any(call.startswith("rknn_inputs_set") for call in fake_npu.calls)


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        ("rknn_create_mem@3=-4", "rknn_create_mem failed with code -4"),
        ("rknn_set_io_mem@2=-5", "rknn_set_io_mem failed with code -5"),
        ("rknn_mem_sync=-1", "rknn_mem_sync failed with code -1"),
        ("rknn_run=-2", "rknn_run failed with code -2"),
    ],
)
def test_failures_give_every_buffer_back(
    fake_npu: FakeNpu,
    library: Library,
    manifest: EngineManifest,
    monkeypatch: pytest.MonkeyPatch,
    failure: str,
    sentence: str,
) -> None:
    fake_npu.record(manifest, RUNS)
    monkeypatch.setenv("FAKE_RKNN_FAIL", failure)
    context = Context(library, manifest.engine)
    with pytest.raises(RunFault, match=sentence):
        results(context, manifest)
    assert fake_npu.live_memories == 0
    context.close()


@pytest.mark.parametrize("how", ["1", "2"])
def test_buffer_that_cannot_be_written_is_refused_and_given_back(
    fake_npu: FakeNpu, library: Library, manifest: EngineManifest, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    fake_npu.record(manifest, RUNS)
    monkeypatch.setenv("FAKE_RKNN_UNREACHED", how)
    context = Context(library, manifest.engine)
    with pytest.raises(RunFault, match=r"the buffer of 'z' is not one of \d+ bytes that the CPU reaches; run without"):
        results(context, manifest)
    assert fake_npu.live_memories == 0
    context.close()


@pytest.mark.parametrize(("stride", "refused"), [(0, False), (6, False), (8, True)])
def test_rows_that_are_padded_are_refused(
    fake_npu: FakeNpu, library: Library, manifest: EngineManifest, stride: int, refused: bool
) -> None:
    fake_npu.record(manifest, RUNS, strides={"z": stride})
    context = Context(library, manifest.engine)
    if refused:
        with pytest.raises(RunFault, match="rows of input 'z' are padded from 6 to 8"):
            results(context, manifest)
    else:
        assert len(results(context, manifest)) == 2
    context.close()
