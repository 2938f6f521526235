from __future__ import annotations

import numpy as np
import pytest
from rknn_tts_runtime.backends.engine import Array
from rknn_tts_runtime.backends.feeds import fitted, reshaped
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.manifest import TensorInfo

Z = TensorInfo("z", (1, 3, 1, 4), "float32")
IDS = TensorInfo("ids", (1, 4), "int64")
NUMBERS = np.arange(12, dtype=np.float32)
TOKENS = np.array([[4, 3, 2, 1]])


@pytest.mark.parametrize(
    "given",
    [
        NUMBERS.reshape(1, 3, 1, 4),
        NUMBERS.reshape(1, 3, 4),
        NUMBERS.reshape(3, 4),
        NUMBERS,
        NUMBERS.reshape(1, 1, 3, 4, 1),
        np.asfortranarray(NUMBERS.reshape(1, 3, 4)),
        np.repeat(NUMBERS.reshape(3, 4), 2, axis=1)[:, ::2],
    ],
    ids=["same", "axis missing", "two missing", "flat", "one too many", "Fortran's order", "strided"],
)
def test_fitted_gives_the_engine_its_order_and_shapes(given: Array) -> None:
    z, ids = fitted((Z, IDS), {"ids": TOKENS, "z": given})
    assert (z.shape, str(z.dtype)) == ((1, 3, 1, 4), "float32")
    assert z.ravel().tolist() == list(range(12))
    assert (ids.shape, str(ids.dtype), ids.tolist()) == ((1, 4), "int64", [[4, 3, 2, 1]])


@pytest.mark.parametrize(
    "given", [NUMBERS.reshape(3, 4), NUMBERS.reshape(1, 1, 4, 3).transpose(0, 3, 1, 2)], ids=["rows", "channels last"]
)
def test_fitted_copies_nothing_that_has_the_engine_s_shape(given: Array) -> None:
    """How it lies in memory is left to whoever hands it over: the NPU takes channels last."""
    assert np.shares_memory(fitted((Z,), {"z": given})[0], NUMBERS)


def test_fitted_takes_a_number_of_no_axis_for_one_of_axes_of_one() -> None:
    (length,) = fitted((TensorInfo("length", (1, 1), "int64"),), {"length": np.array(7)})
    assert length.tolist() == [[7]]


@pytest.mark.parametrize(
    ("feed", "said"),
    [
        ({"z": NUMBERS}, "its input 'ids' is missing; its inputs are z, ids"),
        ({"z": NUMBERS, "ids": TOKENS, "g": TOKENS}, "has no input 'g'; its inputs are z, ids"),
        ({"z": NUMBERS.astype(np.float64), "ids": TOKENS}, "its input 'z' is of dtype float32, not float64"),
        ({"z": NUMBERS.astype(">f4"), "ids": TOKENS}, "its input 'z' is of dtype float32, not >f4"),
        ({"z": NUMBERS, "ids": TOKENS.astype(np.int32)}, "its input 'ids' is of dtype int64, not int32"),
        ({"z": NUMBERS[:8], "ids": TOKENS}, "its input 'z' has the shape [1, 3, 1, 4], not [8]"),
        ({"z": NUMBERS.reshape(1, 4, 3), "ids": TOKENS}, "its input 'z' has the shape [1, 3, 1, 4], not [1, 4, 3]"),
        ({"z": NUMBERS[:0], "ids": TOKENS}, "its input 'z' has the shape [1, 3, 1, 4], not [0]"),
    ],
)
def test_fitted_names_the_tensor_and_both_sides_when_a_feed_is_wrong(feed: dict[str, Array], said: str) -> None:
    with pytest.raises(BadInput) as raised:
        fitted((Z, IDS), feed, "voice.rknn")
    assert str(raised.value).startswith("voice.rknn: ")
    assert said in str(raised.value)


def test_reshaped_is_none_when_the_elements_are_in_another_order() -> None:
    assert reshaped(NUMBERS.reshape(4, 3), (3, 4)) is None
