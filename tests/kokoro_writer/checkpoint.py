"""Small random Kokoro checkpoints in the official layout; names and shapes written out from the reference's modules."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from models.kokoro.config import KOKORO_82M, AlbertConfig, GeneratorConfig, KokoroConfig

Weights = dict[str, NDArray[np.float32]]

SMALL = KokoroConfig(
    n_token=10,
    hidden_dim=8,
    style_dim=4,
    n_layer=2,
    max_dur=5,
    text_encoder_kernel_size=3,
    plbert=replace(
        KOKORO_82M.plbert, hidden_size=12, intermediate_size=16, max_position_embeddings=20, num_hidden_layers=2
    ),
    istftnet=GeneratorConfig(
        upsample_rates=(3, 2),
        upsample_kernel_sizes=(7, 4),
        upsample_initial_channel=16,
        resblock_kernel_sizes=(3, 5),
        resblock_dilation_sizes=((1, 3, 5), (1, 2, 4)),
        gen_istft_n_fft=4,
        gen_istft_hop_size=5,
    ),
    decoder_channels=14,
    asr_channels=6,
)
"""Every size that a graph can tell is another than Kokoro-82M's, and no two widths are the same."""


def random_weights(config: KokoroConfig = SMALL, seed: int = 0) -> Weights:
    """Weights of the right names and shapes, random numbers of about one; gains and alphas are above 0."""
    rng = np.random.default_rng(seed)
    shapes = {**_bert(config), **_text(config), **_predictor(config), **_decoder(config), **_generator(config)}
    weights: Weights = {}
    for name, shape in shapes.items():
        drawn = rng.standard_normal(shape)
        positive = name.endswith(".weight_g") or ".alpha" in name
        weights[name] = np.asarray(np.abs(drawn) + 0.1 if positive else drawn, np.float32)
    return weights


def stated(config: KokoroConfig = SMALL) -> dict[str, Any]:
    """`config` as a `config.json` states it, with keys that only training reads."""
    data = json.loads(json.dumps(asdict(config)))
    del data["decoder_channels"], data["asr_channels"]
    return {**data, "dropout": 0.2, "n_mels": 80, "multispeaker": True, "vocab": {";": 1}}


def state_dicts(weights: Weights, prefix: str = "module.") -> dict[str, dict[str, torch.Tensor]]:
    """`weights` as the official file holds them; `prefix` takes the place of `module.`."""
    tops: dict[str, dict[str, torch.Tensor]] = {}
    for name, array in weights.items():
        top, _, rest = name.partition(".module.")
        tops.setdefault(top, {})[prefix + rest] = torch.from_numpy(array.copy())
    return tops


def write_checkpoint(folder: Path, held: object = None, config: object = None) -> Path:
    """`held` (a small random checkpoint) as `model.pth` in `folder`, with `config` as the config.json beside it."""
    path = folder / "model.pth"
    torch.save(state_dicts(random_weights()) if held is None else held, path)
    (folder / "config.json").write_text(json.dumps(stated() if config is None else config), encoding="utf-8")
    return path


Shapes = dict[str, tuple[int, ...]]


def _linear(name: str, given: int, made: int) -> Shapes:
    return {f"{name}.weight": (made, given), f"{name}.bias": (made,)}


def _normed(name: str, *weight: int, bias: int | None = None) -> Shapes:
    biases = {} if bias == 0 else {f"{name}.bias": (bias or weight[0],)}
    return {**biases, f"{name}.weight_g": (weight[0], 1, 1), f"{name}.weight_v": weight}


def _lstm(name: str, given: int, half: int) -> Shapes:
    return {
        f"{name}.{rest}_l0{way}": shape
        for way in ("", "_reverse")
        for rest, shape in {
            "weight_ih": (4 * half, given),
            "weight_hh": (4 * half, half),
            "bias_ih": (4 * half,),
            "bias_hh": (4 * half,),
        }.items()
    }


def _bert(config: KokoroConfig) -> Shapes:
    sizes: AlbertConfig = config.plbert
    name, width = "bert.module.encoder.albert_layer_groups.0.albert_layers.0", sizes.hidden_size
    shapes: Shapes = {
        "bert.module.embeddings.word_embeddings.weight": (config.n_token, 128),
        "bert.module.embeddings.position_embeddings.weight": (sizes.max_position_embeddings, 128),
        "bert.module.embeddings.token_type_embeddings.weight": (2, 128),
        "bert.module.embeddings.LayerNorm.weight": (128,),
        "bert.module.embeddings.LayerNorm.bias": (128,),
        f"{name}.full_layer_layer_norm.weight": (width,),
        f"{name}.full_layer_layer_norm.bias": (width,),
        f"{name}.attention.LayerNorm.weight": (width,),
        f"{name}.attention.LayerNorm.bias": (width,),
    }
    shapes |= _linear("bert.module.encoder.embedding_hidden_mapping_in", 128, width)
    for part in ("query", "key", "value", "dense"):
        shapes |= _linear(f"{name}.attention.{part}", width, width)
    shapes |= _linear(f"{name}.ffn", width, sizes.intermediate_size)
    shapes |= _linear(f"{name}.ffn_output", sizes.intermediate_size, width)
    return shapes | _linear("bert_encoder.module", width, config.hidden_dim)


