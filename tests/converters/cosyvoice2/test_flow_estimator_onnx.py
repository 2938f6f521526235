"""The estimator's weights in the graph that torch's exporter makes of the original."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
import torch

from contracts.errors import Refusal
from converters.cosyvoice2.flow_estimator import STAGE
from converters.cosyvoice2.flow_estimator_evidence import original_equality
from converters.cosyvoice2.flow_estimator_file import open_estimator
from converters.cosyvoice2.flow_estimator_opening import EstimatorOpening
from converters.stages import StageOptions
from models.tracing import traced_by_script
from tests.converters.hubs import no_hub
from tests.cosyvoice2_estimator import SMALL, drawn, original, weights_of
from tests.onnx_runs import open_session, snr_db

NAME = "flow.decoder.estimator.fp32.onnx"
INPUTS = ["x", "mask", "mu", "t", "spks", "cond"]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As upstream exports it: of any length."""
    stream = drawn(21)
    arrays = (stream.x, np.ones((2, 1, 21), np.float32), stream.mu, stream.t, stream.spks, stream.cond)
    axes = {name: {2: "seq_len"} for name in ("x", "mask", "mu", "cond", "estimator_out")}
    example = tuple(torch.from_numpy(array) for array in arrays)
    path = tmp_path_factory.mktemp("published") / NAME
    ir.save(traced_by_script(original(), example, INPUTS, ["estimator_out"], 18, axes), path)
    return path


def opened(path: Path) -> EstimatorOpening:
    assert STAGE.locate is not None
    return EstimatorOpening(STAGE.locate(str(path), no_hub), StageOptions(), open_session)


def test_every_weight_is_found(published: Path) -> None:
    assert STAGE.locate is not None
    got = open_estimator(STAGE.locate(str(published.parent), no_hub))
    assert got.config == SMALL
    for name, owed in weights_of().items():
        np.testing.assert_array_equal(got.weights[name], owed, err_msg=name)


def test_weights_are_proven_by_the_graph_itself(published: Path) -> None:
    (equality,) = original_equality(opened(published))
    assert equality.gate == "fp32.original"
    reference, measured = (np.asarray(each["estimator_out"]) for each in (equality.reference, equality.measured))
    assert snr_db(reference, measured) > 110


def test_weights_in_another_order_fail_the_proof(published: Path) -> None:
    opening = opened(published)
    query, key = (f"mid_blocks.0.1.0.attn1.to_{part}.weight" for part in ("q", "v"))
    opening.weights[query], opening.weights[key] = opening.weights[key], opening.weights[query]
    (equality,) = original_equality(opening)
    reference, measured = (np.asarray(each["estimator_out"]) for each in (equality.reference, equality.measured))
    assert snr_db(reference, measured) < equality.minimum_db


def test_layer_of_other_products_is_refused(published: Path, tmp_path: Path) -> None:
    model = ir.load(published)
    node = next(node for node in model.graph if node.name == "/mid_blocks.0.1.1/attn1/to_k/MatMul")
    node.op_type, node.domain = "Mul", ""
    ir.save(model, tmp_path / NAME)
    with pytest.raises(
        Refusal, match=r"2 MatMuls and not 3 read what the norm of mid_blocks\.0\.1\.1\.norm1\.weight gives"
    ):
        opened(tmp_path / NAME)


def test_other_graphs_are_refused(published: Path, tmp_path: Path) -> None:
    model = ir.load(published)
    model.graph.outputs[0].name = "other"
    ir.save(model, tmp_path / NAME)
    with pytest.raises(
        Refusal, match=r"is not CosyVoice2's flow estimator: it takes .* and gives other, and that takes"
    ):
        opened(tmp_path / NAME)
