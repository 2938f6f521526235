from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, numpy_helper

from contracts.contract import Contract, HostHalf, PassRecord, Source, TensorSpec
from contracts.errors import Refusal, UserInput
from contracts.files import sha256_of, sha256_of_bytes
from contracts.verdicts import at_least
from converters.onnx_file import read_onnx
from rknn_tts import onnx_source as module
from rknn_tts.carried import carry, feeds_from_npz
from rknn_tts.onnx_source import open_source
from rknn_tts.steps import Steps, open_steps
from tests.gates.small_graphs import constant, proto, row, scale_proto, tensor

HOST = b"the host half"
PROVEN = (at_least("fp32.whole", 101.5, 95.0, "dB"),)
PASSES = (PassRecord("fold_with_onnxslim", 3, True, 130.0),)
FEEDS = ({"x": row(1, 2, 3, 4)},)


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    monkeypatch.setenv("RKNN_TTS_CACHE", str(tmp_path / "cache"))
    return open_steps(False, lambda text: pytest.fail(text))


def exported(folder: Path, host: bool = False) -> Path:
    contract = Contract(
        "piper",
        "decoder",
        Source("voice.onnx", "ab" * 32, "checkpoint"),
        (TensorSpec("x", (1, 4)),),
        (TensorSpec("y", (1, 4)),),
        passes=PASSES,
        verdicts=PROVEN,
        host=HostHalf("piper-host.onnx", sha256_of_bytes(HOST)) if host else None,
    )
    path = folder / "piper-decoder-w109.onnx"
    path.write_bytes(carry(scale_proto(2.0).SerializeToString(), contract, FEEDS))
    return path


def test_exported_onnx_brings_its_contract_proof_and_feeds(tmp_path: Path, steps: Steps) -> None:
    source = open_source(exported(tmp_path), steps)
    assert source.stem == "piper-decoder-w109"
    assert (source.contract.family, source.contract.stage) == ("piper", "decoder")
    proof = source.prove()
    assert (proof.verdicts, proof.passes) == (PROVEN, PASSES)
    (feed,) = feeds_from_npz(source.feeds)
    np.testing.assert_array_equal(feed["x"], FEEDS[0]["x"])
    assert (source.host, source.notes) == (None, ())


def test_exported_onnx_reaches_the_toolkit_without_what_it_carries(tmp_path: Path, steps: Steps) -> None:
    graph = onnx.load(open_source(exported(tmp_path), steps).graph)
    assert not graph.metadata_props
    assert graph.graph == scale_proto(2.0).graph


def test_exported_onnx_takes_the_host_half_beside_it(tmp_path: Path, steps: Steps) -> None:
    path = exported(tmp_path, host=True)
    (tmp_path / "piper-host.onnx").write_bytes(HOST)
    source = open_source(path, steps)
    assert (source.host, source.notes) == (tmp_path / "piper-host.onnx", ())


@pytest.mark.parametrize(("beside", "says"), [(None, "is missing"), (b"another", "another one than")])
def test_exported_onnx_takes_no_other_host_half(tmp_path: Path, steps: Steps, beside: bytes | None, says: str) -> None:
    path = exported(tmp_path, host=True)
    if beside is not None:
        (tmp_path / "piper-host.onnx").write_bytes(beside)
    source = open_source(path, steps)
    assert source.host is None
    (note,) = source.notes
    assert says in note
    assert "piper-host.onnx" in note


def test_foreign_onnx_is_described_by_its_graph(tmp_path: Path, steps: Steps) -> None:
    path = tmp_path / "my net.onnx"
    path.write_bytes(scale_proto(2.0).SerializeToString())
    source = open_source(path, steps)
    contract = source.contract
    assert (source.stem, contract.family, contract.stage) == ("my net", None, None)
    assert contract.source == Source("my net.onnx", sha256_of(path), "checkpoint")
    assert (contract.inputs, contract.outputs) == ((TensorSpec("x", (1, 4)),), (TensorSpec("y", (1, 4)),))
    assert source.prove().verdicts == ()
    (feed,) = feeds_from_npz(source.feeds)
    assert feed["x"].shape == (1, 4)


