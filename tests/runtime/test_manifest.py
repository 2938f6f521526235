from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rknn_tts_runtime import manifest as runtime
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.manifest import (
    EngineManifest,
    StateInfo,
    StepInfo,
    TensorInfo,
    TrimInfo,
    WindowInfo,
    manifest_of,
    read_manifest,
)

from contracts import contract as toolchain_contract
from contracts import manifest as toolchain
from contracts.contract import CarriedState, TensorSpec, Trim
from contracts.manifest import manifest_text
from contracts.quantisation import Quantisation
from tests.contracts.samples import MANIFEST, SHA, STEP


def written(folder: Path, manifest: toolchain.Manifest, change: Callable[[Any], None]) -> Path:
    data = json.loads(manifest_text(manifest))
    change(data)
    path = folder / "piper-decoder-w109.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def as_it_is(data: Any) -> None:
    pass


def put(key: str, value: object) -> Callable[[Any], None]:
    """A change that puts `value` under the dotted `key`."""

    def change(data: Any) -> None:
        *tables, last = key.split(".")
        for name in tables:
            data = data[int(name)] if isinstance(data, list) else data[name]
        data[int(last) if isinstance(data, list) else last] = value

    return change


def read_with(folder: Path, key: str, value: object) -> EngineManifest:
    return read_manifest(written(folder, MANIFEST, put(key, value)))


def test_schema_and_kind_are_those_of_the_toolchain() -> None:
    assert (runtime.ENGINE_SCHEMA, runtime.RANDOM) == (toolchain.ENGINE_SCHEMA, toolchain_contract.RANDOM)


def test_read_manifest_reads_what_the_toolchain_wrote(tmp_path: Path) -> None:
    path = written(tmp_path, MANIFEST, as_it_is)
    read = read_manifest(path)
    assert read == EngineManifest(
        path=path,
        family="piper",
        stage="decoder",
        role=None,
        target="rk3588",
        toolkit="2.3.2",
        engine=tmp_path / "piper-decoder-w109.rknn",
        engine_sha256=SHA,
        engine_bytes=19_600_977,
        twin=tmp_path / "piper-decoder-w109.onnx",
        host=tmp_path / "piper-host.onnx",
        inputs=(TensorInfo("z", (1, 192, 109), "float32"), TensorInfo("ids", (1, 7), "int64")),
        outputs=(TensorInfo("output", (1, 1, 1, 27904), "float32"),),
        window=WindowInfo(109, 45, 32, 32, 256, 22050),
        step=None,
        cache_numel=12,
        state=(),
        modelled_ms=26.0,
        measured_ms=20.7,
        context_bytes=None,
        stand_in=False,
        data=json.loads(path.read_text(encoding="utf-8")),
        twin_sha256=SHA,
        host_sha256=SHA,
        source_sha256=SHA,
        source_name="voice.onnx",
        source_kind="checkpoint",
        precision=None,
        trim=None,
        masked=True,
    )


def test_read_manifest_reads_steps_states_stand_ins_and_eight_bits(tmp_path: Path) -> None:
    manifest = replace(
        MANIFEST,
        step=STEP,
        window=None,
        host=None,
        source=replace(MANIFEST.source, kind="random"),
        state=(CarriedState("z", "output", 2), CarriedState("ids", "output")),
        quantisation=Quantisation("w8a8", "normal", "channel", "feeds", 3, SHA, False),
        aperture=toolchain.Aperture(4_716_000_000, 4_710_850_560),
    )
    read = read_manifest(written(tmp_path, manifest, as_it_is))
    assert read.step == StepInfo(37, 1920, 24000, 25, 12)
    assert (read.window, read.host, read.host_sha256, read.stand_in, read.precision) == (None, None, None, True, "w8a8")
    assert read.state == (StateInfo("z", "output", 2), StateInfo("ids", "output", None))
    assert (read.context_bytes, read.largest_mapping_bytes) == (4_716_000_000, 4_710_850_560)


TRIMMED = replace(
    MANIFEST,
    inputs=(*MANIFEST.inputs, TensorSpec("place", (1, 3, 1, 1))),
    outputs=(TensorSpec("output", (1, 1, 1, 49 * 256)),),
    trim=Trim("place", 49),
)


