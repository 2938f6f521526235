from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from contracts.errors import Refusal, UserInput
from converters.piper.voice import VoiceInputs, open_voice, voice_feed
from tests.converters.voices import opened, save
from tests.vits_writer.names import numbered, renamed
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import voice_json, voice_model, write_voice


def test_open_voice_reads_graph_and_json(tmp_path: Path) -> None:
    voice = opened(tmp_path, Recipe(strides=(5, 3), sample_rate=24000))
    assert voice.inputs == VoiceInputs("input", "input_lengths", "scales")
    assert (voice.symbols, voice.sample_rate, voice.seam.hop) == (Recipe().symbols, 24000, 15)
    assert voice.config.phoneme_ids["^"] == (1,)


def test_open_voice_needs_neither_names_nor_json(tmp_path: Path) -> None:
    voice = open_voice(save(tmp_path / "voice.onnx", numbered(voice_model())))
    assert voice.inputs == VoiceInputs("0", "1", "2")
    assert (voice.symbols, voice.sample_rate) == (Recipe().symbols, None)


def test_voice_feed_is_one_sentence(tmp_path: Path) -> None:
    feed = voice_feed(opened(tmp_path), [1, 5, 2], (0.5, 1.0, 0.25))
    assert {name: (array.tolist(), array.dtype.name) for name, array in feed.items()} == {
        "input": ([[1, 5, 2]], "int64"),
        "input_lengths": ([3], "int64"),
        "scales": ([0.5, 1.0, 0.25], "float32"),
    }


@pytest.mark.parametrize(
    ("change", "graph", "stated"),
    [
        ({"hop_length": 256}, 16, 256),
        ({"audio": {"sample_rate": 16000, "hop_length": 512}}, 16, 512),
        ({"num_symbols": 256}, Recipe().symbols, 256),
    ],
)
def test_open_voice_says_both_numbers_when_graph_and_json_disagree(
    tmp_path: Path, change: dict[str, Any], graph: int, stated: int
) -> None:
    path = write_voice(tmp_path / "voice.onnx", config={**voice_json(), **change})
    with pytest.raises(UserInput, match=rf"is {graph}, the JSON says {stated}\.") as caught:
        open_voice(path)
    assert "voice.onnx.json does not belong to voice.onnx" in str(caught.value)


def test_open_voice_says_both_numbers_when_the_map_leaves_the_embedding(tmp_path: Path) -> None:
    rows = Recipe().symbols
    path = write_voice(tmp_path / "voice.onnx", config={"phoneme_id_map": {"_": [0], "a": [3, rows]}})
    with pytest.raises(UserInput, match=rf"phoneme_id_map goes up to {rows}, .* has {rows} rows"):
        open_voice(path)
    open_voice(write_voice(path, config={"phoneme_id_map": {"_": [0], "a": [3, rows - 1]}}))


def _with_rate(text: str) -> onnx.ModelProto:
    model = voice_model()
    entry = model.metadata_props.add()
    entry.key, entry.value = "sample_rate", text
    return model


def test_open_voice_takes_the_sample_rate_of_the_graphs_metadata(tmp_path: Path) -> None:
    assert open_voice(save(tmp_path / "voice.onnx", _with_rate("24000"))).sample_rate == 24000


def test_open_voice_says_both_sample_rates_when_metadata_and_json_disagree(tmp_path: Path) -> None:
    path = write_voice(tmp_path / "voice.onnx")
    save(path, _with_rate("24000"))
    with pytest.raises(UserInput, match=r"sample rate is 24000, the JSON says 16000"):
        open_voice(path)


def test_open_voice_takes_the_users_sample_rate_when_none_is_stated(tmp_path: Path) -> None:
    path = save(tmp_path / "voice.onnx", voice_model())
    assert open_voice(path, 22050).sample_rate == 22050


def test_open_voice_says_both_sample_rates_when_the_user_says_another(tmp_path: Path) -> None:
    path = write_voice(tmp_path / "voice.onnx")
    assert open_voice(path, 16000).sample_rate == 16000
    with pytest.raises(UserInput, match=r"--sample-rate 22050: the voice voice\.onnx states 16000"):
        open_voice(path, 22050)


