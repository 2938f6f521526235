from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from converters.inflect.probe import probe_of
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import decoder_model, voice_model


def pinned(frames: int, channels: int = 6) -> onnx.ModelProto:
    model = decoder_model(Recipe(latent=6))
    for value, wide in zip(model.graph.input, (channels, 1), strict=True):
        sizes = value.type.tensor_type.shape.dim
        sizes[1].dim_value, sizes[2].dim_value = wide, frames
    return model


def test_probe_of_a_slice_is_one_window_with_a_mask_of_ones() -> None:
    probe = probe_of(ir.from_proto(pinned(80)))
    assert probe is not None
    assert {name: (array.shape, array.dtype) for name, array in probe.feed.items()} == {
        "z": ((1, 6, 80), np.dtype(np.float32)),
        "y_mask": ((1, 1, 80), np.dtype(np.float32)),
    }
    assert (probe.feed["y_mask"] == 1).all()
    assert "The check is degraded: one window-length latent" in probe.note


def test_probe_of_a_slice_of_half_floats_has_them() -> None:
    model = pinned(80)
    for value in model.graph.input:
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    probe = probe_of(ir.from_proto(model))
    assert probe is not None
    assert {array.dtype for array in probe.feed.values()} == {np.dtype(np.float16)}


def _identity() -> onnx.ModelProto:
    told = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 6, 80])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 6, 80])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [told], [made])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize(
    "model", [decoder_model(), voice_model(), _identity(), pinned(5000), pinned(80, channels=1025)]
)
def test_probe_of_any_other_graph_is_none(model: onnx.ModelProto) -> None:
    assert probe_of(ir.from_proto(model)) is None
