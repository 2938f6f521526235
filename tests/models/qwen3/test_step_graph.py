"""Exported graphs of the step and of the quantizer: their interface, and what they are made of."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch

from contracts.contract import Cache
from models.qwen3.cache import MINIMAL, cache_layout
from models.qwen3.step import CodesStep, Step, cache_shape
from models.qwen3.step_graph import host_graph, step_graph
from tests.models.qwen3.originals import random_codes, random_decoder, snr
from tests.onnx_runs import run
from tests.qwen3_configs import SIMULATED as SMALL

CODES = 4
EXPORT_DB = 100.0
LAYOUT: Cache = cache_layout(SMALL, MINIMAL)
CACHE_SHAPE = cache_shape(SMALL, LAYOUT)
GIVEN = {"hidden": (1, SMALL.codebook_dim, 1, CODES), "codes": (1, 16, CODES)}


@cache
def module(seam: str) -> torch.nn.Module:
    step = Step(random_decoder(SMALL), LAYOUT, CODES).eval()
    return step if seam == "hidden" else CodesStep(step, random_decoder(SMALL).quantizer).eval()


@cache
def graph(seam: str) -> ir.Model:
    return step_graph(module(seam), seam, [GIVEN[seam], CACHE_SHAPE])


def given(seam: str) -> torch.Tensor:
    codes = random_codes(CODES, SMALL)
    with torch.no_grad():
        return codes if seam == "codes" else random_decoder(SMALL).quantizer(codes)[:, :, None]


@pytest.mark.parametrize("seam", ["hidden", "codes"])
def test_step_graph_takes_the_seam_and_the_cache_and_gives_audio_and_the_next(seam: str) -> None:
    inputs = [(value.name, tuple(value.shape or ())) for value in graph(seam).graph.inputs]
    outputs = [(value.name, tuple(value.shape or ())) for value in graph(seam).graph.outputs]
    assert inputs == [(seam, GIVEN[seam]), ("cache", CACHE_SHAPE)]
    assert outputs == [("audio", (1, 1, 1920 * CODES, 1)), ("cache_out", CACHE_SHAPE)]
    assert [value.dtype for value in graph(seam).graph.inputs] == [
        ir.DataType.INT64 if seam == "codes" else ir.DataType.FLOAT,
        ir.DataType.FLOAT,
    ]
    onnx.checker.check_model(ir.to_proto(graph(seam)), full_check=True)


@pytest.mark.parametrize("seam", ["hidden", "codes"])
def test_step_graph_gives_what_its_module_does_twice_in_a_row(seam: str) -> None:
    """The second step starts from what the first has left."""
    first, state = given(seam), torch.zeros(CACHE_SHAPE)
    got = {"cache_out": state.numpy()}
    for _ in range(2):
        with torch.no_grad():
            audio, state = module(seam)(first, state)
        got = run(graph(seam), {seam: first.numpy(), "cache": got["cache_out"]})
        assert snr(audio, torch.from_numpy(got["audio"])) >= EXPORT_DB
        assert snr(state, torch.from_numpy(got["cache_out"])) >= EXPORT_DB


def test_step_graph_is_made_of_operators_that_stay_whole() -> None:
    """Norms, softmax and GELU's erf as one operator each; nothing that asks for a shape (reference, Qwen3)."""
    counts = Counter(node.op_type for node in graph("hidden").graph)
    assert not {"Pad", "Exp", "Shape", "ConstantOfShape", "ReduceMean", "Sqrt"} & counts.keys()
    assert counts["Softmax"] == SMALL.num_hidden_layers
    # Two norms of a transformer's layer, the one behind them, one of each upsampling block.
    assert counts["LayerNormalization"] == 2 * SMALL.num_hidden_layers + 1 + 2
    assert counts["Erf"] == 2
    # The first block once, the others as body and head.
    assert counts["Sin"] == 7 + 2 * (2 * 7 + 1)
    assert sum(counts.values()) - counts["Constant"] < 700


@cache
def host() -> ir.Model:
    return host_graph(random_decoder(SMALL).quantizer, SMALL)


@pytest.mark.parametrize("length", [1, 7, 200])
def test_host_graph_is_the_quantizer_for_any_number_of_codes(length: int) -> None:
    codes = random_codes(length, SMALL, seed=3)
    with torch.no_grad():
        wanted = random_decoder(SMALL).quantizer(codes)
    got = run(host(), {"codes": codes.numpy()})
    assert list(got) == ["hidden"]
    assert got["hidden"].shape == (1, SMALL.codebook_dim, length)
    assert snr(wanted, torch.from_numpy(got["hidden"])) >= 120
    assert np.isfinite(got["hidden"]).all()
