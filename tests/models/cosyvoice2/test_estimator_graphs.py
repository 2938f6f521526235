"""The estimator in an NPU's forms: modules against the original, and their graphs against the modules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest
import torch
from rknn_tts_runtime.carried_state import State, walk_states

from converters.cosyvoice2.flow_estimator_drawn import Stream
from models.cosyvoice2.estimator_config import TRUE_CONFIG
from models.cosyvoice2.estimator_graphs import (
    OUT,
    TIME,
    Estimator,
    Step,
    T,
    Time,
    Whole,
    carried_states,
    input_shapes,
    new_name,
    score_bias,
    state_shapes,
    step_graph,
    tail_shapes,
    time_graph,
    whole_graph,
)
from tests.cosyvoice2_estimator import CHUNK, HISTORY, SMALL, Floats, by_original, drawn, original, tensors
from tests.onnx_runs import run, snr_db

WIDEST_CHANNELS = 8191
"""Of a tensor: 13 bits of the NPU's registers."""


@pytest.fixture(scope="module")
def estimator() -> Estimator:
    return Estimator(tensors(), SMALL)


def shifts(t: Floats) -> Floats:
    """What the original's residual blocks add."""
    module = original()
    time = module.time_mlp(module.time_embeddings(torch.from_numpy(t)))
    blocks = [*module.down_blocks, *module.mid_blocks, *module.up_blocks]
    made: Floats = torch.cat([block[0].mlp(time) for block in blocks], dim=1).detach().numpy()
    return made[:, :, None, None]


def feed(stream: Stream, frames: int) -> dict[str, Floats]:
    """The inputs of a graph of so many frames; padding is of ones."""
    real = stream.x.shape[2]
    padding = ((0, 0), (0, 0), (0, frames - real))
    made = {
        name: np.pad(array, padding, constant_values=1.0)
        for name, array in (("x", stream.x), ("mu", stream.mu), ("cond", stream.cond))
    }
    mask = np.broadcast_to(np.arange(frames) < real, (2, 1, frames)).astype(np.float32)
    given = {**made, "mask": mask, "time": shifts(stream.t), "spks": stream.spks}
    return {name: given[name] for name in input_shapes(SMALL, frames)}


def ran(module: torch.nn.Module, inputs: Mapping[str, Floats]) -> list[Floats]:
    with torch.no_grad():
        made = module(*map(torch.from_numpy, inputs.values()))
    return [each.numpy() for each in (made if isinstance(made, tuple) else (made,))]


@pytest.mark.parametrize("real", [24, 23, 17, 1])
def test_padding_changes_no_real_frame(estimator: Estimator, real: int) -> None:
    stream = drawn(real)
    (got,) = ran(Whole(estimator), feed(stream, 24))
    assert snr_db(by_original(stream), got[..., :real]) > 115
    assert not got[..., real:].any()


def test_shapes_are_the_published_graphs_but_for_the_time() -> None:
    shapes = input_shapes(TRUE_CONFIG, 200)
    assert shapes.pop("time") == (2, 14 * 256, 1, 1)
    assert shapes == {
        "x": (2, 80, 200),
        "mask": (2, 1, 200),
        "mu": (2, 80, 200),
        "spks": (2, 80),
        "cond": (2, 80, 200),
    }


def test_states_are_those_of_the_originals_caches() -> None:
    """Down 832 channels, 12 times 512, up 1024 and 256, two frames each; keys and values of 56 layers."""
    shapes = state_shapes(TRUE_CONFIG, 256)
    tails = {name: shape for name, shape in shapes.items() if name.endswith(".tails")}
    assert [shape[1] for shape in tails.values()] == [832, *[512] * 12, 1024, 256]
    assert {(shape[0], *shape[2:]) for shape in tails.values()} == {(2, 1, 2)}
    assert shapes["mid_blocks.3.1.2.keys"] == shapes["up_blocks.0.1.0.values"] == (16, 64, 1, 256)
    assert len(shapes) == 1 + 15 + 2 * 56
    assert max(shape[1] for shape in shapes.values()) <= WIDEST_CHANNELS


def test_states_name_what_they_become() -> None:
    assert (new_name("valid"), new_name("down_blocks.0.1.3.keys")) == ("new_valid", "down_blocks.0.1.3.new_keys")
    whole = {state.input for state in carried_states(SMALL) if state.axis is None}
    assert whole == set(tail_shapes(SMALL))
    assert {state.axis for state in carried_states(SMALL)} == {None, 3}


