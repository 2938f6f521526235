"""Writes docs/sine.md, what each form of the sine reaches and costs: `python -m rknn_tts.sine_page > docs/sine.md`.

Every row is a build by the real toolkit, six dozen of them, in a minute. A test compares the page's text with
what this gives, and builds some of its rows again.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from contracts.targets import TARGETS
from cost.model import modelled_ms, on_cpu
from engine.build import build_engine
from engine.environment import converter_python
from engine.request import BuildRequest
from environments.locks import DEFAULT_TOOLKIT
from gates.session import Session
from gates.snr import snr_db
from logs.layer_table import Layer, parse_layer_table
from logs.lines import clean_lines
from rknn_tts.background import each_beside_the_others
from surgery.rewrite_sines import rewrite_sines
from surgery.sine_forms import FOLDED, Form
from surgery.sine_soft import soft_offset

Array = NDArray[Any]

SHAPE = (1, 128, 1200)
"""One tensor of it is 300 KB in fp16."""

SPREAD = 3.0
"""Standard deviation of x."""

REACH = 8.0
"""In units of pi: three folds behind the one at 0."""

SMALL_ALPHA = 0.01
OWN_REACH = 0.125
"""Of x times the small alpha, in units of pi: 13 standard deviations."""

LEAST_ALPHA, LARGEST_ALPHA = 0.5, 2.0
"""SnakeBeta's alphas, from the first channel to the last; its betas go the other way."""

DEVIATIONS = 3.2
"""Standard deviations of SnakeBeta's arguments in their reach."""

MAIN_TARGET = "rk3588"
OTHERS = tuple(target for target in TARGETS if target != MAIN_TARGET)
TIMEOUT_S = 120.0
"""A build takes two seconds."""


@dataclass(frozen=True)
class Case:
    """One row: a specimen, the form that its sine is given, and the chip it is built for.

    Attributes:
        form: of the sine.
        target: the chip.
        degree: of the polynomial.
        snake: x + sin^2(alpha x) / alpha; or else the sine alone.
        alpha: Snake's, the same for every channel; None: SnakeBeta, x + sin^2(alpha x) / beta, other ones for each.
        reach: in units of pi.
        convolved: how many affine steps are convolutions at most; None: all of them.
    """

    form: Form
    target: str = MAIN_TARGET
    degree: int = 2
    snake: bool = True
    alpha: float | None = 1.0
    reach: float = REACH
    convolved: int | None = None

    def label(self) -> str:
        """What begins its row, alone on the page."""
        form = self.form.value + (f", {self.convolved} convolved" if self.convolved is not None else "")
        degree = "-" if self.form in (Form.EXACT, Form.SOFT) else str(self.degree)
        reach = f"{self.reach:g}" if self.form in FOLDED else "-"
        return f"| {form} | {degree} | {reach} | {self.target} |"

    @property
    def scales(self) -> Array:
        """alpha [C]."""
        if self.alpha is None:
            return np.geomspace(LEAST_ALPHA, LARGEST_ALPHA, SHAPE[1])
        return np.full(SHAPE[1], self.alpha)

    @property
    def sizes(self) -> Array:
        """What the square is divided by [C]."""
        return self.scales[::-1] if self.alpha is None else self.scales

    @property
    def taken_up(self) -> Array | None:
        """What is subtracted before the sum with x, for the layer behind to add again [C]: SnakeBeta's soft offset."""
        return soft_offset(1 / self.sizes) if self.form is Form.SOFT and self.alpha is None else None

    def fed(self) -> Array:
        """x, of `SHAPE`: arguments that fill the reach, of SnakeBeta."""
        normal = np.random.default_rng(0).normal(size=SHAPE)
        if self.alpha is not None:
            return (normal * SPREAD).astype(np.float32)
        angles = np.clip(normal / DEVIATIONS, -1, 1) * self.reach * np.pi
        return (angles / self.scales[:, None]).astype(np.float32)


@dataclass(frozen=True)
class Measured:
    """What a build of a case shows.

    Attributes:
        fp32_db: of the sine or its square, in onnxruntime, against the formula in float64.
        simulator_db: the same, in the toolkit's simulator.
        between: the layers between the two convolutions.
        cpu: how many of them run on the CPU.
        rw_kb: the traffic of them.
        modelled_ms: their modelled time.
    """

    fp32_db: float
    simulator_db: float
    between: int
    cpu: int
    rw_kb: float
    modelled_ms: float

    def cells(self) -> str:
        """As the end of a row."""
        numbers = f"{self.fp32_db:.1f} | {self.simulator_db:.1f} | {self.cpu} | {self.between}"
        return f" {numbers} | {self.rw_kb:.0f} | {self.modelled_ms:.2f} |"


