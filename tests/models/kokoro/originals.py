"""The original's modules with the weights of a random checkpoint."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from tests.kokoro_reference import kokoro_module
from tests.kokoro_writer.checkpoint import SMALL, Weights, state_dicts


def original(make: Callable[[], Any], weights: Weights, top: str) -> Any:
    """The reference's module that `make` gives, with the weights under `TOP.module` but for the generator's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch: a successor to its weight_norm, a dropout that does nothing
        with torch.device("meta"):  # no numbers of its own
            module = make().eval()
    mine = {k: v for k, v in state_dicts(weights, "")[top].items() if not k.startswith("generator.")}
    missing = module.state_dict().keys() - mine.keys()
    for name in missing:  # of an instance norm's own affine step, which is in no official checkpoint
        assert name.endswith((".norm.weight", ".norm.bias"))
        made = torch.ones if name.endswith("weight") else torch.zeros
        mine[name] = made(module.state_dict()[name].shape)
    module.load_state_dict(mine, assign=True)
    return module


class Caught(Exception):
    """What the reference's generator was called with."""


class Catcher(nn.Module):
    """Stands in for the reference's generator."""

    def forward(self, x: Tensor, style: Tensor, pitch: Tensor) -> Tensor:
        raise Caught(x, style, pitch)


def reference_decoder() -> Any:
    """The reference's `Decoder`, whose widths are written out in it, in ours, with a `Catcher` for its generator."""
    module, sizes = kokoro_module("istftnet"), SMALL.istftnet
    block, beside = module.AdainResBlk1d, 2 + SMALL.asr_channels
    widths = {
        1024: SMALL.decoder_channels,
        1024 + 2 + 64: SMALL.decoder_channels + beside,
        512: sizes.upsample_initial_channel,
    }

    def narrow(ins: int, outs: int, style: int, **rest: Any) -> Any:
        return block(widths.get(ins, ins), widths[outs], style, **rest)

    with (
        patch.object(module, "AdainResBlk1d", narrow),
        patch.object(module, "Generator", lambda *_, **__: Catcher()),
    ):
        decoder = module.Decoder(SMALL.hidden_dim, SMALL.style_dim, 80, *[None] * 7)
    text = nn.Conv1d(SMALL.hidden_dim, SMALL.asr_channels, 1)
    decoder.asr_res = nn.Sequential(nn.utils.weight_norm(text))
    return decoder


def original_seam(decoder: Any, text: Tensor, pitch: Tensor, energy: Tensor, style: Tensor) -> tuple[Tensor, ...]:
    """What the reference's `decoder` calls its generator with: x, style, pitch."""
    try:
        decoder(text, pitch, energy, style)
    except Caught as caught:
        return caught.args
    raise AssertionError("the reference's decoder has not called its generator")