def walked(module: Step, stream: Stream, history: int) -> Floats:
    shapes = state_shapes(SMALL, history)
    states = [State(s.input, s.output, shapes[s.input], s.axis) for s in carried_states(SMALL)]
    names = [OUT, *(state.output for state in states)]
    frames = stream.x.shape[2]
    steps = (feed(stream.part(start, start + CHUNK), CHUNK) for start in range(0, frames, CHUNK))
    outputs = walk_states(lambda inputs: dict(zip(names, ran(module, inputs), strict=True)), states, steps)
    made: Floats = np.concatenate([each[OUT] for each in outputs], axis=2)
    return made[..., :frames]


@pytest.mark.parametrize("frames", [CHUNK, 3 * CHUNK + 5, 40])
def test_steps_are_the_original_in_chunks_when_the_history_holds_all(estimator: Estimator, frames: int) -> None:
    stream = drawn(frames)
    assert snr_db(by_original(stream, streaming=True), walked(Step(estimator), stream, 40)) > 115


def test_step_forgets_what_its_history_does_not_hold(estimator: Estimator) -> None:
    stream = drawn(5 * CHUNK)
    owed, got = by_original(stream, streaming=True), walked(Step(estimator), stream, HISTORY)
    first = HISTORY // CHUNK * CHUNK  # up to here, every chunk finds all of its past
    assert snr_db(owed[..., :first], got[..., :first]) > 115
    assert snr_db(owed[..., -CHUNK:], got[..., -CHUNK:]) < 40


def test_host_half_gives_what_the_originals_blocks_add() -> None:
    t = np.array([0.0, 0.61], np.float32)
    owed = shifts(t)
    with torch.no_grad():
        assert snr_db(owed, Time(tensors(), SMALL)(torch.from_numpy(t)).numpy()) > 110
    assert snr_db(owed, run(time_graph(tensors(), SMALL), {T: t})[TIME]) > 100


def check_graph(model: ir.Model) -> None:
    """No tensor has more than four axes, and nothing is gathered or chosen."""
    assert not {node.op_type for node in model.graph} & {"Gather", "Where"}
    assert max(len(value.shape or ()) for node in model.graph for value in node.outputs) <= 4


TINY = replace(SMALL, depth=1, mid=0)
"""Two blocks, of a layer each: what a graph consists of, and no more of it."""


@pytest.fixture(scope="module")
def tiny() -> Estimator:
    return Estimator(tensors(TINY), TINY)


def numbers(frames: int, real: int, history: int | None = None) -> dict[str, Floats]:
    """Drawn inputs of a graph of so many frames, `real` of them real; of a history, two places in three hold any."""
    draw = np.random.default_rng(0)
    shapes = input_shapes(TINY, frames, history)
    made = {name: draw.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    made["mask"] = np.broadcast_to(np.arange(frames) < real, (2, 1, frames)).astype(np.float32)
    if history is not None:
        made["valid"] = (np.arange(history) % 3 > 0).astype(np.float32)[None, None, None]
    return made


def test_whole_graph_is_its_module(tiny: Estimator) -> None:
    model, inputs = whole_graph(tiny, 24), numbers(24, 20)
    check_graph(model)
    assert [value.name for value in model.graph.inputs] == ["x", "mask", "mu", "time", "spks", "cond"]
    assert snr_db(ran(Whole(tiny), inputs)[0], run(model, inputs)[OUT]) > 110


def test_step_graph_is_its_module(tiny: Estimator) -> None:
    model, inputs = step_graph(tiny, CHUNK, HISTORY), numbers(CHUNK, CHUNK - 2, HISTORY)
    check_graph(model)
    owed, got = ran(Step(tiny), inputs), run(model, inputs)
    assert list(got) == [OUT, *(state.output for state in carried_states(TINY))]
    for reference, name in zip(owed, got, strict=True):
        assert snr_db(reference, got[name]) > 100, name
    np.testing.assert_array_equal(got["new_valid"].flatten(), np.arange(CHUNK) < CHUNK - 2)


def test_each_row_of_guidance_has_the_bias_of_its_own_mask() -> None:
    bias = score_bias(torch.tensor([[[1.0, 0.0, 1.0]], [[0.0, 1.0, 1.0]]]), TINY)
    rows = [[0.0, -1e4, 0.0]] * TINY.heads + [[-1e4, 0.0, 0.0]] * TINY.heads
    assert bias.squeeze(1).tolist() == rows
