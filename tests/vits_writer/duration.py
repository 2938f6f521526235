"""How long each phoneme lasts: VITS's two predictors, or a convolution and noise."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import TensorProto

from tests.vits_writer.blocks import dds_conv, layer_norm
from tests.vits_writer.encoder import Encoded
from tests.vits_writer.graph_writer import GraphWriter
from tests.vits_writer.model import PROSODY_FEATURES
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.shapes import phonemes_of, sizes_of, vector
from tests.vits_writer.spline import conv_flow

DURATION_NOISE = 0.3
"""How much noise counts; spread over `exp`, it makes durations of 1 to 5 frames a phoneme."""

KERNEL = 3

LOG_FRAMES, LOG_FRAMES_SPREAD = 0.7, 0.4
"""What the last layer of VITS's predictors is drawn for: two frames a phoneme, more or less."""

PROSODY_CHANNELS = 16
"""piper-plus' default `--prosody-dim`."""

PROSODY_LANGUAGE = 0
"""The language whose phonemes have prosody, where there are several."""


@dataclass(frozen=True)
class DurationInputs:
    """What durations depend on besides the phonemes; names of scalars and of tensors.

    Attributes:
        length_scale: frames are multiplied by it.
        noise_width: noise is.
        condition: the embedding [1, hidden, 1] of speaker and language, if any.
        prosody: int64 [batch, T, 3], if any.
        language: int64 [batch], where there are several.
    """

    length_scale: str
    noise_width: str
    condition: str | None = None
    prosody: str | None = None
    language: str | None = None


def durations(w: GraphWriter, recipe: Recipe, encoded: Encoded, given: DurationInputs) -> tuple[str, str]:
    """Frames of each phoneme [1, 1, T]: as predicted, and as whole numbers (float as well)."""
    features, channels = encoded.features, recipe.hidden
    if given.prosody is not None:
        features = _with_prosody(w, features, encoded.mask, given.prosody, given.language)
        channels += PROSODY_CHANNELS
    if not recipe.duration_flows:
        logw = _plain(w, recipe, features, channels, given)
    elif recipe.duration_noise:
        logw = _stochastic(w, recipe, features, channels, encoded.mask, given)
    else:
        logw = _deterministic(w, recipe, features, channels, encoded.mask, given)
    frames = w.node("Mul", "/Mul", w.node("Exp", "/Exp", logw), encoded.mask)
    frames = w.node("Mul", "/Mul_1", frames, given.length_scale)
    return frames, w.node("Ceil", "/Ceil", frames)


def _plain(w: GraphWriter, recipe: Recipe, features: str, channels: int, given: DurationInputs) -> str:
    if given.condition is not None:
        condition = w.conv("/dp/cond", given.condition, recipe.hidden, channels)
        features = w.node("Add", "/dp/Add_cond", features, condition)
    logw = w.conv("/dp/proj", features, channels, 1)
    if recipe.duration_noise:
        shape = w.node("Shape", "/dp/Shape", logw)
        batch = w.node("Gather", "/dp/Gather", shape, w.scalar(0), axis=0)
        count = w.node("Gather", "/dp/Gather_1", shape, w.scalar(2), axis=0)
        sizes = [w.node("Unsqueeze", f"/dp/Unsqueeze_{i}", s, w.integers(0)) for i, s in enumerate((batch, count))]
        shape = w.node("Concat", "/dp/Concat", sizes[0], w.integers(2), sizes[1], axis=0)
        noise = w.normal_like("/dp", w.node("ConstantOfShape", "/dp/ConstantOfShape", shape))
        noise = w.flip("/dp/flows.1/Slice", w.node("Mul", "/dp/Mul", noise, given.noise_width))
        first, _ = w.halves("/dp/flows.0", noise, 1)
        logw = w.node("Add", "/dp/Add", logw, w.node("Mul", "/dp/Mul_1", first, w.real(DURATION_NOISE)))
    return logw


