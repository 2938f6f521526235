"""Behind the seam: the reverse flow, and the HiFi-GAN decoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.vits_writer.graph_writer import INT64_END, SLOPE, GraphWriter
from tests.vits_writer.recipe import Recipe

FLOW_KERNEL = 3
FAITHFUL_FLOW_KERNEL = 5
PRE_KERNEL = POST_KERNEL = 7
LAST_SLOPE = 0.01
"""Of the LeakyRelu before `conv_post`, for which VITS names no slope; 0.1 everywhere else."""


@dataclass(frozen=True)
class Conditions:
    """What flow and decoder read besides the latent: the frame mask, and the speaker's embedding [1, hidden, 1]."""

    mask: str | None
    speaker: str | None


def reverse_flow(w: GraphWriter, recipe: Recipe, z: str, given: Conditions) -> str:
    """Each coupling flips the channels, and takes from one half what the other half tells."""
    half = recipe.latent // 2
    for number in reversed(range(recipe.flows)):
        name = f"/flow/flows.{2 * number}"
        z = w.flip(f"/flow/flows.{2 * number + 1}/Slice", z)
        first, second = w.halves(name, z, half)
        h = _masked(w, f"{name}/Mul", w.conv(f"{name}/pre", first, half, recipe.hidden), given)
        h = _gated_layers(w, recipe, f"{name}/enc", h, given)
        mean = _masked(w, f"{name}/Mul_1", w.conv(f"{name}/post", h, recipe.hidden, half), given)
        # The exporter leaves the log spread of a mean-only coupling in the graph: exp(-0).
        zeros = w.zeros_like(name, mean)
        second = w.node("Sub", f"{name}/Sub", second, mean)
        scale = w.node("Exp", f"{name}/Exp", w.node("Neg", f"{name}/Neg", zeros))
        second = _masked(w, f"{name}/Mul_3", w.node("Mul", f"{name}/Mul_2", second, scale), given)
        z = w.node("Concat", f"{name}/Concat", first, second, axis=1)
    return z


def decode(w: GraphWriter, recipe: Recipe, z: str, given: Conditions) -> str:
    """Samples [1, 1, N * hop] in -1..1."""
    channels = recipe.decoder
    x = w.conv("/dec/conv_pre", _masked(w, "/Mul_7", z, given), recipe.latent, channels, PRE_KERNEL)
    if given.speaker is not None:
        x = w.node("Add", "/dec/Add_cond", x, w.conv("/dec/cond", given.speaker, recipe.hidden, channels))
    for number, stride in enumerate(recipe.strides):
        x = w.leaky_relu(f"/dec/{number}", x)
        x = w.conv_transpose(f"/dec/ups.{number}", x, channels, max(channels // 2, 2), stride)
        channels = max(channels // 2, 2)
        x = _residual_blocks(w, recipe, number, x, channels)
    x = w.leaky_relu("/dec", x, LAST_SLOPE if recipe.faithful else SLOPE)
    return w.node("Tanh", "/dec/Tanh", w.conv("/dec/conv_post", x, channels, 1, POST_KERNEL, bias=False))


def _gated_layers(w: GraphWriter, recipe: Recipe, name: str, h: str, given: Conditions) -> str:
    """WaveNet's gated layers; the last has no way on, only out."""
    hidden = recipe.hidden
    out = w.zeros_like(name, h)
    kernel = FAITHFUL_FLOW_KERNEL if recipe.faithful else FLOW_KERNEL
    conditions = _layer_conditions(w, recipe, name, given.speaker)
    for layer in range(recipe.flow_layers):
        x = w.conv(f"{name}/in_layers.{layer}", h, hidden, 2 * hidden, kernel)
        at = f"{name}/layer.{layer}"
        other = conditions(layer) if conditions is not None else w.zeros_like(at, x)
        acts = w.node("Add", f"{at}/Add", x, other)
        tanh = w.node("Tanh", f"{at}/Tanh", w.slice(f"{at}/Slice", acts, 0, hidden))
        gate = w.node("Sigmoid", f"{at}/Sigmoid", w.slice(f"{at}/Slice_1", acts, hidden, INT64_END))
        acts = w.node("Mul", f"{at}/Mul", tanh, gate)
        last = layer == recipe.flow_layers - 1
        skip = w.conv(f"{name}/res_skip_layers.{layer}", acts, hidden, hidden if last else 2 * hidden)
        if not last:
            onward = w.node("Add", f"{at}/Add_1", h, w.slice(f"{at}/Slice_2", skip, 0, hidden))
            h = _masked(w, f"{at}/Mul_1", onward, given)
            skip = w.slice(f"{at}/Slice_3", skip, hidden, INT64_END)
        out = w.node("Add", f"{at}/Add_2", out, skip)
    return _masked(w, f"{name}/Mul", out, given)


def _layer_conditions(w: GraphWriter, recipe: Recipe, name: str, speaker: str | None) -> Callable[[int], str] | None:
    """What each layer adds for the speaker; VITS has one convolution for all layers, and a slice of it for each."""
    if speaker is None:
        return None
    hidden = recipe.hidden
    if not recipe.faithful:
        return lambda layer: w.conv(f"{name}/cond_layer.{layer}", speaker, hidden, 2 * hidden)
    every = w.conv(f"{name}/cond_layer", speaker, hidden, 2 * hidden * recipe.flow_layers)
    return lambda layer: w.slice(f"{name}/Slice_{layer}", every, 2 * hidden * layer, 2 * hidden * (layer + 1))


def _residual_blocks(w: GraphWriter, recipe: Recipe, number: int, x: str, channels: int) -> str:
    """The mean of the residual blocks of one upsampling; they share their first activation."""
    kernels = recipe.resblock_kernels
    names = [f"/dec/resblocks.{number * len(kernels) + i}" for i in range(len(kernels))]
    shared = w.leaky_relu(names[0], x)
    total = ""
    for name, kernel, dilations in zip(names, kernels, recipe.dilations, strict=True):
        y = x
        for i, dilation in enumerate(dilations):
            active = shared if i == 0 else w.leaky_relu(f"{name}/{i}", y)
            if recipe.resblock == "1":
                conv = w.conv(f"{name}/convs1.{i}", active, channels, channels, kernel, dilation)
                active = w.leaky_relu(f"{name}/{i}/convs2", conv)
                conv = w.conv(f"{name}/convs2.{i}", active, channels, channels, kernel)
            else:
                conv = w.conv(f"{name}/convs.{i}", active, channels, channels, kernel, dilation)
            y = w.node("Add", f"{name}/Add_{i}", conv, y)
        total = w.node("Add", f"{name}/Add", total, y) if total else y
    return w.node("Div", f"/dec/Div_{number}", total, w.real(float(len(kernels))))


def _masked(w: GraphWriter, name: str, x: str, given: Conditions) -> str:
    return x if given.mask is None else w.node("Mul", name, x, given.mask)
