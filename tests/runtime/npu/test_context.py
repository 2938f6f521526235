from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rknn_tts_runtime.backends.engine import Array
from rknn_tts_runtime.faults import BadInput, RunFault
from rknn_tts_runtime.manifest import EngineManifest, read_manifest
from rknn_tts_runtime.npu import api
from rknn_tts_runtime.npu.attributes import Port, ports
from rknn_tts_runtime.npu.context import Context, InitRefused
from rknn_tts_runtime.npu.library import Library

from tests.runtime.engine_folders import write_engine
from tests.runtime.npu.fake_npu import NHWC, VERSION, FakeNpu, Run

Z = np.arange(12, dtype=np.float32).reshape(1, 2, 1, 6)
LENGTHS = np.array([3], np.int64)
AUDIO = np.arange(100, 112, dtype=np.float32).reshape(1, 1, 1, 12)
RUN: Run = ({"z": Z, "lengths": LENGTHS}, {"audio": AUDIO})


CODES = range(-13, 0)
"""All that the header names."""


@pytest.fixture
def manifest(tmp_path: Path) -> EngineManifest:
    return read_manifest(write_engine(tmp_path).manifest)


@pytest.fixture
def library(fake_library: Path) -> Library:
    return Library(fake_library)


def in_and_out(context: Context, manifest: EngineManifest) -> tuple[list[tuple[Port, Array]], list[tuple[Port, Array]]]:
    inputs, outputs = context.attributes()
    ins = ports("engine", "inputs", manifest.inputs, inputs)
    outs = ports("engine", "outputs", manifest.outputs, outputs)
    fed = [(port, port.handed_over(RUN[0][port.info.name])) for port in ins]
    return fed, [(port, np.full(port.shape, np.nan, np.float32)) for port in outs]


def test_run_hands_over_what_was_recorded_and_gets_what_was_recorded(
    fake_npu: FakeNpu, library: Library, manifest: EngineManifest
) -> None:
    fake_npu.record(manifest, [RUN])
    context = Context(library, manifest.engine)
    fed, got = in_and_out(context, manifest)
    context.set_inputs(fed)
    context.run()
    context.get_outputs(got)
    context.close()
    assert got[0][1].ravel().tolist() == list(range(100, 112))
    # float32 as NHWC, 12 of 4 bytes; int64 without a format, one of 8 bytes; the library converts both
    assert "rknn_inputs_set z type=0 fmt=1 size=48 pass_through=0" in fake_npu.calls
    assert "rknn_inputs_set lengths type=8 fmt=3 size=8 pass_through=0" in fake_npu.calls
    assert fake_npu.calls[-2:] == ["rknn_outputs_release", "rknn_destroy"]


def test_engine_is_loaded_from_its_bytes_and_stays_as_it_is(
    fake_npu: FakeNpu, library: Library, manifest: EngineManifest
) -> None:
    fake_npu.record(manifest, [])
    before = manifest.engine.read_bytes()
    Context(library, manifest.engine).close()
    assert fake_npu.calls[0] == f"rknn_init size={len(before)} flags=0x0"
    assert manifest.engine.read_bytes() == before  # the stand-in writes to what it is handed


def test_what_a_context_tells(fake_npu: FakeNpu, library: Library, manifest: EngineManifest) -> None:
    fake_npu.record(manifest, [], custom="a text", memory=(786, 12, 800))
    context = Context(library, manifest.engine)
    inputs, outputs = context.attributes()
    assert [str(told) for told in inputs] == ["'z' [1, 1, 6, 2] NHWC float16", "'lengths' [1] UNDEFINED int64"]
    assert [str(told) for told in outputs] == ["'audio' [1, 1, 1, 12] NCHW float16"]
    assert context.versions == (VERSION, "0.9.8")
    assert context.custom_string() == "a text"
    size = context.memory()
    assert (size.total_weight_size, size.total_internal_size, size.total_dma_allocated_size) == (786, 12, 800)
    context.close()


