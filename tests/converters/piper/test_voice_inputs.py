from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from contracts.errors import Refusal
from converters.piper.decoder import open_decoder
from converters.piper.duration_host import duration_parts
from converters.piper.host_half import host_half
from converters.piper.streaming import locate
from converters.piper.utterances import decoder_cut, open_host, run_host
from converters.piper.voice import Voice, open_voice
from converters.piper.voice_inputs import ExtraInput, table_rows
from converters.stages import StageOptions
from tests.converters.hubs import no_hub
from tests.converters.voices import opened, save, whole_voice
from tests.onnx_runs import open_session
from tests.vits_writer.names import numbered, renamed
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import voice_model

EVERYTHING = Recipe(speakers=3, languages=2, prosody=True)
IDS = [1, 0, 20, 0, 14, 0, 30, 0, 2]


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        (("batch", "phonemes", 3), (1, 7, 3)),
        (("phonemes", "batch"), (7, 1)),
        (("b", "t"), (1, 7)),
        ((None, None, 3), (1, 7, 3)),
        ((1,), (1,)),
        (("batch",), (1,)),
        ((), ()),
    ],
)
def test_zeros_are_of_the_sentences_length(shape: tuple[Any, ...], wanted: tuple[int, ...]) -> None:
    made = ExtraInput("x", ir.DataType.INT64, shape).zeros(7, ("batch", "phonemes"))
    assert (made.shape, made.dtype.name) == (wanted, "int64")
    assert not made.any()


def test_zeros_are_of_the_sentences_length_when_the_ids_state_no_names() -> None:
    assert ExtraInput("x", ir.DataType.FLOAT, (None, "n", 3)).zeros(7, (None, None)).shape == (1, 7, 3)


@pytest.mark.parametrize("exporter", ["legacy", "dynamo"])
def test_inputs_are_found_by_what_they_index(tmp_path: Path, exporter: Any) -> None:
    voice = opened(tmp_path, Recipe(speakers=3, languages=2, prosody=True, exporter=exporter))
    inputs = voice.inputs
    assert inputs.names == ("input", "input_lengths", "scales", "sid", "lid", "prosody_features")
    assert inputs.speaker is not None
    assert inputs.language is not None
    assert (inputs.speaker.name, inputs.language.name, inputs.unread) == ("sid", "lid", ())
    assert (voice.speakers, voice.languages) == (3, 2)


def test_inputs_are_found_in_another_order(tmp_path: Path) -> None:
    model = voice_model(EVERYTHING)
    given = list(model.graph.input)
    del model.graph.input[:]
    model.graph.input.extend(reversed(given))
    inputs = open_voice(save(tmp_path / "voice.onnx", model)).inputs
    assert (inputs.ids, inputs.lengths, inputs.scales) == ("input", "input_lengths", "scales")
    assert inputs.speaker is not None
    assert inputs.speaker.name == "sid"


@pytest.mark.parametrize(
    ("kind", "shape"),
    [(TensorProto.INT64, ("batch_size", "phonemes")), (TensorProto.FLOAT, ("batch_size",)), (TensorProto.FLOAT, (1,))],
)
def test_inputs_are_found_behind_further_ones_of_their_type_and_rank(tmp_path: Path, kind: int, shape: Any) -> None:
    model = _read_by_the_scales(_with_input(voice_model(), kind, shape), "Shape")
    given = list(model.graph.input)
    del model.graph.input[:]
    model.graph.input.extend([given[-1], *given[:-1]])
    inputs = open_voice(save(tmp_path / "voice.onnx", model)).inputs
    assert (inputs.ids, inputs.lengths, inputs.scales) == ("input", "input_lengths", "scales")
    assert [extra.name for extra in inputs.extras] == ["more"]


def test_inputs_without_names_are_the_speakers_first(tmp_path: Path) -> None:
    voice = open_voice(save(tmp_path / "voice.onnx", numbered(voice_model(EVERYTHING))))
    assert voice.inputs.names == ("0", "1", "2", "3", "4", "5")
    assert (voice.speakers, voice.languages) == (3, 2)


@pytest.mark.parametrize("name", ["lid", "language_id", "langid", "LanguageID"])
def test_one_embedding_is_the_languages_when_its_input_is_called_so(tmp_path: Path, name: str) -> None:
    model = renamed(voice_model(Recipe(languages=3)), {"lid": name})
    voice = open_voice(save(tmp_path / "voice.onnx", model))
    assert (voice.speakers, voice.languages, voice.inputs.speaker) == (1, 3, None)


