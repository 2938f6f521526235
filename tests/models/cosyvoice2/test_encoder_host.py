"""The host half, in numpy."""

from __future__ import annotations

import numpy as np

from models.cosyvoice2.encoder_host import HostHalf, host_graph
from tests.cosyvoice2_encoder import SMALL, weights_of
from tests.onnx_runs import run


def test_host_half_looks_tokens_up_and_norms_the_speaker() -> None:
    weights = weights_of()
    tokens = np.array([[3, 0, 39, -1, 7]])
    speaker = np.random.default_rng(0).standard_normal((1, SMALL.speaker)).astype(np.float32)
    got = run(host_graph(HostHalf(weights)), {"tokens": tokens, "speaker": speaker})
    table = weights["input_embedding.weight"]
    # Tokens below 0 count as 0 (upstream, torch.clamp(token, min=0)).
    np.testing.assert_array_equal(got["embedded"][0, :, 0].T, table[[3, 0, 39, 0, 7]])
    unit = speaker / np.linalg.norm(speaker)
    wanted = unit @ weights["spk_embed_affine_layer.weight"].T + weights["spk_embed_affine_layer.bias"]
    np.testing.assert_allclose(got["spks"], wanted, rtol=1e-4, atol=1e-6)
