from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from models.inflect.flow import Coupling
from tests.models.inflect.sizes import SMALL, Numbers, convolved, drawn, model
from tests.onnx_runs import snr_db

FRAMES, VALID = 40, 33


def mask() -> Numbers:
    return np.concatenate([np.ones((1, VALID)), np.zeros((1, FRAMES - VALID))], axis=1)


def shift(kept: Numbers, name: str) -> Numbers:
    """What a coupling shifts the other half by, in numpy; VITS's WaveNet of four layers."""
    hidden = SMALL.hidden_channels
    stream = convolved(kept, f"{name}.pre") * mask()
    output = np.zeros_like(stream)
    for layer in range(4):
        entering = convolved(stream, f"{name}.enc.in_layers.{layer}")
        gated = np.tanh(entering[:hidden]) / (1 + np.exp(-entering[hidden:]))
        leaving = convolved(gated, f"{name}.enc.res_skip_layers.{layer}")
        if layer < 3:
            stream = (stream + leaving[:hidden]) * mask()
            leaving = leaving[hidden:]
        output = output + leaving
    return convolved(output * mask(), f"{name}.post") * mask()


def forward_flow(x: Numbers) -> Numbers:
    """The direction that training runs: each coupling adds its shift, then the channels are flipped."""
    half = SMALL.half_channels
    for step in range(4):
        moved = (x[half:] + shift(x[:half], f"flow.flows.{2 * step}")) * mask()
        x = np.concatenate([x[:half], moved])[::-1]
    return x


def reversed_flow(z: NDArray[np.float32]) -> NDArray[np.float32]:
    with torch.no_grad():
        out = model().flow(torch.from_numpy(z)[None], torch.from_numpy(mask()[None].astype(np.float32)))
    return np.asarray(out[0].numpy())


def test_reverse_flow_undoes_the_forward_one() -> None:
    x = drawn(SMALL.inter_channels, FRAMES).astype(np.float64) * mask()
    z = forward_flow(x)
    assert snr_db(x, z) < 20  # it does something
    assert snr_db(x, reversed_flow(z.astype(np.float32))) >= 110


def test_frame_that_is_masked_reaches_no_other() -> None:
    z = drawn(SMALL.inter_channels, FRAMES)
    other = z.copy()
    other[:, VALID:] = 5.0
    np.testing.assert_array_equal(reversed_flow(z)[:, :VALID], reversed_flow(other)[:, :VALID])


def test_coupling_shifts_by_the_wavenets_output() -> None:
    kept = drawn(SMALL.half_channels, FRAMES, seed=2)
    with torch.no_grad():
        coupling = model().flow.flows[2]
        assert isinstance(coupling, Coupling)
        got = coupling.shift(torch.from_numpy(kept)[None], torch.from_numpy(mask()[None].astype(np.float32)))
    assert snr_db(shift(kept.astype(np.float64), "flow.flows.2"), got[0].numpy()) >= 120