def test_the_host_half_is_the_voice_of_that_speaker_and_language(tmp_path: Path) -> None:
    voice = opened(tmp_path, EVERYTHING)
    host = open_host(voice, open_session(host_half(voice)), 2)
    found = run_host(host, IDS, (0.667, 1.0, 0.8))
    wanted = whole_voice(EVERYTHING, IDS, (0.0, 1.0, 0.0), speaker=2)
    np.testing.assert_array_equal(found.latent, wanted["z"])
    np.testing.assert_array_equal(found.mask, wanted["y_mask"])


def _with_input(model: onnx.ModelProto, kind: int = TensorProto.FLOAT, shape: Any = (1, "n")) -> onnx.ModelProto:
    model.graph.input.append(helper.make_tensor_value_info("more", kind, shape))
    return model


def notes_of(path: Path) -> tuple[str, ...]:
    return open_decoder(locate(str(path), no_hub), StageOptions(), open_session)("").notes


def test_an_input_that_nothing_reads_is_left_out_and_named(tmp_path: Path) -> None:
    path = save(tmp_path / "voice.onnx", _with_input(voice_model()))
    assert open_voice(path).inputs.unread == ("more",)
    assert "No sample of voice.onnx depends on its inputs more, so they are left out." in notes_of(path)


def _reading(model: onnx.ModelProto, op: str, reader: str) -> onnx.ModelProto:
    """`model` in which the node `reader` reads its first input with the mean of `more` added."""
    node = next(node for node in model.graph.node if node.name == reader)
    position = list(model.graph.node).index(node)
    first = node.input[0]
    node.input[0] = "with_more"
    made = [
        helper.make_node(op, ["more"], ["more.mean"], keepdims=0),
        helper.make_node("Add", [first, "more.mean"], ["with_more"]),
    ]
    for new in reversed(made):
        model.graph.node.insert(position, new)
    return model


def test_any_input_that_the_encoder_reads_is_taken_by_the_host_half_and_named(tmp_path: Path) -> None:
    model = _reading(_with_input(voice_model(), shape=("batch_size", 4, "phonemes")), "ReduceMean", "/enc_p/proj/Conv")
    path = save(tmp_path / "voice.onnx", model)
    voice = open_voice(path)
    assert [str(extra) for extra in voice.inputs.extras] == ["more float [batch_size, 4, phonemes]"]
    assert [value.name for value in host_half(voice).graph.inputs][:4] == ["input", "input_lengths", "scales", "more"]
    (note,) = [note for note in notes_of(path) if "further inputs" in note]
    assert note.endswith("gates feed them zeros: more float [batch_size, 4, phonemes].")


def test_an_input_that_the_decoder_reads_is_refused_by_name(tmp_path: Path) -> None:
    model = _reading(_with_input(voice_model()), "ReduceMean", "/dec/conv_pre/Conv")
    with pytest.raises(Refusal, match=r"reads more than a latent, a mask and a speaker embedding: .*\(from more\)"):
        open_voice(save(tmp_path / "voice.onnx", model))


def test_an_id_that_looks_up_nothing_in_the_speakers_embedding_is_refused_by_name(tmp_path: Path) -> None:
    model = _with_input(voice_model(Recipe(speakers=3)), TensorProto.INT64, ())
    speaker = next(node for node in model.graph.node if node.name == "/emb_g/Unsqueeze")
    position = list(model.graph.node).index(speaker)
    louder = helper.make_node("Mul", ["/emb_g/Gather_output_0", "more.float"], ["louder"])
    speaker.input[0] = "louder"
    model.graph.node.insert(position, louder)
    model.graph.node.insert(position, helper.make_node("Cast", ["more"], ["more.float"], to=TensorProto.FLOAT))
    with pytest.raises(Refusal, match="the input more reaches the speaker embedding, but is the id of nothing in it"):
        open_voice(save(tmp_path / "voice.onnx", model))


@pytest.mark.parametrize(("size", "told"), [(1, "1 number,"), (2, "2 numbers,"), (4, "4 numbers,")])
def test_scales_of_another_number_are_refused_with_both(tmp_path: Path, size: int, told: str) -> None:
    model = voice_model()
    model.graph.input[2].type.tensor_type.shape.dim[0].dim_value = size
    with pytest.raises(
        Refusal, match=rf"its input scales holds {told} not 3 scales; export it with piper's export_onnx"
    ):
        open_voice(save(tmp_path / "voice.onnx", model))