def test_read_manifest_reads_what_an_engine_trims(tmp_path: Path) -> None:
    assert read_manifest(written(tmp_path, TRIMMED, as_it_is)).trim == TrimInfo("place", 49)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("trim", 49, "trim is 49, expected an object"),
        ("trim.input", "z", "trim.input is 'z', expected the name of an input of the shape [1, 3, 1, 1]"),
        ("trim.input", ["place"], "trim.input is ['place'], expected a text"),
        ("trim.input", "where", "trim.input is 'where', expected the name of an input"),
        ("trim.frames", 0, "trim.frames is 0, expected a whole number from 1"),
        ("trim.frames", 43, "trim.frames is 43, expected a window's emitted frames and as many more on either side"),
        ("trim.frames", 50, "trim.frames is 50, expected a window's emitted frames and as many more on either side"),
        ("trim.frames", 111, "trim.frames is 111, expected a window's emitted frames"),
        ("trim.frames", 51, "trim.frames is 51, expected as many as its output has, 256 samples each"),
        ("outputs.0.shape", [1, 27904], "trim.frames is 49, expected as many as its output has"),
        ("outputs", [], "trim.frames is 49, expected as many as its output has"),
        ("window", None, "trim.frames is 49, expected a window's emitted frames"),
        ("window.left", 31, "expected left + emitted + right = frames"),
    ],
)
def test_read_manifest_names_the_key_when_a_trim_does_not_fit(
    tmp_path: Path, key: str, value: object, said: str
) -> None:
    with pytest.raises(BadInput) as raised:
        read_manifest(written(tmp_path, TRIMMED, put(key, value)))
    assert said in str(raised.value)


def test_read_manifest_refuses_a_trim_whose_contexts_differ(tmp_path: Path) -> None:
    window = {"frames": 109, "emitted": 45, "left": 30, "right": 34, "hop": 256, "sample_rate": 22050}
    with pytest.raises(BadInput, match=r"trim\.frames is 49, expected a window's emitted frames and as many"):
        read_manifest(written(tmp_path, TRIMMED, put("window", window)))


@pytest.mark.parametrize(
    ("passes", "masked"),
    [
        ([], False),
        (None, False),
        ([{"name": "mask_decoder", "hits": 0}, 7], False),
        ([{"name": "mask_decoder", "hits": 25}], True),
    ],
)
def test_read_manifest_takes_an_engine_for_masked_by_its_passes(tmp_path: Path, passes: object, masked: bool) -> None:
    assert read_with(tmp_path, "passes", passes).masked is masked


