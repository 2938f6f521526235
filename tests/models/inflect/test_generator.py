from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.models.inflect.sizes import SMALL, Numbers, convolved, drawn, leaky, model, weights
from tests.onnx_runs import snr_db


def upsampled(x: Numbers, name: str, rate: int) -> Numbers:
    """X [I, T] by a transposed convolution: each column adds its taps where they fall, [O, T rate]."""
    weight = weights()[f"{name}.weight"].astype(np.float64)
    _, outs, taps = weight.shape
    whole = np.zeros((outs, (x.shape[1] - 1) * rate + taps))
    for column in range(x.shape[1]):
        whole[:, column * rate : column * rate + taps] += np.einsum("i,iok->ok", x[:, column], weight)
    side = (taps - rate) // 2
    return np.asarray(whole[:, side : side + x.shape[1] * rate] + weights()[f"{name}.bias"][:, None])


def generated(x: Numbers) -> Numbers:
    x = convolved(x, "dec.conv_pre")
    for stage, rate in enumerate(SMALL.upsample_rates):
        x = upsampled(leaky(x, 0.1), f"dec.ups.{stage}", rate)
        blocks = []
        for block in (2 * stage, 2 * stage + 1):
            out = x
            for step, dilation in enumerate((1, 3)):
                inner = convolved(leaky(out, 0.1), f"dec.resblocks.{block}.convs1.{step}", dilation)
                out = out + convolved(leaky(inner, 0.1), f"dec.resblocks.{block}.convs2.{step}")
            blocks.append(out)
        x = (blocks[0] + blocks[1]) / 2
    return np.asarray(np.tanh(convolved(leaky(x, 0.01), "dec.conv_post")))


@pytest.mark.parametrize("frames", [1, 2, 17])
def test_generator_is_its_sums(frames: int) -> None:
    x = drawn(SMALL.inter_channels, frames)
    with torch.no_grad():
        got = model().dec(torch.from_numpy(x)[None])
    assert got.shape == (1, 1, SMALL.hop * frames)
    assert snr_db(generated(x.astype(np.float64)), got[0].numpy()) >= 120
