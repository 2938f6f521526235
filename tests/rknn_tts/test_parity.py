from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from contracts.contract import Noise
from contracts.verdicts import Verdict
from converters.stages import Session
from rknn_tts.parity import followed_feeds, judge_passes, least_db
from rknn_tts.rewriting import rewrite
from rknn_tts.runnable import make_runnable
from surgery.declaration import (
    AddedInput,
    Bounded,
    Cropped,
    Declaration,
    Exact,
    GivenInput,
    Interface,
    Pass,
    Recast,
    Refused,
    Rewritten,
)
from surgery.preflight import preflight
from tests.gates.small_graphs import constant, proto, row, scale_proto, tensor
from tests.gates.small_graphs import model as small_model
from tests.onnx_runs import Array, open_session

FEEDS = ({"x": row(1, -2, 3, 4)},)


def model(factor: float = 2.0) -> ir.Model:
    return ir.from_proto(scale_proto(factor))


def claiming(name: str, result: ir.Model, exactness: Exact | Bounded, *refused: Refused, after: str = "") -> Pass:
    """A pass that returns `result`, whatever it claims of it."""
    declaration = Declaration(name, "", exactness, frozenset(filter(None, [after])))
    return Pass(declaration, lambda _: Rewritten(result, 1, refused))


def rounding(factor: float, through: str) -> ir.Model:
    """y = factor * x, rounded on the way by `through`: "half floats" or "levels"."""
    if through == "half floats":
        rounds = [helper.make_node("Cast", ["x"], ["h"], "h", to=onnx.TensorProto.FLOAT16)]
        back = helper.make_node("Cast", ["h"], ["r"], "r", to=onnx.TensorProto.FLOAT)
    else:
        rounds = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["h"], "h")]
        back = helper.make_node("DequantizeLinear", ["h", "s", "z"], ["r"], "r")
    scale = helper.make_node("Mul", ["r", "k"], ["y"], "scale")
    weights = [constant("k", [factor]), constant("s", 0.05), constant("z", 0, np.int8)]
    return small_model([*rounds, back, scale], [tensor("x", [1, 4])], [tensor("y", [1, 4])], weights)


def judged(*passes: Pass, feeds: Any = FEEDS, padded: Any = ()) -> list[Verdict]:
    original = model()
    done = rewrite(original, passes)
    return list(judge_passes(passes, original, done, open_session, feeds, padded).verdicts)


@pytest.mark.parametrize(
    ("through", "factor", "exactness", "wanted"),
    [
        ("half floats", 2.001, Exact(""), "passed"),  # another half float: 66 dB
        ("half floats", 2.1, Exact(""), "failed"),
        ("levels", 2.01, Exact(""), "passed"),  # 46 dB
        ("levels", 2.1, Exact(""), "failed"),
        ("levels", 2.1, Bounded(60.0, ""), "failed"),
        ("levels", 2.1, Bounded(12.0, ""), "passed"),
        ("levels", 4.0, Exact(""), "failed"),  # a copy of twice the size
    ],
)
def test_pass_owes_less_when_the_graph_before_it_rounds_more(
    through: str, factor: float, exactness: Exact | Bounded, wanted: str
) -> None:
    original, rewritten = rounding(2.0, through), rounding(factor, through)
    passes = [claiming("fold_a", rewritten, exactness)]
    verdicts = judge_passes(passes, original, rewrite(original, passes), open_session, FEEDS).verdicts
    assert statuses(list(verdicts)) == {"pass.fold_a": wanted}


def statuses(verdicts: list[Verdict]) -> dict[str, str]:
    return {verdict.gate: verdict.status.value for verdict in verdicts}


@pytest.mark.parametrize(
    ("factor", "exactness", "wanted"),
    [
        (2.0, Exact(""), "passed"),
        (2.0 * (1 + 1e-7), Exact(""), "passed"),
        (2.0 * (1 + 1e-5), Exact(""), "failed"),  # 100 dB: near, and not exact
        (2.001, Exact(""), "failed"),
        (2.001, Bounded(60.0, ""), "passed"),  # an error of 1/2000 is 66 dB
        (2.001, Bounded(70.0, ""), "failed"),
        (0.0, Bounded(-10.0, ""), "failed"),  # all zero
        (math.inf, Exact(""), "failed"),
        (math.nan, Bounded(0.0, ""), "failed"),
    ],
)
def test_pass_is_judged_by_what_it_claims(factor: float, exactness: Exact | Bounded, wanted: str) -> None:
    assert statuses(judged(claiming("fold_x", model(factor), exactness))) == {"pass.fold_x": wanted}


