"""The estimator in an NPU's forms, against the one in upstream's arithmetic, and its graph."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from models.cosyvoice3.estimator import Estimator, gelu
from models.cosyvoice3.layout import INPUTS, OUTPUT, input_shapes
from models.cosyvoice3.runs import dit_of, estimated, estimator_graph
from tests.cosyvoice3_files import REDUCED, weights_of
from tests.onnx_runs import run, snr_db

FRAMES = 20
EXACT_DB = 100.0
"""Both round angles of hundreds of radians, and otherwise."""


def feed(real: int, time: float = 0.25) -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(8)
    made = {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in input_shapes(REDUCED, FRAMES).items()}
    made["t"] = np.full(2, time, np.float32)
    made["mask"] = np.repeat((np.arange(FRAMES) < real).astype(np.float32)[None, None], 2, axis=0)
    return made


@pytest.fixture(scope="module")
def estimator() -> Estimator:
    return Estimator(dit_of(weights_of(), REDUCED), FRAMES).eval()


@pytest.mark.parametrize("real", [1, FRAMES - 1, FRAMES])
def test_real_frames_are_those_of_a_run_without_padding(estimator: Estimator, real: int) -> None:
    given = feed(real)
    alone = {name: array[..., :real] if array.ndim == 3 else array for name, array in given.items()}
    with torch.inference_mode():
        got = estimator(*(torch.from_numpy(given[name]) for name in INPUTS)).numpy()
    assert snr_db(estimated(dit_of(weights_of(), REDUCED), alone), got[..., :real]) >= EXACT_DB


def test_rows_are_apart(estimator: Estimator) -> None:
    given = feed(FRAMES)
    given["mask"][1, :, 5:] = 0.0
    given["t"] = np.array([0.1, 0.6], np.float32)
    wanted = estimated(dit_of(weights_of(), REDUCED), given)
    with torch.inference_mode():
        got = estimator(*(torch.from_numpy(given[name]) for name in INPUTS)).numpy()
    assert snr_db(wanted[0], got[0]) >= EXACT_DB
    assert snr_db(wanted[1, :, :5], got[1, :, :5]) >= EXACT_DB


def test_the_graph_has_the_published_names_and_what_the_compiler_fuses() -> None:
    dit = dit_of(weights_of(), REDUCED)
    graph = estimator_graph(dit, FRAMES)
    shapes = {str(value.name): tuple(value.shape or ()) for value in graph.graph.inputs}
    assert list(shapes) == ["x", "mask", "mu", "t", "spks", "cond"]
    assert shapes == {**dict.fromkeys(("x", "mu", "cond"), (2, 20, 20)), "mask": (2, 1, 20), "t": (2,), "spks": (2, 28)}
    counts = Counter(node.op_type for node in graph.graph)
    # Each block: one attention of the turned head and one of all others; norms in one piece.
    assert (counts["Softmax"], counts["LayerNormalization"]) == (2 * REDUCED.depth, 2 * REDUCED.depth + 1)
    assert (counts["Sin"], counts["Floor"], counts["Cos"], counts["Where"]) == (1, 1, 0, 0)
    assert (counts["Gather"], counts["Pow"]) == (0, 0)
    given = feed(FRAMES - 3)
    wanted = estimated(dit, {name: a[..., : FRAMES - 3] if a.ndim == 3 else a for name, a in given.items()})
    assert snr_db(wanted, run(graph, given)[OUTPUT][..., : FRAMES - 3]) >= EXACT_DB


def test_the_gelu_is_the_one_of_a_hyperbolic_tangent() -> None:
    x = torch.linspace(-6, 6, 301)
    torch.testing.assert_close(gelu(x), torch.nn.functional.gelu(x, approximate="tanh"), atol=2e-6, rtol=0)


def test_weights_are_shared_and_not_copied() -> None:
    weights = weights_of()
    estimator = Estimator(dit_of(weights, REDUCED), FRAMES)
    held = {parameter.untyped_storage().data_ptr() for parameter in estimator.parameters()}
    block = "transformer_blocks.1"
    for name in ("attn_norm.linear", "attn.to_k", "attn.to_out.0", "ff.ff.0.0", "ff.ff.2"):
        assert weights[f"{block}.{name}.weight"].ctypes.data in held
