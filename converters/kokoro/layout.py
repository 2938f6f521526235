"""What a Kokoro checkpoint holds: every module with its tensors and their shapes, from the sizes of a config.

Names are the official ones: the top key, `module`, and the module's path in the reference (`kokoro.model.KModel`).
Kokoro-82M's file has 548 tensors, 81,763,410 numbers: 546 that speaking reads (`modules`), and the two of ALBERT's
pooler (`UNREAD`), whose output the reference throws away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from math import prod

from models.kokoro.config import GeneratorConfig, KokoroConfig

TOP_KEYS = ("bert", "bert_encoder", "predictor", "decoder", "text_encoder")
"""Of the official file, in its order; below each lies one state dict."""

WRAPPER = "module."
"""In front of every name below a top key: the training wrapped its modules for several GPUs."""

HARMONICS = 9
"""Sines of the harmonic source, the fundamental among them; written out in the reference's generator."""

_ALBERT_EMBEDDING = 128
_TOKEN_TYPES = 2
"""transformers' AlbertConfig defaults, which no Kokoro config changes."""

_LSTM_GATES = 4

Shape = tuple[int, ...]


class Kind(Enum):
    """What a module computes with its tensors."""

    EMBEDDING = auto()
    LINEAR = auto()
    CONVOLUTION = auto()
    NORMED_CONVOLUTION = auto()
    LSTM = auto()
    LAYER_NORM = auto()
    SNAKE = auto()


@dataclass(frozen=True)
class Module:
    """One module.

    Attributes:
        name: its full name in the checkpoint.
        kind: what it computes.
        shapes: its tensors, by the rest of their names.
    """

    name: str
    kind: Kind
    shapes: dict[str, Shape]

    def tensors(self) -> dict[str, Shape]:
        """The full names of its tensors, with their shapes."""
        return {f"{self.name}.{rest}": shape for rest, shape in self.shapes.items()}


UNREAD = ("bert.module.pooler.weight", "bert.module.pooler.bias")
"""Tensors of the official file that nothing reads: a graph does not have them."""


def modules(config: KokoroConfig) -> list[Module]:
    """Every module that a Kokoro of these sizes computes with."""
    return [
        *_bert(config),
        _linear("bert_encoder.module", config.plbert.hidden_size, config.hidden_dim),
        *_predictor(config),
        *_decoder(config),
        *_generator(config),
        *_text_encoder(config),
    ]


def expected(config: KokoroConfig) -> dict[str, Shape]:
    """Name and shape of every tensor that speaking reads."""
    return {name: shape for module in modules(config) for name, shape in module.tensors().items()}


def unread(config: KokoroConfig) -> dict[str, Shape]:
    """Name and shape of the tensors that a checkpoint may have, and nothing reads."""
    hidden = config.plbert.hidden_size
    return dict(zip(UNREAD, ((hidden, hidden), (hidden,)), strict=True))


def _embedding(name: str, rows: int, width: int) -> Module:
    return Module(name, Kind.EMBEDDING, {"weight": (rows, width)})


def _linear(name: str, given: int, made: int) -> Module:
    return Module(name, Kind.LINEAR, {"weight": (made, given), "bias": (made,)})


def _norm(name: str, width: int, names: tuple[str, str] = ("weight", "bias")) -> Module:
    return Module(name, Kind.LAYER_NORM, dict.fromkeys(names, (width,)))


def _convolution(name: str, weight: Shape, bias: int) -> Module:
    return Module(name, Kind.CONVOLUTION, {"weight": weight, "bias": (bias,)})


def _normed(name: str, weight: Shape, bias: int | None) -> Module:
    """A convolution under weight norm; its gains are those of the first axis (torch's `weight_norm`, dim 0)."""
    of_bias: dict[str, Shape] = {} if bias is None else {"bias": (bias,)}
    gains = (weight[0], *(1 for _ in weight[1:]))
    return Module(name, Kind.NORMED_CONVOLUTION, {**of_bias, "weight_g": gains, "weight_v": weight})


def _lstm(name: str, given: int, made: int) -> Module:
    """One layer in both directions, each of half the width `made`."""
    half = made // 2
    rows = _LSTM_GATES * half
    one = {"weight_ih_l0": (rows, given), "weight_hh_l0": (rows, half), "bias_ih_l0": (rows,), "bias_hh_l0": (rows,)}
    return Module(name, Kind.LSTM, {rest + way: shape for way in ("", "_reverse") for rest, shape in one.items()})


def _bert(config: KokoroConfig) -> Iterator[Module]:
    sizes, width = config.plbert, config.plbert.hidden_size
    embeddings, layer = "bert.module.embeddings", "bert.module.encoder.albert_layer_groups.0.albert_layers.0"
    yield _embedding(f"{embeddings}.word_embeddings", config.n_token, _ALBERT_EMBEDDING)
    yield _embedding(f"{embeddings}.position_embeddings", sizes.max_position_embeddings, _ALBERT_EMBEDDING)
    yield _embedding(f"{embeddings}.token_type_embeddings", _TOKEN_TYPES, _ALBERT_EMBEDDING)
    yield _norm(f"{embeddings}.LayerNorm", _ALBERT_EMBEDDING)
    yield _linear("bert.module.encoder.embedding_hidden_mapping_in", _ALBERT_EMBEDDING, width)
    yield _norm(f"{layer}.full_layer_layer_norm", width)
    for part in ("query", "key", "value", "dense"):
        yield _linear(f"{layer}.attention.{part}", width, width)
    yield _norm(f"{layer}.attention.LayerNorm", width)
    yield _linear(f"{layer}.ffn", width, sizes.intermediate_size)
    yield _linear(f"{layer}.ffn_output", sizes.intermediate_size, width)


