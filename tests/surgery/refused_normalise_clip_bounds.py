"""What `normalise_clip_bounds` refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from surgery.normalise_clip_bounds import normalise_clip_bounds
from tests.surgery.one_operator import operator
from tests.surgery.refusals import Refusal


def _clip(precondition: str, got: str, low: Any, dtype: Any = np.float32) -> Refusal:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return Refusal(
        normalise_clip_bounds(),
        precondition,
        "node 'op'",
        got,
        lambda: operator("Clip", "x low", constants={"low": np.asarray(low, dtype)}, dtype=kind),
    )


REFUSALS = (
    _clip("bounds that are numbers", "NaN", np.nan),
    _clip("bounds of one value", "'low' of shape [2]", [0.0, 1.0]),
    _clip("bounds of one value", "'low' of shape [0]", []),
    _clip("a float, int32 or int64 input", "INT8", 0, np.int8),
    _clip("a float, int32 or int64 input", "UINT8", 3, np.uint8),
)
