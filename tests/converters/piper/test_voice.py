from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from contracts.errors import Refusal, UserInput
from converters.piper.voice import open_voice, speaker_of, voice_feed
from converters.piper.voice_inputs import VoiceInputs
from tests.converters.voices import opened, save
from tests.vits_writer.names import numbered, renamed
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import voice_json, voice_model, write_voice


def test_open_voice_reads_graph_and_json(tmp_path: Path) -> None:
    voice = opened(tmp_path, Recipe(strides=(5, 3), sample_rate=24000))
    assert voice.inputs == VoiceInputs("input", "input_lengths", "scales", ids_shape=("batch_size", "phonemes"))
    assert (voice.symbols, voice.sample_rate, voice.seam.hop) == (Recipe().symbols, 24000, 15)
    assert voice.config.phoneme_ids["^"] == (1,)


def test_open_voice_needs_neither_names_nor_json(tmp_path: Path) -> None:
    voice = open_voice(save(tmp_path / "voice.onnx", numbered(voice_model())))
    assert voice.inputs.names == ("0", "1", "2")
    assert (voice.symbols, voice.sample_rate) == (Recipe().symbols, None)


def test_voice_feed_says_who_speaks(tmp_path: Path) -> None:
    voice = opened(tmp_path, Recipe(speakers=3))
    fed = voice_feed(voice, [1, 5, 2], (0.5, 1.0, 0.25), 2)["sid"]
    assert (fed.tolist(), fed.dtype.name) == ([2], "int64")
    assert voice_feed(voice, [1, 5, 2], (0.5, 1.0, 0.25))["sid"].tolist() == [0]


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


@pytest.mark.parametrize("text", ["", "0", "-1", "²", "٤٨", "22050.0", "9" * 5000])
def test_open_voice_takes_no_sample_rate_of_metadata_that_state_none(tmp_path: Path, text: str) -> None:
    assert open_voice(save(tmp_path / "voice.onnx", _with_rate(text)), 22050).sample_rate == 22050


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


@pytest.mark.parametrize("json", [None, {}, {"num_speakers": 3}, {"speaker_id_map": {"ann": 0, "ben": 2}}])
@pytest.mark.parametrize("name", ["sid", "31"])
def test_open_voice_counts_the_speakers_of_the_graphs_embedding(
    tmp_path: Path, json: dict[str, Any] | None, name: str
) -> None:
    path = write_voice(tmp_path / "voice.onnx", Recipe(speakers=3), json)
    save(path, renamed(voice_model(Recipe(speakers=3)), {"sid": name}))
    voice = open_voice(path)
    assert (voice.speakers, voice.seam.speaker_inputs) == (3, (name,))
    assert voice.inputs.names == ("input", "input_lengths", "scales", name)


@pytest.mark.parametrize(
    ("recipe", "change", "says"),
    [
        (Recipe(), {"num_speakers": 904}, r"number of speakers \(num_speakers\) is 1, the JSON says 904"),
        (Recipe(speakers=3), {"num_speakers": 1}, r"number of speakers \(num_speakers\) is 3, the JSON says 1"),
        (Recipe(speakers=3), {"num_speakers": 4}, r"number of speakers \(num_speakers\) is 3, the JSON says 4"),
        (Recipe(speakers=3), {"speaker_id_map": {"ann": 3}}, r"speaker_id_map goes up to 3, .* has 3 rows"),
        (Recipe(), {"speaker_id_map": {"ann": 0, "ben": 1}}, r"speaker_id_map goes up to 1, .* has 1 row\."),
    ],
)
def test_open_voice_says_both_numbers_when_graph_and_json_disagree_on_the_speakers(
    tmp_path: Path, recipe: Recipe, change: dict[str, Any], says: str
) -> None:
    with pytest.raises(UserInput, match=rf"^voice\.onnx\.json does not belong to voice\.onnx: .*{says}"):
        open_voice(write_voice(tmp_path / "voice.onnx", recipe, {**voice_json(recipe), **change}))


