"""Reading a flow estimator: from upstream's file, from its graph, and what is neither."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from numpy.typing import NDArray

from contracts.errors import Refusal, UserInput
from converters.cosyvoice3.checkpoint import OpenFlow, open_flow
from converters.cosyvoice3.flow import STAGE
from tests.converters.hubs import no_hub
from tests.cosyvoice3_files import REDUCED, SIMULATED, exported, weights_of, write_flow

GRAPH = "flow.decoder.estimator.fp32.onnx"


def opened(path: Path) -> OpenFlow:
    assert STAGE.locate is not None
    return open_flow(STAGE.locate(str(path), no_hub))


@pytest.fixture(scope="module")
def graph_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graph") / GRAPH
    ir.save(exported(), path, external_data="weights.data", size_threshold_bytes=0)
    return path


def test_sizes_and_weights_are_read_from_a_flow(tmp_path: Path) -> None:
    flow = opened(write_flow(tmp_path / "flow.pt", weights_of(SIMULATED)).parent)
    assert flow.config == SIMULATED
    assert flow.graph is None
    assert flow.weights.keys() == weights_of(SIMULATED).keys()
    assert all(np.array_equal(flow.weights[name], array) for name, array in weights_of(SIMULATED).items())


def test_weights_are_found_in_a_graph_whatever_its_exporter_called_them(graph_file: Path) -> None:
    flow = opened(graph_file)
    assert flow.graph is not None
    names = {str(name) for name in flow.graph.graph.initializers}
    assert "transformer_blocks.0.attn.to_q.weight" not in names
    assert flow.config == REDUCED
    for name, array in weights_of().items():
        np.testing.assert_array_equal(flow.weights[name], array, err_msg=name)


def test_a_graph_that_lost_its_angles_has_the_published_ones(tmp_path: Path) -> None:
    made = weights_of(SIMULATED)
    del made["rotary_embed.inv_freq"]
    flow = opened(write_flow(tmp_path / "flow.pt", made))
    np.testing.assert_allclose(flow.weights["rotary_embed.inv_freq"], 10000.0 ** (-np.arange(32) / 32), rtol=1e-6)
    assert flow.config == SIMULATED


def test_the_file_of_all_weights_is_read_before_the_graph(tmp_path: Path) -> None:
    assert STAGE.locate is not None
    write_flow(tmp_path / "flow.pt", weights_of())
    (tmp_path / GRAPH).write_bytes(b"")
    located = STAGE.locate(str(tmp_path), no_hub)
    assert located.path.name == "flow.pt"
    assert located.extras == {"torch"}


def without(name: str) -> dict[str, Any]:
    return {key: array for key, array in weights_of().items() if key != name}


def other(name: str, array: NDArray[Any]) -> dict[str, Any]:
    return {**weights_of(), name: array.astype(np.float32)}


NAN = np.full(REDUCED.width, np.nan)


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ({}, "lacks proj_out.weight"),
        (without("proj_out.weight"), "lacks proj_out.weight"),
        (without("transformer_blocks.1.ff.ff.2.bias"), r"lacks 1 of 43 tensors: transformer_blocks.1.ff.ff.2.bias"),
        (other("input_embed.proj.weight", np.zeros((96, 60))), "60 numbers a frame are no three of 20 and a speaker"),
        (other("proj_out.weight", np.zeros(7)), r"proj_out.weight is \[7\], 2 axes are expected"),
        (other("rotary_embed.inv_freq", np.ones(20)), "96 are no heads of 40"),
        (other("rotary_embed.inv_freq", np.ones(48)), "96 are no heads of 96"),
        (other("time_embed.time_mlp.0.weight", np.zeros((96, 63))), "a time is no 63 sines and cosines"),
        (
            other("input_embed.conv_pos_embed.conv1.0.weight", np.zeros((96, 36, 7))),
            "96 channels are no groups of 36",
        ),
        (
            other("transformer_blocks.1.attn.to_k.weight", np.zeros((96, 95))),
            r"1 tensors have other sizes: transformer_blocks.1.attn.to_k.weight is \[96, 95\], not \[96, 96\]",
        ),
        (other("transformer_blocks.0.attn.to_v.bias", NAN), "hold NaN or infinity.*to_v.bias"),
        (other("long_skip_connection.weight", np.zeros((96, 192))), "1 tensors more.*long_skip_connection.weight"),
    ],
)
def test_other_tensors_are_refused_by_name(tmp_path: Path, weights: dict[str, Any], told: str) -> None:
    with pytest.raises(Refusal, match=told) as caught:
        opened(write_flow(tmp_path / "flow.pt", weights))
    assert "flow.pt" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_half_floats_are_refused(tmp_path: Path) -> None:
    halves = {"decoder.estimator.proj_out.weight": torch.zeros((20, 96), dtype=torch.float16)}
    with pytest.raises(Refusal, match="float16, float32 is needed"):
        opened(write_flow(tmp_path / "flow.pt", {}, **halves))


def test_another_graph_is_refused_by_what_it_takes_and_gives(tmp_path: Path) -> None:
    model = exported()
    model.graph.inputs[0].name = "noise"
    ir.save(model, tmp_path / GRAPH)
    with pytest.raises(Refusal, match=r"it takes cond, mask, mu, noise, spks, t and gives estimator_out"):
        opened(tmp_path / GRAPH)


def test_a_weight_that_stands_in_front_of_no_bias_is_refused_by_name(tmp_path: Path) -> None:
    model = exported()
    bias = model.graph.initializers["transformer_blocks.0.ff.ff.2.bias"]
    (usage,) = bias.uses()
    usage.node.op_type = "Sub"
    ir.save(model, tmp_path / GRAPH)
    with pytest.raises(Refusal, match=r"transformer_blocks.0.ff.ff.2.weight is not found; give the flow.pt"):
        opened(tmp_path / GRAPH)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    for name in ("flow.pt", GRAPH):
        (tmp_path / name).write_bytes(b"PK no")
        with pytest.raises((UserInput, Refusal), match=name):
            opened(tmp_path / name)
