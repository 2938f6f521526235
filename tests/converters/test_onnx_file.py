from __future__ import annotations

import json
import os
import pickle
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import converters.large_onnx
import converters.onnx_file
from contracts.errors import Refusal, UserInput
from converters.onnx_file import external_files, load_external, read_onnx
from tests.gates.small_graphs import proto, tensor
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import voice_model

VOICE_BYTES = voice_model(Recipe(flows=1, flow_layers=1, strides=(2,))).SerializeToString()
DATA = "weights.bin"
VALUES = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_read_onnx_gives_the_graph_when_the_file_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "voice.onnx"
    path.write_bytes(VOICE_BYTES)
    assert read_onnx(path).graph.num_nodes() == len(onnx.load_from_string(VOICE_BYTES).graph.node)


def in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have files of every size read in place, and weights of every size stay there."""
    monkeypatch.setattr(converters.onnx_file, "IN_PLACE_BYTES", 0)
    monkeypatch.setattr(converters.large_onnx, "LARGE_BYTES", 1)


def test_read_onnx_leaves_weights_where_they_are_when_asked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "voice.onnx"
    path.write_bytes(VOICE_BYTES)
    whole = read_onnx(path, in_place=True)
    in_place(monkeypatch)
    model = read_onnx(path, in_place=True)
    kinds = {type(value.const_value) for value in model.graph.initializers.values()}
    assert ir.ExternalTensor in kinds
    assert ir.ExternalTensor not in {type(value.const_value) for value in whole.graph.initializers.values()}
    assert list(model.graph.initializers) == list(whole.graph.initializers)
    for name, value in whole.graph.initializers.items():
        there = model.graph.initializers[name].const_value
        assert value.const_value is not None
        assert there is not None
        np.testing.assert_array_equal(there.numpy(), value.const_value.numpy())
    assert ir.ExternalTensor not in {type(v.const_value) for v in read_onnx(path).graph.initializers.values()}


@pytest.mark.parametrize("content", [VOICE_BYTES[:-9], VOICE_BYTES[:2000], b"\x00" * 100, b"PK\x03\x04" * 30, b""])
def test_read_onnx_ends_in_a_sentence_when_what_it_reads_in_place_is_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    in_place(monkeypatch)
    path = tmp_path / "voice.onnx"
    path.write_bytes(content)
    with pytest.raises(UserInput, match=r"voice\.onnx: is not an ONNX model, or is cut off"):
        read_onnx(path, in_place=True)
    with pytest.raises(UserInput, match="no such file"):
        read_onnx(tmp_path / "missing.onnx", in_place=True)
    with pytest.raises(UserInput, match="is a folder"):
        read_onnx(tmp_path, in_place=True)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "holds no graph"),
        (b"\x00" * 100, "not an ONNX model"),
        (b"RIFF" + bytes(range(256)), "not an ONNX model"),
        (json.dumps({"audio": {"sample_rate": 22050}}).encode(), "not an ONNX model"),
        (b"PK\x03\x04" + b"\x00" * 60, "not an ONNX model"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:58af\nsize 63201294\n", "not an ONNX model"),
        (b"<!DOCTYPE html><html>Not found</html>", "not an ONNX model"),
        (onnx.ModelProto(ir_version=8).SerializeToString(), "holds no graph"),
    ],
)
def test_read_onnx_names_the_file_when_it_is_something_else(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "voice.onnx"
    path.write_bytes(content)
    with pytest.raises(UserInput, match=says) as caught:
        read_onnx(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_read_onnx_refuses_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match=r"nothing\.onnx: there is no such file"):
        read_onnx(tmp_path / "nothing.onnx")


def test_read_onnx_refuses_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match="is a folder"):
        read_onnx(tmp_path)


def test_read_onnx_opens_no_pipe_and_no_device_for_reading_them_need_not_end(tmp_path: Path) -> None:
    pipe, device = tmp_path / "pipe.onnx", tmp_path / "device.onnx"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path in (pipe, device):
        for read in (read_onnx, external_files):
            with pytest.raises(UserInput, match="is no regular file"):
                read(path)


@pytest.mark.parametrize("link", ["itself.onnx", "nowhere"])
def test_read_onnx_refuses_a_link_that_leads_nowhere(tmp_path: Path, link: str) -> None:
    path = tmp_path / "itself.onnx"
    path.symlink_to(link)
    for read in (read_onnx, external_files):
        with pytest.raises(UserInput, match=r"itself\.onnx: (cannot be read|there is no such file)"):
            read(path)


def test_read_onnx_reads_nothing_of_a_file_that_is_too_large_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "voice.onnx"
    with path.open("wb") as file:
        file.truncate(100 << 30)  # a hole: it takes no room on the disk
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("it is read"))
    for read in (read_onnx, external_files):
        with pytest.raises(UserInput, match=r"has 107\.4 GB, and one file holds 2\.1 GB at most"):
            read(path)


class Touching:
    """Executes a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.path}",)


