from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from contracts.contract import Source
from contracts.errors import Refusal, UserInput
from contracts.files import sha256_of
from converters.piper.decoder import STAGE, open_decoder
from converters.piper.streaming import locate, read_voice
from converters.piper.voice import open_voice
from converters.stages import StageOptions
from tests.converters.hubs import no_hub
from tests.converters.voices import save, whole_voice
from tests.onnx_runs import open_session, run, snr_db
from tests.vits_writer.names import numbered, renamed
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.streaming import streaming_pair, write_streaming_pair
from tests.vits_writer.voice import decoder_model, voice_json, voice_model, write_voice

RECIPES = {
    "one speaker": Recipe(),
    "speakers and languages": Recipe(speakers=3, languages=2),
    "dynamo": Recipe(speakers=3, exporter="dynamo"),
}


def pair(folder: Path, recipe: Recipe | None = None, config: str = "config.json") -> Path:
    """The folder of a streaming voice as it is published."""
    folder.mkdir(parents=True, exist_ok=True)
    write_streaming_pair(folder, recipe)
    (folder / config).write_text(json.dumps(voice_json(recipe), ensure_ascii=False), encoding="utf-8")
    return folder


@pytest.mark.parametrize("half", ["encoder.onnx", "decoder.onnx"])
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_either_half_opens_the_whole_voice(tmp_path: Path, recipe: Recipe, half: str) -> None:
    folder = pair(tmp_path / "voice", recipe)
    voice = open_voice(folder / half)
    assert (voice.symbols, voice.speakers, voice.languages) == (recipe.symbols, recipe.speakers, recipe.languages)
    assert (voice.seam.hop, voice.sample_rate) == (recipe.hop, recipe.sample_rate)
    assert voice.config.phoneme_ids["^"] == (1,)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_two_halves_speak_as_the_voice_in_one_file(tmp_path: Path, recipe: Recipe) -> None:
    folder = pair(tmp_path / "voice", recipe)
    ids, scales = [1, 0, 20, 0, 14, 0, 2], (0.0, 1.0, 0.0)
    wanted = whole_voice(recipe, ids, scales, speaker=recipe.speakers - 1)
    voice = open_voice(folder / "decoder.onnx")
    got = run(voice.model, voice.inputs.feed(ids, scales, recipe.speakers - 1, 0))
    for name in ("z", "y_mask"):
        np.testing.assert_array_equal(got[name], wanted[name])
    assert snr_db(wanted["output"].reshape(-1), got["output"].reshape(-1)) >= 120.0


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_a_streaming_voice_becomes_the_decoder_that_its_one_file_becomes(tmp_path: Path, recipe: Recipe) -> None:
    folder = pair(tmp_path / "voice", recipe)
    export = open_decoder(locate(str(folder), no_hub), StageOptions(), open_session)("")
    one = write_voice(tmp_path / "one.onnx", recipe)
    wanted = open_decoder(locate(str(one), no_hub), StageOptions(), open_session)("")
    assert export.contract.inputs == wanted.contract.inputs
    for feed in (*export.feeds, *export.padded_feeds):
        got, expected = (run(made.model, feed)["audio"].reshape(-1) for made in (export, wanted))
        assert snr_db(expected, got) >= 120.0
    evidence = export.evidence()
    assert evidence.unreached == {}
    for item in evidence.equalities:
        for name, reference in item.reference.items():
            assert snr_db(np.asarray(reference), np.asarray(item.measured[name])) >= item.minimum_db


