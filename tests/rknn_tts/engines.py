"""Files laid out as the toolkit lays out its engines, for tests of what reads them."""

from __future__ import annotations

import json
import struct

from contracts.contract import Contract, Source, TensorSpec

CONTRACT = Contract(
    family="piper",
    stage="decoder",
    source=Source("voice.onnx", "ab" * 32, "checkpoint"),
    inputs=(TensorSpec("z", (1, 192, 109)),),
    outputs=(TensorSpec("output", (1, 1, 27904)),),
)

DESCRIPTION = {
    "norm_tensor": [{"size": [1, 192, 109], "url": "z"}, {"size": [1, 1, 1, 27904], "url": "output"}],
    "target_platform": ["rk3588"],
    "version": "2.3.2",
}


def engine_bytes(custom: bytes = b"", description: bytes | None = None) -> bytes:
    """A file laid out as rknn-toolkit2 2.3.2 lays out its engines: see `rknn_tts_runtime.engine_file`."""
    model = b"\x00model\x00" + custom + b"\x00" * 40
    told = json.dumps(DESCRIPTION).encode() if description is None else description
    header = b"RKNN\0\0\0\0" + struct.pack("<QQ", 6, len(model))
    return header.ljust(64, b"\0") + model + struct.pack("<Q", len(told)) + told