def test_read_manifest_leaves_alone_what_it_does_not_know(tmp_path: Path) -> None:
    assert read_with(tmp_path, "tomorrow", {"more": [1]}).data["tomorrow"] == {"more": [1]}


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("schema", "rknn-tts/engine/2", "its schema is 'rknn-tts/engine/2', expected 'rknn-tts/engine/1'"),
        ("schema", "rknn-tts/set/1", "is no engine manifest"),
        ("schema", None, "its schema is None"),
        ("family", 3, "family is 3, expected a text"),
        ("family", "pi\nper", "family is 'pi\\nper', expected a text that can be printed"),
        ("target", None, "target is None, expected a text"),
        ("toolkit", [], "toolkit.version is None"),
        ("toolkit.version", "", "toolkit.version is ''"),
        ("engine.file", "../x.rknn", "engine.file is '../x.rknn', expected the name of a file beside it"),
        ("engine.file", "/etc/passwd", "engine.file"),
        ("engine.file", "..", "engine.file"),
        ("engine.file", "x\0.rknn", "engine.file"),
        ("engine.bytes", 0, "engine.bytes is 0, expected a whole number from 1"),
        ("engine.bytes", -5, "engine.bytes is -5"),
        ("engine.bytes", True, "engine.bytes is True"),
        ("engine.bytes", 19600977.0, "engine.bytes is 19600977.0"),
        ("onnx.file", "a/b.onnx", "onnx.file"),
        ("onnx", "x", "onnx.file is None"),
        ("host.file", None, "host.file is None"),
        ("host", "piper-host.onnx", "host is 'piper-host.onnx', expected an object"),
        ("inputs", None, "inputs is None, expected a list"),
        ("inputs", {}, "inputs is {}, expected a list"),
        ("inputs.0", "z", "inputs[0] is 'z', expected a tensor's name, shape and dtype"),
        ("inputs.0.name", "", "inputs[0].name is ''"),
        ("inputs.0.shape", 5, "inputs[0] is "),
        ("inputs.0.shape", [1, -2], "inputs[0].shape is -2, expected a whole number from 1"),
        ("inputs.0.shape", [1, True], "inputs[0].shape is True"),
        ("inputs.0.shape", [1, 109.0], "inputs[0].shape is 109.0"),
        ("inputs.0.shape", [1] * 17, "expected at most 16 axes"),
        ("inputs.0.shape", [16384, 65536], "expected at most 4294967295 bytes"),  # 2^32, of which 32 bits hold 0
        ("window.sample_rate", 768001, "expected a whole number from 1 to 768000"),
        ("inputs.0.shape", [65536, 65536], "expected at most 4294967295 bytes"),
        ("inputs.0.shape", [1 << 32] * 16, "expected at most 4294967295 bytes"),
        ("inputs.0.dtype", "object", "inputs[0].dtype is 'object', expected one of"),
        ("inputs.0.dtype", ["float32"], "inputs[0].dtype is ['float32']"),
        ("inputs.1.name", "z", "expected names that differ"),
        ("window.frames", 110, "expected left + emitted + right = frames"),
        ("window.hop", 0, "window.hop is 0"),
        ("window.sample_rate", "22050", "window.sample_rate is '22050'"),
        ("window", [109], "window is [109], expected an object"),
        ("step", {"codes": 37}, "step.samples_per_code is None"),
        ("cache.numel", 1 << 31, "cache.numel is 2147483648, expected a whole number from 1 to 1073741823"),
        ("state", {"z": "output"}, "state is {'z': 'output'}, expected a list"),
        ("state", [3], "state[0] is 3, expected the names of an input and an output"),
        ("state", [{"input": ["z"], "output": "output"}], "expected the names of an input and an output"),
        ("state", [{"input": "z", "output": "z"}], "expected the names of an input and an output"),
        ("state", [{"input": "z", "output": "output", "axis": 3}], "state[0].axis is 3, expected an axis"),
        ("state", [{"input": "z", "output": "output", "axis": -1}], "state[0].axis is -1"),
        ("layers.modelled_ms", "fast", "layers.modelled_ms is 'fast'"),
        ("board", {"ms": -1}, "board.ms is -1"),
        ("aperture", {"context_bytes": 1.5}, "aperture.context_bytes is 1.5"),
        ("passes", {"mask_decoder": 3}, "passes is {'mask_decoder': 3}, expected a list"),
        ("quantisation", {"dtype": 8}, "quantisation.dtype is 8"),
    ],
)
def test_read_manifest_names_the_key_when_it_is_of_another_kind(
    tmp_path: Path, key: str, value: object, said: str
) -> None:
    with pytest.raises(BadInput) as raised:
        read_with(tmp_path, key, value)
    assert str(raised.value).startswith(f"{tmp_path / 'piper-decoder-w109.json'}: ")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["[]", "3", "null", '"x"'])
def test_read_manifest_refuses_when_it_is_no_object(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match="is no engine manifest: its schema is None"):
        read_manifest(tmp_path / "x.json")


def test_manifest_of_an_engine_is_beside_it(tmp_path: Path) -> None:
    path = written(tmp_path, MANIFEST, as_it_is)
    assert manifest_of(tmp_path / "piper-decoder-w109.rknn").path == path


def test_manifest_of_refuses_when_there_is_none_or_it_is_another_engines(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"its manifest voice\.json is not beside it; an engine and its manifest are"):
        manifest_of(tmp_path / "voice.rknn")
    with pytest.raises(BadInput, match="is not beside it"):
        manifest_of(tmp_path / ("a" * 255))  # with .json no file could have that name
    written(tmp_path, MANIFEST, as_it_is).rename(tmp_path / "voice.json")
    with pytest.raises(BadInput, match=r"is the manifest of piper-decoder-w109\.rknn, not of voice\.rknn"):
        manifest_of(tmp_path / "voice.rknn")


def test_dtypes_are_numpys(tmp_path: Path) -> None:
    for dtype in runtime.DTYPES:
        spec = TensorSpec("z", (1, 2), dtype)
        read = read_manifest(written(tmp_path, replace(MANIFEST, inputs=(spec,)), as_it_is))
        assert read.inputs == (TensorInfo("z", (1, 2), dtype),)
