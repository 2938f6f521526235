"""Small Inflect v2 models as the release lays its files out: traced by the true exporter, with seeded weights."""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import torch

from models.inflect.config import InflectConfig
from models.inflect.graphs import decode_graph, duration_graph
from models.inflect.model import load
from models.inflect.stand_in import stand_in

SMALL = InflectConfig(
    inter_channels=8,
    hidden_channels=8,
    filter_channels=8,
    upsample_initial_channel=16,
    n_layers=1,
    upsample_rates=(4, 2),
    upsample_kernel_sizes=(8, 4),
    resblock_kernel_sizes=(3, 5),
    resblock_dilation_sizes=((1, 2), (1, 3)),
    sample_rate=16_000,
    n_vocab=20,
)
"""Eight samples a frame; it runs in milliseconds."""

SEED = 3

INPUTS = ["m_p_exp", "logs_p_exp", "y_mask", "zp_noise", "noise_scale"]
"""Of the published `decode.onnx` (family-facts)."""


@functools.cache
def published(config: InflectConfig = SMALL) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """`duration.onnx` and `decode.onnx` of a small model."""
    model = load(stand_in(config, SEED), config, "small")
    return ir.to_proto(duration_graph(model)), ir.to_proto(decode_graph(model))


def graphs(config: InflectConfig = SMALL) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """The same, to be changed."""
    duration, decode = onnx.ModelProto(), onnx.ModelProto()
    duration.CopyFrom(published(config)[0])
    decode.CopyFrom(published(config)[1])
    return duration, decode


def config_json(config: InflectConfig = SMALL) -> dict[str, Any]:
    """The release's `config.json` of these sizes; its keys are those of Inflect-Micro-v2."""
    model = dataclasses.asdict(config)
    rate, _ = model.pop("sample_rate"), model.pop("n_vocab")
    fixed = {"resblock": "1", "use_sdp": False, "use_spectral_norm": False, "inference_only": True}
    data = {"sampling_rate": rate, "hop_length": config.hop, "add_blank": True, "n_speakers": 0}
    return {"format": "inflect_v2_inference_config_v1", "data": data, "model": {**model, **fixed}}


def write_release(folder: Path, config: InflectConfig = SMALL) -> Path:
    """A release with its graphs and its config; returns `folder`."""
    duration, decode = published(config)
    (folder / "onnx").mkdir(parents=True)
    onnx.save(duration, folder / "onnx" / "duration.onnx")
    onnx.save(decode, folder / "onnx" / "decode.onnx")
    return write_config(folder, config)


def write_config(folder: Path, config: InflectConfig = SMALL, **data: Any) -> Path:
    """`config.json`, some of its `data` another; returns `folder`."""
    stated = config_json(config)
    stated["data"].update(data)
    (folder / "config.json").write_text(json.dumps(stated), encoding="utf-8")
    return folder


def checkpoint(config: InflectConfig = SMALL) -> dict[str, torch.Tensor]:
    """The state dict of the same model as a release has it, in weight norm, its directions of another length."""
    weights = stand_in(config, SEED)
    return {
        name: torch.from_numpy(2 * array if name.endswith("weight_v") else array) for name, array in weights.items()
    }


def write_weights(folder: Path, held: object | None = None, config: InflectConfig = SMALL) -> Path:
    """A release with its weights and its config; returns `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.save({"model": checkpoint(config)} if held is None else held, folder / "model.pth")
    return write_config(folder, config)
