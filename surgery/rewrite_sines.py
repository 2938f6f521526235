"""Rewrite sines, which run on the CPU, in operators of the NPU: also Snake's x + sin^2(alpha x) / alpha.

Before: y = k * Sin(a * x)^2, the square a Pow of 2 or a Mul of the sine by itself, a and k constants for each channel
After:  w = a x / pi, folded to [0, 1];  y = k K h^2, h = H(a2 H(a1 H(-3 w))), H = HardSwish (`surgery.sine_chains`)
Before: z = k * Sin(a * x)^2 - c
After:  z = H(l softplus(m H(-3 w) + n) + r) + (3/8 - c), in the form `soft` (`surgery.sine_soft`): l, r of k
Before: y = Sin(a * x)
After:  s = a x / pi - 1/2, folded to [-1/2, 1/2];  y = s P(s^2)

a is taken for |a|, the square being even and the sine odd: behind a Relu, |a x| of a negative a is one that the toolkit
makes zero (`rewrite_zeroed_absolutes`, which follows, and mends what bounded data do in the later folds).

`surgery.sine_forms` has the forms (clip, floor, triangle, fine, soft) and what each costs, docs/sine.md what they reach
on each target. a goes into the first step; k, which may be a Div too (SnakeBeta), into the last one. A factor that is
negative or too large for fp16, or that is not one for each channel, stays where it is. `floor` pays nowhere.

`soft` reads the tensor less often, and is no nearer to a sine near its zeros than elsewhere; what a graph subtracts
behind (c, `surgery.sine_soft.soft_offset`) costs nothing. A sine that is not squared, or whose gain k is too large for
it in some channel, is a `triangle` there.

The triangles (fine and soft are such) are right for arguments of up to `reach_pi` times pi, as the caller states: a
number, or one for each site (by the name of the sine's output) or each of its channels; what was measured is turned to
that by `surgery.sine_forms.reach_of`. A site that the mapping does not name keeps its Sin. Clip is right up to pi.

Left alone: what is not float32, shapes that are not known, and every sine where the form is `exact`.

Bounded: by the largest relative error of the polynomials (a square has twice that of its root; that of `soft` is a
share of k, for arguments that go through the wave) and the rounding of the argument in float32, for arguments within
reach; with some room for what the graph behind makes of it. Kokoro's whole generator gives 95.1 dB with the chain of
degree 2, 64.9 dB in the simulator, where an exact Sin gives 64.6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor, log10
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from contracts.targets import EVERY_TARGET, check_target
from surgery.constant_operands import operand_of
from surgery.declaration import Bounded, Declaration, Pass, Rewritten
from surgery.graph import graph_of, input_at, input_of, only_reader
from surgery.graph_builder import Builder, take_place
from surgery.inferred import static_shape
from surgery.matching import Matched, is_one_of
from surgery.node_rewrites import rewrite_nodes
from surgery.scopes import drop_unused
from surgery.sine_chains import CHAINS
from surgery.sine_coefficients import MIDDLE, WAVE
from surgery.sine_forms import DEGREES, FOLDED, Array, Form, Sine, Steps, write_sine
from surgery.sine_soft import SOFT_BOUND
from surgery.weights import weight_of

SIN = Matched("Sin")
POW = Matched("Pow")
MUL = Matched("Mul")
DIV = Matched("Div")
SUMS = (Matched("Add"), Matched("Sub"))

Reach: TypeAlias = float | Sequence[float] | Array
"""Of one site, in units of pi: a number, or one for each channel."""

EIGHT = 8.0
"""Three folds behind the one at 0: what N(0, 3^2), and most of Kokoro's sites, stay far within."""

DEGREE = 2
"""Its error lies below the rounding of fp16; at degree 1 it lies above, and degree 3 costs two layers more."""

CONVOLVED = frozenset({"rk3588"})
"""Where affine steps pay as convolutions (the table in `surgery.sine_forms`)."""

LARGEST = 6e4
"""Largest weight that fp16 holds, with a little left; coefficients are below 7."""

_LARGEST_GAIN = LARGEST / 7


_HEADROOM_DB = 10.0
"""What the graph behind a sine may make more of its error than of the sine: three times (a cube does)."""


def _bound(form: Form, degree: int, furthest: float) -> Bounded:
    """What holds for arguments within reach, `furthest` at most."""
    plain = MIDDLE.bound(degree) if form in FOLDED else WAVE.bound(degree + 1)
    error = max(CHAINS[degree].bound, plain, SOFT_BOUND if form is Form.SOFT else 0.0)
    rounding = 2 * np.pi * furthest * float(np.finfo(np.float32).eps)
    decibels = floor(-20 * log10(error + rounding) - _HEADROOM_DB)
    why = f"{error:.2g} is the largest relative error of a sine or its square within its reach (minimax)"
    return Bounded(decibels, f"{why}; {_HEADROOM_DB:g} dB are for the graph behind it")


