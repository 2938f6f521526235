"""The host half of a Kokoro: tokens and a voice's style to the generator's inputs, with the noise as an input.

Everything before the seam, as an ONNX for onnxruntime on the board's CPU, traced from `models.kokoro.host`.

Inputs:  `tokens` int64 [1, T], `voice_style` [1, 256], `speed` [1] and `noise_source` [1, 300 N or more, 9], float32.
Outputs: `x` [1, 512, N], `har` [1, 22, 60 N + 1] and `style` [1, 128], float32; `durations` int64 [1, T], frames of
which the seam has two.

The noise is standard normal. N follows the durations, so it may be longer than needed and is cut.

It carries a card (`rknn_tts_runtime.speaking.kokoro_card`): the sizes and the vocabulary that a board speaks with.

The exporter is torch's TorchScript one: the other one unrolls an LSTM over time and needs its length as a number. It is
given no weights to write: they would be copied four times on the way (750 MB more at the peak, 6 s). The graph comes
bare, its parameters as inputs, and takes the module's own arrays; what the exporter leaves to be computed of them (the
order of an LSTM's gates) is folded here.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from math import ceil

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray
from rknn_tts_runtime.speaking.kokoro_card import KokoroCard, card_text
from rknn_tts_runtime.speaking.voice_keys import VOICE_METADATA

from models.kokoro.config import HARMONIC_TONES, SAMPLE_RATE, KokoroConfig
from surgery.fold_constants import folded

TOKENS, VOICE_STYLE, SPEED, NOISE = "tokens", "voice_style", "speed", "noise_source"
LATENT, HARMONICS, STYLE, DURATIONS = "x", "har", "style", "durations"

OPSET = 17
"""The first with LayerNormalization."""

_LENGTHS = {
    TOKENS: {1: "tokens"},
    NOISE: {1: "samples"},
    LATENT: {2: "frames"},
    HARMONICS: {2: "columns"},
    DURATIONS: {1: "tokens"},
}
"""Axes of no fixed length."""

_TRACED_TOKENS = 2
"""Length of what is traced; any other runs."""


def most_frames(tokens: int, config: KokoroConfig, speed: float = 1.0) -> int:
    """The most frames N that `tokens` tokens can take: noise for so many is enough.

    It is some five times what speech takes; with too little noise the host half fails in a Reshape.
    """
    return 2 * tokens * max(1, ceil(config.max_dur / speed))


def host_half(
    weights: Mapping[str, NDArray[np.float32]], config: KokoroConfig, vocabulary: Mapping[str, int] | None = None
) -> ir.Model:
    """The host half of a checkpoint.

    Args:
        weights: a whole checkpoint's arrays by their official names, checked; some are shared with what is returned.
        config: its sizes.
        vocabulary: phoneme to token, as its card has it; None where none is known.
    """
    model, parameters = _traced(weights, config)
    graph = model.graph
    for value in [value for value in graph.inputs if value.name in parameters]:
        graph.inputs.remove(value)
        value.const_value = ir.tensor(parameters[str(value.name)], name=value.name)
        graph.register_initializer(value)
    for value in graph.outputs:  # of which the exporter does not know that the first axis is 1
        value.shape = ir.Shape([1, *(value.shape or ())[1:]])
    half = folded(model)
    half.metadata_props[VOICE_METADATA] = card_text(card_of(config, vocabulary or {}))
    return half


def card_of(config: KokoroConfig, vocabulary: Mapping[str, int]) -> KokoroCard:
    """What a board must know of a checkpoint beside its graphs."""
    return KokoroCard(
        sample_rate=SAMPLE_RATE,
        hop=config.istftnet.hop,
        n_fft=config.istftnet.gen_istft_n_fft,
        istft_hop=config.istftnet.gen_istft_hop_size,
        style_size=2 * config.style_dim,
        noise_width=HARMONIC_TONES,
        tokens=config.n_token,
        most_phonemes=most_phonemes(config),
        most_frames_per_token=most_frames(1, config),
        vocabulary=dict(sorted(vocabulary.items(), key=lambda entry: entry[1])),
    )


def most_phonemes(config: KokoroConfig) -> int:
    """The longest sentence: ALBERT's positions, less the boundary before and behind. 510 for Kokoro-82M."""
    return config.plbert.max_position_embeddings - 2


def _traced(
    weights: Mapping[str, NDArray[np.float32]], config: KokoroConfig
) -> tuple[ir.Model, dict[str, NDArray[np.float32]]]:
    """The bare graph, and what its parameters are by name."""
    import torch

    from models.kokoro.host import Host

    host = Host(weights, config).eval()
    generator = config.istftnet
    samples = most_frames(_TRACED_TOKENS, config) * generator.hop
    example = (
        torch.ones(1, _TRACED_TOKENS, dtype=torch.int64),
        torch.zeros(1, 2 * config.style_dim),
        torch.ones(1),
        torch.zeros(1, samples, host.source.harmonics),
    )
    written = io.BytesIO()
    with warnings.catch_warnings():
        # It is out of date (see above), knows of batches, and takes the instance norm's own statistics for training.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            host,
            example,
            written,  # type: ignore[arg-type]  # this exporter writes to any file
            dynamo=False,
            opset_version=OPSET,
            input_names=[TOKENS, VOICE_STYLE, SPEED, NOISE],
            output_names=[LATENT, HARMONICS, STYLE, DURATIONS],
            dynamic_axes=_LENGTHS,
            export_params=False,
            do_constant_folding=False,
        )
    parameters = {name: tensor.numpy() for name, tensor in (*host.named_parameters(), *host.named_buffers())}
    return ir.from_proto(onnx.load_from_string(written.getvalue())), parameters
