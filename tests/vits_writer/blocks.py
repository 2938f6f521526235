"""Modules that VITS has in several places: layer norms, GELU, and dilated depthwise convolutions."""

from __future__ import annotations

from tests.vits_writer.graph_writer import GraphWriter

EPSILON = 1e-5
LAYER_NORM_OPSET = 17
"""The first with LayerNormalization, which both exporters write from then on."""

DDS_KERNEL = 3
DDS_LAYERS = 3


def layer_norm(w: GraphWriter, scope: str, x: str, channels: int) -> str:
    """Each position of x [batch, channels, T] to mean 0 and deviation 1 over the channels, then scaled and shifted."""
    name = scope.strip("/").replace("/", ".")
    gamma = w.weight(f"{name}.gamma", channels, spread=0.2, mean=1.0)
    beta = w.weight(f"{name}.beta", channels, spread=0.2)
    x = w.op(scope, "Transpose", x, perm=[0, 2, 1])
    if w.opset >= LAYER_NORM_OPSET:
        x = w.op(scope, "LayerNormalization", x, gamma, beta, axis=-1, epsilon=EPSILON)
        return w.op(scope, "Transpose", x, perm=[0, 2, 1])
    centred = w.op(scope, "Sub", x, w.op(scope, "ReduceMean", x, axes=[-1]))
    variance = w.op(scope, "ReduceMean", w.op(scope, "Pow", centred, w.real(2.0)), axes=[-1])
    deviation = w.op(scope, "Sqrt", w.op(scope, "Add", variance, w.real(EPSILON)))
    x = w.op(scope, "Div", centred, deviation)
    x = w.op(scope, "Add", w.op(scope, "Mul", x, gamma), beta)
    return w.op(scope, "Transpose", x, perm=[0, 2, 1])


def gelu(w: GraphWriter, scope: str, x: str) -> str:
    """x (1 + erf(x / sqrt 2)) / 2."""
    error = w.op(scope, "Erf", w.op(scope, "Div", x, w.real(2.0**0.5)))
    error = w.op(scope, "Add", error, w.real(1.0))
    if w.dynamo:
        return w.op(scope, "Mul", x, w.op(scope, "Mul", w.real(0.5), error))
    return w.op(scope, "Mul", w.op(scope, "Mul", x, error), w.real(0.5))


def dds_conv(w: GraphWriter, scope: str, x: str, mask: str, channels: int, given: str | None = None) -> str:
    """Dilated and depth-separable convolutions on x + given, each added to its input."""
    if given is not None:
        x = w.op(scope, "Add", x, given)
    for layer in range(DDS_LAYERS):
        y = w.op(scope, "Mul", x, mask)
        dilation = DDS_KERNEL**layer
        y = w.conv(f"{scope}/convs_sep.{layer}", y, channels, channels, DDS_KERNEL, dilation, group=channels)
        y = gelu(w, scope, layer_norm(w, f"{scope}/norms_1.{layer}", y, channels))
        y = w.conv(f"{scope}/convs_1x1.{layer}", y, channels, channels)
        y = gelu(w, scope, layer_norm(w, f"{scope}/norms_2.{layer}", y, channels))
        x = w.op(scope, "Add", x, y)
    return w.op(scope, "Mul", x, mask)
