from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from contracts.errors import Refusal
from converters.kokoro.weight_checks import check_weights, with_unstated_sizes
from tests.kokoro_writer.checkpoint import SMALL, Weights, random_weights

NAME = "decoder.module.generator.conv_post.bias"


@pytest.fixture
def weights() -> Weights:
    return random_weights()


def check(weights: Weights) -> None:
    check_weights(weights, SMALL, "model.pth", "config.json")


def test_check_weights_passes_when_all_are_there(weights: Weights) -> None:
    check(weights)


def test_check_weights_passes_when_the_pooler_is_there(weights: Weights) -> None:
    width = SMALL.plbert.hidden_size
    pooler = {"weight": np.ones((width, width), np.float32), "bias": np.ones(width, np.float32)}
    check({**weights, **{f"bert.module.pooler.{rest}": array for rest, array in pooler.items()}})


def test_check_weights_names_a_tensor_when_it_is_missing(weights: Weights) -> None:
    del weights[NAME]
    with pytest.raises(
        Refusal, match=r"sizes in config\.json: it lacks 1 of 459 tensors: decoder.*conv_post\.bias; give"
    ):
        check(weights)


def test_check_weights_names_three_and_counts_the_rest_when_many_are_missing(weights: Weights) -> None:
    left = {name: array for name, array in weights.items() if "text_encoder.module.lstm" not in name}
    with pytest.raises(
        Refusal, match=r"lacks 8 of 459 tensors: (\S+, ){2}\S+ and 5 more; give its own config\.json with --config"
    ):
        check(left)


def test_check_weights_names_a_tensor_when_kokoro_does_not_have_it(weights: Weights) -> None:
    weights["decoder.module.generator.ups.2.bias"] = np.zeros(4, np.float32)
    with pytest.raises(Refusal, match=r"1 tensors that Kokoro does not have: decoder\.module\.generator\.ups\.2\.bias"):
        check(weights)


def test_check_weights_names_both_shapes_when_they_differ(weights: Weights) -> None:
    weights[NAME] = np.zeros(7, np.float32)
    with pytest.raises(Refusal, match=rf"{NAME} is \[7\], not \[6\]"):
        check(weights)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_check_weights_names_a_tensor_when_it_is_not_finite(weights: Weights, number: float) -> None:
    weights[NAME][3] = number
    with pytest.raises(Refusal, match=rf"1 tensors hold NaN or infinity.*: {NAME}; get"):
        check(weights)


def test_with_unstated_sizes_reads_them_off_the_weights(weights: Weights) -> None:
    stated = replace(SMALL, decoder_channels=1024, asr_channels=64)
    assert with_unstated_sizes(stated, weights) == SMALL


def test_with_unstated_sizes_keeps_them_when_the_weights_are_missing() -> None:
    assert with_unstated_sizes(SMALL, {}) == SMALL
