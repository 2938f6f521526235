"""Inflect's speaker over a twin, against the two graphs as they were published, on the same noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rknn_tts_runtime.backends.twins import TwinBackend
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.plans.plan import Plan
from rknn_tts_runtime.speaking.inflect import open_inflect
from rknn_tts_runtime.speaking.speaker import Asked, Speaker
from rknn_tts_runtime.speaking.stopwatch import Stopwatch

from converters.inflect.checkpoint import locate
from converters.inflect.decoder import open_decoder
from converters.stages import StageOptions
from tests.converters.inflect.releases import graphs, write_release
from tests.onnx_runs import Array, open_session, run, snr_db
from tests.runtime.speaking.small_voices import edited, plan_of, recorded_feeds, spoken, write_export

FRAMES = 72
"""Of the window: small, so that few ids take several."""

STEM = f"inflect-decoder-w{FRAMES}"

LEAST_DB = 90.0
"""Of the gates on short utterances (docs/inflect.md); longer ones owe 95."""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inflect")
    checkpoint = locate(str(write_release(folder / "release")), lambda text, _: Path(text))
    write_export(folder, open_decoder(checkpoint, StageOptions(window=FRAMES), open_session)(""))
    return folder


@pytest.fixture(scope="module")
def voice(release: Path) -> Speaker:
    return open_inflect(plan(release), TwinBackend())


def plan(folder: Path) -> Plan:
    return plan_of(folder, "inflect_v2.exec_plan", decoder={"main": f"{STEM}.rknn"})


@pytest.mark.parametrize(("symbols", "speed"), [(3, 1.0), (60, 1.25)])
def test_speaks_as_the_published_graphs_do_on_the_same_noise(
    voice: Speaker, symbols: int, speed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [0, *(part for symbol in range(symbols) for part in (1 + symbol % 19, 0))]
    feeds = recorded_feeds(monkeypatch)
    samples, pieces, stopwatch = spoken(voice, Asked(ids=tuple(ids), speed=speed, seed=4))
    duration, decode = graphs()
    asked: dict[str, Array] = {
        "tokens": np.array([ids], np.int64),
        "lengths": np.array([len(ids)], np.int64),
        "length_scale": np.array(1 / speed, np.float32),
    }
    prior = run(duration, asked)
    frames = prior["y_mask"].shape[-1]
    noise = feeds[0][1]["zp_noise"][..., :frames]
    given: dict[str, Array] = {**prior, "zp_noise": noise, "noise_scale": np.array(0.667, np.float32)}
    assert snr_db(run(decode, given)["waveform"].reshape(-1), samples) >= LEAST_DB
    assert (frames < FRAMES, len(pieces) == 1) == ((True, True) if symbols == 3 else (False, False))
    assert set(stopwatch.stages) == {"host half", "decoder"}
    assert voice.sample_rate == 16_000


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (Asked(text="hi"), "is part of the Inflect release and not of this; give --ids"),
        (Asked(ids=(20,)), "20 is no id of the voice in inflect-host.onnx, whose ids go from 0 to 19"),
        (Asked(ids=()), "nothing to speak"),
        (Asked(ids=(1,), speaker=1), "has one speaker"),
        (Asked(ids=(1,), speed=-1.0), "--speed -1"),
    ],
)
def test_what_cannot_be_said_is_refused(voice: Speaker, asked: Asked, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        voice.speak(asked, Stopwatch())


def test_a_slice_which_has_no_host_half_speaks_no_ids(release: Path, tmp_path: Path) -> None:
    for suffix in ("onnx", "rknn", "json"):
        (tmp_path / f"{STEM}.{suffix}").write_bytes((release / f"{STEM}.{suffix}").read_bytes())
    edited(tmp_path / f"{STEM}.json", host=None)
    with pytest.raises(BadInput, match=r"names no host half, .*: name it as artifacts\.host"):
        open_inflect(plan(tmp_path), TwinBackend())
