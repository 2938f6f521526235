"""The exported graphs in onnxruntime against the module, and their form against what is published of the originals'."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import onnx_ir as ir
import pytest
import torch

from models.inflect.graphs import SEAM, decode_graph, duration_graph
from models.inflect.layout import layout
from tests.models.inflect.sizes import SMALL, drawn, model
from tests.onnx_runs import Array, open_session, snr_db
from tests.surgery.graphs import check

LEAST_DB = 120.0
"""The export against torch."""

C = SMALL.inter_channels


@cache
def durations() -> ir.Model:
    return duration_graph(model())


@cache
def decoding() -> ir.Model:
    return decode_graph(model())


def fed(frames: int, valid: int) -> dict[str, Array]:
    mask = (np.arange(frames) < valid).astype(np.float32)[None, None]
    latents = {name: drawn(1, C, frames, seed=i) for i, name in enumerate(("m_p_exp", "logs_p_exp", "zp_noise"))}
    return {**latents, "y_mask": mask, "noise_scale": np.array(0.667, np.float32)}


def form(values: list[ir.Value]) -> dict[str, tuple[str, list[int | str]]]:
    return {
        str(value.name): (
            str(value.dtype),
            [size if isinstance(size, int) else str(size.value) for size in value.shape or ()],
        )
        for value in values
    }


def test_graphs_have_the_published_names_types_and_axes() -> None:
    frames, names = ["mel_len"], ["m_p_exp", "logs_p_exp", "y_mask", "zp_noise", "noise_scale"]
    for graph in (durations(), decoding()):
        check(graph)
        assert graph.opset_imports == {"": 17}
    assert form(list(durations().graph.inputs)) == {
        "tokens": ("INT64", [1, "text_len"]),
        "lengths": ("INT64", [1]),
        "length_scale": ("FLOAT", []),
    }
    outputs = form(list(durations().graph.outputs))
    assert {name: shape[2:] for name, (_, shape) in outputs.items()} == dict.fromkeys(names[:3], frames)
    inputs = form(list(decoding().graph.inputs))
    assert list(inputs) == names
    assert [inputs[name] for name in names[:2]] == [("FLOAT", [1, C, *frames])] * 2
    assert [inputs[name] for name in names[2:]] == [
        ("FLOAT", [1, 1, *frames]),
        ("FLOAT", [1, C, *frames]),
        ("FLOAT", []),
    ]
    assert form(list(decoding().graph.outputs)) == {"waveform": ("FLOAT", [1, 1, "wav_len"])}


def test_initialisers_are_the_weights_under_their_names() -> None:
    """As in the published graphs: 67 and 235 tensors under `model.`, with none of the exporter's own names."""
    found = [
        (name, tuple(value.shape or ()))
        for g in (durations(), decoding())
        for name, value in g.graph.initializers.items()
    ]
    assert Counter(found) == Counter((f"model.{name}", shape) for name, shape in layout(SMALL).items())


def test_decode_has_the_nodes_that_are_known_of_the_published_one() -> None:
    """The seam, `/Mul_2_output_0` and the couplings' outputs by name; 24 Shape and 24 ConstantOfShape (reference)."""
    nodes = list(decoding().graph)
    values = {str(value.name) for node in nodes for value in node.outputs}
    assert {SEAM, "/Mul_2_output_0", *(f"/flow/flows.{i}/Concat_output_0" for i in (0, 2, 4, 6))} <= values
    counts = Counter(node.op_type for node in nodes)
    assert (counts["Shape"], counts["ConstantOfShape"]) == (24, 24)
    assert SEAM == "/Add_output_0"


def test_seam_is_the_scaled_noise_on_the_mean() -> None:
    graph = decode_graph(model())
    seam = next(value for node in graph.graph for value in node.outputs if value.name == SEAM)
    graph.graph.outputs.append(seam)
    feed = fed(9, 9)
    wanted = feed["m_p_exp"] + np.exp(feed["logs_p_exp"].astype(np.float64)) * feed["zp_noise"] * feed["noise_scale"]
    assert snr_db(wanted, open_session(graph)(feed)[SEAM]) >= LEAST_DB


@pytest.mark.parametrize(("frames", "valid"), [(1, 1), (23, 23), (23, 11)])
def test_decode_gives_what_the_module_does(frames: int, valid: int) -> None:
    feed = fed(frames, valid)
    z = feed["m_p_exp"] + np.exp(feed["logs_p_exp"]) * feed["zp_noise"] * feed["noise_scale"]
    with torch.no_grad():
        wanted = model().voiced(torch.from_numpy(z), torch.from_numpy(feed["y_mask"])).numpy()
    got = open_session(decoding())(feed)["waveform"]
    assert got.shape == (1, 1, SMALL.hop * frames)
    assert snr_db(wanted, got) >= LEAST_DB


@pytest.mark.parametrize(("length", "valid"), [(1, 1), (2, 2), (5, 5), (31, 31), (31, 20)])
def test_duration_gives_what_the_module_does(length: int, valid: int) -> None:
    tokens = np.random.default_rng(length).integers(0, SMALL.n_vocab, (1, length))
    feed = {"tokens": tokens, "lengths": np.array([valid]), "length_scale": np.array(1.5, np.float32)}
    with torch.no_grad():
        wanted = model().prior(torch.from_numpy(tokens), torch.tensor([valid]), torch.tensor(1.5))
    got = open_session(durations())(feed)
    for name, tensor in zip(("m_p_exp", "logs_p_exp", "y_mask"), wanted, strict=True):
        assert snr_db(tensor.numpy(), got[name]) >= LEAST_DB
