from __future__ import annotations

import contextlib
import io
import os
import pickle
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto

from contracts.errors import UserInput
from rknn_tts import array_archive
from rknn_tts.inputs_file import read_inputs
from tests.gates.small_graphs import model, tensor
from tests.rknn_tts.test_carried_hostile import HEADERS, archive, npy
from tests.surgery.interfaces import node

INPUTS = [
    tensor("tokens", [1, 4], TensorProto.INT64),
    tensor("enc/mask", [1, "T"], TensorProto.BOOL),
    tensor("speed", []),
]
TOKENS = np.array([[1, 2, 3, 4]], np.int64)
MASK = np.ones((1, 6), np.bool_)
SPEED = np.float32(0.5)
GOOD: dict[str, Any] = {"tokens": TOKENS, "enc/mask": MASK, "speed": SPEED}


def specs() -> list[ir.Value]:
    nodes = [node("Identity", "tokens", "y")]
    return list(model(nodes, INPUTS, [tensor("y", [1, 4], TensorProto.INT64)]).graph.inputs)


def saved(folder: Path, arrays: dict[str, Any], save: Callable[..., None] = np.savez) -> Path:
    path = folder / "in puts é.npz"
    save(path, **arrays)
    return path


def windows(*feeds: dict[str, Any]) -> dict[str, Any]:
    return {f"{i}/{name}": array for i, feed in enumerate(feeds) for name, array in feed.items()}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_read_inputs_reads_one_window_in_the_order_of_the_graph(tmp_path: Path, save: Callable[..., None]) -> None:
    (feed,) = read_inputs(saved(tmp_path, dict(reversed(GOOD.items())), save), specs())
    assert list(feed) == list(GOOD)
    for name, array in GOOD.items():
        np.testing.assert_array_equal(feed[name], array)
        assert feed[name].dtype == array.dtype


def test_read_inputs_reads_windows_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    feeds = [{**GOOD, "speed": np.float32(i)} for i in range(12)]
    read = read_inputs(saved(tmp_path, windows(*reversed(feeds))), specs())
    assert [float(feed["speed"]) for feed in read] == [11.0 - i for i in range(12)]


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("tokens", TOKENS.astype(np.int32)),
        ("tokens", TOKENS.astype(np.uint8)),
        ("tokens", TOKENS.astype(np.uint64)),
        ("tokens", TOKENS.astype(np.float64)),
        ("tokens", TOKENS.astype(">i8")),
        ("tokens", np.asfortranarray(TOKENS)),
        ("speed", np.float64(0.5)),
        ("speed", np.float16(0.5)),
        ("speed", np.int64(2)),
        ("enc/mask", MASK.astype(np.int64)),
        ("enc/mask", MASK.astype(np.float32)),
        ("enc/mask", MASK[:, :1]),
    ],
)
def test_read_inputs_casts_when_nothing_is_lost(tmp_path: Path, name: str, array: NDArray[Any]) -> None:
    (feed,) = read_inputs(saved(tmp_path, {**GOOD, name: array}), specs())
    assert feed[name].dtype == GOOD[name].dtype
    assert feed[name].shape == array.shape
    np.testing.assert_array_equal(feed[name], array)


