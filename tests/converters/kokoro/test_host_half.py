"""The traced host against the module it is traced from, which has tests of its own against the original."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
import torch
from rknn_tts_runtime.speaking.kokoro_card import KokoroCard, read_card

from converters.kokoro.host_half import card_of, host_half, most_frames
from models.kokoro.config import KOKORO_82M
from models.kokoro.host import Host, Seam
from tests.kokoro_writer.checkpoint import SMALL, random_weights
from tests.models.kokoro.checkpoints import tame_weights
from tests.onnx_runs import Array, as_proto, open_session, snr_db
from tests.surgery.graphs import check

SENTENCES = ([0, 4, 0], [0, 1, 2, 3, 9, 8, 0], [0, *range(1, 10), *range(9, 0, -1), 0])


@cache
def made() -> ir.Model:
    return host_half(tame_weights(SMALL), SMALL)


def feed(tokens: list[int], speed: float = 1.0, extra: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(len(tokens))
    samples = most_frames(len(tokens), SMALL, speed) * SMALL.istftnet.hop + extra
    return {
        "tokens": np.array([tokens], np.int64),
        "voice_style": rng.standard_normal((1, 2 * SMALL.style_dim)).astype(np.float32),
        "speed": np.array([speed], np.float32),
        "noise_source": rng.standard_normal((1, samples, 9)).astype(np.float32),
    }


def in_torch(fed: dict[str, Array]) -> Seam:
    with torch.inference_mode():
        seam: Seam = Host(tame_weights(SMALL), SMALL)(*(torch.from_numpy(array) for array in fed.values()))
    return seam


def spectrum(har: Array) -> Array:
    """The numbers that magnitudes and phases stand for, as pairs."""
    magnitude, phase = np.split(har.astype(np.float64), 2, axis=1)
    return np.stack([magnitude * np.cos(phase), magnitude * np.sin(phase)])


@pytest.mark.parametrize("tokens", SENTENCES, ids=len)
@pytest.mark.parametrize("speed", [1.0, 0.6])
def test_host_half_is_the_module_whatever_the_length(tokens: list[int], speed: float) -> None:
    fed = feed(tokens, speed, extra=17)
    got, wanted = open_session(made())(fed), in_torch(fed)
    np.testing.assert_array_equal(got["durations"], wanted.durations.numpy())
    np.testing.assert_array_equal(got["style"], wanted.style.numpy())
    assert snr_db(wanted.x.numpy(), got["x"]) > 115
    # What is rounded in the pitch is summed up in the phases, over all frames: no rounding elsewhere makes up for it.
    assert snr_db(spectrum(wanted.har.numpy()), spectrum(got["har"])) > 80


def test_host_half_has_its_inputs_and_outputs_with_their_shapes() -> None:
    graph = made().graph
    check(made())
    shapes = {value.name: [str(size) for size in value.shape or ()] for value in (*graph.inputs, *graph.outputs)}
    assert shapes == {
        "tokens": ["1", "tokens"],
        "voice_style": ["1", "8"],
        "speed": ["1"],
        "noise_source": ["1", "samples", "9"],
        "x": ["1", "16", "frames"],
        "har": ["1", "6", "columns"],
        "style": ["1", "4"],
        "durations": ["1", "tokens"],
    }
    assert not any(node.op_type.startswith("Random") for node in graph)


def test_host_half_cuts_noise_that_is_longer_than_needed() -> None:
    session, long = open_session(made()), feed(SENTENCES[1])
    whole = session(long)
    samples = whole["x"].shape[-1] * SMALL.istftnet.hop
    short = session({**long, "noise_source": long["noise_source"][:, :samples]})
    np.testing.assert_array_equal(short["har"], whole["har"])
    other = session({**long, "noise_source": long["noise_source"][:, ::-1]})
    assert np.abs(other["har"] - whole["har"]).max() > 0.1


def test_host_half_holds_each_weight_once_and_none_of_the_generator() -> None:
    weights = random_weights(SMALL)
    source = "decoder.module.generator.m_source"
    kept = [a for n, a in weights.items() if n.startswith(source) or not n.startswith("decoder.module.generator")]
    held = [value.const_value for value in made().graph.initializers.values()]
    # Beside them: small constants; gains of weight norm are folded away.
    assert sum(tensor.size for tensor in held if tensor is not None) < 1.05 * sum(array.size for array in kept)


def test_host_half_is_the_same_each_time_and_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again = host_half(tame_weights(SMALL), SMALL)
    assert not caught
    assert capfd.readouterr() == ("", "")
    assert as_proto(again).SerializeToString() == as_proto(made()).SerializeToString()


@pytest.mark.parametrize(("tokens", "speed", "frames"), [(3, 1.0, 30), (3, 0.6, 54), (3, 100.0, 6)])
def test_most_frames_is_every_token_at_its_longest(tokens: int, speed: float, frames: int) -> None:
    assert SMALL.max_dur == 5
    assert most_frames(tokens, SMALL, speed) == frames


def test_host_half_carries_what_a_board_speaks_with() -> None:
    vocabulary = {"ʨ": 3, "a": 1}
    made = host_half(tame_weights(SMALL), SMALL, vocabulary)
    metadata = {entry.key: entry.value for entry in as_proto(made).metadata_props}
    card = read_card(metadata, Path("kokoro-host.onnx"))
    assert card == KokoroCard(24000, 30, 4, 5, 8, 9, 10, 18, 10, vocabulary)
    assert list(card.vocabulary) == ["a", "ʨ"]


def test_card_of_kokoro_82m_is_as_published() -> None:
    # 24 kHz, frames of 300 samples, a transform of 20 by 5, styles of 256, nine sines, 510 phonemes of 178 tokens;
    # a duration is at most 50, and two frames each.
    wanted = KokoroCard(24000, 300, 20, 5, 256, 9, 178, 510, 100, {})
    assert card_of(KOKORO_82M, {}) == wanted
    assert wanted.columns_per_frame == 60
