"""A small speaker encoder for tests: its weights, its files, and the original at the same weights."""

from __future__ import annotations

from collections import OrderedDict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from models.cosyvoice2.speaker_config import DILATIONS, SpeakerConfig
from models.cosyvoice2.speaker_stand_in import stand_in
from models.tracing import traced, traced_by_script
from tests.cosyvoice_reference import cosyvoice_module

SMALL = SpeakerConfig(features=16, head=4, initial=8, growth=4, bottleneck=8, gate=4, layers=(2, 1, 1), embedding=8)

Floats = NDArray[np.float32]


@cache
def raw_weights(config: SpeakerConfig = SMALL) -> dict[str, Floats]:
    """As a checkpoint holds them."""
    return stand_in(config, 0)


class _Original(nn.Module):
    """FunASR's parts put together as its CAMPPlus is, which has a fixed number of layers and a head of 32 channels."""

    def __init__(self, config: SpeakerConfig) -> None:
        super().__init__()
        parts = cosyvoice_module("funasr.models.campplus.components")
        self.head = parts.FCM(m_channels=config.head, feat_dim=config.features)
        channels, made = config.initial, OrderedDict[str, nn.Module]()
        made["tdnn"] = parts.TDNNLayer(self.head.out_channels, channels, 5, stride=2, padding=-1)
        for block, (layers, dilation) in enumerate(zip(config.layers, DILATIONS, strict=True), 1):
            sizes = (layers, channels, config.growth, config.bottleneck)
            made[f"block{block}"] = parts.CAMDenseTDNNBlock(*sizes, kernel_size=3, dilation=dilation)
            channels += layers * config.growth
            made[f"transit{block}"] = parts.TransitLayer(channels, channels // 2, bias=False)
            channels //= 2
        made["out_nonlinear"] = parts.get_nonlinear("batchnorm-relu", channels)
        made["stats"] = parts.StatsPool()
        made["dense"] = parts.DenseLayer(2 * channels, config.embedding, config_str="batchnorm_")
        self.xvector = nn.Sequential(made)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.xvector(self.head(x.permute(0, 2, 1)))
        return made


def original(config: SpeakerConfig = SMALL) -> nn.Module:
    """The original at the same weights: [1, T, F] -> [1, E]."""
    made = _Original(config)
    state = {name: torch.from_numpy(array) for name, array in raw_weights(config).items()}
    missing, unexpected = made.load_state_dict(state, strict=False)
    assert not unexpected
    assert all(name.endswith("num_batches_tracked") for name in missing)
    return made.eval().requires_grad_(False)


def original_embedding(model: nn.Module, fbank: Floats) -> Floats:
    """Of fbank [1, 1, F, T]."""
    with torch.no_grad():
        made: Floats = model(torch.from_numpy(fbank[:, 0].transpose(0, 2, 1).copy())).numpy()
    return made


def write_weights(path: Path, change: dict[str, Any] | None = None) -> Path:
    """A checkpoint of them; `change` takes the place of tensors, or takes them out."""
    held: dict[str, Any] = {name: torch.from_numpy(array) for name, array in raw_weights().items()}
    held["head.bn1.num_batches_tracked"] = torch.tensor(5)
    held |= change or {}
    torch.save({name: tensor for name, tensor in held.items() if tensor is not None}, path)
    return path


@cache
def _published() -> bytes:
    example = (torch.zeros(1, 60, SMALL.features),)
    axes = {"input": {0: "B", 1: "T"}, "output": {0: "B"}}
    model = traced_by_script(original(), example, ["input"], ["output"], 11, axes)
    return bytes(ir.to_proto(model).SerializeToString())


def published() -> ir.Model:
    """The ONNX of the original as torch's older exporter writes it, of any length; the caller's own."""
    import onnx

    return ir.from_proto(onnx.load_from_string(_published()))


def newer_export(frames: int) -> ir.Model:
    """The same by the newer exporter, of one length."""
    return traced(original(), (torch.zeros(1, frames, SMALL.features),), ["input"], ["output"])


def save(model: ir.Model, path: Path) -> Path:
    """`model` in the file `path`."""
    path.write_bytes(ir.to_proto(model).SerializeToString())
    return path
