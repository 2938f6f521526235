"""Piper's speaker over twins, against the voices as they were written, whole, on the same noise."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from rknn_tts_runtime.backends.twins import TwinBackend
from rknn_tts_runtime.faults import BadInput, Mismatch
from rknn_tts_runtime.plans.plan import Plan
from rknn_tts_runtime.speaking import seam
from rknn_tts_runtime.speaking.piper import open_piper
from rknn_tts_runtime.speaking.speaker import Asked, Speaker
from rknn_tts_runtime.speaking.stopwatch import Stopwatch

from tests.converters.duration_voices import ATTENTIVE
from tests.onnx_runs import snr_db
from tests.runtime.fake_backends import FakeBackend
from tests.runtime.speaking.small_voices import (
    edited,
    piper_engines,
    plan_of,
    recorded_feeds,
    said_by_the_voice,
    spoken,
)
from tests.vits_writer.recipe import ALPHABET, Recipe

CHOIR = replace(ATTENTIVE, speakers=3)
WINDOWS = (80, 109)
NARROW, WIDE = (f"piper-decoder-w{window}-masked" for window in WINDOWS)

SHORT = [1, 0, 20, 0, 14, 0, 30, 0, 2]
LONG = [1, *(i for phoneme in range(50) for i in (0, 3 + phoneme % 40)), 0, 2]
"""103 of them, which take several windows of frames."""

LEAST_DB = 95.0
"""What whole utterances owe window by window (docs/piper.md, Windows)."""


@pytest.fixture(scope="module")
def choir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A voice of three speakers: decoders of two windows, duration encoders of 17 and 24 ids."""
    return piper_engines(tmp_path_factory.mktemp("choir"), CHOIR, WINDOWS, "17,24")