def test_halves_fit_by_their_order_when_names_are_only_numbers(tmp_path: Path) -> None:
    recipe = Recipe(speakers=3)
    encoder, decoder = streaming_pair(recipe)
    save(tmp_path / "encoder.onnx", numbered(encoder))
    save(tmp_path / "decoder.onnx", renamed(decoder, {"z": "latent", "y_mask": "mask", "g": "who"}))
    ids, scales = [1, 0, 20, 0, 2], (0.0, 1.0, 0.0)
    voice = open_voice(tmp_path / "encoder.onnx")
    got = run(voice.model, voice.inputs.feed(ids, scales, 2, 0))
    wanted = whole_voice(recipe, ids, scales, speaker=2)["output"]
    assert snr_db(wanted.reshape(-1), got[voice.seam.output].reshape(-1)) >= 120.0


def test_stage_locates_a_streaming_voice() -> None:
    assert STAGE.locate is locate


@pytest.mark.parametrize(
    ("named", "first"), [("", "decoder"), ("decoder.onnx", "decoder"), ("encoder.onnx", "encoder")]
)
def test_locate_takes_both_halves_and_calls_the_voice_after_its_folder(tmp_path: Path, named: str, first: str) -> None:
    folder = pair(tmp_path / "en_US-ann+RT-medium")
    made = locate(str(folder / named), no_hub)
    own = folder / f"{first}.onnx"
    other = folder / ("encoder.onnx" if first == "decoder" else "decoder.onnx")
    assert made.path == own
    assert made.source == Source("en_US-ann+RT-medium", sha256_of(own), "checkpoint")
    assert made.files == (own, other, folder / "config.json")


def test_locate_calls_a_streaming_voice_after_its_file_when_that_has_a_name_of_its_own(tmp_path: Path) -> None:
    for path in write_streaming_pair(tmp_path):
        path.rename(path.with_name(f"ann-{path.name}"))
    made = locate(str(tmp_path / "ann-decoder.onnx"), no_hub)
    assert made.source.name == "ann-decoder.onnx"
    assert made.files == (tmp_path / "ann-decoder.onnx", tmp_path / "ann-encoder.onnx")


def test_locate_takes_any_other_voice_as_its_file(tmp_path: Path) -> None:
    path = write_voice(tmp_path / "voice.onnx")
    made = locate(str(path), no_hub)
    assert (made.path, made.source, made.files) == (path, Source("voice.onnx", sha256_of(path), "checkpoint"), None)


@pytest.mark.parametrize(
    ("named", "says"), [("", "is a folder .*; name a voice's .onnx file in it"), ("x.onnx", "there is no such file")]
)
def test_locate_says_what_is_wrong_when_there_is_no_such_file(tmp_path: Path, named: str, says: str) -> None:
    with pytest.raises(UserInput, match=rf"^--checkpoint .*: {says}\.$"):
        locate(str(tmp_path / named), no_hub)


def test_locate_refuses_a_place_on_a_hub() -> None:
    with pytest.raises(UserInput, match=r"^--checkpoint hf://owner/voice: is a place on a hub"):
        locate("hf://owner/voice", no_hub)


@pytest.mark.parametrize("config", ["config.json", "decoder.onnx.json", "encoder.onnx.json", "en_US-ann.onnx.json"])
def test_read_voice_finds_the_json_of_a_streaming_voice(tmp_path: Path, config: str) -> None:
    folder = pair(tmp_path, config=config)
    for half in ("encoder.onnx", "decoder.onnx"):
        assert read_voice(folder / half)[1] == folder / config
    assert locate(str(folder), no_hub).files == (folder / "decoder.onnx", folder / "encoder.onnx", folder / config)


def test_read_voice_takes_no_json_when_several_might_be_it(tmp_path: Path) -> None:
    folder = pair(tmp_path, config="ann.onnx.json")
    (folder / "ben.onnx.json").write_text("{}")
    assert not read_voice(folder / "decoder.onnx")[1].is_file()


@pytest.mark.parametrize(("half", "missing"), [("encoder", "decoder"), ("decoder", "encoder")])
def test_half_a_voice_is_refused_by_the_file_that_is_missing(tmp_path: Path, half: str, missing: str) -> None:
    folder = pair(tmp_path)
    (folder / f"{missing}.onnx").unlink()
    says = (
        rf"is the {half} half of a streaming voice, and {missing}\.onnx, its {missing} half, is missing: put it beside"
    )
    with pytest.raises(UserInput, match=says):
        open_voice(folder / f"{half}.onnx")