CHAINED = (Form.TRIANGLE, Form.FINE)
"""Folded ones with a degree."""

FORMS = (
    Case(Form.EXACT),
    *(Case(form, degree=degree) for form in (Form.CLIP, Form.FLOOR, *CHAINED) for degree in (1, 2, 3)),
    Case(Form.SOFT),
)
REACHES = tuple(Case(form, reach=reach) for form in CHAINED for reach in (16.0, 32.0))
BETA = (
    Case(Form.EXACT, alpha=None),
    *(Case(form, alpha=None, reach=reach) for reach in (1.0, 2.0, 4.0, 8.0) for form in (Form.TRIANGLE, Form.SOFT)),
    *(Case(Form.SOFT, alpha=None, reach=2.0, convolved=count) for count in (3, 2, 1, 0)),
)
CHIPS = (
    *(Case(form, target) for target in OTHERS for form in (Form.EXACT, Form.TRIANGLE)),
    Case(Form.FINE, OTHERS[-1]),
    *(Case(form, target, alpha=None) for target in OTHERS for form in (Form.EXACT, Form.TRIANGLE, Form.SOFT)),
)
PLAIN = tuple(Case(form, snake=False, reach=REACH - 0.5) for form in Form if form is not Form.SOFT)
SMALL = (
    Case(Form.EXACT, alpha=SMALL_ALPHA),
    *(Case(Form.TRIANGLE, alpha=SMALL_ALPHA, reach=reach) for reach in (REACH, OWN_REACH)),
    Case(Form.FINE, alpha=SMALL_ALPHA),
)

CASES = (*FORMS, *REACHES, *BETA, *CHIPS, *PLAIN, *SMALL)