def _stochastic(w: GraphWriter, recipe: Recipe, features: str, channels: int, mask: str, given: DurationInputs) -> str:
    """Noise [1, 2, T] through the flows, in reverse; the coupling that VITS leaves out at inference is left out."""
    x = w.conv("/dp/pre", features, channels, channels)
    if given.condition is not None:
        x = w.op("/dp", "Add", x, w.conv("/dp/cond", given.condition, recipe.hidden, channels))
    x = dds_conv(w, "/dp/convs", x, mask, channels)
    x = w.op("/dp", "Mul", w.conv("/dp/proj", x, channels, channels), mask)
    z = w.op("/dp", "Mul", w.normal_like("/dp", _pairs(w, x)), given.noise_width)
    for coupling in reversed(range(1, recipe.couplings)):
        z = w.flip(f"/dp/flows.{2 * coupling + 2}/Slice", z)
        z = conv_flow(w, f"/dp/flows.{2 * coupling + 1}", z, mask, x, channels)
    z = w.flip("/dp/flows.2/Slice", z)
    # logw = (z - m) exp(-s); the exporter has computed the exponential of the weights.
    mean = w.weight("dp.flows.0.m", 2, 1, spread=0.1, mean=-LOG_FRAMES / LOG_FRAMES_SPREAD)
    scale = w.weight("/dp/flows.0/Exp_output_0", 2, 1, spread=0.0, mean=LOG_FRAMES_SPREAD)
    z = w.op("/dp/flows.0", "Mul", w.op("/dp/flows.0", "Sub", z, mean), scale)
    return w.halves("/dp", w.op("/dp/flows.0", "Mul", z, mask), 1)[0]


def _pairs(w: GraphWriter, x: str) -> str:
    """Zeros [batch, 2, T] for x [batch, C, T]."""
    if w.dynamo:
        return w.op("/dp", "ConstantOfShape", vector(w, "/dp", [1, 2, phonemes_of(w, "/dp", x)]))
    batch, count = sizes_of(w, "/dp", x, 0, 2)
    return w.op("/dp", "ConstantOfShape", vector(w, "/dp", [batch, 2, count]))


def _deterministic(
    w: GraphWriter, recipe: Recipe, features: str, channels: int, mask: str, given: DurationInputs
) -> str:
    """Two convolutions with layer norms."""
    x = features
    if given.condition is not None:
        x = w.op("/dp", "Add", x, w.conv("/dp/cond", given.condition, recipe.hidden, channels))
    for number in (1, 2):
        x = w.conv(f"/dp/conv_{number}", w.op("/dp", "Mul", x, mask), channels, channels, KERNEL)
        x = layer_norm(w, f"/dp/norm_{number}", w.op("/dp", "Relu", x), channels)
    x = w.op("/dp", "Mul", x, mask)
    return w.op("/dp", "Mul", w.conv("/dp/proj", x, channels, 1), mask)


def _with_prosody(w: GraphWriter, features: str, mask: str, prosody: str, language: str | None) -> str:
    """`features` with sixteen channels more, of each phoneme's prosody; none in languages that have none."""
    x = w.node("Cast", "/Cast_prosody", prosody, to=TensorProto.FLOAT)
    if language is not None:
        has = w.node("Equal", "/Equal_language", language, w.scalar(PROSODY_LANGUAGE))
        has = w.node("Cast", "/Cast_language", has, to=TensorProto.FLOAT)
        has = w.node("Reshape", "/Reshape_language", has, w.integers(-1, 1, 1))
        x = w.node("Mul", "/Mul_language", x, has)
    table = w.weight("prosody_proj.weight", PROSODY_FEATURES, PROSODY_CHANNELS, spread=0.3)
    bias = w.weight("prosody_proj.bias", PROSODY_CHANNELS, spread=0.1)
    x = w.node("MatMul", "/prosody_proj/MatMul", x, table)
    x = w.node("Add", "/prosody_proj/Add", bias, x)
    x = w.node("Transpose", "/Transpose_prosody", x, perm=[0, 2, 1])
    x = w.node("Mul", "/Mul_prosody", x, mask)
    return w.node("Concat", "/Concat_prosody", features, x, axis=1)