@pytest.mark.parametrize(
    ("apart", "factor", "exactness", "wanted"),
    [
        (1e-5, 2.0 * (1 + 1e-5), Exact(""), "passed"),  # 100 dB where another program of the original has 100
        (1e-5, 2.0 * (1 + 4e-5), Exact(""), "failed"),  # 88 dB
        (1e-5, 2.001, Exact(""), "failed"),
        (1e-5, 2.001, Bounded(60.0, ""), "passed"),
        (1e-2, 2.0 * (1 + 4e-5), Exact(""), "failed"),  # whatever else is wrong, 88 dB is no rounding
        (0.0, 2.0 * (1 + 1e-5), Exact(""), "failed"),
    ],
)
def test_exact_pass_owes_no_more_than_another_program_of_the_original_has(
    apart: float, factor: float, exactness: Exact | Bounded, wanted: str
) -> None:
    original, passes = model(), [claiming("fold_x", model(factor), exactness)]
    other = {"y": np.float32(2.0 * (1 + apart)) * FEEDS[0]["x"]}
    done = rewrite(original, passes)
    verdicts = judge_passes(passes, original, done, open_session, FEEDS, (), (other,)).verdicts
    assert statuses(list(verdicts)) == {"pass.fold_x": wanted}


CANCELLING = 256
"""Numbers of its input."""


def cancelling(*less: float, gain: float = 1.0) -> ir.Model:
    """y = gain (x - less[0] - less[1] ...), which cancels nearly all of x: what is left has few good digits."""
    nodes = [
        helper.make_node("Sub", ["x" if i == 0 else f"t{i}", f"c{i}"], [f"t{i + 1}"], f"sub{i}")
        for i in range(len(less))
    ]
    nodes.append(helper.make_node("Mul", [f"t{len(less)}", "k"], ["y"], "scale"))
    weights = [*(constant(f"c{i}", [value]) for i, value in enumerate(less)), constant("k", [gain])]
    return small_model(nodes, [tensor("x", [1, CANCELLING])], [tensor("y", [1, CANCELLING])], weights)


@pytest.mark.parametrize(
    ("after", "wanted"),
    [
        (cancelling(-300.0, 301.5), "failed"),  # 1.5 by way of 300, which leaves 61 dB
        (cancelling(-0.7, 2.2), "passed"),  # 1.5 in two steps, which rounds where one step did not
        (cancelling(1.5, gain=1 + 3e-6), "passed"),  # 110 dB: no less than the last bit of x makes
        (cancelling(1.5, gain=1 + 2e-5), "failed"),  # 94 dB
        (cancelling(1.5 + 1e-6), "failed"),
    ],
)
def test_exact_pass_owes_no_more_than_the_last_bit_of_the_inputs_makes(after: ir.Model, wanted: str) -> None:
    # x lies within 0.03 of 1.5: a last bit of 1.2e-7 is some 103 dB of what is left
    x = (1.5 + 0.03 * np.random.default_rng(3).uniform(-1, 1, (1, CANCELLING))).astype(np.float32)
    before, passes = cancelling(1.5), [claiming("fold_x", after, Exact(""))]
    (verdict,) = judge_passes(passes, before, rewrite(before, passes), open_session, ({"x": x},)).verdicts
    assert verdict.status.value == wanted


def test_pass_that_lies_fails_alone_when_those_around_it_are_honest() -> None:
    passes = [
        claiming("fold_a", model(2.0), Exact("")),
        claiming("fuse_b", model(2.5), Exact("")),
        claiming("split_c", model(2.5), Exact("")),
    ]
    assert statuses(judged(*passes)) == {"pass.fold_a": "passed", "pass.fuse_b": "failed", "pass.split_c": "passed"}


