from __future__ import annotations

import numpy as np
import pytest
from rknn_tts_runtime.faults import Mismatch
from rknn_tts_runtime.manifest import TensorInfo
from rknn_tts_runtime.npu import api
from rknn_tts_runtime.npu.attributes import Attributes, ports, read_attributes

from tests.runtime.npu.fake_npu import FLOAT16, NC1HWC2, NCHW, NHWC, UNDEFINED

Z = TensorInfo("z", (1, 3, 2, 2), "float32")
IDS = TensorInfo("ids", (1, 4), "int64")


def told(info: TensorInfo, shape: tuple[int, ...], fmt: int, elements: int | None = None) -> Attributes:
    raw = api.TensorAttr()
    raw.name = info.name.encode()
    raw.n_dims, raw.fmt, raw.type = len(shape), fmt, FLOAT16
    raw.dims[: len(shape)] = list(shape)
    raw.n_elems = int(np.prod(shape)) if elements is None else elements
    return read_attributes(raw)


def test_nhwc_input_is_turned_into_the_order_of_its_format() -> None:
    (port,) = ports("e.rknn", "inputs", [Z], [told(Z, (1, 2, 2, 3), NHWC)])
    array = np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2)
    # By hand: channels 0, 4, 8 of the first pixel, 1, 5, 9 of the second, and so on.
    assert port.handed_over(array).ravel().tolist() == [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]
    assert port.handed_over(array).flags.c_contiguous
    assert (port.format, port.type, port.nbytes) == (api.FORMAT_NHWC, api.TENSOR_FLOAT32, 48)


def test_an_array_that_lies_channels_last_is_handed_over_without_a_copy() -> None:
    (port,) = ports("e.rknn", "inputs", [Z], [told(Z, (1, 2, 2, 3), NHWC)])
    memory = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3)
    handed = port.handed_over(memory.transpose(0, 3, 1, 2))
    assert np.shares_memory(handed, memory)
    assert handed.ravel().tolist() == list(range(12))


def test_nhwc_output_is_turned_back() -> None:
    (port,) = ports("e.rknn", "outputs", [Z], [told(Z, (1, 2, 2, 3), NHWC)])
    given = np.array([0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11], np.float32)
    assert port.taken_back(given).ravel().tolist() == list(range(12))
    assert port.taken_back(given).shape == (1, 3, 2, 2)


@pytest.mark.parametrize("fmt", [NCHW, UNDEFINED])
def test_other_formats_keep_their_order(fmt: int) -> None:
    (port,) = ports("e.rknn", "inputs", [Z], [told(Z, (1, 3, 2, 2), fmt)])
    array = np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2)
    assert port.handed_over(array).ravel().tolist() == list(range(12))
    assert port.taken_back(np.arange(12, dtype=np.float32)).shape == (1, 3, 2, 2)


def test_tensor_of_three_axes_keeps_its_order_whatever_format_is_told() -> None:
    info = TensorInfo("mask", (1, 2, 5), "float32")
    (port,) = ports("e.rknn", "inputs", [info], [told(info, (1, 2, 5), NHWC)])
    array = np.arange(10, dtype=np.float32).reshape(1, 2, 5)
    assert port.handed_over(array).ravel().tolist() == list(range(10))
    assert port.format == api.FORMAT_NHWC


def test_axes_of_one_may_be_missing_or_too_many() -> None:
    info = TensorInfo("mask", (1, 1, 5), "float32")
    for shape in ((5,), (1, 5), (1, 1, 1, 5)):
        (port,) = ports("e.rknn", "inputs", [info], [told(info, shape, UNDEFINED)])
        assert port.taken_back(np.zeros(5, np.float32)).shape == (1, 1, 5)


def test_tensors_are_found_by_name_and_keep_their_number() -> None:
    found = ports("e.rknn", "inputs", [Z, IDS], [told(IDS, (1, 4), UNDEFINED), told(Z, (1, 2, 2, 3), NHWC)])
    assert [(port.info.name, port.number) for port in found] == [("z", 1), ("ids", 0)]
    assert found[1].type == api.TENSOR_INT64


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ([], r"its inputs are none; its manifest tells of 'z' \[1, 3, 2, 2\]"),
        ([told(IDS, (1, 4), UNDEFINED)], r"its inputs are 'ids' \[1, 4\] UNDEFINED float16"),
        ([told(Z, (1, 3, 2, 2), NHWC)], r"it tells of 'z' \[1, 3, 2, 2\] NHWC float16 with 12 elements"),
        ([told(Z, (1, 2, 2, 4), NHWC)], "with 16 elements; its manifest of 'z'"),
        ([told(Z, (1, 2, 2, 3), NHWC)] * 2, r"its inputs are 'z' \[1, 2, 2, 3\] NHWC float16, 'z'"),
        ([told(Z, (1, 2, 2, 3), NHWC, elements=11)], "with 11 elements"),
        ([told(Z, (2, 2, 3), NHWC)], r"it tells of 'z' \[2, 2, 3\] NHWC"),
        ([told(Z, (1, 2, 3, 2), NCHW)], "NCHW"),
        ([told(Z, (1, 1, 2, 2, 3), NC1HWC2)], "NC1HWC2"),
    ],
)
def test_tensors_that_are_not_the_manifests_are_refused(attributes: list[Attributes], sentence: str) -> None:
    with pytest.raises(Mismatch, match=sentence):
        ports("e.rknn", "inputs", [Z], attributes)


@pytest.mark.parametrize(("kind", "dtype"), [("inputs", "bool"), ("inputs", "float16"), ("outputs", "int64")])
def test_types_that_cannot_be_handed_over_are_refused(kind: str, dtype: str) -> None:
    info = TensorInfo("m", (1, 4), dtype)
    with pytest.raises(Mismatch, match=f"'m' of its {kind} is {dtype}"):
        ports("e.rknn", kind, [info], [told(info, (1, 4), UNDEFINED)])


def test_more_axes_than_there_can_be_are_not_read() -> None:
    raw = api.TensorAttr()
    raw.n_dims = 1 << 31
    assert len(read_attributes(raw).shape) == api.MAX_DIMS