@pytest.fixture(scope="module")
def solo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain voice of one speaker and one window."""
    return piper_engines(tmp_path_factory.mktemp("solo"), Recipe())


@pytest.fixture(scope="module")
def one(choir: Path) -> Speaker:
    """The choir, with one window and no duration encoder."""
    return open_piper(decoder_plan(choir), TwinBackend())


@pytest.fixture(scope="module")
def encoded(choir: Path) -> Speaker:
    """The choir with its duration encoders."""
    return open_piper(both_plan(choir), TwinBackend())


@pytest.fixture(scope="module")
def alone(solo: Path) -> Speaker:
    """The voice of one speaker."""
    return open_piper(decoder_plan(solo), TwinBackend())


def copied(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to / "copy"))


def decoder_plan(folder: Path, main: str = f"{WIDE}.rknn") -> Plan:
    return plan_of(folder, decoder={"main": main})


def both_plan(folder: Path, main: str = f"{WIDE}.rknn") -> Plan:
    ladder = "piper-duration_encoder-n17.rknn,piper-duration_encoder-n24.rknn"
    return plan_of(folder, decoder={"main": main}, duration_encoder={"main": ladder})


@pytest.mark.parametrize(("ids", "speaker"), [(SHORT, 2), (LONG, 0)], ids=["short", "long"])
def test_speaks_as_the_voice_does_on_the_same_noise(
    one: Speaker, ids: list[int], speaker: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeds = recorded_feeds(monkeypatch)
    samples, pieces, stopwatch = spoken(one, Asked(ids=tuple(ids), speaker=speaker, seed=5))
    (fed,) = [feed for name, feed in feeds if name == "piper-host.onnx"]
    whole = said_by_the_voice(CHOIR, ids, fed, speaker)
    assert samples.dtype == np.float32
    assert snr_db(whole, samples) >= LEAST_DB
    frames = whole.size // CHOIR.hop
    assert (frames < 109) == (ids is SHORT)
    # By hand: 109 - 64 new frames a window, the first and the last have 32 more.
    assert len(pieces) == (1 if frames <= 109 else 1 + -(-(frames - 109) // 45))
    assert {name: stage.runs for name, stage in stopwatch.stages.items()} == {
        "phonemes": 1,
        "host half": 1,
        "decoder": len(pieces),
    }
    assert one.sample_rate == CHOIR.sample_rate


def test_a_ladder_of_masked_and_trimmed_windows_speaks_as_the_voice_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = Recipe(speakers=2)
    piper_engines(tmp_path, recipe, ladder="80m,128t")
    stems = ("w80-masked", "w128-trimmed")
    voice = open_piper(decoder_plan(tmp_path, ",".join(f"piper-decoder-{stem}.rknn" for stem in stems)), TwinBackend())
    feeds = recorded_feeds(monkeypatch)
    used: set[str] = set()
    for ids in (SHORT, LONG[:61], LONG):
        feeds.clear()
        samples, pieces, stopwatch = spoken(voice, Asked(ids=tuple(ids), speaker=1, seed=5))
        fed = next(feed for name, feed in feeds if name == "piper-host.onnx")
        assert snr_db(said_by_the_voice(recipe, ids, fed, 1), samples) >= LEAST_DB
        runs = {name: stage.runs for name, stage in stopwatch.stages.items() if name.startswith("decoder")}
        assert sum(runs.values()) == len(pieces)
        used |= set(runs)
        if ids is SHORT:
            assert runs == {"decoder w80": 1}
    assert used == {"decoder w80", "decoder w128"}
    voice.close()


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(speakers=2, languages=2, prosody=True),
        Recipe(duration_noise=False),
        Recipe(encoder_noise=True),
    ],
    ids=["further inputs", "no duration noise", "an encoder's noise"],
)
def test_speaks_voices_of_other_inputs_and_noises(
    tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    voice = open_piper(decoder_plan(piper_engines(tmp_path, recipe)), TwinBackend())
    feeds = recorded_feeds(monkeypatch)
    samples, _, _ = spoken(voice, Asked(ids=tuple(SHORT), speaker=recipe.speakers - 1))
    fed = [feed for name, feed in feeds if name == "piper-host.onnx"][-1]
    assert snr_db(said_by_the_voice(recipe, SHORT, fed, recipe.speakers - 1), samples) >= LEAST_DB


def test_speaks_faster_by_the_length_scale(alone: Speaker, monkeypatch: pytest.MonkeyPatch) -> None:
    feeds = recorded_feeds(monkeypatch)
    samples, _, _ = spoken(alone, Asked(ids=tuple(LONG), speed=2.0))
    whole = said_by_the_voice(Recipe(), LONG, feeds[0][1], speed=2.0)
    assert snr_db(whole, samples) >= LEAST_DB
    assert samples.size < spoken(alone, Asked(ids=tuple(LONG)))[0].size


def test_the_same_seed_says_the_same_and_another_another(alone: Speaker) -> None:
    first, again, other = (spoken(alone, Asked(ids=tuple(LONG), seed=seed))[0] for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert first.shape != other.shape or np.abs(first - other).max() > 1e-3


def test_noise_that_was_too_short_is_drawn_again_and_begins_alike(
    alone: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _, _ = spoken(alone, Asked(ids=tuple(LONG)))
    monkeypatch.setattr(seam, "FRAMES_AN_ID", 0)
    feeds = recorded_feeds(monkeypatch)
    samples, _, _ = spoken(alone, Asked(ids=tuple(LONG)))
    lengths = [feed["noise_latent"].shape[-1] for name, feed in feeds if name == "piper-host.onnx"]
    assert lengths == [64, 1, samples.size // Recipe().hop]
    np.testing.assert_array_equal(samples, expected)


def test_a_ladder_of_windows_decodes_with_the_cheapest(choir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    voice = open_piper(decoder_plan(choir, f"{NARROW}.rknn,{WIDE}.rknn"), TwinBackend())
    feeds = recorded_feeds(monkeypatch)
    # Modelled as 20 and 27.25 ms: one narrow window is cheaper than a wide one, and of many windows the wide are.
    for ids, wanted in ((SHORT, NARROW), (LONG, WIDE)):
        feeds.clear()
        samples, _, _ = spoken(voice, Asked(ids=tuple(ids), speaker=1))
        assert {name for name, _ in feeds} == {"piper-host.onnx", f"{wanted}.onnx"}
        assert snr_db(said_by_the_voice(CHOIR, ids, feeds[0][1], 1), samples) >= LEAST_DB


@pytest.mark.parametrize(("count", "width"), [(17, 17), (19, 24)])
def test_the_narrowest_duration_encoder_that_holds_the_ids_speaks_as_the_voice_does(
    encoded: Speaker, count: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeds = recorded_feeds(monkeypatch)
    ids = [*LONG[: count - 1], 2]
    samples, _, stopwatch = spoken(encoded, Asked(ids=tuple(ids), speaker=2, seed=3))
    assert [name for name, _ in feeds if "duration_encoder" in name] == [f"piper-duration_encoder-n{width}.onnx"]
    assert set(stopwatch.stages) == {"phonemes", "host half", "duration encoder", "decoder"}
    fed = [feed for name, feed in feeds if name == "piper-duration-host.onnx"][-1]
    assert snr_db(said_by_the_voice(CHOIR, ids, fed, 2), samples) >= LEAST_DB


def test_ids_that_no_duration_encoder_holds_go_through_the_host_half(one: Speaker, encoded: Speaker) -> None:
    samples, _, stopwatch = spoken(encoded, Asked(ids=tuple(LONG), speaker=1))
    assert "duration encoder" not in stopwatch.stages
    np.testing.assert_array_equal(samples, spoken(one, Asked(ids=tuple(LONG), speaker=1))[0])


def test_both_ways_draw_the_same_noise(one: Speaker, encoded: Speaker) -> None:
    asked = Asked(ids=tuple(SHORT), speaker=1, seed=11)
    assert snr_db(spoken(one, asked)[0], spoken(encoded, asked)[0]) >= LEAST_DB


def test_sentences_of_a_text_are_spoken_one_after_the_other(solo: Path) -> None:
    def phonemise(voice: str, clusters: Any, text: str) -> list[list[str]]:
        assert (voice, list(clusters), text) == ("en-us", [], "Ha. Ho.")
        return [["h", "a"], ["h", "ʉ", "o"]]

    voice = open_piper(decoder_plan(solo), TwinBackend(), phonemise)
    samples, _, stopwatch = spoken(voice, Asked(text="Ha. Ho."))
    h, a = ALPHABET.index("h"), ALPHABET.index("a")
    first, _, _ = spoken(voice, Asked(ids=(1, 0, h, 0, a, 0, 2)))
    np.testing.assert_array_equal(samples[: first.size], first)
    assert stopwatch.stages["host half"].runs == 2
    assert spoken(voice, Asked(phonemes="ha"))[0].tobytes() == first.tobytes()
    assert voice.notes[-1] == "The voice in piper-host.onnx has no id for 'ʉ': left out of what is said."


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (Asked(ids=(1, 0, 99)), r"99 is no id of the voice in piper-host.onnx, whose ids go from 0 to 53"),
        (Asked(ids=()), "nothing to speak"),
        (Asked(ids=(1,) * 3000), "2048 ids, and this has 3000"),
        (Asked(ids=(1, 2), speaker=3), r"has the speakers 0 to 2 \(speaker_0: 0, speaker_1: 1, speaker_2: 2\)"),
        (Asked(ids=(1, 2), voice=Path("voice.npz")), "no styles"),
        (Asked(ids=(1, 2), speed=0.0), "--speed 0.0"),
        (Asked(ids=(1, 2), seed=-1), "--seed -1"),
    ],
)
def test_what_cannot_be_said_is_refused_before_anything_runs(
    one: Speaker, asked: Asked, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeds = recorded_feeds(monkeypatch)
    with pytest.raises(BadInput, match=says):
        one.speak(asked, Stopwatch())
    assert not feeds


def test_a_host_half_of_another_export_is_refused(choir: Path, solo: Path, tmp_path: Path) -> None:
    folder = copied(choir, tmp_path)
    shutil.copy(solo / "piper-host.onnx", folder / "piper-host.onnx")
    with pytest.raises(Mismatch, match=r"piper-host\.onnx: its digest is .* piper-decoder-w109-masked\.json has"):
        open_piper(decoder_plan(folder), TwinBackend())


def test_a_host_half_that_tells_nothing_of_its_voice_is_refused(solo: Path, tmp_path: Path) -> None:
    folder = copied(solo, tmp_path)
    host = onnx.load(folder / "piper-host.onnx")
    del host.metadata_props[:]
    onnx.save(host, folder / "piper-host.onnx")
    settle_digest(folder)
    with pytest.raises(BadInput, match=r"tells nothing of its voice .* export the voice again"):
        open_piper(decoder_plan(folder), TwinBackend())


def test_a_host_half_of_a_latent_of_other_channels_is_refused(solo: Path, tmp_path: Path) -> None:
    folder = piper_engines(tmp_path, Recipe(latent=12))
    for suffix in ("json", "onnx", "rknn"):
        shutil.copy(solo / f"{WIDE}.{suffix}", folder / f"{WIDE}.{suffix}")
    settle_digest(folder)
    voice = open_piper(decoder_plan(folder), TwinBackend())
    with pytest.raises(Mismatch, match="gives a latent of 12 channels, and the decoder's engine takes 8"):
        spoken(voice, Asked(ids=tuple(SHORT)))


@pytest.mark.parametrize("stem", ["piper-duration_encoder-n17", NARROW])
def test_engines_of_two_checkpoints_are_refused_and_closed(choir: Path, tmp_path: Path, stem: str) -> None:
    folder = copied(choir, tmp_path)
    edited(folder / f"{stem}.json", source={"name": "b.onnx", "sha256": "ab" * 32, "kind": "checkpoint"})
    backend = FakeBackend()
    with pytest.raises(Mismatch, match="are of two"):
        open_piper(both_plan(folder, f"{WIDE}.rknn,{NARROW}.rknn"), backend)
    opened, closed = (
        sorted(event.split()[1] for event in backend.events if event.startswith(what)) for what in ("open", "close")
    )
    assert opened == closed


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda window: None, "tells of no window"),
        (lambda window: {**window, "sample_rate": 8000}, "at 8000 Hz, and the voice in .* at 16000 Hz"),
        (lambda window: {**window, "hop": 8}, "is no decoder with a window of 109 frames of 8 samples"),
    ],
)
def test_a_window_of_another_voice_is_refused(solo: Path, tmp_path: Path, change: Any, says: str) -> None:
    folder = copied(solo, tmp_path)
    manifest = folder / f"{WIDE}.json"
    edited(manifest, window=change(json.loads(manifest.read_text(encoding="utf-8"))["window"]))
    with pytest.raises(BadInput, match=says):
        open_piper(decoder_plan(folder), FakeBackend())


@pytest.mark.parametrize(
    ("key", "place", "tensor", "says"),
    [
        ("outputs", 0, {"name": "stats", "shape": [1, 12, 1, 17]}, "stats of 12 channels, not 16,"),
        ("outputs", 1, {"name": "other", "shape": [1, 8, 1, 17]}, "other of the one is nothing to the other"),
        ("inputs", 2, {"name": "prosody", "shape": [1, 17]}, "prosody of the one is nothing to the other"),
    ],
)
def test_a_duration_encoder_of_another_voice_is_refused(
    choir: Path, tmp_path: Path, key: str, place: int, tensor: dict[str, Any], says: str
) -> None:
    folder = copied(choir, tmp_path)
    path = folder / "piper-duration_encoder-n17.json"
    told = json.loads(path.read_text(encoding="utf-8"))[key]
    told[place] = {**tensor, "dtype": "float32"}
    edited(path, **{key: told})
    with pytest.raises(Mismatch, match=rf"n17\.rknn does not fit .*piper-duration-host\.onnx: {says}"):
        open_piper(both_plan(folder), FakeBackend())


def test_a_plan_without_a_decoder_is_refused(choir: Path) -> None:
    plan = plan_of(choir, duration_encoder={"main": "piper-duration_encoder-n17.rknn"})
    with pytest.raises(BadInput, match="places no decoder of piper on the NPU"):
        open_piper(plan, TwinBackend())


def test_closing_closes_every_engine_once(choir: Path) -> None:
    backend = FakeBackend()
    voice = open_piper(both_plan(choir), backend)
    voice.close()
    voice.close()
    assert sorted(backend.events) == sorted(
        f"{what} {stem}"
        for what in ("open", "close")
        for stem in (WIDE, "piper-duration_encoder-n17", "piper-duration_encoder-n24")
    )


def settle_digest(folder: Path) -> None:
    """Makes the manifest take the host half that lies there."""
    digest = hashlib.sha256((folder / "piper-host.onnx").read_bytes()).hexdigest()
    edited(folder / f"{WIDE}.json", host={"file": "piper-host.onnx", "sha256": digest})