def pickled(path: Path, payload: object) -> None:
    path.write_bytes(pickle.dumps(payload))


def torch_archive(path: Path, payload: object) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(payload, 2))


def object_array(path: Path, payload: object) -> None:
    with path.open("wb") as file:
        np.save(file, np.array([payload], dtype=object), allow_pickle=True)


def object_archive(path: Path, payload: object) -> None:
    with path.open("wb") as file:
        np.savez(file, x=np.array([payload], dtype=object))


@pytest.mark.parametrize("write", [pickled, torch_archive, object_array, object_archive])
def test_read_onnx_executes_nothing_of_a_checkpoint_that_would(
    tmp_path: Path, write: Callable[[Path, object], None]
) -> None:
    path, touched = tmp_path / "voice.onnx", tmp_path / "touched"
    write(path, Touching(touched))
    with pytest.raises(UserInput, match="not an ONNX model"):
        read_onnx(path)
    assert not touched.exists()


@pytest.mark.parametrize("tenths", range(1, 10))
def test_read_onnx_refuses_a_voice_that_is_cut_off(tmp_path: Path, tenths: int) -> None:
    path = tmp_path / "voice.onnx"
    path.write_bytes(VOICE_BYTES[: len(VOICE_BYTES) * tenths // 10])
    with pytest.raises(UserInput, match=r"voice\.onnx: is not an ONNX model, or is cut off"):
        read_onnx(path)


def test_read_onnx_refuses_a_voice_that_lacks_only_its_opset(tmp_path: Path) -> None:
    model = onnx.load_from_string(VOICE_BYTES)
    del model.opset_import[:]
    path = tmp_path / "voice.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(UserInput, match="opset"):
        read_onnx(path)


def _only_sentences(path: Path) -> None:
    """Whatever else is raised fails the test."""
    with suppress(UserInput, Refusal):
        read_onnx(path)


BOUNDED = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)


@BOUNDED
@given(length=st.integers(0, len(VOICE_BYTES)))
def test_read_onnx_ends_in_a_sentence_when_a_file_is_cut_anywhere(tmp_path: Path, length: int) -> None:
    path = tmp_path / "voice.onnx"
    path.write_bytes(VOICE_BYTES[:length])
    _only_sentences(path)


@BOUNDED
@given(flips=st.lists(st.tuples(st.integers(0, len(VOICE_BYTES) - 1), st.integers(1, 255)), min_size=1, max_size=8))
def test_read_onnx_ends_in_a_sentence_when_bytes_are_flipped(tmp_path: Path, flips: list[tuple[int, int]]) -> None:
    data = bytearray(VOICE_BYTES)
    for position, change in flips:
        data[position] ^= change
    path = tmp_path / "voice.onnx"
    path.write_bytes(bytes(data))
    _only_sentences(path)


def _external(location: str, **place: int) -> TensorProto:
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=VALUES.shape, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **place}.items():
        entry = weight.external_data.add()
        entry.key, entry.value = key, str(value)
    return weight