def test_foreign_onnx_states_the_types_of_its_tensors(tmp_path: Path, steps: Steps) -> None:
    nodes = [onnx.helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT16)]
    path = tmp_path / "net.onnx"
    path.write_bytes(proto(nodes, [tensor("x", [2])], [tensor("y", [2], TensorProto.FLOAT16)]).SerializeToString())
    contract = open_source(path, steps).contract
    assert (contract.inputs[0].dtype, contract.outputs[0].dtype) == ("float32", "float16")


def test_foreign_onnx_does_not_count_weights_as_inputs(tmp_path: Path, steps: Steps) -> None:
    nodes = [onnx.helper.make_node("Mul", ["x", "w"], ["y"])]
    made = proto(nodes, [tensor("x", [4]), tensor("w", [4])], [tensor("y", [4])], [constant("w", [1.0] * 4)])
    path = tmp_path / "net.onnx"
    path.write_bytes(made.SerializeToString())
    assert [spec.name for spec in open_source(path, steps).contract.inputs] == ["x"]


@pytest.mark.parametrize(("shape", "size"), [([1, "frames"], "frames"), ([None, 4], "None")])
def test_foreign_onnx_is_refused_by_tensor_when_its_shape_is_not_static(
    tmp_path: Path, steps: Steps, shape: list[int | str], size: str
) -> None:
    nodes = [onnx.helper.make_node("Neg", ["x"], ["y"])]
    path = tmp_path / "net.onnx"
    path.write_bytes(proto(nodes, [tensor("x", shape)], [tensor("y", shape)]).SerializeToString())
    with pytest.raises(Refusal, match=r"net\.onnx: the tensor x has no static shape") as caught:
        open_source(path, steps)
    assert size in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"garbage", b"{}"])
def test_file_that_is_no_onnx_is_refused(tmp_path: Path, steps: Steps, content: bytes) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    with pytest.raises(UserInput, match=r"net\.onnx: is not an ONNX model"):
        open_source(path, steps)


def external(folder: Path, factor: float) -> Path:
    path = folder / "net.onnx"
    (folder / "weights.bin").unlink(missing_ok=True)
    model = scale_proto(factor)
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path


def test_foreign_onnx_is_copied_with_its_external_data_inside(tmp_path: Path, steps: Steps) -> None:
    source = open_source(external(tmp_path, 2.0), steps)
    assert source.graph.parent != tmp_path
    (tmp_path / "weights.bin").unlink()
    copied = onnx.load(source.graph)
    assert numpy_helper.to_array(copied.graph.initializer[0]).tolist() == [2.0]
    assert set(source.inputs) == {tmp_path / "net.onnx", tmp_path / "weights.bin"}


def test_foreign_onnx_is_refused_when_one_file_cannot_hold_it(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MESSAGE_LIMIT_BYTES", 100)
    with pytest.raises(Refusal, match=r"net\.onnx: has 0\.0 GB with its external data"):
        open_source(external(tmp_path, 2.0), steps)


def test_foreign_onnx_is_another_one_when_only_its_external_data_changes(tmp_path: Path, steps: Steps) -> None:
    first = open_source(external(tmp_path, 2.0), steps)
    before = (tmp_path / "net.onnx").read_bytes()
    second = open_source(external(tmp_path, 3.0), steps)
    assert (tmp_path / "net.onnx").read_bytes() == before
    assert sha256_of(first.graph) != sha256_of(second.graph)
    assert numpy_helper.to_array(onnx.load(second.graph).graph.initializer[0]).tolist() == [3.0]


def test_foreign_onnx_without_external_data_is_copied_to_the_byte(tmp_path: Path, steps: Steps) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(scale_proto(2.0).SerializeToString())
    source = open_source(path, steps)
    path.write_bytes(b"edited")
    assert sha256_of(source.graph) == source.contract.source.sha256


def test_onnx_that_is_changed_while_it_is_read_is_refused_and_not_kept(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = external(tmp_path, 2.0)

    def changing(asked: Path) -> ir.Model:
        model = read_onnx(asked)
        external(tmp_path, 3.0)
        return model

    monkeypatch.setattr(module, "read_onnx", changing)
    with pytest.raises(UserInput, match=r"net\.onnx: was changed while it was read"):
        open_source(path, steps)
    monkeypatch.undo()
    monkeypatch.setenv("RKNN_TTS_CACHE", str(tmp_path / "cache"))
    source = open_source(external(tmp_path, 2.0), steps)
    assert numpy_helper.to_array(onnx.load(source.graph).graph.initializer[0]).tolist() == [2.0]
    assert "bare" not in steps.reused