def test_pass_is_not_proven_when_there_is_nothing_to_feed_it() -> None:
    assert statuses(judged(claiming("fold_x", model(), Exact("")), feeds=())) == {"pass.fold_x": "failed"}


def _dropping_sign(changes_padding: bool) -> Pass:
    """A pass that is right where x is positive, as a mask's loss is where the mask is one."""
    x = ir.val("x", ir.DataType.FLOAT, ir.Shape([1, 4]))
    absolute = ir.node("Abs", [x])
    two = ir.val("two", const_value=ir.tensor(np.full(1, 2.0, np.float32), name="two"))
    doubled = ir.node("Mul", [absolute.outputs[0], two], name="doubled")
    doubled.outputs[0].name, doubled.outputs[0].dtype = "y", ir.DataType.FLOAT
    graph = ir.Graph([x], doubled.outputs, nodes=[absolute, doubled], initializers=[two], opset_imports={"": 17})
    declaration = Declaration("mask_x", "", Exact(""), changes_padding=changes_padding)
    return Pass(declaration, lambda _: Rewritten(ir.Model(graph, ir_version=8), 1))


@pytest.mark.parametrize(("changes_padding", "wanted"), [(False, "failed"), (True, "passed")])
def test_pass_is_judged_on_padding_unless_it_changes_that_by_design(changes_padding: bool, wanted: str) -> None:
    feeds, padded = ({"x": row(1, 2, 3, 4)},), ({"x": row(1, 2, -3, 4)},)
    assert statuses(judged(_dropping_sign(changes_padding), feeds=feeds, padded=padded)) == {"pass.mask_x": wanted}


def test_records_say_what_each_pass_did() -> None:
    passes = [claiming("fold_a", model(2.0), Exact("")), claiming("fuse_b", model(2.002), Bounded(50.0, ""))]
    original = model()
    records = judge_passes(passes, original, rewrite(original, passes), open_session, FEEDS).records
    assert [(r.name, r.hits, r.exact) for r in records] == [("fold_a", 1, True), ("fuse_b", 1, False)]
    assert records[0].snr_db == math.inf
    assert records[1].snr_db == pytest.approx(60.0, abs=0.1)  # an error of a thousandth


def test_pass_that_changed_nothing_is_on_record_and_has_nothing_to_prove() -> None:
    original = model()
    idle = Pass(Declaration("fold_x", "", Exact("")), lambda given: Rewritten(given, 0))
    parity = judge_passes([idle], original, rewrite(original, [idle]), open_session, FEEDS)
    assert parity.verdicts == ()
    assert [(r.name, r.hits, r.snr_db) for r in parity.records] == [("fold_x", 0, math.inf)]
    np.testing.assert_array_equal(parity.session(FEEDS[0])["y"], row(2, -4, 6, 8))


def test_parity_gives_the_outputs_of_the_first_graph_and_of_the_last() -> None:
    original = model()
    passes = [claiming("fold_a", model(2.0), Exact("")), claiming("fuse_b", model(3.0), Exact(""))]
    parity = judge_passes(passes, original, rewrite(original, passes), open_session, FEEDS)
    np.testing.assert_array_equal(parity.first[0]["y"], row(2, -4, 6, 8))
    np.testing.assert_array_equal(parity.last[0]["y"], row(3, -6, 9, 12))


def test_graph_is_opened_once_and_runs_each_feed_once_where_a_pass_changed_the_header_only() -> None:
    opened, ran = [], []

    def opening(model: ir.Model) -> Session:
        opened.append(model)
        session = open_session(model)

        def run(feed: Mapping[str, Array]) -> dict[str, Array]:
            ran.append(feed)
            return session(feed)

        return run

    original = model()
    passes = [claiming("fold_a", model(2.000001), Exact("")), claiming("normalise_b", model(2.000001), Exact(""))]
    parity = judge_passes(passes, original, rewrite(original, passes), opening, FEEDS)
    assert [(v.gate, v.measured) for v in parity.verdicts][1] == ("pass.normalise_b", math.inf)
    np.testing.assert_array_equal(parity.session(FEEDS[0])["y"], parity.last[0]["y"])
    assert len(opened) == 2  # before and after the first pass
    assert len(ran) == 2


