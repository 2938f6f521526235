"""The RKNN C API as data: structures, enumerations, codes.

From the public header `rknn_api.h` of RKNPU2 2.x; the layout is the C compiler's own on 64 bits, which a test compares
with a compiler's. Fields keep the header's names, so that they can be found in the vendor's manual.

What is known of versions:

- `rknn_mem_size` always had 64 bytes: what later versions tell was taken from its reserve.
- `rknn_tensor_attr` grew in 1.4 (a library of then says `info_len(372) < sizeof(rknn_tensor_attr)(376)`). A library
  refuses what is smaller than its own structure, so `context` asks again with room to spare where it does.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import ctypes

MAX_DIMS = 16
MAX_NAME_LENGTH = 256
MAX_CUSTOM_STRING = 1024
MAX_VERSION_LENGTH = 256

POINTER_BYTES = ctypes.sizeof(ctypes.c_void_p)

CONTEXT = ctypes.c_uint64 if POINTER_BYTES == 8 else ctypes.c_uint32
"""`rknn_context`: the header has 32 bits for 32-bit Arm, 64 for any other machine."""

CODE_SUCCESS = 0
CODE_FAIL = -1
CODE_TIMEOUT = -2
CODE_DEVICE_UNAVAILABLE = -3
CODE_MALLOC_FAIL = -4
CODE_PARAM_INVALID = -5
CODE_MODEL_INVALID = -6
CODE_CTX_INVALID = -7
CODE_INPUT_INVALID = -8
CODE_OUTPUT_INVALID = -9
CODE_DEVICE_UNMATCH = -10
CODE_INCOMPATIBLE_PRE_COMPILE = -11
CODE_INCOMPATIBLE_OPTIMIZATION = -12
CODE_TARGET_PLATFORM_UNMATCH = -13

FLAG_DEFAULT = 0
FLAG_COLLECT_MODEL_INFO_ONLY = 0x100
"""Of `rknn_init`: no network is built, only its sizes can be queried."""

QUERY_IN_OUT_NUM = 0
QUERY_INPUT_ATTR = 1
QUERY_OUTPUT_ATTR = 2
QUERY_PERF_RUN = 4
QUERY_SDK_VERSION = 5
QUERY_MEM_SIZE = 6
QUERY_CUSTOM_STRING = 7

QUERY_NAMES = {
    QUERY_IN_OUT_NUM: "RKNN_QUERY_IN_OUT_NUM",
    QUERY_INPUT_ATTR: "RKNN_QUERY_INPUT_ATTR",
    QUERY_OUTPUT_ATTR: "RKNN_QUERY_OUTPUT_ATTR",
    QUERY_PERF_RUN: "RKNN_QUERY_PERF_RUN",
    QUERY_SDK_VERSION: "RKNN_QUERY_SDK_VERSION",
    QUERY_MEM_SIZE: "RKNN_QUERY_MEM_SIZE",
    QUERY_CUSTOM_STRING: "RKNN_QUERY_CUSTOM_STRING",
}

TENSOR_FLOAT32 = 0
TENSOR_INT64 = 8

TYPE_NAMES = (
    "float32",
    "float16",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "bool",
    "int4",
    "bfloat16",
)
"""`rknn_tensor_type` by number."""

FORMAT_NCHW = 0
FORMAT_NHWC = 1
FORMAT_NC1HWC2 = 2
FORMAT_UNDEFINED = 3

FORMAT_NAMES = ("NCHW", "NHWC", "NC1HWC2", "UNDEFINED")
"""`rknn_tensor_format` by number."""

CORE_AUTO = "auto"

EVERY_CORE = "0_1_2"
"""What the reference asks for: the driver itself picks one core only ("NPU core use")."""

CORE_MASKS = {CORE_AUTO: 0, "0": 1, "1": 2, "2": 4, "0_1": 3, "0_1_2": 7, "all": 0xFFFF}
"""`rknn_core_mask` by what is written for it."""

SYNC_TO_DEVICE = 1
SYNC_FROM_DEVICE = 2


class InputOutputNumber(ctypes.Structure):
    """`rknn_input_output_num`."""

    n_input: int
    n_output: int
    _fields_ = (("n_input", ctypes.c_uint32), ("n_output", ctypes.c_uint32))


class TensorAttr(ctypes.Structure):
    """`rknn_tensor_attr`; `index` is set before it is queried."""

    index: int
    n_dims: int
    dims: ctypes.Array[ctypes.c_uint32]
    name: bytes
    n_elems: int
    size: int
    fmt: int
    type: int
    qnt_type: int
    fl: int
    zp: int
    scale: float
    w_stride: int
    size_with_stride: int
    pass_through: int
    h_stride: int
    _fields_ = (
        ("index", ctypes.c_uint32),
        ("n_dims", ctypes.c_uint32),
        ("dims", ctypes.c_uint32 * MAX_DIMS),
        ("name", ctypes.c_char * MAX_NAME_LENGTH),
        ("n_elems", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("fmt", ctypes.c_int),
        ("type", ctypes.c_int),
        ("qnt_type", ctypes.c_int),
        ("fl", ctypes.c_int8),
        ("zp", ctypes.c_int32),
        ("scale", ctypes.c_float),
        ("w_stride", ctypes.c_uint32),
        ("size_with_stride", ctypes.c_uint32),
        ("pass_through", ctypes.c_uint8),
        ("h_stride", ctypes.c_uint32),
    )


class PerfRun(ctypes.Structure):
    """`rknn_perf_run`: microseconds."""

    run_duration: int
    _fields_ = (("run_duration", ctypes.c_int64),)


class SdkVersion(ctypes.Structure):
    """`rknn_sdk_version`: of the library, and of the kernel driver."""

    api_version: bytes
    drv_version: bytes
    _fields_ = (
        ("api_version", ctypes.c_char * MAX_VERSION_LENGTH),
        ("drv_version", ctypes.c_char * MAX_VERSION_LENGTH),
    )


class MemSize(ctypes.Structure):
    """`rknn_mem_size`: bytes; internal tensors without inputs and outputs."""

    total_weight_size: int
    total_internal_size: int
    total_dma_allocated_size: int
    total_sram_size: int
    free_sram_size: int
    _fields_ = (
        ("total_weight_size", ctypes.c_uint32),
        ("total_internal_size", ctypes.c_uint32),
        ("total_dma_allocated_size", ctypes.c_uint64),
        ("total_sram_size", ctypes.c_uint32),
        ("free_sram_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32 * 10),
    )


class CustomString(ctypes.Structure):
    """`rknn_custom_string`: what `custom_string` was when the engine was compiled."""

    string: bytes
    _fields_ = (("string", ctypes.c_char * MAX_CUSTOM_STRING),)


class TensorMem(ctypes.Structure):
    """`rknn_tensor_mem`: a buffer that the NPU reads and writes itself."""

    virt_addr: int | None
    phys_addr: int
    fd: int
    offset: int
    size: int
    flags: int
    priv_data: int | None
    _fields_ = (
        ("virt_addr", ctypes.c_void_p),
        ("phys_addr", ctypes.c_uint64),
        ("fd", ctypes.c_int32),
        ("offset", ctypes.c_int32),
        ("size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("priv_data", ctypes.c_void_p),
    )


class Input(ctypes.Structure):
    """`rknn_input`."""

    index: int
    buf: int | None
    size: int
    pass_through: int
    type: int
    fmt: int
    _fields_ = (
        ("index", ctypes.c_uint32),
        ("buf", ctypes.c_void_p),
        ("size", ctypes.c_uint32),
        ("pass_through", ctypes.c_uint8),
        ("type", ctypes.c_int),
        ("fmt", ctypes.c_int),
    )


class Output(ctypes.Structure):
    """`rknn_output`."""

    want_float: int
    is_prealloc: int
    index: int
    buf: int | None
    size: int
    _fields_ = (
        ("want_float", ctypes.c_uint8),
        ("is_prealloc", ctypes.c_uint8),
        ("index", ctypes.c_uint32),
        ("buf", ctypes.c_void_p),
        ("size", ctypes.c_uint32),
    )


class InitExtend(ctypes.Structure):
    """`rknn_init_extend`."""

    ctx: int
    real_model_offset: int
    real_model_size: int
    model_buffer_fd: int
    model_buffer_flags: int
    _fields_ = (
        ("ctx", CONTEXT),
        ("real_model_offset", ctypes.c_int32),
        ("real_model_size", ctypes.c_uint32),
        ("model_buffer_fd", ctypes.c_int32),
        ("model_buffer_flags", ctypes.c_uint32),
        ("reserved", ctypes.c_uint8 * 112),
    )


class RunExtend(ctypes.Structure):
    """`rknn_run_extend`."""

    frame_id: int
    non_block: int
    timeout_ms: int
    fence_fd: int
    _fields_ = (
        ("frame_id", ctypes.c_uint64),
        ("non_block", ctypes.c_int32),
        ("timeout_ms", ctypes.c_int32),
        ("fence_fd", ctypes.c_int32),
    )


class OutputExtend(ctypes.Structure):
    """`rknn_output_extend`."""

    frame_id: int
    _fields_ = (("frame_id", ctypes.c_uint64),)


STRUCTURES = {
    "rknn_input_output_num": InputOutputNumber,
    "rknn_tensor_attr": TensorAttr,
    "rknn_perf_run": PerfRun,
    "rknn_sdk_version": SdkVersion,
    "rknn_mem_size": MemSize,
    "rknn_custom_string": CustomString,
    "rknn_tensor_mem": TensorMem,
    "rknn_input": Input,
    "rknn_output": Output,
    "rknn_init_extend": InitExtend,
    "rknn_run_extend": RunExtend,
    "rknn_output_extend": OutputExtend,
}
"""All of them, by their names in C."""
