"""The graphs that the cuts are judged by: each is what its pass rewrites, and a model in order."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from rknn_tts.cuts_page import CASES, Case, cut_for, given_graph
from rknn_tts.specimens import SPECIMENS, Specimen, specimen_model
from surgery.declaration import EXACT_PARITY_DB, Bounded
from tests.onnx_runs import Array, run, snr_db

SMALL = Specimen(
    "nowhere",
    "small (float[1,2,4] x) => (float[1,2,4] y) { h = Conv (x, w)\ny = Slice (h, start, end) }",
    {"w": (2, 2, 1)},
    {"start": [0, 0, 0], "end": [1, 2, 4]},
)


def feed_of(model: onnx.ModelProto) -> dict[str, Array]:
    """Normal numbers for each input; a mask of ones."""
    rng = np.random.default_rng(0)
    sizes = {given.name: [d.dim_value for d in given.type.tensor_type.shape.dim] for given in model.graph.input}
    return {
        name: (np.ones(shape) if name == "mask" else rng.standard_normal(shape)).astype(np.float32)
        for name, shape in sizes.items()
    }


@pytest.mark.parametrize("name", SPECIMENS)
def test_specimen_is_a_model_in_order_whose_values_keep_their_size(name: str) -> None:
    model = specimen_model(SPECIMENS[name])
    onnx.checker.check_model(model, full_check=True)
    spread = float(np.std(run(model, feed_of(model))["y"]))
    assert 0.1 < spread < 10


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.cut}-{case.target}")
def test_pass_rewrites_its_specimen_and_keeps_its_values(case: Case) -> None:
    given, bound = given_graph(case), cut_for(case)
    done = bound.rewrite(given)
    assert done.hits > 0
    assert done.refused == ()
    feed = feed_of(ir.to_proto(given))
    shapes = {recast.name: recast.shape for recast in done.interface.inputs}
    wanted = run(given, feed)["y"]
    made = run(done.model, {name: value.reshape(shapes.get(name, value.shape)) for name, value in feed.items()})["y"]
    exactness = bound.declaration.exactness
    least = exactness.minimum_db if isinstance(exactness, Bounded) else EXACT_PARITY_DB
    assert snr_db(wanted, made.reshape(wanted.shape)) >= least


def test_specimen_has_the_same_weights_each_time_and_the_constants_in_their_kinds() -> None:
    first, again = specimen_model(SMALL), specimen_model(SMALL)
    assert first == again
    kinds = {tensor.name: tensor.data_type for tensor in first.graph.initializer}
    whole = onnx.TensorProto.INT64
    assert kinds == {"w": onnx.TensorProto.FLOAT, "start": whole, "end": whole}