def test_original_is_run_by_the_session_that_somebody_has_opened() -> None:
    original = model()
    passes = [claiming("fold_a", model(2.000001), Exact(""))]
    halved = open_session(model(1.0))
    parity = judge_passes(passes, original, rewrite(original, passes), open_session, FEEDS, opened=lambda: halved)
    np.testing.assert_array_equal(parity.first[0]["y"], row(1, -2, 3, 4))
    assert statuses(list(parity.verdicts)) == {"pass.fold_a": "failed"}


def chain(first: str, second: str) -> ir.Model:
    """y = 2 second(first(x)), in five nodes of which two come first."""
    nodes = [
        helper.make_node(first, ["x"], ["a"], "first"),
        helper.make_node(second, ["a"], ["b"], "second"),
        helper.make_node("Mul", ["b", "k"], ["c"], "scale"),
        helper.make_node("Neg", ["c"], ["d"], "minus"),
        helper.make_node("Neg", ["d"], ["y"], "plus"),
    ]
    return small_model(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4])], [constant("k", [2.0])])


def parity_by_parts(result: ir.Model, exactness: Exact | Bounded) -> tuple[list[int], object]:
    """How many nodes the graphs had that were run, and the verdict's ratio, of a pass that makes `result` of
    2 |-x|."""
    ran = []

    def opening(model: ir.Model) -> Session:
        session = open_session(model)

        def run(feed: Mapping[str, Array]) -> dict[str, Array]:
            ran.append(len(model.graph))
            return session(feed)

        return run

    original = chain("Neg", "Abs")
    passes = [claiming("fold_a", result, exactness)]
    parity = judge_passes(passes, original, rewrite(original, passes), opening, FEEDS)
    return ran, parity.verdicts[0].measured


def test_rest_of_a_graph_is_not_run_where_the_part_that_an_exact_pass_changed_gives_the_same() -> None:
    assert parity_by_parts(chain("Abs", "Identity"), Exact("")) == ([5, 2, 2], math.inf)


def test_whole_graph_is_run_where_the_part_gives_something_else() -> None:
    ran, measured_db = parity_by_parts(chain("Sign", "Identity"), Exact(""))
    assert ran == [5, 2, 2, 5]
    # 2, 4, 6, 8 against 2, -2, 2, 2: 120 over 0 + 36 + 16 + 36
    assert measured_db == pytest.approx(10 * math.log10(120 / 88))


def test_whole_graph_is_run_of_an_approximation() -> None:
    assert parity_by_parts(chain("Abs", "Identity"), Bounded(60.0, "")) == ([5, 5], math.inf)


def test_finished_graph_is_run_whole_by_whoever_asks_for_it() -> None:
    original, result = chain("Neg", "Abs"), chain("Abs", "Identity")
    passes = [claiming("fold_a", result, Exact(""))]
    parity = judge_passes(passes, original, rewrite(original, passes), open_session, FEEDS)
    np.testing.assert_array_equal(parity.session(FEEDS[0])["y"], row(2, 4, 6, 8))
    np.testing.assert_array_equal(parity.last[0]["y"], row(2, 4, 6, 8))


def noisy(*operators: str) -> ir.Model:
    """y = x + a draw for each of `operators` (n0, n1, ...)."""
    nodes, last = [], "x"
    for number, op in enumerate(operators):
        nodes.append(helper.make_node(op, ["x"], [f"n{number}"], f"draw{number}"))
        nodes.append(helper.make_node("Add", [last, f"n{number}"], [f"s{number}"], f"add{number}"))
        last = f"s{number}"
    return small_model(nodes, [tensor("x", [1, 4])], [tensor(last, [1, 4])])


def fed(operators: int) -> ir.Model:
    """The same with the draws as inputs."""
    nodes, last = [], "x"
    for number in range(operators):
        nodes.append(helper.make_node("Add", [last, f"n{number}"], [f"s{number}"], f"add{number}"))
        last = f"s{number}"
    inputs = [tensor(name, [1, 4]) for name in ("x", *(f"n{i}" for i in range(operators)))]
    return small_model(nodes, inputs, [tensor(last, [1, 4])])


