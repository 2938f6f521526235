"""Sines of operators that an NPU has: clipped, by `Floor`, or folded like a triangle wave; and squared sines.

With t the argument in units of pi:

    clip      p = t clipped to +-1: right for one wave only
    floor     w = t - floor(t), or p = t - 2 floor((t + 1) / 2): right everywhere, but `Floor` runs on the CPU
    triangle  |t|, then | |t| - 4 |, then |. - 2|, then |. - 1|: any |t| <= 8 is w in [0, 1] then, on the NPU
    fine      |t|, then min(u, 8 - u), then min(u, 4 - u), then min(u, 2 - u): the same, and 0 stays 0

    soft      the triangle, with other maps behind it, for squares of any gain up to 3.37 (`surgery.sine_soft`)

    squared   sin^2(pi w) = K h^2, h from w by HardSwishes (`surgery.sine_chains`); w = |p| where it is clipped
    plain     sin(pi p) = p (1 - p^2) R(p^2)
              triangle of t - 1/2, whose cosine it is: sin(pi t) = sin(pi s) = s P(s^2), s = w - 1/2

A square has the period 1 and is even, so that it is folded at whole numbers; a cosine has the period 2, and changes its
sign where the triangle's last fold is, at 1 (the fine one leaves it: s = 1/2 - w). The fold constants are exact in
fp16. h is zero where the sine is, at both ends, and the square doubly so: where it is divided by a small number
(Snake's alpha), an absolute error there would become a large one (toolkit-facts, Sine). `LeakyRelu(alpha=-1)` is the
absolute value that stays on the NPU.

The fold at 0 of a square is bare: the scale goes into the next affine step, where it costs nothing.

A squared sine is folded in the chain's unit c: u = c w. Where a caller has the argument in that unit already
(scale * c / pi = 1), and wants the square in it (gain * K = 1), both steps cost nothing; else c is 1.

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
    map: BatchNormalization, HardSwish       .120       .120            .120
    map: ConvHardSwish, depthwise            .086       .142            .154
    fine fold: BatchNormalizationRelu, Add   .180       .180            .180
    fine fold: ConvReluAdd, diagonal         .167       .254            .280

A diagonal convolution costs channels squared: at 256 channels it is slower than the BatchNormalization and the Mul.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
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
from surgery.sine_chains import CHAINS, HARD, TURNED, Chain
from surgery.sine_coefficients import MIDDLE, WAVE, coefficients
from surgery.sine_soft import BIAS, LEFT_OVER, STEEPNESS, soft_offset, soft_reaches, squaring

Array = NDArray[Any]

DEGREES = (1, 2, 3)
"""Degrees of P; R has one more, for its argument goes four times as far; a chain has so many maps behind its first."""

DENSEST = 128
"""Most channels that a factor is a diagonal convolution for."""

CONVOLVED_CHANNELS = range(32, 1025)
"""For so many channels an affine step may be a convolution. Fewer are padded: one channel of 9600 steps takes 0.52 ms
so, 0.11 ms otherwise (measured, rk3588). More are time steps that stand in the channels' place."""

REACH_MARGIN = 1.25
"""How much further than what was seen a site is folded: another utterance goes further than those that were run."""


UNIT_TOLERANCE = 1e-6
"""How far an argument's scale may be from the chain's unit to be taken for it: a few units in float32's last place."""


class Form(str, Enum):
    """How a sine is computed."""

    EXACT = "exact"
    CLIP = "clip"
    FLOOR = "floor"
    TRIANGLE = "triangle"
    FINE = "fine"
    SOFT = "soft"


FOLDED = (Form.TRIANGLE, Form.FINE, Form.SOFT)
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


def covered_by(reach: ArrayLike) -> Array:
    """How far a sine that is folded for `reach` is right, in units of pi: the power of two behind it, 1 at least."""
    return np.asarray(2.0 ** np.ceil(np.log2(np.maximum(np.asarray(reach, np.float64), 1.0))))


def folds_for(reach: ArrayLike) -> list[Array]:
    """Where |t| is folded after the fold at 0: for each fold one number, or one for each channel.

    A channel that does not reach a fold has 0 there: it is positive already, and an argument near 0 stays exact. (A
    channel that is folded at 4 is rounded there to 1/512, an argument near 0 too.)
    """
    furthest = np.asarray(reach, np.float64)
    count = max(0, ceil(log2(max(float(furthest.max()), 1.0))))
    centres = [2.0 ** (count - 1 - number) for number in range(count)]
    return [np.where(furthest > centre, centre, 0.0) for centre in centres]


