"""Sines of operators that an NPU has: clipped, by `Floor`, or folded like a triangle wave; and squared sines.

With t the argument in units of pi:

    clip      p = t clipped to +-1: right for one wave only
    floor     w = t - floor(t), or p = t - 2 floor((t + 1) / 2): right everywhere, but `Floor` runs on the CPU
    triangle  |t|, then | |t| - 4 |, then |. - 2|, then |. - 1|: any |t| <= 8 is w in [0, 1] then, on the NPU
    fine      |t|, then min(u, 8 - u), then min(u, 4 - u), then min(u, 2 - u): the same, and 0 stays 0

    squared   sin^2(pi w) = (y T(y))^2, y = w (1 - w); w = |p| where it is clipped
    plain     sin(pi p) = p (1 - p^2) R(p^2)
              triangle of t - 1/2, whose cosine it is: sin(pi t) = sin(pi s) = s P(s^2), s = w - 1/2

A square has the period 1 and is even, so that it is folded at whole numbers; a cosine has the period 2, and changes its
sign where the triangle's last fold is, at 1 (the fine one leaves it: s = 1/2 - w). The fold constants and 1 - w are
exact in fp16. y is zero where the sine is, at both ends, and the square doubly so: where it is divided by a small
number (Snake's alpha), an absolute error there would become a large one (toolkit-facts, Sine). `LeakyRelu(alpha=-1)` is
the absolute value that stays on the NPU.

The triangle moves 0 to the fold constants, where fp16 is coarse: 1/512 at 4. The fine one is written of v = -u as
v + relu(-2 v - 2 c), one layer (ConvReluAdd) on a diagonal convolution; -v + min(2 v + 2 c, 0) would be two (ConvClip,
Add).

An affine step is written in one of two ways, by what they cost (measured, 2.3.2, modelled ms for 300 KB; a fold is
an affine step and a LeakyRelu, a factor an affine step and a Mul of another tensor):

                                            rk3588   rk3562, rk3576   rk3566, rk3568
    Mul and Add, one BatchNormalization      .060       .060            .060
    fold: BatchNormalization, LeakyRelu      .120       .120            .120
    fold: ConvLeakyRelu, depthwise           .086       .142            .154
    factor: BatchNormalization, Mul          .180       .180            .180
    factor: ConvMul, 128 x 128 diagonal      .167       .254            .280
    fine fold: BatchNormalizationRelu, Add   .180       .180            .180
    fine fold: ConvReluAdd, diagonal         .167       .254            .280

A diagonal convolution costs channels squared: at 256 channels it is slower than the BatchNormalization and the Mul.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from math import ceil, log2
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import ArrayLike, NDArray

from surgery.depthwise import depthwise
from surgery.graph_builder import Builder, sizes_of
from surgery.matching import opset_of
from surgery.sine_coefficients import ARCH, MIDDLE, WAVE, coefficients

Array = NDArray[Any]

DEGREES = (1, 2, 3)
"""Degrees of T and P; R has one more, for its argument goes four times as far."""

DENSEST = 128
"""Most channels that a factor is a diagonal convolution for."""

CONVOLVED_CHANNELS = range(32, 1025)
"""For so many channels an affine step may be a convolution. Fewer are padded: one channel of 9600 steps takes 0.52 ms
so, 0.11 ms otherwise (measured, rk3588). More are time steps that stand in the channels' place."""

REACH_MARGIN = 1.25
"""How much further than what was seen a site is folded: another utterance goes further than those that were run."""


class Form(str, Enum):
    """How a sine is computed."""

    EXACT = "exact"
    CLIP = "clip"
    FLOOR = "floor"
    TRIANGLE = "triangle"
    FINE = "fine"


FOLDED = (Form.TRIANGLE, Form.FINE)
"""Forms that are right as far as they are said to reach."""


def reach_of(arguments: Iterable[Array], margin: float = REACH_MARGIN, by_channel: bool = False) -> Array:
    """How far a sine whose arguments these are (radians) must be right, in units of pi.

    Args:
        arguments: of one site, from one run or more, [N, C, ...].
        margin: factor on the largest of them.
        by_channel: one reach for each channel [C] instead of one number [].

    Raises:
        ValueError: there is no argument, or one that is not finite.
    """
    largest: list[Array] = []
    for values in arguments:
        sizes = np.abs(np.asarray(values, np.float64))
        axes = tuple(axis for axis in range(sizes.ndim) if axis != 1) if by_channel else None
        largest.append(sizes.max(axis=axes))
    reach = np.max(largest, axis=0) * margin / np.pi if largest else np.array(np.nan)
    if not np.all(np.isfinite(reach)):
        raise ValueError("a sine's reach needs arguments, and finite ones")
    return np.asarray(reach)


def folds_for(reach: ArrayLike) -> list[Array]:
    """Where |t| is folded after the fold at 0: for each fold one number, or one for each channel.

    A channel that does not reach a fold has 0 there: it is positive already, and an argument near 0 stays exact. (A
    channel that is folded at 4 is rounded there to 1/512, an argument near 0 too.)
    """
    furthest = np.asarray(reach, np.float64)
    count = max(0, ceil(log2(max(float(furthest.max()), 1.0))))
    centres = [2.0 ** (count - 1 - number) for number in range(count)]
    return [np.where(furthest > centre, centre, 0.0) for centre in centres]