DECLARATION = Declaration(
    name="rewrite_sines",
    summary="a sine, and Snake's squared sine, as folds and a polynomial that stay on the NPU",
    exactness=_bound(Form.TRIANGLE, DEGREE, EIGHT),
    after=frozenset({"fold_constants", "normalise_float32", "normalise_static_inputs"}),
    matches=(SIN, POW, MUL, DIV, *SUMS),
    pays_on=EVERY_TARGET,
)


@dataclass(frozen=True)
class _Wanted:
    """What the factory was asked for."""

    form: Form
    degree: int
    reach_pi: Reach | Mapping[str, Reach]
    convolved: bool
    most: int | Mapping[str, int] | None

    def reach(self, site: str | None) -> Array | None:
        """Of one site; None where it is not stated."""
        reach = self.reach_pi
        if isinstance(reach, Mapping):
            if site is None or site not in reach:
                return None
            reach = reach[site]
        return np.asarray(reach, np.float64)

    def most_of(self, site: str | None) -> int | None:
        """Affine steps of one site that are convolutions, at most; None: all of them."""
        most = self.most
        return most.get(site or "") if isinstance(most, Mapping) else most


@dataclass(frozen=True)
class _Plan:
    """`sine` of `value` stands for the output of `last`."""

    last: ir.Node
    value: ir.Value
    sine: Sine


def rewrite_sines(
    form: Form | str,
    reach_pi: Reach | Mapping[str, Reach] = EIGHT,
    *,
    degree: int = DEGREE,
    target: str | None = None,
    convolved: int | Mapping[str, int] | None = None,
) -> Pass:
    """The pass; its hits are sines.

    Args:
        form: how sines are computed; `exact` leaves them.
        reach_pi: how far their arguments go, in units of pi; by the name of each sine's output, or one for all.
        degree: of the polynomial: 1, 2 or 3.
        target: the chip, which decides how the steps are written; None: as suits every chip.
        convolved: how many affine steps of a square that is folded as a triangle are convolutions at most, the last
            ones, where they would all be (rk3588); the same for every site, or by the name of each sine's output. What
            is none is a BatchNormalization: one more read of the tensor instead of the convolution's cycles.

    Raises:
        ValueError: an unknown form, degree or target, a reach that is no finite number above 0, or a number of
            convolutions below 0.
    """
    check_target(target)
    if degree not in DEGREES:
        raise ValueError(f"the degree {degree} is none of {', '.join(map(str, DEGREES))}")
    stated = list(reach_pi.values()) if isinstance(reach_pi, Mapping) else [reach_pi]
    furthest = 1.0
    for reach in stated:
        values = np.asarray(reach, np.float64)
        if values.ndim > 1 or not values.size or not np.all(np.isfinite(values) & (values > 0)):
            raise ValueError(f"the reach {reach} is no finite number above 0, nor one for each channel")
        furthest = max(furthest, float(values.max()))
    counts = convolved.values() if isinstance(convolved, Mapping) else [convolved or 0]
    if any(count < 0 for count in counts):
        raise ValueError(f"{min(counts)} convolutions of a sine are fewer than none")
    wanted = _Wanted(Form(form), degree, reach_pi, target in CONVOLVED, convolved)
    pays_on = EVERY_TARGET if wanted.form in (*FOLDED, Form.CLIP) else frozenset[str]()
    declaration = replace(DECLARATION, exactness=_bound(wanted.form, degree, furthest), pays_on=pays_on)
    return Pass(declaration, lambda model: _rewrite(model, wanted))


def sine_sites(model: ir.Model) -> dict[str, str]:
    """The sines of the main graph by the name of their output, and the name of each one's argument, to be measured."""
    sites = ((node.outputs[0].name, input_at(node, 0)) for node in model.graph if is_one_of(node, (SIN,)))
    return {name: value.name for name, value in sites if name and value is not None and value.name}


def _rewrite(model: ir.Model, wanted: _Wanted) -> Rewritten:
    if wanted.form is Form.EXACT:
        return Rewritten(model, 0)
    done = rewrite_nodes(
        model,
        lambda node: is_one_of(node, (SIN,)),
        lambda node: None if _plan(node, wanted) is None else node,
        lambda node: _apply(node, wanted),
    )
    if done.hits:
        drop_unused(done.model.graph)
    return done