def _in_initializer(weight: TensorProto) -> onnx.ModelProto:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], "matmul")]
    return proto(nodes, [tensor("x", [1, 3])], [tensor("y", [1, 4])], [weight])


def _in_constant_node(weight: TensorProto) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Constant", [], ["w"], "constant", value=weight),
        helper.make_node("MatMul", ["x", "w"], ["y"], "matmul"),
    ]
    return proto(nodes, [tensor("x", [1, 3])], [tensor("y", [1, 4])])


def _in_branch(weight: TensorProto) -> onnx.ModelProto:
    body = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["b"], "matmul")], "branch", [], [tensor("b", [1, 4])], [weight]
    )
    nodes = [helper.make_node("If", ["c"], ["y"], "if", then_branch=body, else_branch=body)]
    return proto(nodes, [tensor("x", [1, 3]), tensor("c", [], TensorProto.BOOL)], [tensor("y", [1, 4])])


def _in_function(weight: TensorProto) -> onnx.ModelProto:
    body = [
        helper.make_node("Constant", [], ["w"], "constant", value=weight),
        helper.make_node("MatMul", ["a", "w"], ["b"], "matmul"),
    ]
    function = helper.make_function("local", "F", ["a"], ["b"], body, [helper.make_opsetid("", 17)])
    model = proto(
        [helper.make_node("F", ["x"], ["y"], "call", domain="local")], [tensor("x", [1, 3])], [tensor("y", [1, 4])]
    )
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.functions.append(function)
    return model


PLACES = [_in_initializer, _in_constant_node, _in_branch, _in_function]
Place = Callable[[TensorProto], onnx.ModelProto]


def _save(folder: Path, model: onnx.ModelProto) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_read_onnx_reads_external_data_beside_the_model_from_any_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _save(tmp_path / "voice", _in_initializer(_external(DATA, offset=16, length=48)))
    (path.parent / DATA).write_bytes(b"\x00" * 16 + VALUES.tobytes())
    monkeypatch.chdir(tmp_path)
    for given_path in (path, path.relative_to(tmp_path)):
        weight = read_onnx(given_path).graph.initializers["w"].const_value
        assert weight is not None
        np.testing.assert_array_equal(weight.numpy(), VALUES)


def test_read_onnx_reads_external_data_beside_a_link_to_the_model(tmp_path: Path) -> None:
    path = _save(tmp_path / "store", _in_initializer(_external(DATA)))
    link = tmp_path / "voice" / "model.onnx"
    link.parent.mkdir()
    link.symlink_to(path)
    (link.parent / DATA).write_bytes(VALUES.tobytes())
    weight = read_onnx(link).graph.initializers["w"].const_value
    assert weight is not None
    np.testing.assert_array_equal(weight.numpy(), VALUES)


@pytest.mark.parametrize("place", PLACES)
def test_read_onnx_names_the_file_when_external_data_is_missing(tmp_path: Path, place: Place) -> None:
    path = _save(tmp_path, place(_external(DATA)))
    with pytest.raises(Refusal, match=rf"{DATA} of the tensor w is missing"):
        read_onnx(path)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "location", ["../secret.bin", "inner/../../secret.bin", "ABSOLUTE", "link.bin", "linked/secret.bin"]
)
def test_read_onnx_refuses_external_data_outside_the_models_folder(tmp_path: Path, location: str, place: Place) -> None:
    folder, secret = tmp_path / "voice", tmp_path / "secret.bin"
    (folder / "inner").mkdir(parents=True)
    secret.write_bytes(VALUES.tobytes())
    (folder / "link.bin").symlink_to(secret)
    (folder / "linked").symlink_to(tmp_path)
    path = _save(folder, place(_external(str(secret) if location == "ABSOLUTE" else location)))
    with pytest.raises(Refusal, match="outside the model's folder"):
        read_onnx(path)


