from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from contracts.errors import Refusal, UserInput
from converters.kokoro.checkpoint import open_checkpoint
from converters.kokoro.pth_file import pth_bytes
from tests.kokoro_writer.checkpoint import SMALL, random_weights, state_dicts, stated, write_checkpoint
from tests.kokoro_writer.export import float_export, int8_export


def written(path: Path, model: onnx.ModelProto) -> Path:
    onnx.save(model, path)
    return path


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(array, other[name]) for name, array in one.items())


def test_open_checkpoint_reads_a_pth_with_the_config_beside_it(tmp_path: Path) -> None:
    found = open_checkpoint(write_checkpoint(tmp_path))
    assert found.config == SMALL
    assert same(found.weights, random_weights())
    assert (found.recovered, found.original, found.notes) == (False, None, ())


def test_open_checkpoint_reads_a_pth_with_the_config_that_is_given(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path)
    config = (tmp_path / "config.json").rename(tmp_path / "elsewhere.json")
    assert open_checkpoint(path, config).config == SMALL


def test_open_checkpoint_refuses_a_pth_when_there_is_no_config(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(UserInput, match=r"model\.pth: its sizes are in a config\.json, and .*give it with --config"):
        open_checkpoint(path)


def test_open_checkpoint_refuses_a_pth_when_the_config_is_of_other_sizes(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path, config={**stated(), "style_dim": 6})
    with pytest.raises(Refusal, match=r"tensors have not the sizes in config\.json: .*fc\.weight is \[\d+, 4\], not"):
        open_checkpoint(path)


def test_open_checkpoint_refuses_a_pth_when_a_weight_is_nan(tmp_path: Path) -> None:
    weights = random_weights()
    weights["predictor.module.lstm.bias_hh_l0"][0] = np.nan
    with pytest.raises(Refusal, match=r"hold NaN or infinity.*predictor\.module\.lstm\.bias_hh_l0"):
        open_checkpoint(write_checkpoint(tmp_path, state_dicts(weights)))


def test_open_checkpoint_recovers_a_float_export(tmp_path: Path) -> None:
    found = open_checkpoint(written(tmp_path / "kokoro.onnx", float_export(random_weights())))
    assert found.config == SMALL
    assert not found.recovered
    assert found.original is not None
    assert found.original.values.style == "style"
    assert len(found.notes) == 1
    assert found.notes[0].startswith("459 tensors are from the graph; 2 of the official file are not in it (bert.")


def test_open_checkpoint_counts_filters_that_are_zero(tmp_path: Path) -> None:
    weights = random_weights()
    weights["decoder.module.F0_conv.weight_g"][:] = 0
    found = open_checkpoint(written(tmp_path / "kokoro.onnx", float_export(weights)))
    assert "1 filters of 1 convolutions are zero in the graph, and stay so." in found.notes


def test_open_checkpoint_reads_again_what_was_recovered_and_saved(tmp_path: Path) -> None:
    found = open_checkpoint(written(tmp_path / "kokoro.int8.onnx", int8_export(random_weights())))
    assert found.recovered
    assert found.notes[0].startswith("The weights are recovered from 8-bit ones (int8)")
    (tmp_path / "saved.pth").write_bytes(pth_bytes(found.weights))
    (tmp_path / "config.json").write_text(json.dumps(stated()), encoding="utf-8")
    again = open_checkpoint(tmp_path / "saved.pth")
    assert again.config == found.config
    assert same(again.weights, found.weights)


def test_open_checkpoint_takes_the_config_of_an_onnx_where_no_weight_tells(tmp_path: Path) -> None:
    config = stated()
    config["plbert"]["num_attention_heads"] = 3
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    path = written(tmp_path / "kokoro.onnx", float_export(random_weights()))
    assert open_checkpoint(path, tmp_path / "config.json").config.plbert.num_attention_heads == 3


def test_open_checkpoint_names_the_size_when_graph_and_config_disagree(tmp_path: Path) -> None:
    config = stated()
    config["istftnet"]["upsample_rates"] = [3, 4]
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    path = written(tmp_path / "kokoro.onnx", float_export(random_weights()))
    told = r"does not belong to kokoro\.onnx: the graph's istftnet\.upsample_rates is \(3, 2\), the config's \(3, 4\)"
    with pytest.raises(UserInput, match=told):
        open_checkpoint(path, tmp_path / "config.json")


def test_open_checkpoint_refuses_an_onnx_when_it_is_another_model(tmp_path: Path) -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    node = helper.make_node("Relu", ["x"], ["y"], "/dec/conv_post/Relu")
    model = helper.make_model(helper.make_graph([node], "g", values[:1], values[1:]))
    with pytest.raises(Refusal, match=r"piper\.onnx: is no Kokoro: it has no node at /generator/conv_post"):
        open_checkpoint(written(tmp_path / "piper.onnx", model))


def test_open_checkpoint_names_shapes_when_weights_of_a_graph_do_not_fit_each_other(tmp_path: Path) -> None:
    model = float_export(random_weights())
    held = next(held for held in model.graph.initializer if held.name == "text_encoder.module.cnn.1.0.w")
    held.CopyFrom(numpy_helper.from_array(np.ones((8, 8, 5), np.float32), held.name))
    with pytest.raises(Refusal, match=r"sizes in its graph: .*cnn\.1\.0\.weight_v is \[8, 8, 5\], not \[8, 8, 3\]"):
        open_checkpoint(written(tmp_path / "kokoro.onnx", model))


def test_open_checkpoint_refuses_an_onnx_when_it_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "kokoro.onnx").write_bytes(b"\x00\x01")
    with pytest.raises(UserInput, match="is not an ONNX model, or is cut off"):
        open_checkpoint(tmp_path / "kokoro.onnx")
