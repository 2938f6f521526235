"""The layout of a checkpoint, and the shapes of states."""

from __future__ import annotations

from math import prod

import torch

from models.cosyvoice2.encoder import Encoder
from models.cosyvoice2.encoder_config import ENCODER, TRUE_CONFIG, layout
from models.cosyvoice2.encoder_states import StepSizes, input_shapes, output_shapes
from tests.cosyvoice2_encoder import SMALL


def test_published_encoder_has_37_8_million_numbers() -> None:
    # family-facts, CosyVoice: the encoder conformer 512, 6 + 4 blocks, 37.8 M.
    count = sum(prod(shape) for name, shape in layout(TRUE_CONFIG).items() if name.startswith(ENCODER))
    assert round(count / 1e6, 1) == 37.8
    assert count == 37_831_168
    assert layout(TRUE_CONFIG)["input_embedding.weight"] == (6561, 512)
    assert layout(TRUE_CONFIG)["spk_embed_affine_layer.weight"] == (80, 192)
    assert TRUE_CONFIG.head_dim == 64


def test_layout_is_what_the_module_has_beside_the_host_half() -> None:
    with torch.device("meta"):
        own = {name: tuple(value.shape) for name, value in Encoder(SMALL).state_dict().items()}
    hosts = {"input_embedding.weight", "spk_embed_affine_layer.weight", "spk_embed_affine_layer.bias"}
    assert own == {name: shape for name, shape in layout(SMALL).items() if name not in hosts}


def test_a_step_takes_its_tokens_and_those_ahead_and_keeps_two_frames_for_each() -> None:
    sizes = StepSizes(16, 3, 352)
    shapes = input_shapes(TRUE_CONFIG, sizes)
    assert (shapes["embedded"], shapes["mask"]) == ((1, 512, 1, 19), (1, 1, 1, 19))
    assert (shapes["valid"], shapes["look_ahead"], shapes["up"]) == ((1, 1, 1, 352), (1, 512, 1, 2), (1, 512, 1, 4))
    assert (shapes["keys_5"], shapes["up_values_3"]) == ((8, 64, 1, 352), (8, 64, 1, 704))
    assert len(shapes) == 2 + 3 + 2 * (6 + 4)
    outputs = output_shapes(TRUE_CONFIG, sizes)
    assert outputs["mu"] == (1, 80, 1, 32)
    assert {name.removesuffix("_out"): shape for name, shape in outputs.items() if name != "mu"} == {
        name: shape for name, shape in shapes.items() if name not in ("embedded", "mask")
    }