class Activation(Enum):
    """What is behind an affine step, and fuses with it where that is a convolution."""

    ABSOLUTE = "absolute"
    HARD_SWISH = "hard swish"
    SOFTPLUS = "softplus"


@dataclass(frozen=True)
class Link:
    """One of a row: `activation` of a value times `scale` plus `shift`, each a number, or one for each channel."""

    activation: Activation
    what: str
    scale: ArrayLike = 1.0
    shift: ArrayLike | None = None

    @property
    def is_bare(self) -> bool:
        """Whether it has no affine step."""
        return self.shift is None and is_one(self.scale)


@dataclass(frozen=True)
class Steps:
    """Writes affine steps, and what they fuse with.

    Attributes:
        make: adds the nodes.
        convolved: as convolutions; see `for_place`.
        most: so many of a row, the last ones; the others are BatchNormalizations, which no cut takes for affine steps
            that a convolution could be made of. None: all of them.
    """

    make: Builder
    convolved: bool
    most: int | None = None

    @staticmethod
    def for_place(make: Builder, value: ir.Value, convolved: bool, most: int | None = None) -> Steps:
        """As convolutions where that is asked and `value` has channels to speak of."""
        sizes = sizes_of(value)
        return Steps(make, convolved and len(sizes) in (3, 4) and sizes[1] in CONVOLVED_CHANNELS, most)

    def row(self, value: ir.Value, links: Sequence[Link]) -> ir.Value:
        """`links` one behind the other."""
        for number, link in enumerate(links):
            value = self.linked(value, link, sum(not one.is_bare for one in links[number + 1 :]))
        return value

    def linked(self, value: ir.Value, link: Link, behind: int) -> ir.Value:
        """One of a row that has `behind` more affine steps."""
        if not link.is_bare:
            convolved = self.most is None or behind < self.most or not self.convolved
            step = self.activated if convolved else self.normalised
            value = step(value, link.scale, link.shift, f"{link.what}_step")
        if link.activation is Activation.HARD_SWISH:
            return self.hard_swish(value, link.what)
        return (self.absolute if link.activation is Activation.ABSOLUTE else self.softplus)(value, link.what)

    def affine(self, value: ir.Value, scale: ArrayLike, shift: ArrayLike | None, what: str) -> ir.Value:
        """`value` times `scale` plus `shift`: each a number, or one for each channel; 1 and None are left out."""
        made = value
        if not is_one(scale):
            made = self._with("Mul", made, scale, what)
        if shift is not None:
            made = self._with("Add", made, shift, f"{what}_shifted")
        return made

    def activated(self, value: ir.Value, scale: ArrayLike, shift: ArrayLike | None, what: str) -> ir.Value:
        """An affine step that a LeakyRelu or a Clip is behind."""
        return (partial(depthwise, self.make) if self.convolved else self.affine)(value, scale, shift, what)

    def folded(self, value: ir.Value, scale: ArrayLike, shift: ArrayLike | None, what: str) -> ir.Value:
        """The absolute value of an affine step, which may be none."""
        if shift is not None or not is_one(scale):
            value = self.activated(value, scale, shift, f"{what}_step")
        return self.absolute(value, what)

    def normalised(self, value: ir.Value, scale: ArrayLike, shift: ArrayLike | None, what: str) -> ir.Value:
        """The affine step as a BatchNormalization, of a mean of 0 and a variance of 1."""
        sizes = sizes_of(value)
        numbers = {"scale": scale, "shift": 0.0 if shift is None else shift, "mean": 0.0, "variance": 1.0}
        spread = [
            self.make.constant(f"{what}_{name}", np.full(sizes[1], number, np.float32))
            for name, number in numbers.items()
        ]
        return self.make.add("BatchNormalization", [value, *spread], sizes, what, epsilon=0.0)

    def hard_swish(self, value: ir.Value, what: str) -> ir.Value:
        """HardSwish, spelled out: the operator itself is no layer of three axes."""
        ahead = self._with("Add", value, HARD, f"{what}_ahead")
        share = self.clipped(ahead, 0.0, 2 * HARD, f"{what}_share")
        return self._with("Div", self.product(value, share, f"{what}_product"), 2 * HARD, what)

    def softplus(self, value: ir.Value, what: str) -> ir.Value:
        """log(1 + exp(value))."""
        return self.make.add("Softplus", [value], sizes_of(value), what)

    def clipped(self, value: ir.Value, low: float, high: float, what: str) -> ir.Value:
        """`value` between `low` and `high`."""
        if opset_of(self.make.graph) < _CLIP_OF_INPUTS:
            return self.make.add("Clip", [value], sizes_of(value), what, min=low, max=high)
        bounds = [
            self.make.constant(f"{what}_{end}", np.array(bound, np.float32))
            for end, bound in (("low", low), ("high", high))
        ]
        return self.make.add("Clip", [value, *bounds], sizes_of(value), what)

    def squared(self, value: ir.Value, what: str) -> ir.Value:
        """Its square, as a power, which reads it once."""
        exponent = self.make.constant(f"{what}_exponent", np.array(2.0, np.float32))
        return self.make.add("Pow", [value, exponent], sizes_of(value), what)

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


