from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from contracts.errors import Refusal, UserInput
from converters.inflect.config import Stated
from converters.inflect.voice import Graphs, Voice, decoder_cut, host_half, open_voice, watched_decode
from models.inflect.config import MICRO
from surgery.fold_constants import fold_constants
from surgery.fold_neutral_operands import fold_neutral_operands
from surgery.normalise_static_inputs import normalise_static_inputs
from tests.converters.inflect.releases import INPUTS, SMALL, graphs
from tests.onnx_runs import Array, run, snr_db
from tests.vits_writer.names import renamed

IDS = [0, 5, 0, 9, 0, 14, 0]
EXACT_DB = 120.0
"""The same operators on the same numbers: fp32 rounding at most."""


def opened(pair: tuple[onnx.ModelProto, onnx.ModelProto] | None = None, stated: Stated | None = None) -> Voice:
    duration, decode = pair or graphs()
    return open_voice(Graphs(ir.from_proto(duration), ir.from_proto(decode), "duration.onnx", "decode.onnx"), stated)


def published_run(scale: float = 0.5) -> tuple[dict[str, Array], Array, Array]:
    """What `duration.onnx` gives for IDS; the latent of it, by hand; and what `decode.onnx` makes of that."""
    duration, decode = graphs()
    feed: dict[str, Array] = {
        "tokens": np.array([IDS], np.int64),
        "lengths": np.array([len(IDS)], np.int64),
        "length_scale": np.array(1.5, np.float32),
    }
    prior = run(duration, feed)
    noise = np.random.default_rng(7).standard_normal(prior["m_p_exp"].shape).astype(np.float32)
    latent = prior["m_p_exp"] + np.exp(prior["logs_p_exp"]) * noise * np.float32(scale)
    given: dict[str, Array] = {**prior, "zp_noise": noise, "noise_scale": np.array(scale, np.float32)}
    return given, latent, run(decode, given)["waveform"]


def test_open_voice_finds_what_belongs_together() -> None:
    voice = opened()
    assert (voice.ids, voice.lengths, voice.length_scale) == ("tokens", "lengths", "length_scale")
    assert voice.wires == {"m_p_exp": "m_p_exp", "logs_p_exp": "logs_p_exp", "y_mask": "y_mask"}
    assert voice.symbols == SMALL.n_vocab
    assert voice.sample_rate == 24_000  # family-facts
    assert opened(stated=Stated(16_000, 8)).sample_rate == 16_000


def test_decoder_cut_makes_the_published_waveform_of_the_latent() -> None:
    given, latent, waveform = published_run()
    cut = decoder_cut(opened())
    assert [value.name for value in cut.graph.inputs] == ["z", "y_mask"]
    got = run(cut, {"z": latent, "y_mask": given["y_mask"]})["audio"]
    assert snr_db(waveform, got) >= EXACT_DB


def test_watched_decode_is_the_published_one_and_tells_its_latent() -> None:
    given, latent, waveform = published_run()
    got = run(watched_decode(opened()), given)
    assert snr_db(waveform, got["audio"]) >= EXACT_DB
    assert snr_db(latent, got["z"]) >= EXACT_DB


@pytest.mark.parametrize("spare", [0, 9])
def test_host_half_is_both_graphs_up_to_the_latent(spare: int) -> None:
    given, latent, _ = published_run()
    host = host_half(opened())
    onnx.checker.check_model(ir.to_proto(host), full_check=True)
    assert [value.name for value in host.graph.inputs] == ["tokens", "lengths", "length_scale", *INPUTS[3:]]
    noise = np.concatenate([given["zp_noise"], np.full((1, SMALL.inter_channels, spare), 99, np.float32)], axis=-1)
    feed: dict[str, Array] = {
        "tokens": np.array([IDS], np.int64),
        "lengths": np.array([len(IDS)], np.int64),
        "length_scale": np.array(1.5, np.float32),
        "zp_noise": noise,
        "noise_scale": given["noise_scale"],
    }
    got = run(host, feed)
    assert snr_db(latent, got["z"]) >= EXACT_DB
    np.testing.assert_array_equal(got["y_mask"], given["y_mask"])


def test_host_half_has_the_published_names_when_decode_has_others() -> None:
    duration, decode = graphs()
    decode = renamed(decode, {"zp_noise": "tokens", "noise_scale": "n"})  # one is an input of duration's too
    host = host_half(opened((duration, decode)))
    assert [value.name for value in host.graph.inputs] == ["tokens", "lengths", "length_scale", *INPUTS[3:]]
    onnx.checker.check_model(ir.to_proto(host), full_check=True)


def _nan(model: onnx.ModelProto) -> str:
    weight = next(w for w in model.graph.initializer if w.data_type == TensorProto.FLOAT and len(w.dims) == 3)
    values = numpy_helper.to_array(weight).copy()
    values.flat[0] = np.nan
    weight.CopyFrom(numpy_helper.from_array(values, weight.name))
    return str(weight.name)


@pytest.mark.parametrize("number", [0, 1])
def test_open_voice_names_the_weight_that_is_not_finite(number: int) -> None:
    pair = graphs()
    name = _nan(pair[number])
    with pytest.raises(Refusal, match=rf"{('duration', 'decode')[number]}\.onnx: the weight {name} holds NaN"):
        opened(pair)


