"""A tensor's claim is compared with the bytes that are there, and nothing is allocated for it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, numpy_helper

from converters.onnx_tensors import stored_bytes, tensor_fault

FOUR = np.ones(4, np.float32).tobytes()


def tensor(dims: list[int], data_type: int = TensorProto.FLOAT, **fields: Any) -> TensorProto:
    """A tensor w with the given fields, lists appended."""
    made = TensorProto(name="w", data_type=data_type, dims=dims)
    for name, value in fields.items():
        if isinstance(value, list):
            getattr(made, name).extend(value)
        else:
            setattr(made, name, value)
    return made


def external(data_type: int = TensorProto.FLOAT, **place: str) -> TensorProto:
    made = tensor([4], data_type, data_location=TensorProto.EXTERNAL)
    for key, value in place.items():
        entry = made.external_data.add()
        entry.key, entry.value = key, value
    return made


def segmented() -> TensorProto:
    made = tensor([4], raw_data=FOUR)
    made.segment.end = 2
    return made


SOUND = {
    "raw": tensor([2, 2], raw_data=FOUR),
    "scalar": tensor([], raw_data=FOUR[:4]),
    "empty": tensor([0, 4]),
    "empty raw": tensor([4, 0], raw_data=b""),
    "floats": tensor([4], float_data=[1.0] * 4),
    "halves": tensor([4], TensorProto.FLOAT16, int32_data=[1, 2, 3, 4]),
    "bools": tensor([2], TensorProto.BOOL, int32_data=[0, 1]),
    "longs": tensor([2], TensorProto.INT64, int64_data=[1, 2]),
    "unsigned": tensor([2], TensorProto.UINT32, uint64_data=[1, 2]),
    "doubles": tensor([2], TensorProto.DOUBLE, double_data=[1.0, 2.0]),
    "complex": tensor([2], TensorProto.COMPLEX64, float_data=[1.0] * 4),
    "texts": tensor([2], TensorProto.STRING, string_data=[b"a", b"\xff"]),
    "odd number of nibbles": tensor([3], TensorProto.INT4, raw_data=b"\x11\x01"),
    "nibbles as numbers": tensor([3], TensorProto.UINT4, int32_data=[0x11, 1]),
    "in another file": external(location="w.bin", offset="4", length="16"),
    "in another file, with what onnxruntime adds": external(location="w.bin", prepacked_0="x|1|0|8"),
    "made by onnx": numpy_helper.from_array(np.arange(6, dtype=np.int16).reshape(2, 3), "w"),
    "made by onnx as texts": numpy_helper.from_array(np.array(["a"], dtype=object), "w"),
    "made by onnx as bfloat16": numpy_helper.from_array(np.ones(3, ml_dtypes.bfloat16), "w"),
}


@pytest.mark.parametrize("sound", SOUND.values(), ids=SOUND)
def test_tensor_fault_is_none_when_the_data_fits(sound: TensorProto) -> None:
    assert tensor_fault(sound) is None


FAULTS = {
    "no data": (tensor([4]), "needs 4 values, the file holds 0"),
    "terabytes that are not there": (tensor([10**6, 10**6]), "needs 1000000000000 values, the file holds 0"),
    "an endless axis": (tensor([10**12], raw_data=FOUR), "each axis has 0 to 2147483647 elements"),
    "an endless axis of an empty tensor": (tensor([2**62, 0], raw_data=b""), "each axis has 0 to 2147483647 elements"),
    "a product past 64 bits": (tensor([2**31 - 1] * 4, raw_data=FOUR), "the file holds 16"),
    "a negative axis": (tensor([-4], raw_data=FOUR), "shape [-4]"),
    "two negative axes": (tensor([-2, -2], raw_data=FOUR), "shape [-2, -2]"),
    "too many axes": (tensor([1] * 33, raw_data=FOUR[:4]), "33 axes, more than 32"),
    "too short": (tensor([4], raw_data=FOUR[:15]), "needs 16 bytes, the file holds 15"),
    "too long": (tensor([4], raw_data=FOUR + b"\0"), "needs 16 bytes, the file holds 17"),
    "too few numbers": (tensor([4], float_data=[1.0] * 3), "needs 4 values, the file holds 3"),
    "half a complex number": (tensor([2], TensorProto.COMPLEX64, float_data=[1.0] * 3), "needs 4 values"),
    "another type's field": (tensor([1], TensorProto.INT64, float_data=[1.0]), "in float_data, not in int64_data"),
    "data twice": (tensor([4], raw_data=FOUR, float_data=[1.0] * 4), "twice, in raw_data and in float_data"),
    "an unknown type": (tensor([4], 99, raw_data=FOUR), "the type 99, which ONNX does not know"),
    "no type": (tensor([4], 0, raw_data=FOUR), "the type 0"),
    "raw texts": (tensor([4], TensorProto.STRING, raw_data=FOUR), "texts as raw bytes"),
    "too few texts": (tensor([4], TensorProto.STRING, string_data=[b"a"]), "needs 4 values, the file holds 1"),
    "segments": (segmented(), "segments"),
    "texts in another file": (external(TensorProto.STRING, location="w.bin"), "texts in another file"),
    "no other file": (external(offset="4"), "does not name it"),
    "an empty name": (external(location=""), "does not name it"),
    "a negative offset": (external(location="w.bin", offset="-4"), "at the offset '-4'"),
    "an offset in words": (external(location="w.bin", offset="four"), "at the offset 'four'"),
    "an endless offset": (external(location="w.bin", offset="9" * 5000), "at the offset '999"),
    "a negative length": (external(location="w.bin", length="-16"), "at the length '-16'"),
}


@pytest.mark.parametrize(("damaged", "says"), FAULTS.values(), ids=FAULTS)
def test_tensor_fault_names_the_tensor_and_both_sizes_when_the_data_does_not_fit(
    damaged: TensorProto, says: str
) -> None:
    fault = tensor_fault(damaged)
    assert fault is not None
    assert fault.startswith("the tensor w ")
    assert says in fault
    assert len(fault) < 300


def test_tensor_fault_says_data_inside_and_outside_when_there_is_both() -> None:
    both = external(location="w.bin")
    both.raw_data = FOUR
    assert "both inside and in another file" in str(tensor_fault(both))


def test_tensor_fault_names_a_tensor_without_a_name_when_it_has_none() -> None:
    nameless = tensor([4])
    nameless.name = ""
    assert str(tensor_fault(nameless)).startswith("the tensor without a name")


@pytest.mark.parametrize(
    "kind", [kind for kind in ir.DataType if kind not in (ir.DataType.UNDEFINED, ir.DataType.STRING)]
)
def test_stored_bytes_is_what_onnx_ir_stores_when_the_type_has_a_size(kind: ir.DataType) -> None:
    try:
        stored = ir.tensor(np.zeros(5, np.float32)).numpy().astype(kind.numpy())
    except TypeError:
        pytest.skip("numpy has no such type here")
    assert stored_bytes(kind, 5) == len(ir.Tensor(stored, dtype=kind).tobytes())