@pytest.mark.parametrize(
    ("shape", "told"), [((2, "phonemes"), "2, phonemes"), (("batch", 128), "batch, 128"), ((1, 1), "1, 1")]
)
def test_ids_of_a_fixed_size_are_refused_with_it(tmp_path: Path, shape: tuple[Any, ...], told: str) -> None:
    model = voice_model()
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("input", TensorProto.INT64, shape))
    says = (
        rf"its input input is \[{told}\], and the gates speak one sentence of any length; export it with dynamic axes"
    )
    with pytest.raises(Refusal, match=says):
        open_voice(save(tmp_path / "voice.onnx", model))


@pytest.mark.parametrize("kind", ["STRING", "BFLOAT16", "COMPLEX64", "FLOAT8E4M3FN"])
def test_an_input_of_a_type_that_cannot_be_fed_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    model = _with_input(voice_model(), getattr(TensorProto, kind))
    model = _read_by_the_scales(model, "Shape")
    with pytest.raises(Refusal, match=rf"the input more holds values of the type {kind.lower()}, .*export the voice"):
        open_voice(save(tmp_path / "voice.onnx", model))


@pytest.mark.parametrize("kind", ["BOOL", "UINT8", "INT32", "FLOAT16", "DOUBLE"])
def test_an_input_of_another_plain_type_is_fed_zeros_of_it(tmp_path: Path, kind: str) -> None:
    model = _read_by_the_scales(_with_input(voice_model(), getattr(TensorProto, kind), (1, "phonemes")), "Shape")
    voice = open_voice(save(tmp_path / "voice.onnx", model))
    host = open_host(voice, open_session(host_half(voice)))
    wanted = whole_voice(Recipe(), IDS, (0.0, 1.0, 0.0))
    np.testing.assert_array_equal(run_host(host, IDS, (0.667, 1.0, 0.8)).latent, wanted["z"])


def test_an_input_too_large_to_be_fed_is_refused_by_name(tmp_path: Path) -> None:
    model = _read_by_the_scales(_with_input(voice_model(), shape=("batch", 1 << 30, 1 << 10)), "Shape")
    with pytest.raises(Refusal, match=r"the input more float \[batch, 1073741824, 1024\] is too large"):
        open_voice(save(tmp_path / "voice.onnx", model))


def _read_by_the_scales(model: onnx.ModelProto, op: str) -> onnx.ModelProto:
    """`model` whose scales are read with 0 times what `op` makes of `more` added: all values are what they were."""
    reader = [
        helper.make_node(op, ["more"], ["more.made"]),
        helper.make_node("Cast", ["more.made"], ["more.float"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["more.float"], ["more.sum"], keepdims=0),
        helper.make_node("Mul", ["more.sum", "more.nothing"], ["more.zero"]),
        helper.make_node("Add", ["scales", "more.zero"], ["with_more"]),
    ]
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(0, np.float32), "more.nothing"))
    for node in model.graph.node:
        node.input[:] = ["with_more" if name == "scales" else name for name in node.input]
    for new in reversed(reader):
        model.graph.node.insert(0, new)
    return model


def test_a_speakers_id_without_axes_is_fed_as_one(tmp_path: Path) -> None:
    recipe = Recipe(speakers=3)
    model = voice_model(recipe)
    model.graph.input[3].CopyFrom(helper.make_tensor_value_info("sid", TensorProto.INT32, []))
    node = next(node for node in model.graph.node if node.name == "/emb_g/Gather")
    node.input[1] = "ids"
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1], np.int64), "one"))
    model.graph.node.insert(0, helper.make_node("Reshape", ["sid", "one"], ["ids"]))
    voice = open_voice(save(tmp_path / "voice.onnx", model))
    fed = voice.inputs.feed(IDS, (0.667, 1.0, 0.8), 2, 0)["sid"]
    assert isinstance(fed, np.ndarray)
    assert (fed.shape, fed.dtype.name, int(fed)) == ((), "int32", 2)
    found = run_host(open_host(voice, open_session(host_half(voice)), 2), IDS, (0.667, 1.0, 0.8))
    np.testing.assert_array_equal(found.latent, whole_voice(recipe, IDS, (0.0, 1.0, 0.0), speaker=2)["z"])


def test_tables_that_are_kept_in_half_precision_count_rows_behind_their_cast(tmp_path: Path) -> None:
    model = voice_model(Recipe(speakers=3))
    for weight in [t for t in model.graph.initializer if t.name in ("enc_p.emb.weight", "emb_g.weight")]:
        name = weight.name
        half = onnx.numpy_helper.to_array(weight).astype(np.float16)
        weight.CopyFrom(onnx.numpy_helper.from_array(half, f"{name}.half"))
        model.graph.node.insert(0, helper.make_node("Cast", [f"{name}.half"], [name], to=TensorProto.FLOAT))
    voice = open_voice(save(tmp_path / "voice.onnx", model))
    assert (voice.symbols, voice.speakers) == (Recipe().symbols, 3)


