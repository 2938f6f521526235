from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from models.kokoro.layers import Linear, convolution, depthwise_doubling, embedding, layer_norm, lstm

Array = NDArray[np.float64]


def random(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_linear_is_the_product_and_its_bias_and_shares_the_array() -> None:
    weight, bias, x = random(5, 3), random(5, seed=1), random(1, 4, 3, seed=2)
    layer = Linear({"weight": weight, "bias": bias})
    np.testing.assert_allclose(layer(torch.from_numpy(x)).numpy(), x @ weight.T + bias, rtol=1e-5, atol=1e-6)
    assert np.shares_memory(layer.weight.numpy(), weight)
    assert (layer.ins, layer.outs) == (3, 5)


def test_layers_take_arrays_that_cannot_be_written_to_without_a_warning() -> None:
    rows = random(6, 2)
    rows.flags.writeable = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        layer = embedding({"weight": rows})
    assert not caught
    assert np.array_equal(layer.weight.numpy(), rows)


def test_embedding_gives_rows() -> None:
    rows = random(6, 2)
    assert np.array_equal(embedding({"weight": rows})(torch.tensor([[5, 0]])).numpy(), rows[[5, 0]][None])


def test_layer_norm_has_its_epsilon() -> None:
    x = np.array([[3.0, 1.0]], np.float32)  # mean 2, variance 1
    layer = layer_norm({"weight": np.array([2, 2], np.float32), "bias": np.array([0, 1], np.float32)}, epsilon=3.0)
    np.testing.assert_allclose(layer(torch.from_numpy(x)).numpy(), [[2 / 2, -2 / 2 + 1]], rtol=1e-6)


@pytest.mark.parametrize(("stride", "wanted"), [(1, [[3, 6, 5]]), (2, [[3, 5]])])
def test_convolution_keeps_its_middle_over_each_column(stride: int, wanted: list[list[float]]) -> None:
    layer = convolution({"weight": np.ones((1, 1, 3), np.float32)}, stride)
    out = layer(torch.tensor([[[1.0, 2.0, 3.0]]]))
    assert out[0].tolist() == wanted


def test_depthwise_doubling_makes_two_columns_of_each_in_each_channel_alone() -> None:
    kernel = np.array([[[1, 10, 100]], [[0, 1, 0]]], np.float32)
    layer = depthwise_doubling({"weight": kernel, "bias": np.zeros(2, np.float32)})
    out = layer(torch.tensor([[[1.0, 2.0], [5.0, 7.0]]]))
    # Column t puts its kernel's middle on column 2 t.
    assert out[0].tolist() == [[10, 100 + 2, 20, 200], [5, 0, 7, 0]]


def test_lstm_is_the_recurrence_both_ways() -> None:
    ins, hidden, steps = 3, 2, 4
    shapes = {"weight_ih": (4 * hidden, ins), "weight_hh": (4 * hidden, hidden), "bias_ih": (8,), "bias_hh": (8,)}
    weights = {
        f"{name}_l0{way}": random(*shape, seed=seed)
        for seed, way in enumerate(("", "_reverse"))
        for name, shape in shapes.items()
    }
    x = random(1, steps, ins, seed=9)
    got = lstm(weights)(torch.from_numpy(x))[0].numpy()
    ahead = recurrence({name: weights[f"{name}_l0"].astype(np.float64) for name in shapes}, x[0].astype(np.float64))
    back = recurrence(
        {name: weights[f"{name}_l0_reverse"].astype(np.float64) for name in shapes}, x[0, ::-1].astype(np.float64)
    )
    np.testing.assert_allclose(got[0], np.concatenate([ahead, back[::-1]], 1), rtol=1e-4, atol=1e-6)


def recurrence(weights: dict[str, Array], x: Array) -> Array:
    """Hidden states of an LSTM whose gates are input, forget, cell, output."""
    state = memory = np.zeros(weights["weight_hh"].shape[1])
    states = []
    for step in x:
        gates = weights["weight_ih"] @ step + weights["bias_ih"] + weights["weight_hh"] @ state + weights["bias_hh"]
        enter, forget, cell, leave = np.split(gates, 4)
        memory = sigmoid(forget) * memory + sigmoid(enter) * np.tanh(cell)
        state = sigmoid(leave) * np.tanh(memory)
        states.append(state)
    return np.array(states)


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))