def changed(name: str, array: Any) -> dict[str, Any]:
    return {**GOOD, name: array}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "missing": ({"tokens": TOKENS, "enc/mask": MASK}, r'no array for the input speed; add it as "speed" \(float32 of'),
    "missing in a window": (windows(GOOD, {"tokens": TOKENS, "speed": SPEED}), r'add it as "1/enc/mask" \(bool of'),
    "empty": ({}, "no array for the input tokens"),
    "misspelt": (changed("token", TOKENS), "array 'token', and there is no such input. Did you mean tokens?"),
    "unknown": (changed("qqqq", TOKENS), "'qqqq', and there is no such input. The inputs are tokens, enc/mask, speed"),
    "misspelt in a window": (windows(changed("token", TOKENS)), "'0/token', .* Did you mean tokens?"),
    "odd window": (changed("01/tokens", TOKENS), "'01/tokens', and there is no such input"),
    "window -1": (changed("-1/tokens", TOKENS), "'-1/tokens', and there is no such input"),
    "both": ({**GOOD, **windows(GOOD)}, "holds an array tokens and one of a window"),
    "rank": (changed("tokens", TOKENS[0]), r"array tokens has the shape \[4\]; int64 of shape \[1, 4\] is needed"),
    "size": (changed("tokens", TOKENS[:, :3]), r"has the shape \[1, 3\]"),
    "vector for a scalar": (changed("speed", [0.5]), r"array speed has the shape \[1\]; float32 of shape \[\] is"),
    "open size": (changed("enc/mask", MASK[0]), r"bool of shape \[1, T\] is needed"),
    "windows unlike": (windows(GOOD, changed("enc/mask", MASK[:, :5])), r"shapes \[1, 6\] and \[1, 5\] for the input"),
    "halves for integers": (changed("tokens", TOKENS + 0.5), "is float64 and would lose something as int64"),
    "double for float": (changed("speed", np.float64(0.1)), "float64 and would lose something as float32, which is"),
    "too large for float": (changed("speed", np.float64(1e300)), "would lose something"),
    "two for a truth value": (changed("enc/mask", MASK * 2), "would lose something as bool"),
    "unsigned past the sign": (changed("tokens", TOKENS.astype(np.uint64) + np.uint64(2**63)), "would lose something"),
    "NaN": (changed("speed", np.float32(np.nan)), "array speed holds a NaN or an infinity"),
    "infinity in a window": (windows(GOOD, changed("speed", np.float32(np.inf))), "array 1/speed holds a NaN"),
    "text": (changed("speed", "fast"), "array speed is of the type <U4, which is no number"),
    "complex": (changed("speed", np.complex64(1)), "type complex64, which is no number"),
    "dates": (changed("speed", np.datetime64("2020-01-01")), "which is no number"),
    "records": (changed("speed", np.zeros((), [("a", "f4")])), "which is no number"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_read_inputs_names_the_array_and_what_is_needed_when_one_does_not_fit(tmp_path: Path, case: str) -> None:
    arrays, sentence = REFUSED[case]
    with pytest.raises(UserInput, match=sentence) as error:
        read_inputs(saved(tmp_path, arrays), specs())
    assert str(error.value).startswith("--inputs ")
    assert "\n" not in str(error.value)


class _Executes:
    """Leaves a file behind where it is unpickled."""

    def __init__(self, left: Path) -> None:
        self.left = left

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.left,)


def _objects(path: Path) -> None:
    np.savez(path, tokens=np.array([_Executes(path.with_name("executed"))], dtype=object))


def _bare_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps(_Executes(path.with_name("executed"))))