_COLUMNS = (
    "| Form | Degree | Reach / pi | Target | fp32, dB | simulator, dB | CPU layers | layers | RW, KB | modelled ms |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)

_SIZES = ", ".join(map(str, SHAPE))

_HEAD = f"""# Sines on the NPU

Generated by `python -m rknn_tts.sine_page > docs/sine.md` from builds by rknn-toolkit2 {DEFAULT_TOOLKIT}; a test
compares the text and builds some rows again.

`Sin` runs on the CPU of every chip. The pass [rewrite_sines](passes.md#rewrite_sines) computes it otherwise; the forms
are `exact` (Sin is kept), `clip`, `floor`, `triangle`, `fine`, a triangle whose folds leave 0 at 0, and `soft`, one
with fewer steps behind the folds of a square. Each stands here between two convolutions that pass [{_SIZES}]
through, x ~ N(0, {SPREAD:g}^2) where nothing else is said. The two columns of dB are at the level of the sine or of its
square, x taken off, against the formula in float64; the others count what lies between the convolutions. `clip` is
right up to pi only, and most of these arguments lie beyond. No board was measured.
"""

_SNAKE = """
## Snake, x + sin^2(x)

"""

_REACHES = """
## Folds

Each doubling of the reach is one fold, one layer more. `triangle` rounds arguments near 0 twice as coarsely then, for
they are at the fold constant after it; `fine` does not. State for each site what its arguments need
(`surgery.sine_forms.reach_of`, with `surgery.rewrite_sines.sine_sites`).

"""

_BETA = f"""
## SnakeBeta, x + sin^2(alpha x) / beta

alpha goes from {LEAST_ALPHA:g} to {LARGEST_ALPHA:g} over the channels, and beta back; arguments fill the reach, which
is {DEVIATIONS:g} standard deviations of them.

`soft` has the gain 1 / beta, up to 3.37, in its last map, and a constant left over: here the sum takes the square less
that constant, and the convolution behind adds it (`surgery.sine_soft.soft_offset`). Where a graph does not subtract it,
that is one layer more.

An affine step that is a convolution is one layer with what is behind it, one pass over the tensor for two, and costs
cycles. `convolved` says how many are, the last ones.

"""

_CHIPS = """
## The other targets

The steps are written as convolutions for rk3588 only, where they pay, and as Mul and Add elsewhere. The last rows of
each target are SnakeBeta's.

"""

_PLAIN = """
## The sine alone, sin(x)

The triangles reach half a pi less, for they fold x - pi / 2. R of `clip` and `floor` has one degree more than is said.

"""

_SMALL = f"""
## Snake of a small alpha, x + sin^2({SMALL_ALPHA:g} x) / {SMALL_ALPHA:g}

A channel that `triangle` folds although it need not be loses what is near 0, and 1 / alpha enlarges that. So the reach
may be stated channel by channel: what does not reach a fold gets the constant 0 there, and stays as it is.

"""


def sine_page(row: Callable[[Case], str]) -> str:
    """The page; `row` gives the line of a case."""
    parts = ((_SNAKE, FORMS), (_REACHES, REACHES), (_BETA, BETA), (_CHIPS, CHIPS), (_PLAIN, PLAIN), (_SMALL, SMALL))
    return _HEAD + "".join(text + _table(cases, row) for text, cases in parts)


def _table(cases: Sequence[Case], row: Callable[[Case], str]) -> str:
    return "\n".join([_COLUMNS, *map(row, cases)]) + "\n"


def built_row(case: Case) -> str:
    """The line of a case, from a build."""
    return case.label() + measured(case).cells()


def measured(case: Case) -> Measured:
    """Build a case and run it."""
    feed = {"x": case.fed()}
    bound = rewrite_sines(case.form, case.reach, degree=case.degree, target=case.target, convolved=case.convolved)
    model = bound.rewrite(specimen(case)).model
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        graph = folder / "sine.onnx"
        graph.write_bytes(ir.to_proto(model).SerializeToString())
        result = build_engine(
            BuildRequest(
                onnx=graph, target=case.target, toolkit=DEFAULT_TOOLKIT, converter_python=converter_python(),
                result_folder=folder / "result", log=folder / "build.log", timeout_s=TIMEOUT_S, feeds=(feed,),
            )
        )  # fmt: skip
        table = parse_layer_table(clean_lines((folder / "build.log").read_bytes()))
        (simulated,) = result.simulated
    assert table is not None
    between = _between(table.layers)
    return Measured(
        fp32_db=_db(case, feed["x"], Session(model).run(feed)["y"]),
        simulator_db=_db(case, feed["x"], np.asarray(simulated["y"])),
        between=len(between),
        cpu=sum(map(on_cpu, between)),
        rw_kb=sum(layer.rw_kb for layer in between),
        modelled_ms=modelled_ms(between),
    )


def specimen(case: Case) -> ir.Model:
    """The sine of a case between two convolutions that change nothing, `before` and `after`."""
    channels = SHAPE[1]
    constants: dict[str, Array] = {
        "same": np.eye(channels)[:, :, None],
        "alpha": case.scales[None, :, None],
        "part": 1 / case.sizes[None, :, None],
        "two": np.array(2.0),
    }
    nodes = [helper.make_node("Conv", ["x", "same"], ["u"], "before", kernel_shape=[1])]
    made, behind = "s", ["same"]
    if case.snake:
        nodes += [
            helper.make_node("Mul", ["alpha", "u"], ["scaled"], "scale"),
            helper.make_node("Sin", ["scaled"], ["s"], "sine"),
            helper.make_node("Pow", ["s", "two"], ["q"], "square"),
            helper.make_node("Mul", ["part", "q"], ["p"], "unscale"),
        ]
        made = "p"
        if case.taken_up is not None:
            constants["left"], constants["bias"] = case.taken_up[None, :, None], case.taken_up
            nodes.append(helper.make_node("Sub", ["p", "left"], ["less"], "less"))
            made, behind = "less", ["same", "bias"]
        nodes.append(helper.make_node("Add", ["u", made], ["sum"], "sum"))
        made = "sum"
    else:
        nodes.append(helper.make_node("Sin", ["u"], ["s"], "sine"))
    nodes.append(helper.make_node("Conv", [made, *behind], ["y"], "after", kernel_shape=[1]))
    used = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "sine",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, SHAPE)],
        [numpy_helper.from_array(v.astype(np.float32), name) for name, v in constants.items() if name in used],
    )
    return ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


def _between(layers: Sequence[Layer]) -> Sequence[Layer]:
    """The layers between the convolutions `before` and `after`."""
    ends = [number for number, layer in enumerate(layers) if layer.name in ("Conv:before", "Conv:after")]
    first, last = ends
    return layers[first + 1 : last]


def _db(case: Case, x: Array, y: Array) -> float:
    """Of the sine or its square in `y`."""
    wide, got = x.astype(np.float64), y.astype(np.float64)
    if not case.snake:
        return snr_db(np.sin(wide), got)
    return snr_db(np.sin(case.scales[:, None] * wide) ** 2 / case.sizes[:, None], got - wide)


if __name__ == "__main__":
    sys.stdout.write(sine_page(each_beside_the_others(CASES, built_row).__getitem__))
