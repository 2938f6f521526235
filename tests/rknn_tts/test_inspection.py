from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from contracts.contract import METADATA_KEY, Contract, Source, TensorSpec, contract_to_metadata, short_contract
from contracts.errors import UserInput
from contracts.manifest import CpuLayer, EngineFile, Layers, Manifest, SetManifest, manifest_text
from contracts.serial import to_json
from contracts.verdicts import at_least
from logs.layer_table import Layer
from rknn_tts.blocks import plain_text
from rknn_tts.inspection import inspect_file
from rknn_tts.present_inspection import inspection_blocks
from tests.rknn_tts.engines import CONTRACT, engine_bytes
from tests.rknn_tts.samples import MANIFEST

LAYERS = (
    Layer(1, "InputOperator", "FLOAT16", "CPU", "\\", "(1,4)", 0, 0, 0, 8.0, "InputOperator:x"),
    Layer(2, "ConvAdd", "FLOAT16", "NPU", "(1,4)", "(1,4)", 900, 1000, 1000, 100.0, "Conv:c"),
    Layer(3, "Slice", "FLOAT16", "CPU", "(1,4)", "(1,4)", 0, 0, 0, 40.0, "Slice:s"),
)


def write_engine(folder: Path) -> tuple[Path, Manifest]:
    """An engine, its manifest beside it, and its layers where the manifest says they are."""
    place = folder / "engines" / "rk3588"
    place.mkdir(parents=True)
    (folder / "build-logs").mkdir()
    data = engine_bytes(short_contract(CONTRACT, "rk3588", "2.3.2").encode())
    path = place / "piper-decoder-w109.rknn"
    path.write_bytes(data)
    manifest = replace(
        MANIFEST,
        engine=EngineFile(path.name, hashlib.sha256(data).hexdigest(), len(data)),
        layers=Layers(3, 1000, 148.0, 0.2, (), "build-logs/x.layers.json"),
    )
    path.with_suffix(".json").write_text(manifest_text(manifest))
    (folder / "build-logs" / "x.layers.json").write_text(json.dumps(to_json(LAYERS)))
    return path, manifest


def write_onnx(path: Path, metadata: dict[str, str] | None = None) -> Path:
    """x [N, 4] times a constant, plus itself, with two Adds and a Mul."""
    x = ir.val("x", dtype=ir.DataType.FLOAT, shape=["N", 4])
    weight = ir.Value(name="w", const_value=ir.tensor(np.ones((4,), np.float32), name="w"))
    tape = ir.tape.Tape()
    y = tape.op("Add", [tape.op("Mul", [x, weight]), x])
    y = tape.op("Add", [y, x])
    y.name, y.shape, y.type = "y", ir.Shape([1, 4]), ir.TensorType(ir.DataType.FLOAT)
    graph = ir.Graph([x], [y], nodes=tape.nodes, initializers=[weight], opset_imports={"": 17}, name="g")
    model = ir.Model(graph, ir_version=8)
    model.metadata_props.update(metadata or {})
    ir.save(model, path)
    return path


def test_inspection_of_an_engine_has_manifest_and_cost_when_they_are_at_hand(tmp_path: Path) -> None:
    path, manifest = write_engine(tmp_path)
    found = inspect_file(path, tmp_path / "elsewhere")
    assert (found.kind, found.notes, found.manifest) == ("engine", (), manifest)
    assert found.engine is not None
    assert found.engine.contract is not None
    # By hand: 1000 cycles at 1 GHz, 0.1 MB at 5 GB/s; a CPU layer's 0.04 MB at 5 GB/s and 5 ms a MB.
    assert {row.name: round(row.modelled_ms, 6) for row in found.cost} == {
        "Slice (CPU)": 0.208,
        "ConvAdd (NPU)": 0.021,
        "InputOperator (in/out)": 0.0016,
    }
    assert [(row.name, row.layers, round(row.modelled_ms, 6)) for row in found.targets] == [
        ("CPU", 1, 0.208),
        ("NPU", 1, 0.021),
        ("in/out", 1, 0.0016),
    ]
    assert [layer.name for layer in found.dearest] == ["Slice:s", "Conv:c", "InputOperator:x"]
    assert [(layer.name, layer.rw_kb) for layer in found.cpu] == [("Slice:s", 40.0)]
    assert found.layers == manifest.layers


def test_inspection_of_an_engine_is_said_to_be_stale_when_the_manifest_is_of_another(tmp_path: Path) -> None:
    path, _ = write_engine(tmp_path)
    path.write_bytes(engine_bytes(b"another"))
    found = inspect_file(path, tmp_path)
    assert found.manifest is None
    assert found.notes[0].startswith("STALE: the manifest piper-decoder-w109.json is of another engine")