def _text_encoder(config: KokoroConfig) -> Iterator[Module]:
    width = config.hidden_dim
    yield _embedding("text_encoder.module.embedding", config.n_token, width)
    for layer in range(config.n_layer):
        yield _normed(f"text_encoder.module.cnn.{layer}.0", (width, width, config.text_encoder_kernel_size), width)
        yield _norm(f"text_encoder.module.cnn.{layer}.1", width, ("gamma", "beta"))
    yield _lstm("text_encoder.module.lstm", width, width)


def _predictor(config: KokoroConfig) -> Iterator[Module]:
    width, style = config.hidden_dim, config.style_dim
    for layer in range(config.n_layer):
        yield _lstm(f"predictor.module.text_encoder.lstms.{2 * layer}", width + style, width)
        yield _linear(f"predictor.module.text_encoder.lstms.{2 * layer + 1}.fc", style, 2 * width)
    yield _lstm("predictor.module.lstm", width + style, width)
    yield _linear("predictor.module.duration_proj.linear_layer", width, config.max_dur)
    yield _lstm("predictor.module.shared", width + style, width)
    for curve in ("F0", "N"):
        name, half = f"predictor.module.{curve}", width // 2
        yield from _style_block(f"{name}.0", width, width, style)
        yield from _style_block(f"{name}.1", width, half, style, doubles=True)
        yield from _style_block(f"{name}.2", half, half, style)
        yield _convolution(f"{name}_proj", (1, half, 1), 1)


def _decoder(config: KokoroConfig) -> Iterator[Module]:
    inner, style = config.decoder_channels, config.style_dim
    curves = 2  # F0 and N, at every block
    beside = inner + curves + config.asr_channels
    yield from _style_block("decoder.module.encode", config.hidden_dim + curves, inner, style)
    for block in range(3):
        yield from _style_block(f"decoder.module.decode.{block}", beside, inner, style)
    made = config.istftnet.upsample_initial_channel
    yield from _style_block("decoder.module.decode.3", beside, made, style, doubles=True)
    yield _normed("decoder.module.F0_conv", (1, 1, 3), 1)
    yield _normed("decoder.module.N_conv", (1, 1, 3), 1)
    yield _normed("decoder.module.asr_res.0", (config.asr_channels, config.hidden_dim, 1), config.asr_channels)


def _style_block(name: str, given: int, made: int, style: int, doubles: bool = False) -> Iterator[Module]:
    """`AdainResBlk1d`; one that doubles the rate has a transposed convolution a channel (`pool`)."""
    if doubles:
        yield _normed(f"{name}.pool", (given, 1, 3), given)
    yield _normed(f"{name}.conv1", (made, given, 3), made)
    yield _normed(f"{name}.conv2", (made, made, 3), made)
    yield _linear(f"{name}.norm1.fc", style, 2 * given)
    yield _linear(f"{name}.norm2.fc", style, 2 * made)
    if given != made:
        yield _normed(f"{name}.conv1x1", (made, given, 1), None)


def _generator(config: KokoroConfig) -> Iterator[Module]:
    sizes, style, name = config.istftnet, config.style_dim, "decoder.module.generator"
    spectrum, kernels = 2 * sizes.bins, sizes.resblock_kernel_sizes
    yield _linear(f"{name}.m_source.l_linear", HARMONICS, 1)
    for stage, kernel in enumerate(sizes.upsample_kernel_sizes):
        given, made = _channels(sizes, stage), _channels(sizes, stage + 1)
        yield _convolution(f"{name}.noise_convs.{stage}", (made, spectrum, _noise_kernel(sizes, stage)), made)
        widest = 11 if stage == len(sizes.upsample_rates) - 1 else 7  # written out in the reference's generator
        yield from _snake_block(f"{name}.noise_res.{stage}", made, widest, style, 3)
        yield _normed(f"{name}.ups.{stage}", (given, made, kernel), made)
        for place, (size, dilations) in enumerate(zip(kernels, sizes.resblock_dilation_sizes, strict=True)):
            block = f"{name}.resblocks.{stage * len(kernels) + place}"
            yield from _snake_block(block, made, size, style, len(dilations))
    last = _channels(sizes, len(sizes.upsample_rates))
    yield _normed(f"{name}.conv_post", (spectrum, last, 7), spectrum)


def _channels(sizes: GeneratorConfig, stage: int) -> int:
    """Channels before upsampling `stage`; each halves them."""
    return int(sizes.upsample_initial_channel // 2**stage)


def _noise_kernel(sizes: GeneratorConfig, stage: int) -> int:
    """Of the convolution that brings the harmonics to the rate behind upsampling `stage`: twice its stride."""
    stride = prod(sizes.upsample_rates[stage + 1 :])
    return 1 if stage == len(sizes.upsample_rates) - 1 else 2 * stride


def _snake_block(name: str, width: int, kernel: int, style: int, steps: int) -> Iterator[Module]:
    """`AdaINResBlock1`: `steps` times norm, Snake, dilated convolution, norm, Snake, convolution."""
    for half in (1, 2):
        for step in range(steps):
            yield _normed(f"{name}.convs{half}.{step}", (width, width, kernel), width)
            yield _linear(f"{name}.adain{half}.{step}.fc", style, 2 * width)
    yield Module(name, Kind.SNAKE, {f"alpha{half}.{step}": (1, width, 1) for half in (1, 2) for step in range(steps)})