def _apply(node: ir.Node, wanted: _Wanted) -> None:
    """Planned anew: what the sine reads may be new since."""
    plan = _plan(node, wanted)
    assert plan is not None
    make = Builder(graph_of(plan.last), plan.last, f"{DECLARATION.name}/{plan.last.outputs[0].name}")
    steps = Steps.for_place(make, plan.value, wanted.convolved, wanted.most_of(node.outputs[0].name))
    take_place(plan.last, write_sine(steps, plan.value, plan.sine))


def _plan(node: ir.Node, wanted: _Wanted) -> _Plan | None:
    value, made = input_at(node, 0), node.outputs[0]
    reach = wanted.reach(made.name)
    sizes = static_shape(value)
    if value is None or value.dtype != ir.DataType.FLOAT or reach is None or sizes is None or 0 in sizes:
        return None
    if not made.uses() and not made.is_graph_output():
        return None
    if reach.ndim and (len(sizes) < 2 or reach.size != sizes[1]):
        raise ValueError(f"the sine {made.name} has the shape {list(sizes)}, and {reach.size} reaches by channel")
    value, scale = _scaled(value)
    square = _square_of(made)
    last, gain = (node, None) if square is None else (square, _gain_of(square.outputs[0]))
    if gain is not None:
        last, factor = gain
    else:
        factor = np.array(1.0)
    if square is None:
        factor = factor * np.where(scale < 0.0, -1.0, 1.0)
    sine = Sine(wanted.form, wanted.degree, square is not None, np.abs(scale), factor, reach)
    if sine.is_soft and (shifted := _shift_of(last.outputs[0])) is not None:
        last, shift = shifted
        sine = replace(sine, shift=shift)
    return _Plan(last, value, sine)


def _scaled(argument: ir.Value) -> tuple[ir.Value, Array]:
    """What the sine is of, and the factor for each channel that it has before: 1 where there is none that can go."""
    node = argument.producer()
    found = None if node is None else operand_of(node, (MUL,))
    scale = None if found is None else _by_channel(found.values, argument)
    if found is None or scale is None or static_shape(found.value) != static_shape(argument):
        return argument, np.array(1.0)
    if np.abs(scale).max() > LARGEST:
        return argument, np.array(1.0)
    return found.value, scale


def _by_channel(values: Array, of: ir.Value) -> Array | None:
    """A constant that `of` is multiplied by as one number [], or one for each channel [C]; None where it is neither."""
    sizes = static_shape(of)
    if values.size == 1:
        return values.reshape(()).astype(np.float64)
    if sizes is None or len(sizes) < 2:
        return None
    shape = [1] * (len(sizes) - values.ndim) + list(values.shape)
    if shape != [1, sizes[1], *[1] * (len(sizes) - 2)]:
        return None
    return values.reshape(-1).astype(np.float64)


def _square_of(sine: ir.Value) -> ir.Node | None:
    """What squares `sine`, where nothing else reads it."""
    node = only_reader(sine)
    if node is None or len(node.inputs) != 2 or node.attributes:
        return None
    if is_one_of(node, (MUL,)) and input_of(node) is sine and node.inputs[1] is sine:
        return node
    power = weight_of(node.inputs[1]) if is_one_of(node, (POW,)) and node.inputs[0] is sine else None
    whole = power is not None and power.size > 0 and power.ndim <= _rank(sine) and bool(np.all(power == 2))
    return node if whole and static_shape(node.outputs[0]) == static_shape(sine) else None


def _rank(value: ir.Value) -> int:
    return len(static_shape(value) or ())


def _gain_of(square: ir.Value) -> tuple[ir.Node, Array] | None:
    """What multiplies `square` by a constant, or divides it by one, and the factor; None where it stays there."""
    node = only_reader(square)
    found = None if node is None else operand_of(node, (MUL, DIV))
    if node is None or found is None or (is_one_of(node, (DIV,)) and found.place != 0):
        return None
    factor = _by_channel(found.values, square)
    if factor is None or static_shape(node.outputs[0]) != static_shape(square) or np.any(factor <= 0):
        return None
    if is_one_of(node, (DIV,)):
        factor = 1 / factor
    return (node, factor) if np.sqrt(factor).max() <= _LARGEST_GAIN else None


def _shift_of(made: ir.Value) -> tuple[ir.Node, Array] | None:
    """What adds a constant to `made`, or subtracts one from it, and the constant that is added; None where it stays."""
    node = only_reader(made)
    found = None if node is None else operand_of(node, SUMS)
    if node is None or found is None or (node.op_type == "Sub" and found.place != 0):
        return None
    shift = _by_channel(found.values, made)
    if shift is None or static_shape(node.outputs[0]) != static_shape(made):
        return None
    return node, -shift if node.op_type == "Sub" else shift