def _fewer_outputs(duration: onnx.ModelProto, decode: onnx.ModelProto) -> None:
    del duration.graph.output[1]


def _other_opset(duration: onnx.ModelProto, decode: onnx.ModelProto) -> None:
    duration.opset_import[0].version = 16


def _float_ids(duration: onnx.ModelProto, decode: onnx.ModelProto) -> None:
    duration.graph.input[0].type.tensor_type.elem_type = TensorProto.INT32


def _two_scales(duration: onnx.ModelProto, decode: onnx.ModelProto) -> None:
    duration.graph.input.append(helper.make_tensor_value_info("noise_w", TensorProto.FLOAT, []))


def _no_table(duration: onnx.ModelProto, decode: onnx.ModelProto) -> None:
    for node in duration.graph.node:
        node.input[:] = ["same" if name == "tokens" else name for name in node.input]
    duration.graph.node.insert(0, helper.make_node("Identity", ["tokens"], ["same"]))


def _wider(duration: onnx.ModelProto, decode: onnx.ModelProto) -> None:
    decode.CopyFrom(graphs(dataclasses.replace(SMALL, inter_channels=12))[1])


def _fixed(duration: onnx.ModelProto, decode: onnx.ModelProto) -> None:
    decode.graph.input[0].type.tensor_type.shape.dim[2].dim_value = 64


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_wider, r"decode\.onnx: takes m_p_exp of 12 channels, and duration\.onnx gives 8: they are not two of one"),
        (_fixed, r"decode\.onnx: its input m_p_exp is of 64 frames, and gates need any number; export it with that"),
        (_fewer_outputs, r"decode\.onnx: takes logs_p_exp, and duration\.onnx gives m_p_exp, y_mask: they are not two"),
        (_other_opset, r"decode\.onnx and duration\.onnx state other opsets: give two of one release"),
        (_float_ids, r"duration\.onnx: is not Inflect v2's: it has 0 inputs for the token ids"),
        (_two_scales, r"duration\.onnx: is not Inflect v2's: it has 2 inputs for the length scale"),
        (_no_table, r"its input tokens does not index a table of symbols"),
    ],
)
def test_open_voice_says_what_does_not_fit(damage: object, told: str) -> None:
    duration, decode = graphs()
    assert callable(damage)
    damage(duration, decode)
    with pytest.raises(Refusal, match=told):
        opened((duration, decode))


def test_open_voice_names_both_hops_when_the_config_is_another_models() -> None:
    with pytest.raises(UserInput, match=r"has 8 samples a frame \(hop\), and config\.json says 256"):
        opened(stated=Stated(24_000, 256))


def test_open_voice_names_both_widths_when_the_config_is_another_models() -> None:
    with pytest.raises(UserInput, match=r"a latent of 8 channels, and config\.json says 192 \(inter_channels\); give"):
        opened(stated=Stated(24_000, 8, 192))


def test_feeds_have_the_ranks_of_the_inputs_they_are_for() -> None:
    duration, decode = graphs()
    scale = next(value for value in decode.graph.input if value.name == "noise_scale")
    scale.CopyFrom(helper.make_tensor_value_info("noise_scale", TensorProto.FLOAT, [1]))
    voice = opened((duration, decode))
    assert voice.scale(0.5)["noise_scale"].shape == (1,)
    feed = voice.durations_feed(IDS, 1.5)
    assert {name: array.shape for name, array in feed.items()} == {
        "tokens": (1, 7),
        "lengths": (1,),
        "length_scale": (),
    }
    assert feed["lengths"].tolist() == [7]


def test_cut_folds_to_the_references_number_of_nodes_when_it_has_the_releases_layers() -> None:
    """24 Shape and 24 ConstantOfShape before, 409 nodes at a window of 256 behind (reference, Inflect v2).

    What a graph has of nodes its layers say, and not how wide they are.
    """
    narrow = dataclasses.replace(
        MICRO, inter_channels=8, hidden_channels=8, filter_channels=8, upsample_initial_channel=32, n_vocab=9
    )
    cut = decoder_cut(opened(graphs(narrow)))
    before = Counter(node.op_type for node in cut.graph)
    assert (before["Shape"], before["ConstantOfShape"]) == (24, 24)
    folded = cut
    shapes = {"z": (1, 8, 256), "y_mask": (1, 1, 256)}
    for step in (normalise_static_inputs(shapes), fold_constants(), fold_neutral_operands()):
        folded = step.rewrite(folded).model
    after = Counter(node.op_type for node in folded.graph)
    assert (after["Shape"], after["ConstantOfShape"], after["Constant"]) == (0, 0, 0)
    assert sum(after.values()) == 409


def test_graphs_stay_as_they_were_read() -> None:
    duration, decode = graphs()
    voice = opened((duration, decode))
    before = ir.to_proto(voice.graphs.decode).SerializeToString()
    for made in (decoder_cut, watched_decode, host_half):
        made(voice)
    assert ir.to_proto(voice.graphs.decode).SerializeToString() == before
