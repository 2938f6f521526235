from __future__ import annotations

from math import prod

import pytest

from converters.kokoro.layout import expected, unread
from models.kokoro.config import KOKORO_82M
from tests.kokoro_writer.checkpoint import SMALL, random_weights

PARAMETERS = {
    "bert": 6_292_480,
    "bert_encoder": 393_728,
    "predictor": 16_194_612,
    "decoder": 53_276_190,
    "text_encoder": 5_606_400,
}
"""Of the official Kokoro-82M: 81,763,410 in all, as its authors print them."""


def test_expected_and_unread_are_the_tensors_of_the_official_file() -> None:
    assert (len(expected(KOKORO_82M)), len(unread(KOKORO_82M))) == (546, 2)


@pytest.mark.parametrize(("top", "count"), PARAMETERS.items())
def test_expected_and_unread_have_the_parameters_of_the_official_file(top: str, count: int) -> None:
    shapes = {**expected(KOKORO_82M), **unread(KOKORO_82M)}
    assert sum(prod(shape) for name, shape in shapes.items() if name.startswith(f"{top}.")) == count


def test_expected_is_what_the_reference_has_when_every_size_is_another() -> None:
    assert expected(SMALL) == {name: array.shape for name, array in random_weights(SMALL).items()}


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("decoder.module.generator.ups.0.weight_v", (512, 256, 20)),
        ("decoder.module.generator.ups.0.weight_g", (512, 1, 1)),
        ("decoder.module.generator.ups.1.bias", (128,)),
        ("decoder.module.generator.noise_convs.0.weight", (256, 22, 12)),
        ("decoder.module.generator.noise_convs.1.weight", (128, 22, 1)),
        ("decoder.module.generator.noise_res.1.convs1.0.weight_v", (128, 128, 11)),
        ("decoder.module.generator.resblocks.5.alpha2.2", (1, 128, 1)),
        ("decoder.module.generator.conv_post.weight_v", (22, 128, 7)),
        ("decoder.module.decode.3.pool.weight_v", (1090, 1, 3)),
        ("predictor.module.shared.weight_hh_l0_reverse", (1024, 256)),
        ("predictor.module.F0_proj.weight", (1, 256, 1)),
    ],
)
def test_expected_has_the_shapes_of_the_official_file(name: str, shape: tuple[int, ...]) -> None:
    assert expected(KOKORO_82M)[name] == shape