@pytest.mark.parametrize(
    ("stored_bytes", "where"), [(47, {}), (0, {}), (48, {"offset": 4}), (60, {"offset": 16, "length": 48})]
)
def test_read_onnx_says_both_sizes_when_external_data_is_cut_off(
    tmp_path: Path, stored_bytes: int, where: dict[str, int]
) -> None:
    path = _save(tmp_path, _in_initializer(_external(DATA, **where)))
    (tmp_path / DATA).write_bytes(b"\x00" * stored_bytes)
    needed = 48 + where.get("offset", 0)
    with pytest.raises(Refusal, match=rf"is cut off: the tensor w needs {needed} bytes of it, it has {stored_bytes}"):
        read_onnx(path)


@pytest.mark.parametrize("location", ["a\0b", "x" * 5000, "itself.bin"], ids=["NUL", "endless", "a link to itself"])
def test_read_onnx_says_so_when_external_data_has_a_name_that_no_file_has(tmp_path: Path, location: str) -> None:
    (tmp_path / "itself.bin").symlink_to("itself.bin")
    path = _save(tmp_path, _in_initializer(_external(location)))
    with pytest.raises(Refusal, match=r"of the tensor w (cannot be read|is missing)") as caught:
        read_onnx(path)
    assert len(str(caught.value)) < 1000


def test_read_onnx_refuses_external_data_in_a_file_without_end(tmp_path: Path) -> None:
    path = _save(tmp_path, _in_initializer(_external(DATA)))
    with (tmp_path / DATA).open("wb") as file:
        file.truncate(200 << 30)  # a hole: it takes no room on the disk
    with pytest.raises(Refusal, match=r"has 214\.7 GB, more than the 17\.2 GB"):
        external_files(path)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (os.mkfifo, "is no regular file"),
        (Path.mkdir, "is a folder"),
        (lambda path: path.symlink_to("/dev/zero"), "outside"),
    ],
)
def test_read_onnx_says_what_external_data_is_that_is_no_regular_file(
    tmp_path: Path, make: Callable[[Path], None], kind: str
) -> None:
    make(tmp_path / DATA)
    with pytest.raises(Refusal, match=kind) as caught:
        read_onnx(_save(tmp_path, _in_initializer(_external(DATA))))
    assert "missing" not in str(caught.value)


def test_read_onnx_reads_external_data_of_a_function_from_any_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _save(tmp_path / "voice", _in_function(_external(DATA)))
    (path.parent / DATA).write_bytes(VALUES.tobytes())
    monkeypatch.chdir(tmp_path)
    (function,) = read_onnx(path).functions.values()
    np.testing.assert_array_equal(function[0].attributes["value"].as_tensor().numpy(), VALUES)


@pytest.mark.parametrize("place", PLACES)
def test_load_external_takes_all_data_into_memory_wherever_a_graph_keeps_it(place: Place, tmp_path: Path) -> None:
    path = _save(tmp_path, place(_external(DATA)))
    (tmp_path / DATA).write_bytes(VALUES.tobytes())
    model = read_onnx(path)
    load_external(model)
    (tmp_path / DATA).unlink()
    written = ir.to_proto(model).SerializeToString()
    assert VALUES.tobytes() in written
    assert DATA.encode() not in written


@pytest.mark.parametrize("where", [{"length": 8}, {"length": 52}, {"length": -48}, {"offset": -4}])
def test_read_onnx_refuses_external_data_whose_place_makes_no_sense(tmp_path: Path, where: dict[str, int]) -> None:
    path = _save(tmp_path, _in_initializer(_external(DATA, **where)))
    (tmp_path / DATA).write_bytes(b"\x00" * 100)
    with pytest.raises((UserInput, Refusal), match="w"):
        read_onnx(path)
