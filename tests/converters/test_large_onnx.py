"""An ONNX written and read without a second copy of its weights: the bytes are protobuf's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from contracts.files import sha256_of
from converters.large_onnx import LARGE_BYTES, read_shell, sha256_of_onnx, stream_onnx, write_onnx

EDGE = LARGE_BYTES // 4  # floats


def proto(*tensors: TensorProto) -> onnx.ModelProto:
    """A model of all fields that stand around weights: nodes, a name, inputs, metadata, a function."""
    rng = np.random.default_rng(5)
    weights = [
        numpy_helper.from_array(rng.normal(size=(EDGE + 3,)).astype(np.float32), "large"),
        numpy_helper.from_array(np.arange(3, dtype=np.int64), "small"),
        numpy_helper.from_array(rng.normal(size=(EDGE - 1,)).astype(np.float32), "below"),
        numpy_helper.from_array(rng.normal(size=(2, EDGE)).astype(np.float16), "half"),
        *tensors,
    ]
    nodes = [
        helper.make_node("Add", ["x", "large"], ["y"], name="add", doc_string="a node"),
        helper.make_node("f", ["y"], ["z"], domain="own"),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "net", [value("x", TensorProto.FLOAT, [EDGE + 3])], [value("z", TensorProto.FLOAT, [EDGE + 3])],
        initializer=weights, doc_string="a graph", value_info=[value("y", TensorProto.FLOAT, [EDGE + 3])],
    )  # fmt: skip
    function = helper.make_function(
        "own", "f", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], [helper.make_opsetid("", 17)]
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("own", 1)], functions=[function],
        producer_name="test", doc_string="a model", ir_version=8,
    )  # fmt: skip
    model.metadata_props.add(key="key", value="value")
    return model


def as_floats(name: str) -> TensorProto:
    """A large tensor whose numbers do not stand as raw data."""
    return helper.make_tensor(name, TensorProto.FLOAT, [EDGE], np.arange(EDGE, dtype=np.float32))


def strings() -> TensorProto:
    """A large tensor of texts."""
    return numpy_helper.from_array(np.array(["text" * 9] * 9000, dtype=object), "s")


def in_memory(model: ir.Model) -> ir.Model:
    """`model` with weights that are arrays, as converters have them."""
    for value in model.graph.initializers.values():
        assert value.const_value is not None
        value.const_value = ir.Tensor(value.const_value.numpy(), name=value.name, doc_string="a weight")
    return model


MODELS: list[tuple[str, Callable[[], ir.Model]]] = [
    ("read", lambda: ir.from_proto(proto(as_floats("floats")))),
    ("arrays", lambda: in_memory(ir.from_proto(proto()))),
    ("strings", lambda: ir.from_proto(proto(strings()))),
]


@pytest.mark.parametrize("made", [make for _, make in MODELS], ids=[name for name, _ in MODELS])
def test_written_bytes_are_those_of_protobuf(tmp_path: Path, made: Callable[[], ir.Model]) -> None:
    model = made()
    wanted = ir.to_proto(model).SerializeToString(deterministic=True)
    path = tmp_path / "model.onnx"
    write_onnx(model, path)
    assert path.read_bytes() == wanted
    assert sha256_of_onnx(model) == sha256_of(path)
    assert ir.to_proto(model).SerializeToString(deterministic=True) == wanted  # it is as it was


def test_no_piece_holds_two_large_weights() -> None:
    pieces: list[int] = []
    model = in_memory(ir.from_proto(proto()))
    stream_onnx(model, lambda piece: pieces.append(len(piece)))
    # A message of up to two bounds may hold what is below the bound; of two large tensors together it would be more.
    assert max(pieces) < 2 * LARGE_BYTES < sum(pieces)


def test_read_weights_stay_in_the_file(tmp_path: Path) -> None:
    model, path = proto(as_floats("floats")), tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString(deterministic=True))
    shell = read_shell(path)
    assert {tensor.name for tensor in shell.graph.initializer if tensor.external_data} == {"large", "half"}
    assert shell.ByteSize() < path.stat().st_size - 2 * 4 * EDGE + 200
    onnx.load_external_data_for_model(shell, str(tmp_path))
    for tensor in shell.graph.initializer:  # now they hold what they said where to find
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
    assert shell == model


def test_what_was_read_so_is_written_whole_again(tmp_path: Path) -> None:
    path, again = tmp_path / "model.onnx", tmp_path / "again.onnx"
    write_onnx(in_memory(ir.from_proto(proto())), path)
    model = ir.from_proto(read_shell(path))
    for value in model.graph.initializers.values():
        if isinstance(value.const_value, ir.ExternalTensor):
            value.const_value.base_dir = tmp_path
    write_onnx(model, again)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("cut", [1, 100, LARGE_BYTES, 3 * LARGE_BYTES])
def test_file_that_is_cut_off_is_no_model(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(proto().SerializeToString()[:-cut])
    with pytest.raises(ValueError, match=r"cut off|begins no field"):
        read_shell(path)


def test_file_that_is_none_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x0f" * 40)
    with pytest.raises(ValueError, match="begins no field"):
        read_shell(path)
    path.write_bytes(b"\xff" * LARGE_BYTES)
    with pytest.raises(ValueError, match="cut off"):
        read_shell(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="empty"):
        read_shell(path)