@pytest.mark.parametrize("half", ["encoder", "decoder"])
def test_half_a_voice_is_refused_when_its_name_does_not_tell_the_other(tmp_path: Path, half: str) -> None:
    path = (pair(tmp_path) / f"{half}.onnx").rename(tmp_path / "voice.onnx")
    with pytest.raises(UserInput, match=rf"is the {half} half .*call the two encoder\.onnx and decoder\.onnx"):
        open_voice(path)


@pytest.mark.parametrize("other", [voice_model(), streaming_pair()[1]])
def test_half_a_voice_is_refused_when_what_lies_beside_it_is_not_the_other(
    tmp_path: Path, other: onnx.ModelProto
) -> None:
    folder = pair(tmp_path)
    save(folder / "encoder.onnx", other)
    with pytest.raises(UserInput, match=r"is the decoder half .*encoder\.onnx is not its encoder half"):
        open_voice(folder / "decoder.onnx")


@pytest.mark.parametrize(
    ("encoder", "decoder", "says"),
    [
        (Recipe(speakers=3), Recipe(), r"the decoder takes z, y_mask, the encoder gives z, y_mask, g; export both"),
        (Recipe(), Recipe(speakers=3), r"the decoder takes z, y_mask, g, the encoder gives z, y_mask; export both"),
        (Recipe(), Recipe(latent=4), r"the encoder gives z \[1, 8, 'time'\], the decoder takes it as \[1, 4, 'time'\]"),
        (Recipe(opset=15), Recipe(opset=17), r"they have the opsets ai\.onnx 15 and ai\.onnx 17; export both alike"),
    ],
)
def test_halves_of_two_voices_are_refused_by_what_does_not_fit(
    tmp_path: Path, encoder: Recipe, decoder: Recipe, says: str
) -> None:
    save(tmp_path / "encoder.onnx", streaming_pair(encoder)[0])
    save(tmp_path / "decoder.onnx", streaming_pair(decoder)[1])
    with pytest.raises((UserInput, Refusal), match=says):
        open_voice(tmp_path / "decoder.onnx")


def vocoder(shapes: list[list[Any]]) -> onnx.ModelProto:
    """A net that upsamples its first input, and adds the means of the others."""
    nodes = [helper.make_node("ConvTranspose", ["x0", "w"], ["y0"], strides=[2])]
    for i in range(1, len(shapes)):
        nodes.append(helper.make_node("ReduceMean", [f"x{i}"], [f"m{i}"], keepdims=0))
        nodes.append(helper.make_node("Add", [f"y{i - 1}", f"m{i}"], [f"y{i}"]))
    inputs = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, shape) for i, shape in enumerate(shapes)]
    output = helper.make_tensor_value_info(f"y{len(shapes) - 1}", TensorProto.FLOAT, None)
    weight = onnx.numpy_helper.from_array(np.ones((8, 1, 2), np.float32), "w")
    graph = helper.make_graph(nodes, "net", inputs, [output], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


@pytest.mark.parametrize("shapes", [[[1, 8, "n"]], [[1, 8, "n"], [1, 1]], [[1, 8, "n"], [1, 8, "n"]]])
def test_other_vocoders_are_not_taken_for_half_a_voice(tmp_path: Path, shapes: list[list[Any]]) -> None:
    with pytest.raises(Refusal, match="is not a VITS voice"):
        open_voice(save(tmp_path / "vocoder.onnx", vocoder(shapes)))


def test_a_decoder_of_ours_is_told_that_it_is_half_a_voice(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match="is the decoder half of a streaming voice"):
        open_voice(save(tmp_path / "decoder-w109.onnx", decoder_model()))
