"""The flow encoder in a `flow.pt`: what is read of it, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from contracts.contract import RANDOM, Source
from contracts.errors import Refusal
from contracts.seed import SEED
from converters.cosyvoice2.flow_encoder_file import open_encoder
from converters.stages import Checkpoint
from models.cosyvoice2.encoder_config import TRUE_CONFIG
from models.cosyvoice2.encoder_stand_in import stand_in
from tests.cosyvoice2_encoder import SMALL, weights_of, write_flow

Floats = NDArray[np.float32]


def checkpoint(path: Path) -> Checkpoint:
    return Checkpoint(path, Source(path.name, "0" * 64, "checkpoint"))


def test_sizes_are_read_from_the_weights_and_the_rest_of_the_file_is_left_out(tmp_path: Path) -> None:
    opened = open_encoder(checkpoint(write_flow(tmp_path / "flow.pt")))
    assert opened.config == SMALL
    assert opened.weights.keys() == weights_of().keys()
    assert all(np.array_equal(opened.weights[name], array) for name, array in weights_of().items())


def test_random_stands_for_the_published_sizes() -> None:
    opened = open_encoder(Checkpoint(Path(RANDOM), Source(RANDOM, "0" * 64, RANDOM), files=()))
    assert opened.config == TRUE_CONFIG
    name = "encoder.up_encoders.3.self_attn.pos_bias_v"
    assert np.array_equal(opened.weights[name], stand_in(TRUE_CONFIG, SEED)[name])


ATTENTION = "encoder.encoders.0.self_attn"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"input_embedding.weight": None}, "is not CosyVoice2's flow encoder: it lacks input_embedding.weight; give"),
        ({"encoder.up_layer.conv.bias": None}, "it lacks 1 of 78 tensors: encoder.up_layer.conv.bias; give"),
        (
            {"encoder.pre_lookahead_layer.conv1.weight": np.zeros((32, 32), np.float32)},
            r"encoder.pre_lookahead_layer.conv1.weight is \[32, 32\], 3 axes are expected",
        ),
        (
            {f"{ATTENTION}.pos_bias_u": np.zeros((3, 16), np.float32)},
            "3 heads of 16 are no signal of 32 channels, an even number",
        ),
        (
            {"encoder.encoders.1.norm_ff.weight": np.zeros(31, np.float32)},
            r"1 tensors have other sizes: encoder.encoders.1.norm_ff.weight is \[31\], not \[32\]",
        ),
        (
            {"encoder.encoders.0.conv_module.norm.weight": np.zeros(2, np.float32)},
            "it has 1 tensors more, of parts that are not computed here: encoder.encoders.0.conv_module.norm.weight",
        ),
        ({"encoder.encoders.0.norm_ff.bias": np.full(32, np.nan, np.float32)}, "1 tensors hold NaN or infinity"),
    ],
)
def test_other_files_are_refused(change: dict[str, Floats | None], said: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=said):
        open_encoder(checkpoint(write_flow(tmp_path / "flow.pt", change)))