@dataclass(frozen=True)
class Steps:
    """Writes affine steps, and what they fuse with.

    Attributes:
        make: adds the nodes.
        convolved: as convolutions; see `for_place`.
    """

    make: Builder
    convolved: bool

    @staticmethod
    def for_place(make: Builder, value: ir.Value, convolved: bool) -> Steps:
        """As convolutions where that is asked and `value` has channels to speak of."""
        sizes = sizes_of(value)
        return Steps(make, convolved and len(sizes) in (3, 4) and sizes[1] in CONVOLVED_CHANNELS)

    def affine(self, value: ir.Value, scale: ArrayLike, shift: ArrayLike | None, what: str) -> ir.Value:
        """`value` times `scale` plus `shift`: each a number, or one for each channel; 1 and None are left out."""
        made = value
        if np.any(np.asarray(scale) != 1):
            made = self._with("Mul", made, scale, what)
        if shift is not None:
            made = self._with("Add", made, shift, f"{what}_shifted")
        return made

    def activated(self, value: ir.Value, scale: ArrayLike, shift: ArrayLike | None, what: str) -> ir.Value:
        """An affine step that a LeakyRelu or a Clip is behind."""
        return (partial(depthwise, self.make) if self.convolved else self.affine)(value, scale, shift, what)

    def folded(self, value: ir.Value, scale: ArrayLike, shift: ArrayLike | None, what: str) -> ir.Value:
        """The absolute value of an affine step."""
        return self.absolute(self.activated(value, scale, shift, f"{what}_step"), what)

    def absolute(self, value: ir.Value, what: str) -> ir.Value:
        """Its absolute value."""
        return self.make.add("LeakyRelu", [value], sizes_of(value), what, alpha=-1.0)

    def times(self, value: ir.Value, scale: ArrayLike, shift: ArrayLike, other: ir.Value, what: str) -> ir.Value:
        """An affine step times `other`."""
        return self.product(self._fusing(value, scale, shift, f"{what}_step"), other, what)

    def folded_from_zero(self, value: ir.Value, centre: ArrayLike, what: str) -> ir.Value:
        """-min(u, 2 centre - u), `value` being -u."""
        step = self._fusing(value, -2.0, -2 * np.asarray(centre), f"{what}_step")
        cut = self.make.add("Relu", [step], sizes_of(value), f"{what}_cut")
        return self.make.add("Add", [cut, value], sizes_of(value), what)

    def product(self, one: ir.Value, other: ir.Value, what: str) -> ir.Value:
        """Both of one shape."""
        return self.make.add("Mul", [one, other], sizes_of(one), what)

    def _with(self, op: str, value: ir.Value, operand: ArrayLike, what: str) -> ir.Value:
        sizes = sizes_of(value)
        constant = self.make.constant(f"{what}_constant", _spread(operand, len(sizes)))
        return self.make.add(op, [value, constant], sizes, what)

    def _fusing(self, value: ir.Value, scale: ArrayLike, shift: ArrayLike, what: str) -> ir.Value:
        """An affine step that a product or sum is behind."""
        dense = self.convolved and sizes_of(value)[1] <= DENSEST
        return (self._diagonal if dense else self.affine)(value, scale, shift, what)

    def _diagonal(self, value: ir.Value, scale: ArrayLike, shift: ArrayLike, what: str) -> ir.Value:
        """The affine step as a convolution of group 1, which fuses with a product where a depthwise one does not."""
        sizes = sizes_of(value)
        channels, spatial = sizes[1], len(sizes) - 2
        weight = np.diag(np.broadcast_to(np.asarray(scale, np.float32), channels))
        weight = np.ascontiguousarray(weight.reshape(channels, channels, *[1] * spatial))
        bias = np.ascontiguousarray(np.broadcast_to(np.asarray(shift, np.float32), channels))
        inputs = [value, self.make.constant(f"{what}_scale", weight), self.make.constant(f"{what}_shift", bias)]
        return self.make.add("Conv", inputs, sizes, what, kernel_shape=[1] * spatial)


def _spread(operand: ArrayLike, rank: int) -> Array:
    """A number, or one for each channel, as a constant beside a value of `rank` axes."""
    values = np.asarray(operand, np.float32)
    return values.reshape([1, -1, *[1] * (rank - 2)] if values.ndim else [1] * rank)


@dataclass(frozen=True)
class Sine:
    """What is to be computed: gain * sin(scale * x), or gain * sin^2(scale * x).

    Attributes:
        form: how; not `EXACT`.
        degree: one of `DEGREES`.
        squared: the square.
        scale: a number [], or one for each channel [C].
        gain: the same; positive where `squared`, whose factor gets its root.
        reach: how far |scale * x| / pi goes: the same. Only `FOLDED` forms ask.
    """

    form: Form
    degree: int
    squared: bool
    scale: Array
    gain: Array
    reach: Array