def is_one(scale: ArrayLike) -> bool:
    """Whether `scale` is 1 everywhere, but for what float32 has rounded."""
    return bool(np.all(np.abs(np.asarray(scale, np.float64) - 1) < _ROUNDED))


_ROUNDED = 4 * float(np.finfo(np.float32).eps)


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
        gain: the same; positive where `squared`.
        reach: how far |scale * x| / pi goes: the same. Only `FOLDED` forms ask.
        shift: the same; added behind. Only `is_soft` ones have another than 0.
    """

    form: Form
    degree: int
    squared: bool
    scale: Array
    gain: Array
    reach: Array
    shift: Array = field(default_factory=lambda: np.zeros(()))

    @property
    def is_soft(self) -> bool:
        """Whether it is written as `Form.SOFT`; else that form is the triangle."""
        return self.form is Form.SOFT and self.squared and soft_reaches(self.gain)


def write_sine(steps: Steps, value: ir.Value, sine: Sine) -> ir.Value:
    """`sine` of `value`, which has a static shape and is float32."""
    if sine.squared:
        return _squared(steps, value, sine)
    if sine.form in FOLDED:
        factor = _to_half(steps, value, sine)
        powers = steps.product(factor, factor, "power")
        return _polynomial_times(steps, powers, coefficients(MIDDLE, sine.degree), factor, sine.gain)
    wave = _one_wave(steps, value, sine)
    powers = steps.product(wave, wave, "power")
    zeros = steps.times(powers, -1.0, 1.0, wave, "zeros")
    return _polynomial_times(steps, powers, coefficients(WAVE, sine.degree + 1), zeros, sine.gain)


def _squared(steps: Steps, value: ir.Value, sine: Sine) -> ir.Value:
    """gain K h^2: the root is scaled, for small squares have few bits."""
    if sine.is_soft:
        return _soft(steps, value, sine)
    chain = _chain_for(sine)
    folded = _to_one(steps, value, sine, chain.unit)
    scales = (-HARD / folded.unit * folded.scale, *map(np.asarray, chain.scales))
    maps = [Link(Activation.HARD_SWISH, f"map{number}", scale) for number, scale in enumerate(scales)]
    made = steps.row(folded.value, [*folded.links, *maps])
    return steps.squared(steps.affine(made, np.sqrt(sine.gain * chain.gain), None, "root"), "squared")


def _soft(steps: Steps, value: ir.Value, sine: Sine) -> ir.Value:
    """gain sin^2 plus the shift, by the maps of `surgery.sine_soft`."""
    links, scale = _triangle_of(sine.scale / np.pi, sine.reach, 1.0)
    maps = (
        Link(Activation.HARD_SWISH, "map0", -HARD * scale),
        Link(Activation.SOFTPLUS, "map1", STEEPNESS, BIAS),
        Link(Activation.HARD_SWISH, "map2", *squaring(sine.gain)),
    )
    made = steps.row(value, [*links, *maps])
    left = soft_offset(sine.gain) + sine.shift
    return made if np.all(np.abs(left) <= _CANCELLED * LEFT_OVER) else steps.affine(made, 1.0, left, "offset")


_CANCELLED = 2.0**-22
"""Share of a constant that float32's rounding leaves, once it was subtracted from itself."""


def _chain_for(sine: Sine) -> Chain:
    """The chain in whose unit the argument comes, else the one in half turns."""
    chain = CHAINS[sine.degree]
    own = np.allclose(sine.scale * chain.unit, np.pi, rtol=UNIT_TOLERANCE)
    return chain if own else TURNED[sine.degree]


