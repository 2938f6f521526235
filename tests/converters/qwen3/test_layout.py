from __future__ import annotations

from math import prod

import pytest

from converters.qwen3.layout import layout
from models.qwen3.config import TRUE_CONFIG, DecoderConfig
from tests.qwen3_configs import REDUCED
from tests.qwen3_reference import reference_decoder


def test_layout_of_the_published_decoder_has_its_number_of_parameters() -> None:
    """Counted in the published file (family-facts)."""
    assert sum(map(prod, layout(TRUE_CONFIG).values())) == 114_323_137


@pytest.mark.parametrize("config", [REDUCED], ids=["reduced"])
def test_layout_is_the_references_state_dict(config: DecoderConfig) -> None:
    original = reference_decoder(config).state_dict()
    assert layout(config) == {f"decoder.{name}": tuple(tensor.shape) for name, tensor in original.items()}


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("decoder.quantizer.rvq_first.vq.layers.0._codebook.embedding_sum", (2048, 256)),
        ("decoder.quantizer.rvq_rest.vq.layers.14._codebook.cluster_usage", (2048,)),
        ("decoder.pre_conv.conv.weight", (1024, 512, 3)),
        ("decoder.pre_transformer.layers.7.self_attn.o_proj.weight", (512, 1024)),
        ("decoder.upsample.1.1.pwconv1.weight", (4096, 1024)),
        ("decoder.decoder.1.block.1.conv.weight", (1536, 768, 16)),
        ("decoder.decoder.4.block.4.conv1.conv.weight", (96, 96, 7)),
        ("decoder.decoder.6.conv.weight", (1, 96, 7)),
    ],
)
def test_layout_has_the_published_shapes(name: str, shape: tuple[int, ...]) -> None:
    assert layout(TRUE_CONFIG)[name] == shape