def _pickle_inside(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tokens.npy", pickle.dumps(_Executes(path.with_name("executed"))))


def _torch_checkpoint(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(_Executes(path.with_name("executed"))))


def _one_npy(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, TOKENS)


def _claims(shape: str, *, dtype: str = "<i8", data: bytes = bytes(32)) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
        header = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("tokens.npy", header + data)

    return write


def _truncated(path: Path) -> None:
    data = io.BytesIO()
    np.savez(data, **GOOD)
    path.write_bytes(data.getvalue()[: len(data.getvalue()) // 2])


def _flipped(path: Path) -> None:
    data = io.BytesIO()
    np.savez(data, tokens=TOKENS)
    bits = bytearray(data.getvalue())
    bits[bits.index(TOKENS.tobytes())] ^= 1
    path.write_bytes(bits)


def _twice(path: Path) -> None:
    data = io.BytesIO()
    np.save(data, TOKENS)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tokens.npy", data.getvalue())
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("tokens.npy", data.getvalue())


HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "no file": (lambda path: None, "there is no such file"),
    "folder": (Path.mkdir, "is no regular file"),
    "pipe": (os.mkfifo, "is no regular file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "is no regular file"),
    "link to itself": (lambda path: path.symlink_to(path), "there is no such file"),
    "empty file": (Path.touch, "it is no .npz file"),
    "text": (lambda path: path.write_text("tokens"), "it is no .npz file"),  # type: ignore[dict-item] # returns a size
    "one .npy": (_one_npy, "it is no .npz file"),
    "bare pickle": (_bare_pickle, "it is no .npz file"),
    "pickle inside": (_pickle_inside, "it is damaged"),
    "torch checkpoint": (_torch_checkpoint, "holds 'archive/data.pkl', which is no numpy array"),
    "Python objects": (_objects, "'tokens' holds Python objects, which are not read"),
    "truncated": (_truncated, "it is no .npz file"),
    "flipped bit": (_flipped, "it is damaged"),
    "two of one name": (_twice, "two arrays of the name 'tokens'"),
    "claims more": (_claims("(1, 1000000000000)"), "it is damaged .*not as large as it says"),
    "claims less": (_claims("(1, 2)"), "it is damaged .*not as large as it says"),
    "claims overflow": (_claims(f"({2**40}, {2**40})"), "it is damaged"),
    "negative size": (_claims("(-1, -4)"), "it is damaged"),
    "no data type": (_claims("(1, 4)", dtype="zz"), "it is damaged"),
    "header that computes": (_claims("__import__('os').getpid()"), "it is damaged"),
    "no data": (_claims("(1, 4)", data=b""), "it is damaged"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_read_inputs_refuses_in_one_sentence_and_executes_nothing_when_the_file_is_hostile(
    tmp_path: Path, case: str
) -> None:
    write, sentence = HOSTILE[case]
    path = tmp_path / "inputs.npz"
    write(path)
    with pytest.raises(UserInput, match=sentence) as error:
        read_inputs(path, specs())
    assert str(error.value).startswith(f"--inputs {path}: ")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "executed").exists()


def test_read_inputs_unpacks_nothing_when_the_file_claims_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_archive, "FEEDS_LIMIT_BYTES", 1000)
    path = saved(tmp_path, {"tokens": np.zeros((1, 4000), np.int64)}, np.savez_compressed)
    assert path.stat().st_size < 1000
    with pytest.raises(UserInput, match="is the limit; give fewer windows"):
        read_inputs(path, specs())


def _packed(save: Callable[..., None]) -> bytes:
    data = io.BytesIO()
    save(data, **GOOD)
    return data.getvalue()


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    data=st.sampled_from([_packed(np.savez), _packed(np.savez_compressed)]),
    cut=st.tuples(st.integers(0, 1000), st.integers(0, 8)),
    put=st.binary(max_size=8),
)
def test_read_inputs_reads_or_refuses_when_bytes_are_changed(data: bytes, cut: tuple[int, int], put: bytes) -> None:
    start, length = cut
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "inputs.npz"
        path.write_bytes(data[:start] + put + data[start + length :])
        with contextlib.suppress(UserInput):
            (feed,) = read_inputs(path, specs())
            assert [array.shape for array in feed.values()] == [(1, 4), MASK.shape, ()]


def test_file_without_end_is_neither_read_nor_digested(tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    with path.open("wb") as file:
        file.truncate(100 << 30)  # a hole: it takes no room on the disk
    for read in (array_archive.read_archive, array_archive.archive_digest):
        with pytest.raises(UserInput, match=r"^--inputs in: has 107\.4 GB, and 2\.1 GB is the limit"):
            read(path, "--inputs in")


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_read_inputs_refuses_whatever_a_header_says_that_is_no_array_of_numbers(tmp_path: Path, header: str) -> None:
    path = tmp_path / "in.npz"
    path.write_bytes(archive(npy(header), "tokens.npy"))
    with pytest.raises(UserInput, match=rf"^--inputs {path}: "):
        read_inputs(path, specs())


def test_read_inputs_gives_one_empty_window_when_the_graph_has_no_inputs(tmp_path: Path) -> None:
    assert read_inputs(saved(tmp_path, {}), []) == ({},)