def drawing(*operators: str) -> Pass:
    """The pass that makes `fed` of `noisy`."""
    added = tuple(AddedInput(f"n{i}", f"n{i}", Noise(f"n{i}", "normal", 0.0, 1.0)) for i in range(len(operators)))
    made = Rewritten(fed(len(operators)), len(operators), interface=Interface(added=added))
    return Pass(Declaration("rewrite_x", "", Exact("")), lambda _: made)


def test_noise_that_the_graph_before_drew_is_fed_to_the_graph_after() -> None:
    original = noisy("RandomNormalLike", "RandomUniformLike")
    make_runnable(original)
    passes = [drawing("RandomNormalLike", "RandomUniformLike")]
    feeds = ({"x": row(1, 2, 3, 4)}, {"x": row(5, 6, 7, 8)})
    done = rewrite(original, passes)
    parity = judge_passes(passes, original, done, open_session, feeds)
    assert statuses(list(parity.verdicts)) == {"pass.rewrite_x": "passed"}
    first, second = followed_feeds(original, done, open_session, feeds)
    assert set(first) == {"x", "n0", "n1"}
    assert not np.array_equal(first["n0"], second["n0"])  # drawn anew for each window
    assert not np.array_equal(first["n0"], first["n1"])
    np.testing.assert_array_equal(first["x"] + first["n0"] + first["n1"], parity.first[0]["s1"])


@pytest.mark.parametrize(
    ("interface", "feed", "wanted"),
    [
        (Interface(removed=("unused",)), {"x": row(1), "unused": row(2)}, {"x": row(1)}),
        (Interface(inputs=(Recast("x", (1,), "float32"),)), {"x": np.float32(3)}, {"x": np.array([3], np.float32)}),
        (Interface(inputs=(Recast("x", (1, 1), "float32"),)), {"x": row(3).astype(np.float16)}, {"x": row(3)}),
        (Interface(), {"x": row(1)}, {"x": row(1)}),
    ],
)
def test_followed_feeds_go_with_the_interface(
    interface: Interface, feed: dict[str, Array], wanted: dict[str, Array]
) -> None:
    made = Rewritten(model(), 1, interface=interface)
    (followed,) = followed_feeds(model(), [made], open_session, [feed])
    assert set(followed) == set(wanted)
    for name, array in wanted.items():
        np.testing.assert_array_equal(followed[name], array)
        assert (np.asarray(followed[name]).dtype, np.shape(followed[name])) == (array.dtype, array.shape)


def test_outputs_of_another_shape_and_type_are_compared_by_their_values() -> None:
    nodes = [helper.make_node("Mul", ["x", "k"], ["z"]), helper.make_node("Reshape", ["z", "s"], ["y"])]
    flat = small_model(
        nodes,
        [tensor("x", [1, 4])],
        [tensor("y", [4])],
        [
            onnx.numpy_helper.from_array(np.full(1, 2, np.float32), "k"),
            onnx.numpy_helper.from_array(np.array([4], np.int64), "s"),
        ],
    )
    made = Rewritten(flat, 1, interface=Interface(outputs=(Recast("y", (4,), "float32"),)))
    bound = Pass(Declaration("fold_x", "", Exact("")), lambda _: made)
    original = model()
    parity = judge_passes([bound], original, [made], open_session, FEEDS)
    assert statuses(list(parity.verdicts)) == {"pass.fold_x": "passed"}
    assert parity.first[0]["y"].shape == (4,)


@pytest.mark.parametrize(
    ("exactness", "hits", "wanted"),
    [
        (Exact(""), 1, 100.0),
        (Bounded(60.0, ""), 1, 60.0),
        (Bounded(60.0, ""), 0, 100.0),
        (Bounded(110.0, ""), 1, 100.0),
    ],
)
def test_least_db_is_that_of_the_worst_approximation_applied(
    exactness: Exact | Bounded, hits: int, wanted: float
) -> None:
    bound = Pass(Declaration("fold_x", "", exactness), lambda given: Rewritten(given, hits))
    assert least_db([bound], [Rewritten(model(), hits)], 100.0) == wanted


