"""Sines by folds and polynomials: near the sine in onnxruntime, and only where that is sure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import NodeProto, TensorProto, helper, numpy_helper

from surgery.cuts import cuts
from surgery.declaration import Bounded
from surgery.rewrite_sines import rewrite_sines, sine_sites
from surgery.sine_chains import UNIT
from surgery.sine_soft import LARGEST_GAIN, SOFT_BOUND
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import Array, run, snr_db
from tests.surgery.graphs import check
from tests.surgery.one_operator import left_alone, operators, weight

RNG = np.random.default_rng(5)
ALPHA = RNG.uniform(0.3, 1.5, (1, 32, 1)).astype(np.float32)
FOLDED = ("triangle", "fine")
FORMS = ("clip", "floor", *FOLDED, "soft")
SHAPE = (1, 32, 10)


def node(op: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), [output], f"to_{output}", **attributes)


def graph(
    *nodes: NodeProto,
    shape: Sequence[int | str] = SHAPE,
    outputs: Sequence[str] = ("y",),
    dtype: int = TensorProto.FLOAT,
    opset: int = 15,
    made: Sequence[int | str] | None = None,
    **constants: Any,
) -> ir.Model:
    """x to `outputs`; the constants a (alpha), i (1 / alpha), two, and those given."""
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    named = {"a": ALPHA, "i": 1 / ALPHA, "two": 2.0, **constants}
    used = {name for one in nodes for name in one.input}
    weights = [constant(name, values, kind) for name, values in named.items() if name in used]
    shaped = [tensor(name, shape if made is None else made, dtype) for name in outputs]
    return model(list(nodes), [tensor("x", shape, dtype)], shaped, weights, opset=opset)


SNAKE = (
    node("Mul", "a x", "ax"),
    node("Sin", "ax", "s"),
    node("Pow", "s two", "q"),
    node("Mul", "i q", "k"),
    node("Add", "x k", "y"),
)


def feed(made: ir.Model, largest: float = 3.0, seed: int = 1) -> dict[str, Array]:
    """Arguments out to `largest`, evenly."""
    shape = [int(size) for size in made.graph.inputs[0].shape or ()]  # type: ignore[arg-type] # static here
    return {"x": np.random.default_rng(seed).uniform(-largest, largest, shape).astype(np.float32)}


def near_after(form: str, original: ir.Model, hits: int = 1, largest: float = 2.0, **options: Any) -> ir.Model:
    """Run the pass: so many hits, the original untouched, valid ONNX, and as near as the pass says."""
    bound = rewrite_sines(form, **options)
    before = ir.to_proto(original).SerializeToString()
    done = bound.rewrite(original)
    assert (done.hits, done.refused) == (hits, ())
    assert ir.to_proto(original).SerializeToString() == before
    check(done.model)
    fed = feed(original, largest)
    wanted, got = run(original, fed), run(done.model, fed)
    assert isinstance(bound.declaration.exactness, Bounded)
    for name, values in wanted.items():
        assert got[name].dtype == values.dtype
        assert snr_db(values, got[name]) >= bound.declaration.exactness.minimum_db
    assert not any(value == "a" or value == "i" for value in done.model.graph.initializers)
    return done.model


GRAPHS = {
    "snake": graph(*SNAKE),
    "snake by a product": graph(*SNAKE[:2], node("Mul", "s s", "q"), *SNAKE[3:]),
    "snake by a division": graph(*SNAKE[:3], node("Div", "q a", "k"), SNAKE[4]),
    "snake of one alpha": graph(*SNAKE, a=[0.7], i=1 / 0.7),
    "snake of other places": graph(
        node("Mul", "x a", "ax"), *SNAKE[1:3], node("Mul", "q i", "k"), node("Add", "k x", "y")
    ),
    "snake without alpha": graph(node("Sin", "x", "s"), node("Pow", "s two", "q"), node("Add", "x q", "y")),
    "snake of a whole power": graph(
        *SNAKE[:2], node("Constant", "", "e", value_int=2), node("Pow", "s e", "q"), *SNAKE[3:]
    ),
    "square alone": graph(node("Sin", "x", "s"), node("Mul", "s s", "y")),
    "square that is read twice": graph(*SNAKE[:3], node("Mul", "i q", "k"), node("Add", "q k", "y")),
    "square that is an output": graph(*SNAKE, outputs=("y", "q")),
    "negative gain": graph(*SNAKE, i=-1 / ALPHA),
    "gain of many axes": graph(*SNAKE, i=RNG.uniform(0.5, 1, SHAPE)),
    "negative alpha": graph(*SNAKE, a=-ALPHA),
    "alpha by step": graph(*SNAKE, a=RNG.uniform(0.5, 1, (1, 1, 10))),
    "product that is read again": graph(*SNAKE[:4], node("Add", "ax k", "y")),
    "sine": graph(node("Sin", "x", "y")),
    "scaled sine": graph(node("Mul", "a x", "ax"), node("Sin", "ax", "y")),
    "sine that is read besides its square": graph(*SNAKE[:3], node("Mul", "s q", "y")),
    "sine that is an output": graph(*SNAKE, outputs=("y", "s")),
    "cube": graph(node("Sin", "x", "s"), node("Pow", "s three", "y"), three=3.0),
    "another base": graph(node("Sin", "x", "s"), node("Pow", "two s", "y")),
    "four axes": graph(node("Sin", "x", "s"), node("Mul", "s s", "y"), shape=(2, 40, 4, 5)),
    "five axes": graph(node("Sin", "x", "s"), node("Mul", "s s", "y"), shape=(2, 3, 4, 5, 2)),
    "two axes": graph(node("Mul", "x r", "t"), node("Sin", "t", "y"), shape=(2, 30), r=RNG.uniform(0.5, 1, 30)),
    "more channels than a diagonal takes": graph(node("Sin", "x", "s"), node("Mul", "s s", "y"), shape=(1, 136, 5)),
    "one axis": graph(node("Sin", "x", "s"), node("Mul", "s s", "y"), shape=(50,)),
    "no axis": graph(node("Sin", "x", "y"), shape=()),
    "more channels than a convolution takes": graph(node("Sin", "x", "y"), shape=(1, 3000, 2)),
    "opset 7": graph(*SNAKE, opset=7),
    "opset 10": graph(*SNAKE, opset=10),
    "opset 19": graph(*SNAKE, opset=19),
}


@pytest.mark.parametrize("target", [None, "rk3588"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", GRAPHS)
def test_sine_is_as_near_as_stated_in_every_form(name: str, form: str, target: str | None) -> None:
    made = near_after(form, GRAPHS[name], target=target) if name not in KEPT else None
    if made is None:
        done = rewrite_sines(form, target=target).rewrite(GRAPHS[name])
        fed = feed(GRAPHS[name], 2.0)
        wanted, got = run(GRAPHS[name], fed), run(done.model, fed)
        assert all(snr_db(values, got[output]) > 60 for output, values in wanted.items())
        check(done.model)
    else:
        assert "Sin" not in operators(made)


KEPT = {
    "square that is read twice", "square that is an output", "negative gain", "gain of many axes", "alpha by step",
    "product that is read again", "sine that is read besides its square", "sine that is an output",
}  # fmt: skip
"""Graphs whose constants are still read after the pass."""


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("reach", [1.0, 2.0, 7.5, 40.0])
@pytest.mark.parametrize("square", [True, False])
@pytest.mark.parametrize("form", [*FOLDED, "soft"])
def test_triangle_is_right_as_far_as_it_reaches(form: str, square: bool, reach: float, degree: int) -> None:
    nodes = [node("Sin", "x", "s"), node("Mul", "s s", "y")] if square else [node("Sin", "x", "y")]
    near_after(form, graph(*nodes, shape=(1, 2, 5000)), largest=reach * np.pi, reach_pi=reach, degree=degree)


def test_floor_is_right_however_far() -> None:
    for nodes in ([node("Sin", "x", "s"), node("Mul", "s s", "y")], [node("Sin", "x", "y")]):
        original = graph(*nodes, shape=(1, 2, 5000))
        fed = feed(original, 300.0)
        got = run(rewrite_sines("floor").rewrite(original).model, fed)["y"]
        assert snr_db(run(original, fed)["y"], got) > 80


def test_clip_is_zero_beyond_one_wave() -> None:
    original = graph(node("Sin", "x", "y"))
    got = run(rewrite_sines("clip").rewrite(original).model, {"x": np.full(SHAPE, 4.0, np.float32)})["y"]
    assert np.all(got == 0)


@settings(max_examples=30, deadline=None)
@given(
    alpha=st.floats(9.5e-5, 4.0), channels=st.sampled_from([1, 9, 32, 40, 130]), steps=st.integers(1, 30),
    target=st.sampled_from([None, "rk3588"]), seed=st.integers(0, 99), form=st.sampled_from(FOLDED),
)  # fmt: skip
def test_snake_is_near_the_formula_for_any_alpha(
    form: str, alpha: float, channels: int, steps: int, target: str | None, seed: int
) -> None:
    alphas = np.linspace(alpha, 1.0, channels).reshape(1, channels, 1).astype(np.float32)
    original = graph(*SNAKE, shape=(1, channels, steps), a=alphas, i=1 / alphas)
    x = np.random.default_rng(seed).normal(size=(1, channels, steps)) * 3 / max(1.0, alpha)
    got = run(rewrite_sines(form, target=target).rewrite(original).model, {"x": x.astype(np.float32)})["y"]
    wide, exact = alphas.astype(np.float64), x.astype(np.float32).astype(np.float64)
    wanted = exact + np.sin(wide * exact) ** 2 / wide
    assert np.allclose(got, wanted, rtol=1e-4, atol=1e-4)


def angles_near_zeros(reach: int) -> Array:
    away = np.geomspace(1e-4, 1e-2, 200)
    return np.concatenate([k * np.pi + sign * away for k in range(-reach, reach + 1) for sign in (1, -1)])


@pytest.mark.parametrize("target", [None, "rk3588"])
@pytest.mark.parametrize("form", FOLDED)
def test_square_keeps_its_zeros_when_the_argument_is_near_one(form: str, target: str | None) -> None:
    """A polynomial without the double zero is off by 4e-5 there, where this is off by the rounding of the argument."""
    x = angles_near_zeros(7).astype(np.float32).reshape(1, 1, -1) * np.ones((1, 32, 1), np.float32)
    original = graph(node("Sin", "x", "s"), node("Mul", "s s", "y"), shape=x.shape)
    got = run(rewrite_sines(form, target=target).rewrite(original).model, {"x": x})["y"].astype(np.float64)
    root = np.abs(np.sin(x.astype(np.float64)))
    assert np.all(got >= 0)
    assert np.all(np.abs(np.sqrt(got) - root) <= 4e-5 * root + 4e-6)
    assert np.abs(got - root**2).max() < 2e-7


@pytest.mark.parametrize("target", [None, "rk3588"])
@pytest.mark.parametrize(("form", "reach"), [("triangle", [0.01, *[8.0] * 31]), ("fine", 8.0)])
def test_channel_is_right_in_proportion_near_zero_when_its_zero_is_not_folded_away(
    form: str, reach: Any, target: str | None
) -> None:
    alphas = np.ones((1, 32, 1), np.float32)
    alphas[0, 0] = 9.5e-5
    original = graph(*SNAKE[:4], shape=(1, 32, 400), outputs=("k",), a=alphas, i=1 / alphas)
    x = np.geomspace(1e-3, 20, 400).astype(np.float32) * np.ones((1, 32, 1), np.float32)
    (site,) = sine_sites(original)
    bound = rewrite_sines(form, {site: reach}, target=target)
    got = run(bound.rewrite(original).model, {"x": x})["k"].astype(np.float64)
    wanted = np.sin(alphas.astype(np.float64) * x) ** 2 / alphas
    assert np.abs(got[0, 0] / wanted[0, 0] - 1).max() < 7e-5


def test_only_named_sites_are_rewritten_when_the_reach_is_by_site() -> None:
    original = graph(node("Sin", "x", "s"), node("Sin", "s", "y"))
    assert sine_sites(original) == {"s": "x", "y": "s"}
    made = near_after("triangle", original, reach_pi={"y": 1.0})
    assert operators(made)[0] == "Sin"
    assert operators(made).count("Sin") == 1
    assert operators(made).count("LeakyRelu") == 2
    left_alone(rewrite_sines("triangle", {}), original)


def test_every_site_is_rewritten_when_one_feeds_the_other() -> None:
    """The factor behind the first sine is the one before the second."""
    original = graph(
        node("Sin", "x", "s"), node("Mul", "s s", "q"), node("Mul", "q a", "aq"), node("Sin", "aq", "t"),
        node("Pow", "t two", "r"), node("Mul", "i r", "k"), node("Add", "aq k", "y"),
    )  # fmt: skip
    near_after("triangle", original, hits=2)
    near_after("triangle", original, hits=2, target="rk3588")


def test_weights_that_another_node_reads_stay() -> None:
    original = graph(*SNAKE[:4], node("Mul", "k i", "z"), node("Mul", "z a", "y"))
    made = rewrite_sines("triangle").rewrite(original).model
    assert {"a", "i"} <= set(made.graph.initializers)
    fed = feed(original, 2.0)
    assert snr_db(run(original, fed)["y"], run(made, fed)["y"]) > 80


def test_graph_around_stays_when_a_branch_reads_the_sine() -> None:
    then = helper.make_graph([helper.make_node("Identity", ["s"], ["c"])], "then", [], [tensor("c", SHAPE)])
    other = helper.make_graph([helper.make_node("Neg", ["s"], ["d"])], "other", [], [tensor("d", SHAPE)])
    original = graph(
        node("Sin", "x", "s"), node("Pow", "s two", "q"), node("If", "cond", "b", then_branch=then, else_branch=other),
        node("Add", "q b", "y"), cond=True,
    )  # fmt: skip
    proto = ir.to_proto(original)
    (condition,) = [one for one in proto.graph.initializer if one.name == "cond"]
    condition.CopyFrom(numpy_helper.from_array(np.array(True), "cond"))
    original = ir.from_proto(proto)
    made = rewrite_sines("triangle").rewrite(original).model
    assert "Sin" not in operators(made)
    assert "Pow" in operators(made)
    fed = feed(original, 2.0)
    assert snr_db(run(original, fed)["y"], run(made, fed)["y"]) > 70


ALONE = {
    "no sine": graph(node("Cos", "x", "y")),
    "unknown length": graph(*SNAKE, shape=(1, 32, "T")),
    "unknown channels": graph(node("Sin", "x", "y"), shape=(1, "C", 4)),
    "no element": graph(node("Sin", "x", "y"), shape=(1, 6, 0)),
    "float64": graph(node("Sin", "x", "y"), dtype=TensorProto.DOUBLE),
    "float16": graph(node("Sin", "x", "y"), dtype=TensorProto.FLOAT16),
    "nothing reads it": graph(node("Sin", "x", "s"), node("Neg", "x", "y")),
    "another domain": graph(node("Sin", "x", "y", domain="com.example"), made=SHAPE),
}


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("form", FORMS)
def test_graph_is_left_alone_when_it_has_no_sine_to_rewrite(name: str, form: str) -> None:
    left_alone(rewrite_sines(form), ALONE[name])


def test_graph_is_left_alone_when_the_form_is_exact() -> None:
    left_alone(rewrite_sines("exact"), GRAPHS["snake"])


@pytest.mark.parametrize(
    ("given", "values"),
    [("a", np.full((1, 32, 1), 1e6)), ("i", np.full((1, 32, 1), 1e10)), ("i", np.zeros((1, 32, 1)))],
)
def test_factor_stays_when_fp16_does_not_hold_it(given: str, values: Array) -> None:
    constants: dict[str, Any] = {given: values}
    original = graph(*SNAKE, **constants)
    made = rewrite_sines("triangle").rewrite(original).model
    assert given in made.graph.initializers


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("squared", [True, False])
def test_negative_factors_become_positive(form: str, squared: bool) -> None:
    """An absolute value of what is negative for every x >= 0 would be 0 in the engine. (`fine` turns a square's.)"""
    signed = ALPHA * np.where(np.arange(32) % 2, 1, -1)[None, :, None]
    wave = (node("Sin", "ax", "s"), node("Pow", "s two", "y")) if squared else (node("Sin", "ax", "y"),)
    made = near_after(form, graph(node("Mul", "a x", "ax"), *wave, a=signed))
    first = next(one for one in made.graph if one.op_type in ("Mul", "Conv"))
    factors = [weight(value) for value in first.inputs if value is not None and value.is_initializer()]
    assert np.all(factors[0] < 0 if form == "fine" and squared else factors[0] > 0)


def test_nodes_have_the_passes_name_and_constants_are_exact_in_fp16() -> None:
    made = rewrite_sines("triangle", 8, target="rk3588").rewrite(GRAPHS["snake"]).model
    new = [one for one in made.graph if one.name != "to_y"]
    assert all(str(one.name).startswith("rewrite_sines/") for one in new)
    folds = [one for one in new if "fold" in str(one.name) and one.op_type == "Conv" and len(one.inputs) == 3]
    constants = [weight(one.inputs[2])[0] for one in folds]
    assert constants == [-4.0, -2.0, -1.0]
    assert constants == [np.float16(constant) for constant in constants]
    maps = [float(weight(one.inputs[1]).flat[0]) for one in new if re.search(r"map\d_step", str(one.name))]
    assert maps[1:] == [np.float16(scale) for scale in maps[1:]]
    assert maps[0] == -3.0


def test_scale_and_gain_cost_no_step_when_they_are_the_units_own() -> None:
    """Snake's x + sin^2(a x) / a, a = pi / UNIT: a fold at 0 and three more, three maps, a square."""
    alpha = np.full((1, 32, 1), np.pi / UNIT, np.float32)
    made = near_after("triangle", graph(*SNAKE, a=alpha, i=1 / alpha), target="rk3588")
    counts = Counter(one.op_type for one in made.graph)
    assert (counts["Conv"], counts["LeakyRelu"], counts["Clip"], counts["Pow"]) == (6, 4, 3, 1)
    assert counts["Mul"] == 3


@pytest.mark.parametrize("reach", [0.0, -1.0, float("nan"), float("inf"), {"s": 0.0}, [[1.0]], []])
def test_factory_raises_when_a_reach_is_no_number_above_zero(reach: Any) -> None:
    with pytest.raises(ValueError, match="no finite number above 0"):
        rewrite_sines("triangle", reach)


def test_factory_raises_when_nothing_is_known_of_the_target() -> None:
    with pytest.raises(ValueError, match="nothing is known of the target rk1"):
        rewrite_sines("triangle", target="rk1")


@pytest.mark.parametrize("arguments", [("square",), ("triangle", 8.0, 4)])
def test_factory_raises_when_the_form_or_degree_is_unknown(arguments: tuple[Any, ...]) -> None:
    form, *more = arguments
    with pytest.raises(ValueError, match="is n"):
        rewrite_sines(form, *more[:1], **({"degree": more[1]} if more else {}))


def test_pass_raises_when_a_site_has_other_channels_than_reaches() -> None:
    with pytest.raises(ValueError, match=r"the sine s has the shape \[1, 32, 10\], and 5 reaches by channel"):
        rewrite_sines("triangle", [1.0] * 5).rewrite(GRAPHS["snake"])


def test_bound_is_lower_when_the_degree_is() -> None:
    bounds = [rewrite_sines("triangle", degree=degree).declaration.exactness for degree in (1, 2, 3)]
    assert [bound.minimum_db for bound in bounds if isinstance(bound, Bounded)] == [32, 68, 89]


@pytest.mark.parametrize(
    ("channels", "target", "convolutions"),
    [(31, "rk3588", 0), (32, "rk3588", 6), (1024, "rk3588", 6), (1025, "rk3588", 0),
     (128, None, 0), (128, "rk3562", 0), (128, "rk3576", 0), (128, "rk3566", 0), (128, "rk3568", 0)],
)  # fmt: skip
def test_affine_steps_are_convolutions_when_they_pay(channels: int, target: str | None, convolutions: int) -> None:
    nodes = (node("Sin", "x", "s"), node("Mul", "s s", "q"), node("Add", "x q", "y"))
    made = near_after("triangle", graph(*nodes, shape=(1, channels, 4)), target=target)
    groups = [one.attributes.get_int("group", 1) for one in made.graph if one.op_type == "Conv"]
    assert groups == [channels] * convolutions


BETA_SHAPE = (1, 40, 3000)
SCALES = np.linspace(0.4, 2.5, 40).astype(np.float32).reshape(1, 40, 1)
SIZES = np.geomspace(1 / 3.37, 20.0, 40).astype(np.float32).reshape(1, 40, 1)
LEFT = np.full((1, 40, 1), 0.375, np.float32)
BETA = (*SNAKE[:3], node("Div", "q size", "k"))
LESS = (*BETA, node("Sub", "k left", "z"), node("Add", "x z", "y"))
"""SnakeBeta, less a constant that the layer behind takes in."""


def beta(*nodes: NodeProto, **constants: Any) -> ir.Model:
    return graph(*nodes, shape=BETA_SHAPE, **{"a": SCALES, "size": SIZES, "left": LEFT, **constants})


def soft(original: ir.Model, **options: Any) -> ir.Model:
    done = rewrite_sines("soft", **options).rewrite(original)
    assert (done.hits, done.refused) == (1, ())
    check(done.model)
    return done.model


def within(reach: float) -> dict[str, Array]:
    """Arguments of SnakeBeta out to `reach` pi."""
    angles = np.random.default_rng(2).uniform(-reach * np.pi, reach * np.pi, BETA_SHAPE)
    return {"x": (angles / SCALES).astype(np.float32)}


def snake_beta(x: Array) -> Array:
    """sin^2(a x) / b, by the formula."""
    squares: Array = np.sin(SCALES.astype(np.float64) * x.astype(np.float64)) ** 2 / SIZES.astype(np.float64)
    return squares


@pytest.mark.parametrize("target", [None, "rk3588"])
@pytest.mark.parametrize("reach", [1.0, 2.0, 4.0, 8.0])
def test_soft_square_of_any_gain_is_as_near_as_its_maps(reach: float, target: str | None) -> None:
    fed = within(reach)
    wanted = snake_beta(fed["x"])
    got = run(soft(beta(*BETA[:-1], node("Div", "q size", "y")), reach_pi=reach, target=target), fed)["y"]
    rounding = 2 * np.pi * reach * np.finfo(np.float32).eps / SIZES + 1e-6
    assert np.all(np.abs(got - wanted) <= SOFT_BOUND / SIZES + rounding)
    assert snr_db(wanted, got) >= 90


def test_soft_square_is_zero_behind_its_reach() -> None:
    x = np.full(BETA_SHAPE, 30.0, np.float32)
    got = run(soft(beta(*BETA[:-1], node("Div", "q size", "y")), reach_pi=1.0), {"x": x})["y"]
    assert np.abs(got).max() < 1e-5


@pytest.mark.parametrize("target", [None, "rk3588"])
def test_soft_offset_costs_nothing_when_the_graph_subtracts_it(target: str | None) -> None:
    made = soft(beta(*LESS), reach_pi=2.0, target=target)
    assert not {"left", "size", "a"} & set(made.graph.initializers)
    (last,) = [one for one in made.graph if one.op_type == "Add" and made.graph.outputs[0] is one.outputs[0]]
    (other,) = [value for value in last.inputs if value is not None and not value.is_graph_input()]
    producer = other.producer()
    assert producer is not None
    assert producer.op_type == "Div"  # the end of the HardSwish
    fed = within(2.0)
    assert snr_db(snake_beta(fed["x"]) - 0.375, run(made, fed)["y"] - fed["x"].astype(np.float64)) >= 90


@pytest.mark.parametrize(
    ("last", "left", "shift"),
    [
        ("Sub k left", 0.25, -0.25),
        ("Add k left", -0.375, -0.375),
        ("Add left k", 1.0, 1.0),
        ("Sub left k", 0.375, None),
    ],
)
def test_soft_square_takes_up_a_constant_that_is_added_behind(last: str, left: float, shift: float | None) -> None:
    op, inputs = last.split(" ", 1)
    made = soft(beta(*BETA, node(op, inputs, "y"), left=left), reach_pi=2.0)
    fed = within(2.0)
    wanted = snake_beta(fed["x"]) + shift if shift is not None else left - snake_beta(fed["x"])
    assert snr_db(wanted, run(made, fed)["y"]) >= 90
    assert ("left" in made.graph.initializers) == (shift is None)


@pytest.mark.parametrize("shape", [(1, 1, 3000), (1, 40, 3000)])
def test_soft_square_leaves_what_varies_along_time(shape: tuple[int, ...]) -> None:
    left = np.random.default_rng(0).uniform(size=shape)
    made = soft(beta(*BETA, node("Sub", "k left", "y"), left=left), reach_pi=2.0)
    assert "left" in made.graph.initializers
    fed = within(2.0)
    assert snr_db(snake_beta(fed["x"]) - left, run(made, fed)["y"]) >= 90


@pytest.mark.parametrize(
    "original",
    [beta(*LESS, size=np.where(np.arange(40) == 3, 0.99 / LARGEST_GAIN, 1.0).reshape(1, 40, 1)),
     graph(node("Mul", "a x", "ax"), node("Sin", "ax", "y"))],
    ids=["gain past the limit in one channel", "plain sine"],
)  # fmt: skip
@pytest.mark.parametrize("target", [None, "rk3588"])
def test_soft_is_the_triangle_when_its_maps_do_not_reach(original: ir.Model, target: str | None) -> None:
    made, triangle = (
        ir.to_proto(rewrite_sines(form, target=target).rewrite(original).model) for form in ("soft", "triangle")
    )
    assert made.SerializeToString(deterministic=True) == triangle.SerializeToString(deterministic=True)


@pytest.mark.parametrize(("form", "steps"), [("soft", 4), ("triangle", 4)])
@pytest.mark.parametrize("most", [None, 0, 1, 3, 4, 9])
def test_last_steps_are_convolutions_when_so_many_may_be(form: str, steps: int, most: int | None) -> None:
    """Of a fold and three maps. No cut makes convolutions of the others."""
    made = rewrite_sines(form, 2.0, target="rk3588", convolved=most).rewrite(beta(*LESS)).model
    for bound in cuts("rk3588"):
        made = bound.rewrite(made).model
    kinds = [one.op_type for one in made.graph if one.op_type in ("Conv", "BatchNormalization")]
    convolutions = steps if most is None else min(most, steps)
    assert kinds == ["BatchNormalization"] * (steps - convolutions) + ["Conv"] * convolutions
    fed = within(2.0)
    assert snr_db(snake_beta(fed["x"]) - 0.375, run(made, fed)["y"] - fed["x"].astype(np.float64)) >= 85


def test_number_of_convolutions_may_be_stated_by_site() -> None:
    original = beta(*LESS)
    (site,) = sine_sites(original)
    for most, convolutions in (({site: 1}, 1), ({"another": 1}, 4)):
        made = soft(original, reach_pi=2.0, target="rk3588", convolved=most)
        assert operators(made).count("Conv") == convolutions
    made = soft(original, reach_pi=2.0, target="rk3576", convolved=1)
    assert not {"Conv", "BatchNormalization"} & set(operators(made))


@pytest.mark.parametrize("convolved", [-1, {"s": -1, "t": 2}])
def test_factory_raises_when_fewer_convolutions_than_none_are_asked_for(convolved: Any) -> None:
    with pytest.raises(ValueError, match="-1 convolutions of a sine are fewer than none"):
        rewrite_sines("soft", convolved=convolved)


@pytest.mark.parametrize(
    ("form", "reach", "convolutions", "products"),
    [("triangle", 1.0, 3, 4), ("triangle", 4.0, 5, 4), ("fine", 1.0, 3, 4), ("fine", 4.0, 5, 5)],
)
def test_scale_of_a_square_costs_no_step(form: str, reach: float, convolutions: int, products: int) -> None:
    """The absolute value is bare; a fold, a map or the turn of `fine` takes the scale in. Products are three maps' and
    the root's, and that turn."""
    made = near_after(form, graph(*SNAKE[:3], node("Add", "x q", "y")), reach_pi=reach, target="rk3588")
    (first,) = [one for one, _ in made.graph.inputs[0].uses() if one.op_type != "Add"]
    assert first.op_type == "LeakyRelu"
    counts = Counter(one.op_type for one in made.graph)
    assert (counts["Conv"], counts["Mul"]) == (convolutions, products)
