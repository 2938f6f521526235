"""The streaming step, walked, against the whole stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor

from models.cosyvoice2.encoder import chunks_of
from models.cosyvoice2.encoder_states import StepSizes, input_shapes, output_shapes, state_shapes
from models.cosyvoice2.encoder_step import Step, step_graph
from tests.cosyvoice2_encoder import SMALL, drawn, encoder, snr
from tests.onnx_runs import run, snr_db

EXACT_DB = 110.0

GARBAGE = 7.0
"""What stands behind a stream's end."""


@cache
def step(sizes: StepSizes) -> Step:
    return Step(encoder(), sizes)


def walked(embedded: Tensor, plan: Sequence[StepSizes]) -> Tensor:
    """The mean [1, mel, 2N] of steps, each behind the one before."""
    states = {name: torch.zeros(shape) for name, shape in state_shapes(SMALL, plan[0].history).items()}
    means = []
    for number, sizes in enumerate(plan):
        start = number * sizes.chunk
        real = embedded[:, start : start + sizes.seen].transpose(1, 2)[:, :, None]
        given = torch.full((1, SMALL.width, 1, sizes.seen), GARBAGE)
        given[..., : real.shape[3]] = real
        mask = (torch.arange(sizes.seen) < real.shape[3]).float()[None, None, None]
        with torch.no_grad():
            mean, *kept = step(sizes)(given, mask, *states.values())
        states = dict(zip(states, kept, strict=True))
        means.append(mean[:, :, 0])
    return torch.cat(means, dim=2)[..., : 2 * embedded.shape[1]]


@pytest.mark.parametrize(
    ("chunk", "history", "length"),
    [
        (8, 24, 24),
        (8, 64, 29),  # the last step is partly empty
        (5, 33, 21),  # the history is no whole number of steps
        (1, 9, 9),
        (20, 60, 41),  # rows of more than one kernel
    ],
)
def test_steps_are_the_whole_stream_while_all_of_it_is_remembered(chunk: int, history: int, length: int) -> None:
    embedded = drawn(length)
    plan = [StepSizes(chunk, 3, history)] * -(-length // chunk)
    assert snr(encoder()(embedded, chunk), walked(embedded, plan)) >= EXACT_DB


def test_a_first_step_may_see_fewer_tokens_ahead() -> None:
    embedded = drawn(27)
    plan = [StepSizes(8, 1, 40), *[StepSizes(8, 3, 40)] * 3]
    assert snr(encoder()(embedded, 8, [1]), walked(embedded, plan)) >= EXACT_DB


@pytest.mark.parametrize("length", [1, 7, 8])
def test_a_stream_of_one_step_is_the_original_on_its_tokens_alone(length: int) -> None:
    embedded = drawn(length)
    assert snr(encoder()(embedded), walked(embedded, [StepSizes(8, 3, 16)])) >= EXACT_DB


def test_what_is_older_than_the_history_is_forgotten() -> None:
    chunk, history, length = 8, 20, 48
    embedded, parts = drawn(length), encoder().encoder
    chunks = chunks_of(length, chunk, (), SMALL.look_ahead)

    def seen(factor: int) -> Tensor:
        """Keys of no later chunk, the newest `history` tokens of those."""
        token = torch.arange(factor * length) // factor
        ends = (token // chunk + 1) * chunk
        return (token[None] < ends[:, None]) & (
            torch.arange(factor * length)[None] >= factor * (ends - history)[:, None]
        )

    with torch.no_grad():
        x = parts.pre_lookahead_layer(parts.embed(embedded), chunks)
        for block in parts.encoders:
            x = block(x, seen(1))
        x = parts.up_embed(parts.up_layer(x))
        for block in parts.up_encoders:
            x = block(x, seen(2))
        wanted = encoder().encoder_proj(parts.after_norm(x)).transpose(1, 2)
    got = walked(embedded, [StepSizes(chunk, 3, history)] * 6)
    assert snr(wanted, got) >= EXACT_DB
    assert snr(encoder()(embedded, chunk), got) < 60


def test_valid_tells_the_real_tokens_that_are_remembered() -> None:
    sizes = StepSizes(4, 3, 10)
    mask = torch.tensor([1.0, 1, 1, 0, 0, 0, 0])[None, None, None]
    states = {name: torch.zeros(shape) for name, shape in state_shapes(SMALL, 10).items()}
    states["valid"][..., 5:] = 1
    with torch.no_grad():
        outputs = step(sizes)(torch.zeros(1, SMALL.width, 1, 7), mask, *states.values())
    kept = dict(zip(output_shapes(SMALL, sizes), outputs, strict=True))
    assert kept["valid_out"].flatten().tolist() == [0, 1, 1, 1, 1, 1, 1, 1, 1, 0]


def test_graph_is_the_step_and_has_neither_shifts_gathers_nor_infinities() -> None:
    sizes = StepSizes(4, 1, 12)
    model = step_graph(step(sizes))
    shapes = input_shapes(SMALL, sizes)
    assert [(value.name, tuple(value.shape or ())) for value in model.graph.inputs] == list(shapes.items())
    draw = np.random.default_rng(0)
    feed = {name: draw.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    feed["mask"], feed["valid"] = np.ones_like(feed["mask"]), (feed["valid"] > 0).astype(np.float32)
    with torch.no_grad():
        wanted = step(sizes)(*(torch.from_numpy(array) for array in feed.values()))
    got = run(model, feed)
    assert list(got) == list(output_shapes(SMALL, sizes))
    for (name, array), reference in zip(got.items(), wanted, strict=True):
        assert array.shape == output_shapes(SMALL, sizes)[name]
        assert snr_db(reference.numpy(), array) >= EXACT_DB
    counts = Counter(node.op_type for node in model.graph)
    assert not {"Pad", "Gather", "GatherElements", "Where", "Shape"} & set(counts)
    assert all(len(value.shape or ()) <= 4 for node in model.graph for value in node.outputs)
    numbers = [value.const_value.numpy() for value in model.graph.initializers.values() if value.const_value]
    # What masks is no infinity in fp16, which the mask's product with 0 would make NaN.
    assert max(np.abs(array).max() for array in numbers if array.dtype == np.float32 and array.size) == 1e4