@dataclass(frozen=True)
class _Folded:
    """u in [0, c] with sin^2(pi u / c) the square that is asked for, or -u and -c, still to be written in part.

    Attributes:
        value: what is written.
        unit: c.
        links: what is behind it.
        scale: what the next affine step behind those multiplies by besides: 1 where it has been done.
    """

    value: ir.Value
    unit: float
    links: tuple[Link, ...] = ()
    scale: Array = field(default_factory=lambda: np.ones(()))


def _to_one(steps: Steps, value: ir.Value, sine: Sine, unit: float) -> _Folded:
    """c is `unit` or its negative, or 1 for `floor`."""
    scale = sine.scale / np.pi
    if sine.form in (Form.TRIANGLE, Form.SOFT):
        links, left = _triangle_of(scale * unit, sine.reach, unit)
        return _Folded(value, unit, links, left)
    if sine.form is Form.FINE:
        return _fine(steps, steps.absolute(value, "fold0"), sine.reach, unit, scale * unit)
    if sine.form is Form.CLIP:
        return _Folded(steps.absolute(_clipped(steps, value, scale * unit, unit), "folded"), unit)
    turns = steps.affine(value, scale, None, "turns")
    return _Folded(_without(steps, turns, "rest"), 1.0)


def _triangle_of(scale: Array, reach: Array, unit: float) -> tuple[tuple[Link, ...], Array]:
    """The absolute value, bare, and the folds behind it; and what is left of `scale`: the first fold takes it."""
    left = _exact(scale)
    links = [Link(Activation.ABSOLUTE, "fold0")]
    for number, centre in enumerate(folds_for(reach), 1):
        links.append(Link(Activation.ABSOLUTE, f"fold{number}", left, -unit * centre))
        left = np.ones(())
    return tuple(links), left


def _exact(scale: Array) -> Array:
    """`scale`, or 1 where it is that but for rounding."""
    return np.ones(()) if is_one(scale) else scale


def _to_half(steps: Steps, value: ir.Value, sine: Sine) -> ir.Value:
    """s in [-1/2, 1/2] whose sin(pi s) is the sine of `value`, the cosine of half a pi less."""
    beyond = np.maximum(sine.reach + 0.5, 2.0)  # the fold at 1 is for all: it is where the sign is
    made = steps.folded(value, sine.scale / np.pi, -0.5, "fold0")
    if sine.form is Form.FINE:
        return steps.affine(_fine(steps, made, beyond, 1.0, np.ones(())).value, 1.0, 0.5, "middle")
    links, _ = _triangle_of(np.ones(()), beyond, 1.0)
    return steps.affine(steps.row(made, links[1:]), 1.0, -0.5, "middle")


def _fine(steps: Steps, value: ir.Value, reach: Array, unit: float, scale: Array) -> _Folded:
    """`value`, which is positive, times `scale`, folded until it is in [0, unit], and 0 stays 0: -u and -unit; or
    `value` itself where it needs no fold."""
    left = _exact(scale)
    centres = folds_for(reach.max())
    if not centres:
        return _Folded(value, unit, scale=left)
    value = steps.affine(value, -left, None, "negative")
    for number, centre in enumerate(centres, 1):
        value = steps.folded_from_zero(value, unit * centre, f"fold{number}")
    return _Folded(value, -unit)


def _one_wave(steps: Steps, value: ir.Value, sine: Sine) -> ir.Value:
    """p in [-1, 1] whose sin(pi p) is the sine of `value`."""
    if sine.form is Form.CLIP:
        return _clipped(steps, value, sine.scale / np.pi, 1.0)
    turns = steps.affine(value, sine.scale / (2 * np.pi), 0.5, "turns")
    return steps.affine(_without(steps, turns, "rest"), 2.0, -1.0, "wave")


def _without(steps: Steps, turns: ir.Value, what: str) -> ir.Value:
    whole = steps.make.add("Floor", [turns], sizes_of(turns), f"{what}_whole")
    return steps.make.add("Sub", [turns, whole], sizes_of(turns), what)


def _clipped(steps: Steps, value: ir.Value, scale: Array, unit: float) -> ir.Value:
    return steps.clipped(steps.activated(value, scale, None, "turns"), -unit, unit, "clipped")


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