def test_inspection_of_an_engine_tells_what_it_says_itself_when_there_is_no_manifest(tmp_path: Path) -> None:
    path, _ = write_engine(tmp_path)
    path.with_suffix(".json").unlink()
    found = inspect_file(path, tmp_path)
    text = plain_text(inspection_blocks(found))
    assert "There is no manifest beside it" in found.notes[0]
    assert "target:   rk3588" in text
    assert "stage:    decoder" in text


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": "other"}', '{"schema": "rknn-tts/engine/1"}', "[" * 100_000]
)
def test_inspection_of_an_engine_goes_on_when_the_manifest_is_broken(tmp_path: Path, text: str) -> None:
    path, _ = write_engine(tmp_path)
    path.with_suffix(".json").write_text(text)
    found = inspect_file(path, tmp_path)
    assert found.manifest is None
    assert found.notes[0].startswith("The manifest beside it cannot be used: ")


@pytest.mark.parametrize(
    ("layers", "note"),
    [
        (None, "is not at hand"),
        ("[{}]", "cannot be read"),
        ("3", "cannot be read"),
        ("[]", "is of another build"),
        ('{"a": 1}', "cannot be read"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_inspection_shows_sums_alone_when_the_layers_do_not_fit(tmp_path: Path, layers: str | None, note: str) -> None:
    path, _ = write_engine(tmp_path)
    table = tmp_path / "build-logs" / "x.layers.json"
    if layers is None:
        table.unlink()
    else:
        table.write_text(layers)
    found = inspect_file(path, tmp_path)
    assert (found.cost, found.targets, found.dearest) == ((), (), ())
    assert found.layers is not None
    assert (found.layers.count, found.layers.cycles) == (3, 1000)
    assert note in found.notes[0]


def test_inspection_shows_sums_alone_when_the_layers_have_another_traffic(tmp_path: Path) -> None:
    path, _ = write_engine(tmp_path)
    table = tmp_path / "build-logs" / "x.layers.json"
    table.write_text(table.read_text().replace("100.0", "101.0"))
    found = inspect_file(path, tmp_path)
    assert (found.cost, "is of another build" in found.notes[0]) == ((), True)


@pytest.mark.parametrize(
    ("key", "value"), [("rw_kb", -1.0), ("rw_kb", float("nan")), ("rw_kb", float("inf")), ("cycles", -1)]
)
def test_inspection_shows_sums_alone_when_the_layers_have_figures_of_no_build(
    tmp_path: Path, key: str, value: float
) -> None:
    path, _ = write_engine(tmp_path)
    layers = [dict(item) for item in json.loads((tmp_path / "build-logs" / "x.layers.json").read_text())]
    layers[1][key] = value
    (tmp_path / "build-logs" / "x.layers.json").write_text(json.dumps(layers))
    found = inspect_file(path, tmp_path)
    assert found.cost == ()
    assert "layer 1: " in found.notes[0]
    assert "are no figures of a build" in found.notes[0]


def test_inspection_names_the_cpu_layers_of_the_manifest_when_the_layers_are_not_at_hand(tmp_path: Path) -> None:
    path, manifest = write_engine(tmp_path)
    (tmp_path / "build-logs" / "x.layers.json").unlink()
    assert manifest.layers is not None
    told = replace(manifest.layers, cpu=(CpuLayer("Slice", "Slice:s", 40.0),))
    path.with_suffix(".json").write_text(manifest_text(replace(manifest, layers=told)))
    found = inspect_file(path, tmp_path)
    # By hand: 0.04 MB at 5 GB/s and 5 ms a MB.
    assert [(layer.name, round(layer.modelled_ms, 6)) for layer in found.cpu] == [("Slice:s", 0.208)]
    assert "build again there with --force" in found.notes[0]


def test_inspection_of_a_layer_table_has_its_sums_and_its_cost(tmp_path: Path) -> None:
    write_engine(tmp_path)
    found = inspect_file(tmp_path / "build-logs" / "x.layers.json", tmp_path)
    assert (found.kind, found.manifest) == ("layers", None)
    assert found.layers is not None
    assert (found.layers.count, found.layers.cycles, found.layers.rw_kb) == (3, 1000, 148.0)
    # By hand: 1000 cycles at 1 GHz, 0.148 MB at 5 GB/s, 0.04 MB on the CPU at 5 ms a MB.
    assert round(found.layers.modelled_ms, 6) == 0.2306
    assert [layer.name for layer in found.layers.cpu] == [layer.name for layer in found.cpu] == ["Slice:s"]
    assert "stand in the manifest" in found.notes[0]


@pytest.mark.parametrize("name", ["/etc/passwd", "../x.layers.json", "build-logs/../../x"])
def test_inspection_reads_no_layers_when_their_name_leads_elsewhere(tmp_path: Path, name: str) -> None:
    path, manifest = write_engine(tmp_path)
    assert manifest.layers is not None
    moved = replace(manifest, layers=replace(manifest.layers, file=name))
    path.with_suffix(".json").write_text(manifest_text(moved))
    found = inspect_file(path, tmp_path)
    assert "outside" in found.notes[0]


@pytest.mark.parametrize("keep", [4, 64, 300])
def test_inspection_refuses_in_a_sentence_when_an_engine_is_cut_off(tmp_path: Path, keep: int) -> None:
    path, _ = write_engine(tmp_path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(UserInput, match="is an engine that is cut off"):
        inspect_file(path, tmp_path)


def test_inspection_of_a_manifest_checks_the_engine_beside_it(tmp_path: Path) -> None:
    path, manifest = write_engine(tmp_path)
    beside = path.with_suffix(".json")
    assert (inspect_file(beside, tmp_path).kind, inspect_file(beside, tmp_path).notes) == ("manifest", ())
    path.write_bytes(engine_bytes(b"another"))
    assert "STALE" in inspect_file(beside, tmp_path).notes[0]
    path.unlink()
    found = inspect_file(beside, tmp_path)
    assert (found.manifest, found.notes) == (manifest, ("The engine piper-decoder-w109.rknn is not beside it.",))


def test_inspection_of_a_set_names_its_members(tmp_path: Path) -> None:
    path = tmp_path / "piper-decoder.set.json"
    path.write_text(manifest_text(SetManifest(("a.json", "b.json"))))
    (tmp_path / "a.json").write_text("")
    found = inspect_file(path, tmp_path)
    assert (found.kind, found.members, found.notes) == ("set", ("a.json", "b.json"), ("The member b.json is missing.",))


def test_inspection_of_an_onnx_counts_operators_when_it_is_foreign(tmp_path: Path) -> None:
    found = inspect_file(write_onnx(tmp_path / "model.bin"), tmp_path)
    onnx = found.onnx
    assert onnx is not None
    assert (onnx.ir_version, onnx.opsets, onnx.nodes, onnx.parameters) == (8, {"": 17}, 3, 4)
    assert list(onnx.operators.items()) == [("Add", 2), ("Mul", 1)]
    assert [(t.name, t.shape, t.dtype) for t in (*onnx.inputs, *onnx.outputs)] == [
        ("x", ("N", 4), "float32"),
        ("y", (1, 4), "float32"),
    ]
    assert found.notes == ("It carries no contract: it is no export of rknn-tts.",)


def test_inspection_of_an_onnx_shows_its_verdicts_when_it_carries_a_contract(tmp_path: Path) -> None:
    contract = Contract(
        family="piper",
        stage="decoder",
        source=Source("v", "0" * 64, "package"),
        inputs=(TensorSpec("x", (1, 4)),),
        outputs=(TensorSpec("y", (1, 4)),),
        verdicts=(at_least("fp32.whole", 120.5, 95, "dB"),),
    )
    found = inspect_file(write_onnx(tmp_path / "m.onnx", contract_to_metadata(contract)), tmp_path)
    assert found.onnx is not None
    assert found.onnx.contract == contract
    assert "passed  fp32.whole     120.5         95  dB" in plain_text(inspection_blocks(found))


@pytest.mark.parametrize("entry", ["{", "{}", "[]", '{"family": 3}'])
def test_inspection_of_an_onnx_goes_on_when_its_contract_is_broken(tmp_path: Path, entry: str) -> None:
    found = inspect_file(write_onnx(tmp_path / "m.onnx", {METADATA_KEY: entry}), tmp_path)
    assert found.onnx is not None
    assert found.onnx.contract is None
    assert found.notes[0].startswith("The contract in it cannot be used: ")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello, world",
        b"\x00" * 100,
        b"\xff" * 4096,
        b"{",
        b"{}",
        b'{"schema": "rknn-tts/set/1"}',
        b'{"schema": "rknn-tts/engine/1", "family": 1}',
        b'{"a":' * 100_000,
        b"{\xff\xfe",
        b"[",
        b"[]",
        b"[1, 2]",
        b'[{"id": 1}]',
        b"[" * 100_000,
        b"[\xff\xfe",
        b"PK\x03\x04" + b"\x07" * 500,
        b"RIFF\x00\x00\x00\x00WAVE",
        b"<html></html>",
    ],
)
def test_inspection_refuses_in_a_sentence_when_a_file_is_something_else(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.rknn"
    path.write_bytes(data)
    with pytest.raises(UserInput) as refused:
        inspect_file(path, tmp_path)
    assert str(refused.value).startswith(f"{path}: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9, 0.99])
def test_inspection_refuses_in_a_sentence_when_an_onnx_is_cut_off(tmp_path: Path, share: float) -> None:
    path = write_onnx(tmp_path / "m.onnx")
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(UserInput) as refused:
        inspect_file(path, tmp_path)
    assert str(refused.value).startswith(f"{path}: ")


@pytest.mark.parametrize("name", ["missing", "."])
def test_inspection_refuses_when_there_is_no_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserInput, match=r"there is no such file|is not a file"):
        inspect_file(tmp_path / name, tmp_path)
