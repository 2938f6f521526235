"""Duration encoder, its host half and decoder, one behind the other, against the whole voice: the pieces meet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from rknn_tts_runtime import decode_windowed

from contracts.contract import Source
from contracts.files import sha256_of
from converters.piper.decoder import open_decoder
from converters.piper.duration_encoder import open_encoder
from converters.stages import Checkpoint, StageOptions
from tests.converters.duration_voices import ATTENTIVE, settings, tokens
from tests.converters.piper.test_duration_encoder import finished
from tests.finished_exports import reshaped
from tests.onnx_runs import Array, open_session, run, snr_db
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import voice_model, write_voice

WIDTH = 128
IDS = [1, *(i for phoneme in range(50) for i in (0, 3 + phoneme % 40)), 0, 2]
"""103 of them, which take several windows of frames."""

LEAST_DB = 95.0
"""What whole utterances owe window by window (docs/piper.md, Windows)."""


def said(recipe: Recipe, speaker: int) -> tuple[Array, dict[str, Array]]:
    """What the voice says as it was written, and the noises that it drew, by the host half's names."""
    model = voice_model(recipe)
    drawn = [node.output[0] for node in model.graph.node if node.op_type == "RandomNormalLike"]
    model.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in drawn)
    feed = {**tokens(IDS), **settings((0.667, 1.0, 0.8)), "sid": np.array([speaker], np.int64)}
    got = run(model, {value.name: feed[value.name] for value in model.graph.input})
    noises = {"noise_latent" if got[name].shape[1] == recipe.latent else "noise_duration": got[name] for name in drawn}
    return got["output"].ravel(), noises


@pytest.mark.parametrize(
    "recipe",
    [ATTENTIVE, replace(ATTENTIVE, speakers=2, exporter="dynamo"), Recipe(duration_noise=False)],
    ids=["attentive", "two speakers", "no duration noise"],
)
def test_pieces_say_what_the_whole_voice_says_on_the_same_noise(tmp_path: Path, recipe: Recipe) -> None:
    speaker = recipe.speakers - 1
    path = write_voice(tmp_path / "voice.onnx", recipe)
    checkpoint = Checkpoint(path, Source(path.name, sha256_of(path), "checkpoint"))
    options = StageOptions(speaker=speaker)
    encoder = open_encoder(checkpoint, replace(options, widths=str(WIDTH)), open_session)(f"n{WIDTH}")
    decoder = open_decoder(checkpoint, options, open_session)("")
    encode, decode_window = finished(encoder).graph, finished(decoder).graph
    window = decoder.contract.window
    assert window is not None
    assert encoder.host is not None
    whole, noises = said(recipe, speaker)

    at_hand = dict(tokens(IDS, WIDTH))
    if recipe.speakers > 1:
        assert decoder.host is not None
        asked = {**tokens(IDS), **settings((0.667, 1.0, 0.8)), "sid": np.array([speaker], np.int64), **noises}
        at_hand["g"] = run(decoder.host, asked)["g"]
    encoded = {name: array[:, :, 0] for name, array in run(encode, reshaped(encode, at_hand)).items()}
    behind = {**encoded, **tokens(IDS), **settings((0.667, 1.0, 0.8)), "sid": np.array([speaker], np.int64), **noises}
    spoken = run(encoder.host, {str(v.name): behind[str(v.name)] for v in encoder.host.graph.inputs})

    def decoded(latent: Array, mask: Array) -> Array:
        feed = {**at_hand, **spoken, "z": latent, "y_mask": mask}
        return run(decode_window, reshaped(decode_window, feed))["audio"].astype(np.float32)

    samples = decode_windowed(
        decoded, spoken["z"], spoken["y_mask"], window.frames, window.left, window.right, window.hop
    )
    assert spoken["z"].shape[-1] > window.frames
    assert samples.shape == whole.shape
    assert snr_db(whole, samples) >= LEAST_DB
