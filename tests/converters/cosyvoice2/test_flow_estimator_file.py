"""The estimator in a `flow.pt`: what is read of it, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from contracts.errors import Refusal, UserInput
from converters.cosyvoice2.flow_estimator import STAGE
from converters.cosyvoice2.flow_estimator_file import OpenEstimator, open_estimator
from models.cosyvoice2.estimator_config import TRUE_CONFIG
from tests.converters.hubs import no_hub
from tests.cosyvoice2_estimator import SMALL, Floats, weights_of, write_flow

LAYER = "mid_blocks.0.1.1"


def opened(path: Path) -> OpenEstimator:
    assert STAGE.locate is not None
    return open_estimator(STAGE.locate(str(path), no_hub))


def test_file_and_folder_tell_sizes_and_weights(tmp_path: Path) -> None:
    for place in (write_flow(tmp_path / "flow.pt"), tmp_path):
        got = opened(place)
        assert got.config == SMALL
        assert list(got.weights) == list(weights_of())
        for name, owed in weights_of().items():
            np.testing.assert_array_equal(got.weights[name], owed)


def test_random_has_the_true_sizes() -> None:
    got = opened(Path("random"))
    assert got.config == TRUE_CONFIG
    assert sum(array.size for array in got.weights.values()) == 71_302_480


def zeros(*shape: int) -> Floats:
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"final_proj.weight": None}, "it lacks final_proj.weight"),
        ({f"{LAYER}.norm1.bias": None}, f"lacks 1 of 128 tensors: {LAYER}.norm1.bias"),
        ({f"{LAYER}.norm1.bias": zeros(31)}, f"1 tensors have other sizes: {LAYER}.norm1.bias is [31], not [32]"),
        (
            {f"{LAYER}.norm1.bias": np.full(32, np.nan, np.float32)},
            "1 tensors hold NaN or infinity, so nothing right can",
        ),
        ({"final_proj.weight": zeros(10, 32)}, "final_proj.weight is [10, 32], 3 axes are expected"),
        ({"final_proj.weight": zeros(20, 32, 1)}, "its first block reads 40 channels and not 4 mels of 20"),
        ({"down_blocks.0.1.0.attn1.to_q.weight": zeros(96, 32)}, "attention of 96 channels is no heads of 64"),
        ({"down_blocks.1.0.res_conv.bias": zeros(32)}, "it has 1 tensors more, of parts that are not computed here"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, change: dict[str, Floats | None], said: str) -> None:
    with pytest.raises(Refusal) as raised:
        opened(write_flow(tmp_path / "flow.pt", change))
    assert said in str(raised.value)
    assert str(tmp_path / "flow.pt") in str(raised.value)


def test_half_numbers_are_refused(tmp_path: Path) -> None:
    change = {"final_proj.bias": np.zeros(10, np.float16)}
    with pytest.raises(Refusal, match=r"decoder\.estimator\.final_proj\.bias is float16, float32 is needed"):
        opened(write_flow(tmp_path / "flow.pt", change))  # type: ignore[arg-type]  # that is the fault


def test_damaged_file_is_refused(tmp_path: Path) -> None:
    path = write_flow(tmp_path / "flow.pt")
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(UserInput, match="is no torch checkpoint, or is damaged"):
        opened(path)