def _text(config: KokoroConfig) -> Shapes:
    width = config.hidden_dim
    shapes: Shapes = {"text_encoder.module.embedding.weight": (config.n_token, width)}
    for layer in range(config.n_layer):
        shapes |= _normed(f"text_encoder.module.cnn.{layer}.0", width, width, config.text_encoder_kernel_size)
        shapes |= dict.fromkeys((f"text_encoder.module.cnn.{layer}.1.{rest}" for rest in ("gamma", "beta")), (width,))
    return shapes | _lstm("text_encoder.module.lstm", width, width // 2)


def _predictor(config: KokoroConfig) -> Shapes:
    width, style, name = config.hidden_dim, config.style_dim, "predictor.module"
    shapes: Shapes = {}
    for layer in range(config.n_layer):
        shapes |= _lstm(f"{name}.text_encoder.lstms.{2 * layer}", width + style, width // 2)
        shapes |= _linear(f"{name}.text_encoder.lstms.{2 * layer + 1}.fc", style, 2 * width)
    for part in ("lstm", "shared"):
        shapes |= _lstm(f"{name}.{part}", width + style, width // 2)
    shapes |= _linear(f"{name}.duration_proj.linear_layer", width, config.max_dur)
    for curve in ("F0", "N"):
        shapes |= _block(f"{name}.{curve}.0", width, width, style)
        shapes |= _block(f"{name}.{curve}.1", width, width // 2, style, pool=True)
        shapes |= _block(f"{name}.{curve}.2", width // 2, width // 2, style)
        shapes |= {f"{name}.{curve}_proj.weight": (1, width // 2, 1), f"{name}.{curve}_proj.bias": (1,)}
    return shapes


def _block(name: str, given: int, made: int, style: int, pool: bool = False) -> Shapes:
    shapes = _normed(f"{name}.conv1", made, given, 3) | _normed(f"{name}.conv2", made, made, 3)
    shapes |= _linear(f"{name}.norm1.fc", style, 2 * given) | _linear(f"{name}.norm2.fc", style, 2 * made)
    shapes |= _normed(f"{name}.pool", given, 1, 3) if pool else {}
    return shapes | (_normed(f"{name}.conv1x1", made, given, 1, bias=0) if given != made else {})


def _decoder(config: KokoroConfig) -> Shapes:
    inner, beside = config.decoder_channels, config.decoder_channels + 2 + config.asr_channels
    shapes = _block("decoder.module.encode", config.hidden_dim + 2, inner, config.style_dim)
    for block in range(3):
        shapes |= _block(f"decoder.module.decode.{block}", beside, inner, config.style_dim)
    made = config.istftnet.upsample_initial_channel
    shapes |= _block("decoder.module.decode.3", beside, made, config.style_dim, pool=True)
    shapes |= _normed("decoder.module.F0_conv", 1, 1, 3) | _normed("decoder.module.N_conv", 1, 1, 3)
    return shapes | _normed("decoder.module.asr_res.0", config.asr_channels, config.hidden_dim, 1)


def _generator(config: KokoroConfig) -> Shapes:
    sizes, name = config.istftnet, "decoder.module.generator"
    rates, spectrum = sizes.upsample_rates, sizes.gen_istft_n_fft + 2
    shapes = _linear(f"{name}.m_source.l_linear", 9, 1)
    width = sizes.upsample_initial_channel
    for stage, kernel in enumerate(sizes.upsample_kernel_sizes):
        is_last = stage == len(rates) - 1
        shapes |= _normed(f"{name}.ups.{stage}", width, width // 2, kernel, bias=width // 2)
        width //= 2
        of_harmonics = 1 if is_last else 2 * int(np.prod(rates[stage + 1 :]))
        shapes |= {
            f"{name}.noise_convs.{stage}.weight": (width, spectrum, of_harmonics),
            f"{name}.noise_convs.{stage}.bias": (width,),
        }
        shapes |= _snakes(f"{name}.noise_res.{stage}", width, 11 if is_last else 7, config.style_dim)
        for place, size in enumerate(sizes.resblock_kernel_sizes):
            block = f"{name}.resblocks.{stage * len(sizes.resblock_kernel_sizes) + place}"
            shapes |= _snakes(block, width, size, config.style_dim)
    return shapes | _normed(f"{name}.conv_post", spectrum, width, 7)


def _snakes(name: str, width: int, kernel: int, style: int) -> Shapes:
    shapes: Shapes = {}
    for half in (1, 2):
        for step in range(3):
            shapes |= _normed(f"{name}.convs{half}.{step}", width, width, kernel)
            shapes |= _linear(f"{name}.adain{half}.{step}.fc", style, 2 * width)
            shapes[f"{name}.alpha{half}.{step}"] = (1, width, 1)
    return shapes