@pytest.mark.parametrize(("number", "wanted"), [(None, 0), (0, 0), (2, 2)])
def test_speaker_of_is_the_first_unless_the_user_says_another(tmp_path: Path, number: int | None, wanted: int) -> None:
    assert speaker_of(opened(tmp_path, Recipe(speakers=3)), number) == wanted


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        ({}, ""),
        ({"ann": 0, "ben": 1}, r" \(ann: 0, ben: 1\)"),
        ({"ann": 0, "ben": 1, "cho": 2, "dee": 2}, r" \(ann: 0, ben: 1, cho: 2, \.\.\.\)"),
    ],
)
@pytest.mark.parametrize("number", [3, -1, 1000])
def test_speaker_of_tells_which_there_are_when_there_is_no_such_speaker(
    tmp_path: Path, names: dict[str, int], hint: str, number: int
) -> None:
    recipe = Recipe(speakers=3)
    path = write_voice(tmp_path / "voice.onnx", recipe, {**voice_json(recipe), "speaker_id_map": names})
    says = rf"^--speaker {number}: the voice voice\.onnx has the speakers 0 to 2{hint}\.$"
    with pytest.raises(UserInput, match=says):
        speaker_of(open_voice(path), number)


def test_speaker_of_refuses_a_number_when_there_is_one_speaker(tmp_path: Path) -> None:
    voice = opened(tmp_path)
    assert speaker_of(voice, 0) == 0
    with pytest.raises(
        UserInput, match=r"^--speaker 1: the voice voice\.onnx has one speaker; leave the option out\.$"
    ):
        speaker_of(voice, 1)


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
    with pytest.raises(Refusal, match=rf"no input for .*{says}; export it with piper's export_onnx"):
        open_voice(save(tmp_path / "voice.onnx", model))


def test_open_voice_is_refused_when_the_ids_index_no_embedding(tmp_path: Path) -> None:
    model = voice_model()
    node = next(node for node in model.graph.node if node.name == "/enc_p/emb/Gather")
    node.input[1] = "ids"
    cast = helper.make_node("Abs", ["input"], ["ids"])
    nodes = [cast, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    with pytest.raises(Refusal, match="input input does not index a phoneme embedding; export it"):
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


def test_open_voice_is_refused_when_its_decoder_rounds_by_the_utterances_range(tmp_path: Path) -> None:
    # As onnxruntime's quantize_dynamic leaves it, of which sherpa-onnx's int8 voices are made.
    model = voice_model()
    node = next(node for node in model.graph.node if node.name == "/dec/conv_pre/Conv")
    position, read = list(model.graph.node).index(node), node.input[0]
    rounded = helper.make_node("DynamicQuantizeLinear", [read], ["levels", "step", "zero"], "/dec/rounded")
    back = helper.make_node("DequantizeLinear", ["levels", "step", "zero"], ["back"], "/dec/back")
    node.input[0] = "back"
    for new in (back, rounded):
        model.graph.node.insert(position, new)
    with pytest.raises(Refusal, match=r"'/dec/rounded'.* range of the whole utterance.*give the float32 voice"):
        open_voice(save(tmp_path / "voice.onnx", model))


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("half", ["enc_p", "dec"])
def test_open_voice_is_refused_when_it_computes_in_half_precision(tmp_path: Path, half: str, kind: Any) -> None:
    # As float16 converters leave it: weights of half precision, and casts where the graph goes in and out.
    model = voice_model()
    node = next(n for n in model.graph.node if n.op_type == "Conv" and n.name.startswith(f"/{half}"))
    position, (read, *weights) = list(model.graph.node).index(node), node.input
    for weight in [t for t in model.graph.initializer if t.name in weights]:
        values = onnx.numpy_helper.to_array(weight).astype(kind)
        weight.CopyFrom(onnx.numpy_helper.from_array(values, weight.name))
    to = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    given, node.input[0], node.output[0] = node.output[0], "half.in", "half.out"
    model.graph.node.insert(position + 1, helper.make_node("Cast", ["half.out"], [given], to=TensorProto.FLOAT))
    model.graph.node.insert(position, helper.make_node("Cast", [read], ["half.in"], to=to))
    says = rf"'{node.name}'.* computes with the weight {weights[0]} in b?float16; give the float32 voice"
    with pytest.raises(Refusal, match=says):
        open_voice(save(tmp_path / "voice.onnx", model))
