"""A speaker encoder's file: what is read of it, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch

from contracts.errors import Refusal, UserInput
from converters.cosyvoice2.speaker import STAGE
from converters.cosyvoice2.speaker_file import OpenSpeaker, open_speaker
from models.cosyvoice2.speaker_config import TRUE_CONFIG
from models.cosyvoice2.speaker_weights import folded
from tests.converters.hubs import no_hub
from tests.cosyvoice2_speaker import SMALL, newer_export, published, raw_weights, save, write_weights


def opened(path: Path) -> OpenSpeaker:
    assert STAGE.locate is not None
    return open_speaker(STAGE.locate(str(path), no_hub))


def test_weights_are_read_without_the_counts_of_a_training(tmp_path: Path) -> None:
    got = opened(write_weights(tmp_path / "campplus_cn_common.bin"))
    assert (got.config, got.published) == (SMALL, None)
    owed = folded(raw_weights(), SMALL)
    assert set(got.weights) == set(owed)
    for name, array in owed.items():
        np.testing.assert_array_equal(got.weights[name], array)


@pytest.mark.parametrize("write", [published, lambda: newer_export(60)])
def test_weights_are_found_in_either_exporters_onnx(tmp_path: Path, write: Callable[[], ir.Model]) -> None:
    save(write(), tmp_path / "campplus.onnx")
    got = opened(tmp_path)
    assert got.config == SMALL
    assert got.published is not None
    owed = folded(raw_weights(), SMALL)
    assert set(got.weights) == set(owed)
    for name, array in owed.items():  # the exporter folds in single precision
        np.testing.assert_allclose(got.weights[name], array, rtol=1e-5, atol=1e-6)


def test_random_has_the_true_sizes() -> None:
    assert opened(Path("random")).config == TRUE_CONFIG


def zeros(*shape: int) -> torch.Tensor:
    return torch.zeros(shape)


LOCAL = "xvector.block2.tdnnd1.cam_layer.linear_local.weight"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({LOCAL: None}, f"lacks 1 of .* tensors: {LOCAL}"),
        ({LOCAL: zeros(4, 8, 5)}, rf"1 tensors have other sizes: {LOCAL} is \[4, 8, 5\], not \[4, 8, 3\]"),
        ({LOCAL: zeros(4, 8, 3) * torch.nan}, f"1 tensors hold NaN or infinity.*{LOCAL}"),
        ({LOCAL: zeros(4, 8, 3).half()}, f"{LOCAL} is float16, float32 is needed"),
        ({"head.conv1.weight": None}, "its tensors tell no such sizes"),
        ({"xvector.block3.tdnnd1.linear1.weight": None}, "its tensors tell no such sizes"),
        ({"head.bn1.running_var": -torch.ones(4)}, r"head\.bn1: a variance is -1, and a variance is not negative"),
    ],
)
def test_other_weights_are_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(Refusal, match=said):
        opened(write_weights(tmp_path / "campplus.pt", change))


def conv(model: ir.Model, number: int) -> ir.Node:
    return [node for node in model.graph if node.op_type == "Conv"][number]


def with_weight(model: ir.Model, number: int, change: Callable[[Any], Any]) -> None:
    value = conv(model, number).inputs[1]
    assert value is not None
    assert value.const_value is not None
    value.const_value = ir.tensor(change(value.const_value.numpy()))


def _nan(model: ir.Model) -> None:
    with_weight(model, 5, lambda array: array * np.float32(np.nan))


def _double(model: ir.Model) -> None:
    with_weight(model, 5, lambda array: array.astype(np.float64))


def _other_size(model: ir.Model) -> None:
    with_weight(model, 5, lambda array: array[:3])


def _empty(model: ir.Model) -> None:
    with_weight(model, 0, lambda array: array[:0])


def _relu_for_norm(model: ir.Model) -> None:
    norm = next(node for node in model.graph if node.op_type == "BatchNormalization")
    reader = ir.Node("", "Relu", [norm.inputs[0]], num_outputs=1)
    model.graph.insert_before(norm, reader)
    ir.convenience.replace_all_uses_with(norm.outputs[0], reader.outputs[0])
    model.graph.remove(norm)


def _two_inputs(model: ir.Model) -> None:
    model.graph.inputs.append(ir.val("more", ir.DataType.FLOAT, [1]))


def _two_in_a_batch(model: ir.Model) -> None:
    model.graph.inputs[0].shape = ir.Shape([2, "T", SMALL.features])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_nan, "has weights that are NaN or infinite"),
        (_double, "reads double where float32 is needed"),
        (_other_size, "its 33 convolutions are not that encoder's"),
        (_empty, "its 33 convolutions are not that encoder's"),
        (_relu_for_norm, "7 normalisations stand ahead of a Relu, and 7 do there|is not of"),
        (_two_inputs, r"takes one input \[1, T, 16\]"),
        (_two_in_a_batch, r"takes one input \[1, T, 16\]"),
    ],
)
def test_other_graphs_are_refused(tmp_path: Path, spoil: Callable[[ir.Model], None], said: str) -> None:
    model = published()
    spoil(model)
    with pytest.raises(Refusal, match=said):
        opened(save(model, tmp_path / "campplus.onnx"))


def test_graph_of_another_network_is_refused(tmp_path: Path) -> None:
    value = ir.val("x", ir.DataType.FLOAT, [1, 4, 8])
    node = ir.Node("", "Relu", [value], num_outputs=1)
    graph = ir.Graph([value], node.outputs, nodes=[node], opset_imports={"": 18}, name="other")
    with pytest.raises(Refusal, match="its 0 convolutions are not that encoder's"):
        opened(save(ir.Model(graph, ir_version=10), tmp_path / "campplus.onnx"))


@pytest.mark.parametrize("name", ["campplus.onnx", "campplus.pt"])
def test_damaged_files_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"PK but no more")
    with pytest.raises((UserInput, Refusal), match=name):
        opened(tmp_path)


def test_folder_without_the_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match=r"holds no campplus\.onnx or campplus\.pt"):
        opened(tmp_path)