def test_versions_that_are_not_told_are_not_known(
    fake_npu: FakeNpu, library: Library, manifest: EngineManifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_npu.record(manifest, [])
    for code in CODES:
        monkeypatch.setenv("FAKE_RKNN_FAIL", f"rknn_query:5={code}")
        context = Context(library, manifest.engine)
        assert context.versions == (None, None)
        context.close()


def test_library_with_larger_structures_is_asked_with_room(
    fake_npu: FakeNpu, library: Library, manifest: EngineManifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_npu.record(manifest, [])
    monkeypatch.setenv("FAKE_RKNN_GROWN", "16")
    context = Context(library, manifest.engine)
    assert [told.shape for told in context.attributes()[0]] == [(1, 1, 6, 2), (1,)]
    context.close()


def test_every_code_of_init_is_handed_on(
    fake_npu: FakeNpu, library: Library, manifest: EngineManifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    for code in CODES:
        monkeypatch.setenv("FAKE_RKNN_FAIL", f"rknn_init={code}")
        with pytest.raises(InitRefused) as caught:
            Context(library, manifest.engine)
        assert caught.value.code == code


QUERIES = {
    "rknn_query:0": "RKNN_QUERY_IN_OUT_NUM",
    "rknn_query:1": "RKNN_QUERY_INPUT_ATTR",
    "rknn_query:2": "RKNN_QUERY_OUTPUT_ATTR",
    "rknn_query:6": "RKNN_QUERY_MEM_SIZE",
    "rknn_query:7": "RKNN_QUERY_CUSTOM_STRING",
}


@pytest.mark.parametrize("call", [*QUERIES, "rknn_inputs_set", "rknn_run", "rknn_outputs_get"])
def test_every_code_of_every_call_is_a_fault_with_call_and_code(
    fake_npu: FakeNpu, library: Library, manifest: EngineManifest, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    fake_npu.record(manifest, [RUN])
    for code in CODES:
        monkeypatch.setenv("FAKE_RKNN_FAIL", f"{call}={code}")
        with pytest.raises(RunFault) as caught:
            _everything(library, manifest)
        assert caught.value.code == code
        assert f": rknn_{call.split(':')[0][5:]}" in str(caught.value)
        assert QUERIES.get(call, "") in str(caught.value)
        assert f"failed with code {code} (RKNN_ERR_" in str(caught.value)
        assert str(caught.value).endswith(f" (driver 0.9.8, api {VERSION})")
        assert fake_npu.live_contexts == 0


def _everything(library: Library, manifest: EngineManifest) -> None:
    context = Context(library, manifest.engine)
    try:
        fed, got = in_and_out(context, manifest)
        context.memory()
        context.custom_string()
        context.set_inputs(fed)
        context.run()
        context.get_outputs(got)
    finally:
        context.close()


def test_output_that_is_short_is_a_fault_with_both_sizes_and_is_released(
    fake_npu: FakeNpu, library: Library, manifest: EngineManifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_npu.record(manifest, [RUN])
    monkeypatch.setenv("FAKE_RKNN_SHORT", "0=8")
    with pytest.raises(RunFault, match="output 'audio' came with 40 bytes, 48 were expected") as caught:
        _everything(library, manifest)
    assert caught.value.code is None
    assert "rknn_outputs_release" in fake_npu.calls


def test_input_that_was_not_recorded_is_a_fault_of_the_run(
    fake_npu: FakeNpu, library: Library, manifest: EngineManifest
) -> None:
    other: Run = ({"z": Z + 1, "lengths": LENGTHS}, {"audio": AUDIO})
    fake_npu.record(manifest, [other])
    with pytest.raises(RunFault, match="rknn_run failed with code -8"):
        _everything(library, manifest)


def test_output_told_as_nhwc_is_got_in_that_order(
    fake_npu: FakeNpu, library: Library, manifest: EngineManifest
) -> None:
    fake_npu.record(manifest, [RUN], formats={"audio": NHWC})
    context = Context(library, manifest.engine)
    fed, got = in_and_out(context, manifest)
    context.set_inputs(fed)
    context.run()
    context.get_outputs(got)
    context.close()
    assert got[0][1].shape == (1, 1, 12, 1)
    assert got[0][0].taken_back(got[0][1]).tolist() == AUDIO.tolist()


@pytest.mark.parametrize(("mask", "number"), [("0_1_2", 7), ("0_1", 3), ("2", 4), ("all", 0xFFFF), ("auto", 0)])
def test_cores_are_granted_as_asked(
    fake_npu: FakeNpu, library: Library, manifest: EngineManifest, mask: str, number: int
) -> None:
    fake_npu.record(manifest, [])
    context = Context(library, manifest.engine)
    assert context.grant_cores(mask) == mask
    context.close()
    assert fake_npu.calls[1:-1] == [f"rknn_set_core_mask {number}"]


def test_chip_of_one_core_gets_auto(
    fake_npu: FakeNpu, library: Library, manifest: EngineManifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_npu.record(manifest, [])
    monkeypatch.setenv("FAKE_RKNN_CORES", "1")
    context = Context(library, manifest.engine)
    assert context.grant_cores("0_1_2") == "auto"
    context.close()
    assert fake_npu.calls[1:-1] == ["rknn_set_core_mask 7", "rknn_set_core_mask 0"]


def test_cores_that_are_refused_with_any_code_become_auto(
    fake_npu: FakeNpu, library: Library, manifest: EngineManifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_npu.record(manifest, [])
    context = Context(library, manifest.engine)
    for count, code in enumerate(CODES):
        monkeypatch.setenv("FAKE_RKNN_FAIL", f"rknn_set_core_mask@{1 + 2 * count}={code}")
        assert context.grant_cores("0_1_2") == "auto"
    context.close()


def test_collecting_loads_no_network(fake_npu: FakeNpu, library: Library, manifest: EngineManifest) -> None:
    fake_npu.record(manifest, [], memory=(1 << 20, 1 << 10, 0))
    context = Context(library, manifest.engine, api.FLAG_COLLECT_MODEL_INFO_ONLY)
    assert context.memory().total_weight_size == 1 << 20
    context.close()
    assert fake_npu.calls[0].endswith("flags=0x100")


def test_library_that_tells_of_too_many_tensors_is_not_believed(
    fake_npu: FakeNpu, library: Library, manifest: EngineManifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_npu.record(manifest, [])
    monkeypatch.setattr("rknn_tts_runtime.npu.context.MOST_TENSORS", 1)
    context = Context(library, manifest.engine)
    with pytest.raises(RunFault, match="2 inputs and 1 outputs, more than any engine has"):
        context.attributes()
    context.close()


def test_closing_twice_destroys_once(fake_npu: FakeNpu, library: Library, manifest: EngineManifest) -> None:
    fake_npu.record(manifest, [])
    context = Context(library, manifest.engine)
    assert fake_npu.live_contexts == 1
    context.close()
    context.close()
    assert fake_npu.calls.count("rknn_destroy") == 1


@pytest.mark.parametrize("kind", ["missing", "folder", "empty", "large"])
def test_file_that_cannot_be_an_engine_is_bad_input(
    fake_npu: FakeNpu, library: Library, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "a.rknn"
    if kind == "folder":
        path.mkdir()
    elif kind != "missing":
        path.touch()
    if kind == "large":
        with path.open("wb") as file:
            file.truncate(1 << 32)  # sparse
    with pytest.raises(BadInput, match=r"a\.rknn: (cannot be read|has \d+ bytes, and is no engine)"):
        Context(library, path)
    assert fake_npu.calls == []