@pytest.mark.parametrize("op", ["RandomNormal", "RandomUniform"])
def test_preflight_computes_with_one_draw_when_noise_is_of_doubles(op: str) -> None:
    """onnxruntime draws other numbers in another type, so the draw must be an input before its type changes."""
    nodes = [
        helper.make_node(op, [], ["n"], "draw", dtype=onnx.TensorProto.DOUBLE, shape=[1, 4]),
        helper.make_node("Cast", ["n"], ["f"], "float", to=onnx.TensorProto.FLOAT),
        helper.make_node("Mul", ["x", "f"], ["y"], "times"),
    ]
    original = ir.from_proto(proto(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4])]))
    make_runnable(original)
    passes = preflight()
    parity = judge_passes(passes, original, rewrite(original, passes), open_session, FEEDS)
    assert [verdict for verdict in parity.verdicts if verdict.status != "passed"] == []
    assert {"rewrite_noise_as_inputs", "normalise_double"} <= {record.name for record in parity.records if record.hits}


def _cropping(factor: float, place: float) -> Pass:
    """A pass that keeps steps 0 to 3 of factor x, the first of them wrong, times an input that is to be `place`."""
    nodes = [
        helper.make_node("Slice", ["x", "zero", "three", "one"], ["part"], "part"),
        helper.make_node("Mul", ["part", "k"], ["scaled"], "scale"),
        helper.make_node("Mul", ["scaled", "place"], ["y"], "chosen"),
    ]
    bounds = [constant(name, [at], np.int64) for name, at in (("zero", 0), ("one", 1), ("three", 3))]
    weights = [constant("k", [9 * factor, factor, factor]), *bounds]
    made = small_model(nodes, [tensor("x", [1, 4]), tensor("place", [1])], [tensor("y", [1, 3])], weights)
    interface = Interface(
        given=(GivenInput("place", (1,), (place,), "float32"),), cropped=(Cropped("y", (1, 3), (1, 3)),)
    )
    return Pass(Declaration("trim_x", "", Exact("")), lambda _: Rewritten(made, 1, interface=interface))


@pytest.mark.parametrize(("factor", "place", "wanted"), [(2, 1, "passed"), (2.1, 1, "failed"), (2, 0, "failed")])
def test_pass_that_crops_is_judged_on_the_steps_that_it_keeps(factor: float, place: float, wanted: str) -> None:
    passes = [_cropping(factor, place)]
    original = model()
    parity = judge_passes(passes, original, rewrite(original, passes), open_session, FEEDS)
    assert statuses(list(parity.verdicts)) == {"pass.trim_x": wanted}
    np.testing.assert_array_equal(parity.first[0]["y"], row(-4, 6))
    np.testing.assert_allclose(parity.last[0]["y"], row(-2, 3) * factor * place, rtol=1e-6)


def test_feed_keeps_what_it_gives_an_input_that_a_pass_makes() -> None:
    passes = [_cropping(2, 1)]
    rewritten = rewrite(model(), passes)
    told = {**FEEDS[0], "place": np.array([0.5], np.float32)}
    taken = followed_feeds(model(), rewritten, open_session, [FEEDS[0], told])
    assert [feed["place"].tolist() for feed in taken] == [[1.0], [0.5]]


@pytest.mark.parametrize(("factor", "wanted"), [(1.0, "passed"), (1.1, "failed")])
def test_pass_behind_one_that_crops_is_judged_in_the_axes_that_it_gives(factor: float, wanted: str) -> None:
    def widen(given: ir.Model) -> Rewritten:
        made = ir.to_proto(given)
        made.graph.node[-1].output[0] = "narrow"
        made.graph.node.append(helper.make_node("Mul", ["narrow", "wide"], ["y"], "widened"))
        made.graph.initializer.append(constant("wide", [[[factor]]]))
        made.graph.output[0].CopyFrom(tensor("y", [1, 1, 3]))
        interface = Interface(outputs=(Recast("y", (1, 1, 3), "float32"),))
        return Rewritten(ir.from_proto(made), 1, interface=interface)

    passes = [_cropping(2, 1), Pass(Declaration("rewrite_x", "", Exact("")), widen)]
    original = model()
    parity = judge_passes(passes, original, rewrite(original, passes), open_session, FEEDS)
    assert statuses(list(parity.verdicts)) == {"pass.trim_x": "passed", "pass.rewrite_x": wanted}
    np.testing.assert_array_equal(parity.first[0]["y"], row(-4, 6)[None])