@pytest.mark.parametrize("rate", [0, -1])
def test_open_voice_refuses_a_sample_rate_below_one(tmp_path: Path, rate: int) -> None:
    with pytest.raises(UserInput, match=rf"--sample-rate {rate}"):
        open_voice(save(tmp_path / "voice.onnx", voice_model()), rate)


@pytest.mark.parametrize("json", [None, {}, {"num_speakers": 3}])
def test_open_voice_says_so_when_there_are_several_speakers(tmp_path: Path, json: dict[str, Any] | None) -> None:
    path = write_voice(tmp_path / "voice.onnx", Recipe(speakers=3), json)
    with pytest.raises(Refusal, match="is a voice of several speakers"):
        open_voice(path)


def test_open_voice_says_so_when_only_the_json_has_several_speakers(tmp_path: Path) -> None:
    path = write_voice(tmp_path / "voice.onnx", config={**voice_json(), "num_speakers": 904})
    with pytest.raises(Refusal, match=r"is a voice of several speakers \(904"):
        open_voice(path)


def test_open_voice_names_inputs_that_it_does_not_know(tmp_path: Path) -> None:
    model = voice_model()
    for name, dtype in (("tones", TensorProto.INT64), ("language", TensorProto.FLOAT)):
        model.graph.input.append(helper.make_tensor_value_info(name, dtype, ["batch_size", "phonemes", 2]))
    with pytest.raises(Refusal, match="inputs that are not supported so far: tones, language"):
        open_voice(save(tmp_path / "voice.onnx", model))


@pytest.mark.parametrize(
    ("gone", "dtype", "rank", "says"),
    [
        ("input", TensorProto.INT32, 2, r"phoneme ids \(int64, rank 2\)"),
        ("input_lengths", TensorProto.INT32, 1, r"their count \(int64, rank 1\)"),
        ("scales", TensorProto.DOUBLE, 1, r"the 3 scales \(float, rank 1\)"),
    ],
)
def test_open_voice_names_the_input_that_is_missing(
    tmp_path: Path, gone: str, dtype: int, rank: int, says: str
) -> None:
    model = voice_model()
    position = [value.name for value in model.graph.input].index(gone)
    model.graph.input[position].CopyFrom(helper.make_tensor_value_info(gone, dtype, [None] * rank))
    with pytest.raises(Refusal, match=says):
        open_voice(save(tmp_path / "voice.onnx", model))


def test_open_voice_is_refused_when_the_ids_index_no_embedding(tmp_path: Path) -> None:
    model = voice_model()
    node = next(node for node in model.graph.node if node.name == "/enc_p/emb/Gather")
    node.input[1] = "ids"
    cast = helper.make_node("Identity", ["input"], ["ids"])
    nodes = [cast, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    with pytest.raises(Refusal, match="input input does not index a phoneme embedding"):
        open_voice(save(tmp_path / "voice.onnx", model))


def test_open_voice_finds_its_inputs_when_the_embedding_is_called_as_one(tmp_path: Path) -> None:
    # The real en_US-joe-medium calls its embedding "sid".
    model = renamed(voice_model(), {"enc_p.emb.weight": "sid"})
    assert open_voice(save(tmp_path / "voice.onnx", model)).symbols == Recipe().symbols


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("half", ["enc_p", "dec"])
def test_open_voice_names_a_weight_that_is_not_finite(tmp_path: Path, half: str, bad: float) -> None:
    model = voice_model()
    weight = next(t for t in model.graph.initializer if t.name.startswith(f"{half}.") and t.data_type == 1)
    values = onnx.numpy_helper.to_array(weight).copy()
    values.reshape(-1)[0] = bad
    weight.CopyFrom(onnx.numpy_helper.from_array(values, weight.name))
    with pytest.raises(Refusal, match=f"voice.onnx: the weight {weight.name} holds NaN or infinity"):
        open_voice(save(tmp_path / "voice.onnx", model))
