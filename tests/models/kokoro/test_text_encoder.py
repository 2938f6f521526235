from __future__ import annotations

import torch

from models.kokoro.text_encoder import TextEncoder
from tests.kokoro_reference import kokoro_module
from tests.kokoro_writer.checkpoint import SMALL
from tests.models.kokoro.checkpoints import part, snr_db, tame_weights
from tests.models.kokoro.originals import original


def test_text_encoder_is_the_references() -> None:
    weights = tame_weights(SMALL)
    reference = original(
        lambda: kokoro_module("modules").TextEncoder(
            SMALL.hidden_dim, SMALL.text_encoder_kernel_size, SMALL.n_layer, SMALL.n_token
        ),
        weights,
        "text_encoder",
    )
    tokens = torch.tensor([[0, 4, 9, 1, 4, 0]])
    with torch.inference_mode():
        wanted = reference(tokens, torch.tensor([6]), torch.zeros(1, 6, dtype=torch.bool))
        got = TextEncoder(part(weights, "text_encoder"), SMALL.n_layer)(tokens)
    assert snr_db(wanted, got) > 120