def write_sine(steps: Steps, value: ir.Value, sine: Sine) -> ir.Value:
    """`sine` of `value`, which has a static shape and is float32."""
    if sine.squared:
        w, sign = _to_one(steps, value, sine)
        arch = steps.times(w, -1.0, sign, w, "arch")
        root = _polynomial_times(steps, arch, coefficients(ARCH, sine.degree), arch, np.sqrt(sine.gain))
        return steps.product(root, root, "squared")
    if sine.form in FOLDED:
        factor = _to_half(steps, value, sine)
        powers = steps.product(factor, factor, "power")
        return _polynomial_times(steps, powers, coefficients(MIDDLE, sine.degree), factor, sine.gain)
    wave = _one_wave(steps, value, sine)
    powers = steps.product(wave, wave, "power")
    zeros = steps.times(powers, -1.0, 1.0, wave, "zeros")
    return _polynomial_times(steps, powers, coefficients(WAVE, sine.degree + 1), zeros, sine.gain)


def _to_one(steps: Steps, value: ir.Value, sine: Sine) -> tuple[ir.Value, float]:
    """w in [0, 1] whose sin^2(pi w) is the one of `value`, and 1; or -w, and -1."""
    scale = sine.scale / np.pi
    if sine.form is Form.TRIANGLE:
        return _triangle(steps, steps.folded(value, scale, None, "fold0"), sine.reach), 1.0
    if sine.form is Form.FINE:
        return _fine(steps, steps.folded(value, scale, None, "fold0"), sine.reach)
    if sine.form is Form.CLIP:
        return steps.absolute(_clipped(steps, value, scale), "folded"), 1.0
    turns = steps.affine(value, scale, None, "turns")
    return _without(steps, turns, "rest"), 1.0


def _to_half(steps: Steps, value: ir.Value, sine: Sine) -> ir.Value:
    """s in [-1/2, 1/2] whose sin(pi s) is the sine of `value`, the cosine of half a pi less."""
    beyond = np.maximum(sine.reach + 0.5, 2.0)  # the fold at 1 is for all: it is where the sign is
    made = steps.folded(value, sine.scale / np.pi, -0.5, "fold0")
    if sine.form is Form.TRIANGLE:
        return steps.affine(_triangle(steps, made, beyond), 1.0, -0.5, "middle")
    return steps.affine(_fine(steps, made, beyond)[0], 1.0, 0.5, "middle")


def _triangle(steps: Steps, value: ir.Value, reach: Array) -> ir.Value:
    """w in [0, 1]: `value`, which is positive, folded until it is."""
    for number, centre in enumerate(folds_for(reach), 1):
        value = steps.folded(value, 1.0, -centre, f"fold{number}")
    return value


def _fine(steps: Steps, value: ir.Value, reach: Array) -> tuple[ir.Value, float]:
    """The same, and 0 stays 0: -w and -1; or `value` itself and 1 where it needs no fold."""
    centres = folds_for(reach.max())
    if not centres:
        return value, 1.0
    value = steps.affine(value, -1.0, None, "negative")
    for number, centre in enumerate(centres, 1):
        value = steps.folded_from_zero(value, centre, f"fold{number}")
    return value, -1.0


def _one_wave(steps: Steps, value: ir.Value, sine: Sine) -> ir.Value:
    """p in [-1, 1] whose sin(pi p) is the sine of `value`."""
    if sine.form is Form.CLIP:
        return _clipped(steps, value, sine.scale / np.pi)
    turns = steps.affine(value, sine.scale / (2 * np.pi), 0.5, "turns")
    return steps.affine(_without(steps, turns, "rest"), 2.0, -1.0, "wave")


def _without(steps: Steps, turns: ir.Value, what: str) -> ir.Value:
    whole = steps.make.add("Floor", [turns], sizes_of(turns), f"{what}_whole")
    return steps.make.add("Sub", [turns, whole], sizes_of(turns), what)


def _clipped(steps: Steps, value: ir.Value, scale: Array) -> ir.Value:
    turns = steps.activated(value, scale, None, "turns")
    if opset_of(steps.make.graph) < _CLIP_OF_INPUTS:
        return steps.make.add("Clip", [turns], sizes_of(turns), "clipped", min=-1.0, max=1.0)
    bounds = [steps.make.constant(f"clipped_{end}", np.array(end, np.float32)) for end in (-1, 1)]
    return steps.make.add("Clip", [turns, *bounds], sizes_of(turns), "clipped")


_CLIP_OF_INPUTS = 11
"""The opset from which Clip's bounds are inputs (ONNX operator specification)."""


def _polynomial_times(
    steps: Steps, power: ir.Value, numbers: Sequence[float], factor: ir.Value, gain: Array
) -> ir.Value:
    """gain * factor * (n0 + n1 power + n2 power^2 ...), by Horner's rule: one affine step and one product a degree."""
    *lower, before, highest = numbers
    scale, shift = np.asarray(highest), before
    made = power
    for number, lower_one in enumerate(reversed(lower)):
        made = steps.times(made, scale, shift, power, f"horner{number}")
        scale, shift = np.asarray(1.0), lower_one
    return steps.times(made, gain * scale, gain * shift, factor, "sine")
