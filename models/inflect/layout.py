"""Names and shapes of an Inflect v2 model's weights, weight norm folded; no torch.

A published `model.pth` holds them under `model`, in its convolutions' weight norm (`weights.folded`); the published
graphs hold them as initialisers, with `model.` in front: 302 tensors.
"""

from __future__ import annotations

from models.inflect.config import (
    ATTENTION_WINDOW,
    DURATION_CHANNELS,
    DURATION_KERNEL,
    FLOW_KERNEL,
    FLOW_LAYERS,
    FLOW_STEPS,
    OUTER_KERNEL,
    InflectConfig,
)

Shape = tuple[int, ...]
Layout = dict[str, Shape]


def layout(config: InflectConfig) -> Layout:
    """Every tensor of the model by name, in the order of its parts: text encoder, durations, flow, generator."""
    return {**_text_encoder(config), **_durations(config), **_flow(config), **_generator(config)}


def normed(config: InflectConfig) -> frozenset[str]:
    """Which of those weights a checkpoint holds in weight norm, as direction and gain."""
    flow = (name for name in _flow(config) if ".enc." in name)
    generator = (name for name in _generator(config) if ".ups." in name or ".resblocks." in name)
    return frozenset(name for name in (*flow, *generator) if name.endswith(".weight"))


def _conv(name: str, outs: int, ins: int, kernel: int) -> Layout:
    return {f"{name}.weight": (outs, ins, kernel), f"{name}.bias": (outs,)}


def _norm(name: str, channels: int) -> Layout:
    return {f"{name}.gamma": (channels,), f"{name}.beta": (channels,)}


def _text_encoder(config: InflectConfig) -> Layout:
    hidden, filters, kernel = config.hidden_channels, config.filter_channels, config.kernel_size
    made: Layout = {"enc_p.emb.weight": (config.n_vocab, hidden)}
    for layer in range(config.n_layers):
        attention = f"enc_p.encoder.attn_layers.{layer}"
        for part in ("emb_rel_k", "emb_rel_v"):
            made[f"{attention}.{part}"] = (1, 2 * ATTENTION_WINDOW + 1, config.head_channels)
        for part in ("conv_q", "conv_k", "conv_v", "conv_o"):
            made |= _conv(f"{attention}.{part}", hidden, hidden, 1)
        made |= _norm(f"enc_p.encoder.norm_layers_1.{layer}", hidden)
        made |= _conv(f"enc_p.encoder.ffn_layers.{layer}.conv_1", filters, hidden, kernel)
        made |= _conv(f"enc_p.encoder.ffn_layers.{layer}.conv_2", hidden, filters, kernel)
        made |= _norm(f"enc_p.encoder.norm_layers_2.{layer}", hidden)
    return made | _conv("enc_p.proj", 2 * config.inter_channels, hidden, 1)


def _durations(config: InflectConfig) -> Layout:
    return {
        **_conv("dp.conv_1", DURATION_CHANNELS, config.hidden_channels, DURATION_KERNEL),
        **_norm("dp.norm_1", DURATION_CHANNELS),
        **_conv("dp.conv_2", DURATION_CHANNELS, DURATION_CHANNELS, DURATION_KERNEL),
        **_norm("dp.norm_2", DURATION_CHANNELS),
        **_conv("dp.proj", 1, DURATION_CHANNELS, 1),
    }


def _flow(config: InflectConfig) -> Layout:
    hidden, half = config.hidden_channels, config.half_channels
    made: Layout = {}
    for step in range(FLOW_STEPS):
        coupling = f"flow.flows.{2 * step}"  # every other is a flip, which holds nothing
        made |= _conv(f"{coupling}.pre", hidden, half, 1)
        for layer in range(FLOW_LAYERS):
            outs = hidden if layer == FLOW_LAYERS - 1 else 2 * hidden
            made |= _conv(f"{coupling}.enc.in_layers.{layer}", 2 * hidden, hidden, FLOW_KERNEL)
            made |= _conv(f"{coupling}.enc.res_skip_layers.{layer}", outs, hidden, 1)
        made |= _conv(f"{coupling}.post", half, hidden, 1)
    return made


def _generator(config: InflectConfig) -> Layout:
    made = _conv("dec.conv_pre", config.upsample_initial_channel, config.inter_channels, OUTER_KERNEL)
    block = 0
    for stage, kernel in enumerate(config.upsample_kernel_sizes):
        ins, outs = config.stage_channels(stage), config.stage_channels(stage + 1)
        made |= {f"dec.ups.{stage}.weight": (ins, outs, kernel), f"dec.ups.{stage}.bias": (outs,)}
        for width, dilations in zip(config.resblock_kernel_sizes, config.resblock_dilation_sizes, strict=True):
            for part in ("convs1", "convs2"):
                for step in range(len(dilations)):
                    made |= _conv(f"dec.resblocks.{block}.{part}.{step}", outs, outs, width)
            block += 1
    last = config.stage_channels(len(config.upsample_rates))
    return {**made, "dec.conv_post.weight": (1, last, OUTER_KERNEL)}
