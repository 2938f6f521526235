"""The sizes of a Kokoro, read off its ONNX."""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from contracts.errors import Refusal
from converters.kokoro.graph_modules import GraphModules, constant_shape
from models.kokoro.config import AlbertConfig, GeneratorConfig, KokoroConfig

_LAYER = "bert.module.encoder.albert_layer_groups.0.albert_layers.0"


def graph_sizes(places: GraphModules, assumed: KokoroConfig) -> KokoroConfig:
    """The sizes of the graph; the attention heads and the hop, which no weight tells, are those of `assumed`.

    Raises:
        Refusal: the graph has not the modules of a Kokoro.
    """
    words, hidden = _shape(places, "text_encoder.module.embedding", "Gather", 0)
    decoder = _shape(places, "decoder.module.encode.conv2", "Conv", 1)
    return replace(
        assumed,
        n_token=words,
        hidden_dim=hidden,
        style_dim=_linear(places, "decoder.module.encode.norm1.fc")[0],
        n_layer=places.count("text_encoder.module.cnn.{}.0"),
        max_dur=_linear(places, "predictor.module.duration_proj.linear_layer")[1],
        text_encoder_kernel_size=_shape(places, "text_encoder.module.cnn.0.0", "Conv", 1)[2],
        plbert=_albert(places, assumed.plbert),
        istftnet=_generator(places, assumed.istftnet),
        decoder_channels=decoder[0],
        asr_channels=_shape(places, "decoder.module.asr_res.0", "Conv", 1)[0],
    )


def _albert(places: GraphModules, assumed: AlbertConfig) -> AlbertConfig:
    return replace(
        assumed,
        hidden_size=_linear(places, "bert.module.encoder.embedding_hidden_mapping_in")[1],
        intermediate_size=_linear(places, f"{_LAYER}.ffn")[1],
        max_position_embeddings=_shape(places, "bert.module.embeddings.position_embeddings", "Gather", 0)[0],
        # The exporter numbers the calls of a module from the second on: query, query_1, query_2.
        num_hidden_layers=1 + sum(places.has(f"{_LAYER}.attention.query_{call}") for call in range(1, 100)),
    )


def _generator(places: GraphModules, assumed: GeneratorConfig) -> GeneratorConfig:
    name = "decoder.module.generator"
    stages = range(places.count(f"{name}.ups.{{}}"))
    kernels = range(places.count(f"{name}.resblocks.{{}}.convs1.0") // max(len(stages), 1))
    upsamplings = [places.node(f"{name}.ups.{stage}", "ConvTranspose") for stage in stages]
    weights = [_shape_of(places, node, 1, rank=3) for node in upsamplings]
    blocks = [_block(places, f"{name}.resblocks.{kernel}") for kernel in kernels]
    if not weights or not blocks:
        raise Refusal(f"{places.source}: is no Kokoro: its generator has no upsampling, or no residual block.")
    return replace(
        assumed,
        upsample_rates=tuple(_whole(node, "strides") for node in upsamplings),
        upsample_kernel_sizes=tuple(weight[2] for weight in weights),
        upsample_initial_channel=weights[0][0],
        resblock_kernel_sizes=tuple(kernel for kernel, _ in blocks),
        resblock_dilation_sizes=tuple(dilations for _, dilations in blocks),
        gen_istft_n_fft=_shape(places, f"{name}.conv_post", "Conv", 1)[0] - 2,
    )


def _block(places: GraphModules, name: str) -> tuple[int, tuple[int, ...]]:
    """Kernel and dilations of a residual block."""
    steps = range(places.count(f"{name}.convs1.{{}}"))
    nodes = [places.node(f"{name}.convs1.{step}", "Conv") for step in steps]
    kernel = _shape(places, f"{name}.convs1.0", "Conv", 1)[2]
    return kernel, tuple(_whole(node, "dilations") for node in nodes)


def _whole(node: ir.Node, attribute: str) -> int:
    """The only entry of an attribute that is one along one axis; 1 by default (ONNX operator specification)."""
    return int(node.attributes.get_ints(attribute, (1,))[0])


def _linear(places: GraphModules, module: str) -> tuple[int, int]:
    """Width in and out."""
    node = places.node(module, "MatMul", "Gemm")
    one, other = _shape_of(places, node, 1, rank=2)
    return (other, one) if node.attributes.get_int("transB", 0) else (one, other)


def _shape(places: GraphModules, module: str, operator: str, place: int) -> tuple[int, ...]:
    rank = 2 if operator == "Gather" else 3
    return _shape_of(places, places.node(module, operator), place, rank)


def _shape_of(places: GraphModules, node: ir.Node, place: int, rank: int) -> tuple[int, ...]:
    sizes = constant_shape(places.weight(node, place))
    if len(sizes) != rank:
        raise Refusal(
            f"{places.source}: is no Kokoro: the weight of the node {node.name} has {len(sizes)} axes, not {rank}."
        )
    return sizes
