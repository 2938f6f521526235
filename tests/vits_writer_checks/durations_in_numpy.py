"""VITS's duration predictors in numpy and double precision; the spline is inverted by bisection of its definition."""

from __future__ import annotations

from math import erf

import numpy as np

from tests.vits_writer.duration import LOG_FRAMES_SPREAD
from tests.vits_writer_checks.encoder_in_numpy import Array, Weights, conv, layer_norm

BINS = 10
BOUND = 5.0
LEAST = 1e-3
HALVINGS = 60


def conditioning(weights: Weights, x: Array, condition: Array | None) -> Array:
    """What the stochastic predictor's flows read, [C, T], of x [C, T] and the condition [hidden, 1]."""
    x = conv(weights, "dp.pre", x)
    if condition is not None:
        x = x + conv(weights, "dp.cond", condition)
    return conv(weights, "dp.proj", _separable_layers(weights, "dp.convs", x))


def log_frames(weights: Weights, given: Array, noise: Array, couplings: int) -> Array:
    """[T], of scaled noise [2, T], through the couplings 2 to `couplings` from the last on."""
    z = noise
    for coupling in reversed(range(1, couplings)):
        z = _coupled(weights, f"dp.flows.{2 * coupling + 1}", z[::-1], given)
    z = (z[::-1] - weights("dp.flows.0.m")) * LOG_FRAMES_SPREAD
    first: Array = z[0]
    return first


def deterministic(weights: Weights, x: Array, condition: Array | None) -> Array:
    """[T], as the predictor without noise has it."""
    if condition is not None:
        x = x + conv(weights, "dp.cond", condition)
    for number in (1, 2):
        x = layer_norm(weights, f"dp.norm_{number}", np.maximum(conv(weights, f"dp.conv_{number}", x), 0))
    first: Array = conv(weights, "dp.proj", x)[0]
    return first


def spline(x: Array, widths: Array, heights: Array, derivatives: Array) -> Array:
    """The rational-quadratic spline (Durkan et al., equation 4) at x [T], for edges and derivatives [T, 11]."""
    y = np.empty_like(x)
    for t, value in enumerate(x):
        bin_ = int(np.clip(np.searchsorted(widths[t], value, side="right") - 1, 0, BINS - 1))
        left, right = widths[t, bin_ : bin_ + 2]
        bottom, top = heights[t, bin_ : bin_ + 2]
        d_left, d_right = derivatives[t, bin_ : bin_ + 2]
        slope, part = (top - bottom) / (right - left), (value - left) / (right - left)
        both = part * (1 - part)
        above = slope * part**2 + d_left * both
        y[t] = bottom + (top - bottom) * above / (slope + (d_left + d_right - 2 * slope) * both)
    return y


def _coupled(weights: Weights, name: str, z: Array, given: Array) -> Array:
    kernel, bias = weights(f"{name}.pre.weight"), weights(f"{name}.pre.bias")
    h = kernel[:, :, 0] @ z[:1] + bias[:, None]
    h = conv(weights, f"{name}.proj", _separable_layers(weights, f"{name}.convs", h + given)).T
    root = np.sqrt(given.shape[0])
    widths, heights = (_edges(part / root) for part in (h[:, :BINS], h[:, BINS : 2 * BINS]))
    derivatives = np.pad(LEAST + np.log1p(np.exp(h[:, 2 * BINS :])), ((0, 0), (1, 1)), constant_values=1.0)
    y = z[1]
    low, high = np.full_like(y, -BOUND), np.full_like(y, BOUND)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = spline(middle, widths, heights, derivatives) < y
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.stack([z[0], np.where(np.abs(y) <= BOUND, (low + high) / 2, y)])


def _edges(x: Array) -> Array:
    share = np.exp(x - x.max(axis=1, keepdims=True))
    sizes = LEAST + (1 - LEAST * BINS) * share / share.sum(axis=1, keepdims=True)
    return np.pad(np.cumsum(sizes, axis=1), ((0, 0), (1, 0))) * 2 * BOUND - BOUND


def _separable_layers(weights: Weights, name: str, x: Array) -> Array:
    for layer in range(3):
        kernel, bias = weights(f"{name}.convs_sep.{layer}.weight"), weights(f"{name}.convs_sep.{layer}.bias")
        reach, count = 3**layer, x.shape[1]
        around = np.pad(x, ((0, 0), (reach, reach)))
        y = np.repeat(bias[:, None], count, axis=1)
        for tap in range(3):
            y += kernel[:, 0, tap : tap + 1] * around[:, tap * reach : tap * reach + count]
        y = _gelu(layer_norm(weights, f"{name}.norms_1.{layer}", y))
        y = conv(weights, f"{name}.convs_1x1.{layer}", y)
        x = x + _gelu(layer_norm(weights, f"{name}.norms_2.{layer}", y))
    return x


def _gelu(x: Array) -> Array:
    out: Array = x * (1 + np.vectorize(erf)(x / np.sqrt(2))) / 2
    return out