def looked_up(op: str) -> ir.Value:
    """An input `id` that goes through `op` into a lookup of 5 rows, behind an Identity."""
    nodes = [
        helper.make_node("Identity", ["table"], ["same"]),
        helper.make_node("Cast", ["id"], ["moved"], to=TensorProto.INT32)
        if op == "Cast"
        else helper.make_node(op, ["id"], ["moved"]),
        helper.make_node("Gather", ["same", "moved"], ["row"]),
    ]
    table = onnx.numpy_helper.from_array(np.zeros((5, 2), np.float32), "table")
    graph = helper.make_graph(
        nodes,
        "lookup",
        [helper.make_tensor_value_info("id", TensorProto.INT64, [1])],
        [helper.make_tensor_value_info("row", TensorProto.FLOAT, [1, 2])],
        [table],
    )
    return ir.from_proto(helper.make_model(graph)).graph.inputs[0]


@pytest.mark.parametrize(("op", "rows"), [("Cast", 5), ("Identity", 5), ("Clip", 5), ("Abs", None), ("Neg", None)])
def test_table_rows_sees_a_lookup_through_what_leaves_the_number_as_it_is(op: str, rows: int | None) -> None:
    assert table_rows(looked_up(op)) == rows


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_open_voice_names_a_constant_node_that_is_not_finite(tmp_path: Path, bad: float) -> None:
    model = voice_model(Recipe(speakers=3))
    weight = next(t for t in model.graph.initializer if t.name == "emb_g.weight")
    model.graph.initializer.remove(weight)
    values = onnx.numpy_helper.to_array(weight).copy()
    values[1, 2] = bad
    tensor = onnx.numpy_helper.from_array(values, "value")
    model.graph.node.insert(0, helper.make_node("Constant", [], ["emb_g.weight"], value=tensor))
    with pytest.raises(Refusal, match=r"the weight emb_g\.weight holds NaN or infinity"):
        open_voice(save(tmp_path / "voice.onnx", model))


def test_a_table_in_a_constant_node_counts_the_speakers(tmp_path: Path) -> None:
    model = voice_model(Recipe(speakers=3))
    weight = next(t for t in model.graph.initializer if t.name == "emb_g.weight")
    model.graph.initializer.remove(weight)
    model.graph.node.insert(0, helper.make_node("Constant", [], ["emb_g.weight"], value=weight))
    voice: Voice = open_voice(save(tmp_path / "voice.onnx", model))
    assert voice.speakers == 3


NAMES_OF_OURS = [
    {"sid": "g"},
    {"sid": "noise_duration", "scales": "noise_latent"},
    {"input": "g", "input_lengths": "z", "scales": "y_mask", "sid": "audio"},
    {"input": "stats", "input_lengths": "conditioning", "scales": "durations", "sid": "noise_duration_1"},
]


@pytest.mark.parametrize("names", NAMES_OF_OURS)
def test_inputs_that_are_called_as_a_seam_is_have_other_names_in_the_parts(
    tmp_path: Path, names: dict[str, str]
) -> None:
    recipe = Recipe(speakers=3)
    voice = open_voice(save(tmp_path / "voice.onnx", renamed(voice_model(recipe), names)))
    wanted = whole_voice(recipe, IDS, (0.0, 1.0, 0.0), speaker=2)
    host = open_host(voice, open_session(host_half(voice)), 2)
    spoken = run_host(host, IDS, (0.667, 1.0, 0.8))
    np.testing.assert_array_equal(spoken.latent, wanted["z"])
    decoded = open_session(decoder_cut(voice))({"z": spoken.latent, "y_mask": spoken.mask, **spoken.given})["audio"]
    np.testing.assert_array_equal(decoded.reshape(-1), wanted["output"].reshape(-1))
    parts = duration_parts(voice)
    feed = voice.inputs.feed(IDS, (0.0, 1.0, 0.0), 2, 0)
    assert parts.embedding is not None
    known = {**feed, **spoken.given, **dict.fromkeys(host.noises, np.zeros((1, 8, 999), np.float32))}
    for part in (parts.embedding, parts.encoder, parts.host):
        given = {str(value.name): known[str(value.name)] for value in part.graph.inputs}
        known |= open_session(part)(given)
    np.testing.assert_array_equal(known["z"], wanted["z"])
