"""Feeds that nobody packed: whatever their bytes, they are refused in a sentence, and nothing of them is executed."""

from __future__ import annotations

import base64
import io
import os
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from contracts.errors import UserInput
from rknn_tts.carried import FEEDS_KEY, carried_feeds, feeds_to_npz
from tests.gates.small_graphs import scale_proto
from tests.mutations import mutations

FOUR = np.ones(4, np.float32).tobytes()


def carrying(npz: bytes) -> ir.Model:
    model = ir.from_proto(scale_proto(2.0))
    model.metadata_props[FEEDS_KEY] = base64.b64encode(zlib.compress(npz)).decode()
    return model


def archive(member: bytes, name: str = "0/x.npy") -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as members:
        members.writestr(name, member)
    return packed.getvalue()


def npy(header: str) -> bytes:
    """An array file with `header`, and four floats behind it."""
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + FOUR


def described(shape: str = "(4,)", descr: str = "'<f4'", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}\n"


HEADERS = {
    "a negative size": described("(-4,)"),
    "two of them": described("(-2, -2)"),
    "terabytes": described("(1000000000000,)"),
    "past 64 bits": described(f"({'9' * 30},)"),
    "a product past 64 bits": described("(4294967296, 4294967296)"),
    "a size that is no number": described("('a',)"),
    "a size that is a truth value": described("(True,)"),
    "objects": described(descr="'|O'"),
    "records": described(descr="[('a', '<f4')]"),
    "texts": described(descr="'<U4'", shape="(1,)"),
    "dates": described(descr="'<M8[Y]'", shape="(2,)"),
    "no type": described(descr="'zz'"),
    "an endless type": described(descr="'<U1000000000'"),
    "an order that is none": described(order="3"),
    "no end": "{'descr': '<f4'",
    "a call": described("__import__('os').system('false')"),
    "brackets without end": "(" * 9000,
    "nothing": "",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_feeds_are_refused_when_their_header_is(header: str) -> None:
    with pytest.raises(UserInput, match=r"^m\.onnx: carries damaged feeds \("):
        carried_feeds(carrying(archive(npy(header))), "m.onnx")


def test_feeds_are_read_when_their_header_is_sound() -> None:
    (feed,) = carried_feeds(carrying(archive(npy(described()))), "m.onnx")
    assert feed["x"].tolist() == [1.0] * 4


@pytest.mark.parametrize("name", ["x.npy", "a/x.npy", "../../x.npy", f"{'9' * 5000}/x.npy"])
def test_feeds_are_refused_when_their_window_is_no_number(name: str) -> None:
    with pytest.raises(UserInput, match="damaged feeds"):
        carried_feeds(carrying(archive(npy(described()), name)), "m.onnx")


class Touching:
    """Executes a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.path}",)


def test_feeds_execute_nothing_when_they_hold_a_pickle(tmp_path: Path) -> None:
    packed, touched = io.BytesIO(), tmp_path / "touched"
    np.save(packed, np.array([Touching(touched)], dtype=object), allow_pickle=True)
    with pytest.raises(UserInput, match="damaged feeds"):
        carried_feeds(carrying(archive(packed.getvalue())), "m.onnx")
    assert not touched.exists()


def test_damaged_feeds_end_in_a_sentence_or_are_arrays() -> None:
    whole = feeds_to_npz([{"x": np.ones((1, 4), np.float32), "ids": np.arange(3)}, {"x": np.zeros((1, 4), np.float32)}])
    for damaged in mutations(whole, 2000):
        with suppress(UserInput):
            for feed in carried_feeds(carrying(damaged), "m.onnx"):
                assert all(isinstance(array, np.ndarray) for array in feed.values())
