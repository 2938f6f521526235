"""The graphs of the operators: what is right is computed here by the operator's definition, and the bounds are sharp:
fp16 passes them, a wrong operator does not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import onnx_ir as ir
import pytest

from contracts.verdicts import Status
from rknn_tts.probe.bounds import operator_bound_db
from rknn_tts.probe.forms import FORMS, OperatorForm
from rknn_tts.probe.micro_engines import MicroGraph
from rknn_tts.probe.operator_graphs import operator_graph
from rknn_tts.probe.specimens import HEAD_CHANNELS, HEADS, POSITIONS, REACH
from surgery.rewrite_sines import EIGHT
from tests.onnx_runs import Array, run, snr_db
from tests.rknn_tts.probe.halves import in_halves

SIMULATED_DB = {
    "sine_triangle": 50.8,
    "sine_fine": 56.0,
    "sine_soft": 50.0,
    "absolute_value": 67.5,
    "depthwise_step": 64.5,
    "polyphase_shuffle": 65.9,
    "instance_norm": 66.0,
    "layer_norm": 65.9,
    "relative_attention": 63.8,
    "masked_choices": 66.3,
    "decoder_mask": 67.0,
    "place_crop": 67.7,
    "pooled_statistics": 64.5,
}
"""What rknn-toolkit2 2.3.2 simulates of them for rk3588 (measured)."""

BY_NAME = {form.name: form for form in FORMS}


@cache
def graph_of(name: str, target: str = "rk3588") -> MicroGraph:
    graph = operator_graph(BY_NAME[name], target)
    assert graph is not None
    return graph


def bound_db(name: str) -> float:
    return operator_bound_db(SIMULATED_DB[name])


def reached_db(graph: MicroGraph, made: dict[str, Array]) -> float:
    return min(snr_db(right, made[name]) for name, right in graph.expected[0].items())


def weights(form: OperatorForm) -> dict[str, Array]:
    """Of the original, in double precision."""
    tensors = form.model().graph.initializers
    return {name: v.const_value.numpy().astype(np.float64) for name, v in tensors.items() if v.const_value is not None}


def convolved(x: Array, w: Array) -> Array:
    """x [C, T] by a kernel of three taps [M, C, 3], one zero at each end."""
    padded = np.pad(x, [(0, 0), (1, 1)])
    return np.asarray(sum(w[:, :, tap] @ padded[:, tap : tap + x.shape[1]] for tap in range(3)))


def around(middle: Callable[[Array, dict[str, Array], dict[str, Array]], Array]) -> Callable[[str], Array]:
    """What a specimen with `middle` between its two convolutions gives, by its definition."""

    def right(name: str) -> Array:
        form = BY_NAME[name]
        have, feed = weights(form), form.feed()
        h = convolved(feed["x"][0].astype(np.float64), have["w_before"])
        return convolved(middle(h, have, feed), have["w_behind"])

    return right


def normal(h: Array, axis: int, epsilon: float = 1e-5) -> Array:
    return np.asarray((h - h.mean(axis, keepdims=True)) / np.sqrt(h.var(axis, keepdims=True) + epsilon))


def snake(h: Array, have: dict[str, Array], _: dict[str, Array]) -> Array:
    assert np.abs(have["alpha"][0] * h).max() < EIGHT * np.pi  # as far as the form is right
    return np.asarray(np.sin(have["alpha"][0] * h) ** 2 / have["alpha"][0])


def instance_norm(h: Array, have: dict[str, Array], _: dict[str, Array]) -> Array:
    return np.asarray(normal(h, 1) * have["scale"][:, None] + have["bias"][:, None])


def layer_norm(h: Array, have: dict[str, Array], _: dict[str, Array]) -> Array:
    return np.asarray(normal(h, 0) * have["gamma"][0] + have["beta"][0])


def masked_norm(h: Array, _: dict[str, Array], feed: dict[str, Array]) -> Array:
    real = feed["mask"][0, 0] > 0
    assert 0 < real.sum() < real.size
    made = np.zeros_like(h)
    made[:, real] = normal(h[:, real], 1)
    return made


def relative(name: str) -> Array:
    """y[i] = sum over j of p[i, j] (v[j] + e_v[j - i]), the scores with q[i] . e_k[j - i]."""
    form = BY_NAME[name]
    have, feed = weights(form), {key: value[0].astype(np.float64) for key, value in form.feed().items()}
    keys, values = have["keys"][0, 0].T, have["values"][0, 0]
    made = np.zeros((HEADS, POSITIONS, HEAD_CHANNELS))
    for head in range(HEADS):
        q, k, v = (feed[key][head] for key in "qkv")
        for i in range(POSITIONS):
            distance = POSITIONS - 1 + np.arange(POSITIONS) - i
            scores = (k + keys[distance]) @ q[i] / np.sqrt(HEAD_CHANNELS)
            share = np.exp(scores - scores.max())
            made[head, i] = share / share.sum() @ (v + values[distance])
    beyond = np.abs(np.arange(2 * POSITIONS - 1) - (POSITIONS - 1)) > REACH
    assert not keys[beyond].any()
    assert keys[~beyond].all()
    return made


RIGHT: dict[str, Callable[[str], Array]] = {
    **dict.fromkeys(("sine_triangle", "sine_fine", "sine_soft"), around(snake)),
    "absolute_value": around(lambda h, have, feed: np.abs(h)),
    "place_crop": around(lambda h, have, feed: h[:, 80:-80]),
    "instance_norm": around(instance_norm),
    "layer_norm": around(layer_norm),
    "pooled_statistics": around(masked_norm),
    "relative_attention": relative,
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_what_the_operator_is_defined_as(name: str) -> None:
    (expected,) = graph_of(name).expected[0].values()
    assert snr_db(RIGHT[name](name).reshape(expected.shape), expected) > 110  # float32 has 144 of one rounding


def test_masked_decoder_is_right_when_a_shorter_utterance_gives_the_same_and_silence_behind() -> None:
    (expected,) = graph_of("decoder_mask").expected[0].values()
    hop, real = 8, 70  # three quarters of 93 frames, the last one whole
    assert np.any(expected[..., : hop * real], axis=1).all()
    assert not expected[..., hop * real :].any()


@pytest.mark.parametrize("name", SIMULATED_DB)
def test_graph_computes_its_operator_and_says_so(name: str) -> None:
    graph = graph_of(name)
    assert all(verdict.status is Status.PASSED for verdict in graph.proof.verdicts)
    assert reached_db(graph, run(graph.model, graph.feeds[0])) > 85


@pytest.mark.parametrize("name", SIMULATED_DB)
def test_bound_is_kept_when_every_tensor_is_rounded_to_a_half_float(name: str) -> None:
    graph = graph_of(name)
    assert reached_db(graph, run(in_halves(graph.model), graph.feeds[0])) >= bound_db(name)


def leaky(model: ir.Model, slope: float) -> ir.Model:
    """`model` with another slope in each LeakyRelu of slope -1."""
    changed = model.clone()
    for node in changed.graph:
        if node.op_type == "LeakyRelu" and node.attributes["alpha"].as_float() == -1:
            node.attributes["alpha"] = ir.AttrFloat32("alpha", slope)
    return changed


def without_weight(model: ir.Model, operator: str, by: str, slot: int) -> ir.Model:
    """`model` with zeros for an input of the last `operator` that the pass `by` wrote."""
    changed = model.clone()
    node = [node for node in changed.graph if node.op_type == operator and by in (node.name or "")][-1]
    value = node.inputs[slot]
    assert value is not None
    assert value.const_value is not None
    value.const_value = ir.tensor(np.zeros_like(value.const_value.numpy()), name=value.name)
    return changed


def turned(model: ir.Model, by: str) -> ir.Model:
    """`model` with the channels of the last weight of `by` in another order: the phases change places."""
    changed = model.clone()
    node = [node for node in changed.graph if node.op_type == "Conv" and by in (node.name or "")][-1]
    value = node.inputs[1]
    assert value is not None
    assert value.const_value is not None
    value.const_value = ir.tensor(np.roll(value.const_value.numpy(), 1, axis=0), name=value.name)
    return changed


def unmasked(graph: MicroGraph) -> dict[str, Array]:
    feed = {name: np.ones_like(array) if name == "mask" else array for name, array in graph.feeds[0].items()}
    return run(graph.model, feed)


def at_another_place(graph: MicroGraph) -> dict[str, Array]:
    feed = {name: np.roll(array, 1, axis=1) if name == "place" else array for name, array in graph.feeds[0].items()}
    return run(graph.model, feed)


WRONG: dict[str, Callable[[MicroGraph], dict[str, Array]]] = {
    "sine_triangle": lambda graph: run(leaky(graph.model, 0.0), graph.feeds[0]),
    "sine_fine": lambda graph: run(leaky(graph.model, 1.0), graph.feeds[0]),
    "sine_soft": lambda graph: run(leaky(graph.model, 0.0), graph.feeds[0]),
    "absolute_value": lambda graph: run(leaky(graph.model, 0.0), graph.feeds[0]),
    "depthwise_step": lambda graph: run(
        without_weight(graph.model, "Conv", "rewrite_affine_as_depthwise", 2), graph.feeds[0]
    ),
    "polyphase_shuffle": lambda graph: run(turned(graph.model, "rewrite_transposed_conv"), graph.feeds[0]),
    "relative_attention": lambda graph: run(
        without_weight(graph.model, "Conv", "rewrite_relative_attention", 1), graph.feeds[0]
    ),
    "masked_choices": unmasked,
    "decoder_mask": unmasked,
    "place_crop": at_another_place,
    "pooled_statistics": unmasked,
}
"""A Relu for an absolute value, a fold that is left out, a shift, an order or a mask that is lost."""


@pytest.mark.parametrize("name", WRONG)
def test_bound_is_broken_by_a_wrong_operator(name: str) -> None:
    graph = graph_of(name)
    assert reached_db(graph, WRONG[name](graph)) < bound_db(name) - 10


@pytest.mark.parametrize("name", ["instance_norm", "layer_norm"])
def test_bound_of_a_norm_is_broken_when_its_statistics_are_a_hundredth_off(name: str) -> None:
    graph = graph_of(name)
    made = {key: array * np.float32(1.01) for key, array in graph.expected[0].items()}
    assert reached_db(graph, made) < bound_db(name) - 10


@pytest.mark.parametrize("name", BY_NAME)
def test_form_is_written_for_other_targets_too(name: str) -> None:
    graph = graph_of(name, "rk3566")
    hits = {record.name: record.hits for record in graph.proof.passes}
    assert all(hits[gate.removeprefix("pass.")] for gate in BY_NAME[name].proves)


def test_no_graph_is_made_when_the_passes_leave_it_alone() -> None:
    form = BY_NAME["absolute_value"]
    idle = OperatorForm("idle", "nothing", form.original, BY_NAME["layer_norm"].passes, lambda twin: True)
    assert operator_graph(idle, "rk3588") is None
