"""The decoder of a plan's component: which engine decodes, and what is refused before one is loaded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rknn_tts_runtime.faults import BadInput, Mismatch, RunFault
from rknn_tts_runtime.plans.plan import Component, Plan
from rknn_tts_runtime.speaking.stopwatch import Stopwatch
from rknn_tts_runtime.speaking.window_decoder import component_of, host_of, open_decoder, sample_rate_of

from tests.onnx_runs import Array
from tests.runtime.fake_backends import FakeBackend, written_manifest

HOP = 2


def tensor(name: str, *shape: int) -> dict[str, Any]:
    return {"name": name, "shape": list(shape), "dtype": "float32"}


def keys(frames: int = 8, channels: int = 3, hop: int = HOP, **changes: Any) -> dict[str, Any]:
    """Of a decoder's manifest: a window of `frames` with two frames of context on each side."""
    window = {"frames": frames, "emitted": frames - 4, "left": 2, "right": 2, "hop": hop, "sample_rate": 8000}
    return {
        "family": "piper",
        "stage": "decoder",
        "source": {"name": "voice.onnx", "sha256": "ab" * 32, "kind": "checkpoint"},
        "inputs": [tensor("z", 1, channels, 1, frames), tensor("y_mask", 1, 1, 1, frames)],
        "outputs": [tensor("audio", 1, 1, 1, frames * hop)],
        "window": window,
        "host": {"file": "piper-host.onnx", "sha256": "00" * 32},
        **changes,
    }


def component(folder: Path, **engines: dict[str, Any]) -> Component:
    for stem, told in engines.items():
        written_manifest(folder, stem, **told)
        (folder / f"{stem}.rknn").write_bytes(b"RKNN")
    return Component("decoder", {"main": tuple(folder / f"{stem}.rknn" for stem in engines)}, {})


def doubled(feed: Mapping[str, Array]) -> dict[str, Array]:
    """An engine that says each frame's first channel, `HOP` times, doubled."""
    return {"audio": 2 * np.repeat(np.asarray(feed["z"]).reshape(3, -1)[0], HOP)}


def latent(frames: int) -> tuple[Array, Array]:
    z = np.arange(3 * frames, dtype=np.float32).reshape(1, 3, frames)
    return z, np.ones((1, 1, frames), np.float32)


def test_samples_come_window_by_window_as_they_are_decoded(tmp_path: Path) -> None:
    backend = FakeBackend(compute=doubled)
    decoder = open_decoder("piper", component(tmp_path, w8=keys()), backend)
    assert (decoder.channels, decoder.hop, decoder.sample_rate, decoder.given) == (3, HOP, 8000, ())
    stopwatch = Stopwatch()
    pieces = decoder.samples(*latent(20), {"other": np.zeros(1, np.float32)}, stopwatch)
    first = next(pieces)
    assert stopwatch.stages["decoder"].runs == 1
    np.testing.assert_array_equal(first, np.repeat(2.0 * np.arange(6), HOP))  # 8 frames but the right context
    rest = np.concatenate(list(pieces))
    np.testing.assert_array_equal(rest, np.repeat(2.0 * np.arange(6, 20), HOP))
    assert stopwatch.stages["decoder"].runs == 4  # windows at 0, 4, 8 and 12
    decoder.close()
    assert backend.events == ["open w8", "close w8"]


def test_what_stands_beside_the_latent_goes_to_every_window(tmp_path: Path) -> None:
    told = keys(inputs=[*keys()["inputs"], tensor("g", 1, 5, 1, 1)])
    backend = FakeBackend()
    decoder = open_decoder("piper", component(tmp_path, w8=told), backend)
    speaker = np.arange(5, dtype=np.float32).reshape(1, 5, 1)
    list(decoder.samples(*latent(20), {"g": speaker}, Stopwatch()))
    assert [feed["g"].tolist() for feed in backend.engines["w8"].feeds] == [speaker.tolist()] * 4
    with pytest.raises(Mismatch, match="takes g beside the latent, and the host half gives no such thing"):
        decoder.samples(*latent(20), {}, Stopwatch())


def test_of_a_ladder_the_cheapest_decodes(tmp_path: Path) -> None:
    backend = FakeBackend()
    ladder = component(
        tmp_path, w8=keys(layers={"modelled_ms": 8.0}), w32=keys(frames=32, layers={"modelled_ms": 20.0})
    )
    decoder = open_decoder("piper", ladder, backend)
    # 1 or 2 windows of 8 ms; 4 of them, for none pads where it need not; one of 20 ms, or 7 of 8.
    for frames, runs in ((8, {"w8": 1}), (12, {"w8": 2}), (20, {"w8": 4}), (32, {"w32": 1}), (36, {"w8": 1, "w32": 1})):
        stopwatch = Stopwatch()
        list(decoder.samples(*latent(frames), {}, stopwatch))
        assert {name: time.runs for name, time in stopwatch.stages.items()} == {
            f"decoder {w}": n for w, n in runs.items()
        }


def trimmed_keys(frames: int, ms: float, **changes: Any) -> dict[str, Any]:
    """Of a trimmed decoder whose samples are those of its emitted frames and one more on either side."""
    told = keys(frames=frames, layers={"modelled_ms": ms})
    return {
        **told,
        "inputs": [*told["inputs"], tensor("where", 1, 3, 1, 1)],
        "outputs": [tensor("audio", 1, 1, 1, (frames - 2) * HOP)],
        "trim": {"input": "where", "frames": frames - 2},
        **changes,
    }


def cropped(feed: Mapping[str, Array]) -> dict[str, Array]:
    """`doubled`, and of it what a trimmed engine gives at the place that it is told."""
    (samples,) = doubled(feed).values()
    if "where" in feed:
        first = (0, 1, 2)[int(np.flatnonzero(feed["where"].reshape(-1))[0])]
        samples = samples[first * HOP : len(samples) - (2 - first) * HOP]
    return {"audio": samples}


def test_a_ladder_of_trimmed_windows_says_every_frame_where_it_belongs(tmp_path: Path) -> None:
    masked = keys(layers={"modelled_ms": 8.0}, passes=[{"name": "mask_decoder", "hits": 3}])
    backend = FakeBackend(compute=cropped)
    decoder = open_decoder("piper", component(tmp_path, w8=masked, w12=trimmed_keys(12, 9.0)), backend)
    assert decoder.given == ()
    for frames in (1, 7, 8, 12, 13, 20, 27, 42):
        stopwatch = Stopwatch()
        samples = np.concatenate(list(decoder.samples(*latent(frames), {}, stopwatch)))
        np.testing.assert_array_equal(samples, np.repeat(2.0 * np.arange(frames), HOP))
    assert {name: time.runs for name, time in stopwatch.stages.items()} == {"decoder w12": 5}  # 9 + 3 x 8 + 9 frames
    places = [feed["where"].tolist() for feed in backend.engines["w12"].feeds[-5:]]
    assert places == [[[[[1]], [[0]], [[0]]]], *[[[[[0]], [[1]], [[0]]]]] * 3, [[[[0]], [[0]], [[1]]]]]


def test_a_ladder_of_trimmed_windows_refuses_what_is_shorter_before_anything_runs(tmp_path: Path) -> None:
    backend = FakeBackend(compute=cropped)
    decoder = open_decoder("piper", component(tmp_path, w12=trimmed_keys(12, 9.0)), backend)
    with pytest.raises(BadInput, match=r"ladder \(12 frames\) cannot hold an utterance of 11 frames: a trimmed engine"):
        decoder.samples(*latent(11), {}, Stopwatch())
    assert backend.engines["w12"].feeds == []


@pytest.mark.parametrize(
    ("z", "mask", "says"),
    [
        ((1, 4, 20), (1, 1, 20), "takes 3 channels, and the host half gives 4"),
        ((1, 3, 0), (1, 1, 0), "of one frame and more"),
        ((3, 20), (1, 1, 20), r"not \[3, 20\]"),
        ((1, 3, 20), (1, 1, 19), r"with \[1, 1, 19\]"),
    ],
)
def test_a_latent_of_another_voice_is_refused(
    tmp_path: Path, z: tuple[int, ...], mask: tuple[int, ...], says: str
) -> None:
    decoder = open_decoder("piper", component(tmp_path, w8=keys()), FakeBackend())
    with pytest.raises(BadInput, match=says):
        decoder.samples(np.zeros(z, np.float32), np.zeros(mask, np.float32), {}, Stopwatch())


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (keys(family="inflect"), r"is taken for the decoder of piper, and is the decoder of inflect"),
        (keys(stage="duration_encoder"), "and is the duration_encoder of piper"),
        (keys(window=None), "tells of no window"),
        (keys(inputs=[tensor("z", 1, 3, 1, 8)]), r"it takes z \[1, 3, 1, 8\], and gives .*expected z \[1, C, 8\] and"),
        (keys(inputs=[tensor("z", 1, 3, 1, 9), tensor("y_mask", 1, 1, 1, 9)]), "no decoder with a window of 8 frames"),
        (keys(outputs=[tensor("audio", 1, 1, 1, 15)]), r"gives audio \[1, 1, 1, 15\]"),
        (keys(outputs=[tensor("audio", 1, 1, 1, 12)]), r"gives audio \[1, 1, 1, 12\]"),  # whole frames, too few
        (keys(outputs=[tensor("audio", 1, 16), tensor("more", 1, 16)]), "no decoder with a window"),
    ],
)
def test_an_engine_that_is_no_such_decoder_is_refused_before_it_is_opened(
    tmp_path: Path, told: dict[str, Any], says: str
) -> None:
    backend = FakeBackend()
    with pytest.raises(BadInput, match=says):
        open_decoder("piper", component(tmp_path, w8=told), backend)
    assert backend.events == []


@pytest.mark.parametrize(
    "other",
    [
        keys(channels=4),
        keys(hop=4),
        keys(source={"name": "b", "sha256": "cd" * 32, "kind": "checkpoint"}),
        keys(inputs=[*keys()["inputs"], tensor("g", 1, 5, 1, 1)]),
    ],
)
def test_a_ladder_of_two_voices_is_refused(tmp_path: Path, other: dict[str, Any]) -> None:
    with pytest.raises(Mismatch, match=r"one\.rknn and .*two\.rknn are of two voices"):
        open_decoder("piper", component(tmp_path, one=keys(), two=other), FakeBackend())


def test_a_ladder_whose_second_engine_is_refused_lets_go_of_the_first(tmp_path: Path) -> None:
    backend = FakeBackend(refusals={"two": 1})
    with pytest.raises(RunFault):
        open_decoder("piper", component(tmp_path, one=keys(), two=keys()), backend)
    assert backend.events == ["open one", "refuse two", "close one"]


def test_the_host_half_is_the_plans_else_the_manifests(tmp_path: Path) -> None:
    told = component(tmp_path, w8=keys())
    manifests = open_decoder("piper", told, FakeBackend()).manifests
    for host, text in (("piper-host.onnx", b"its own"), ("other.onnx", b"another")):
        (tmp_path / host).write_bytes(text)
    with pytest.raises(Mismatch, match=r"piper-host\.onnx: its digest is"):
        host_of(told, manifests)
    named = Component("decoder", {**told.artifacts, "host": (tmp_path / "other.onnx",)}, {})
    with pytest.raises(Mismatch, match=r"other\.onnx: its digest is"):
        host_of(named, manifests)
    without = component(tmp_path, bare=keys(host=None))
    with pytest.raises(BadInput, match="names no host half"):
        host_of(without, open_decoder("piper", without, FakeBackend()).manifests)


def test_the_host_half_is_read_once_whatever_engines_it_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "piper-host.onnx").write_bytes(b"its own")
    digest = hashlib.sha256(b"its own").hexdigest()
    ours, other = ({"file": "piper-host.onnx", "sha256": sha256} for sha256 in (digest, "00" * 32))
    ladder = component(tmp_path, w8=keys(host=ours), w9=keys(9, host=ours), w10=keys(10, host=ours))
    read: list[Path] = []

    def read_through(path: Path) -> str:
        read.append(path)
        return digest

    monkeypatch.setattr("rknn_tts_runtime.identity.sha256_of", read_through)
    assert host_of(ladder, open_decoder("piper", ladder, FakeBackend()).manifests) == tmp_path / "piper-host.onnx"
    assert read == [tmp_path / "piper-host.onnx"]
    strange = component(tmp_path, w8=keys(host=ours), w9=keys(9, host=other))
    with pytest.raises(Mismatch, match=r"w9\.json"):
        host_of(strange, open_decoder("piper", strange, FakeBackend()).manifests)


def test_a_rate_is_one_that_both_agree_on(tmp_path: Path) -> None:
    decoder = open_decoder("piper", component(tmp_path, w8=keys()), FakeBackend())
    host = Path("piper-host.onnx")
    assert sample_rate_of(decoder, HOP, None, host) == sample_rate_of(decoder, HOP, 8000, host) == 8000
    with pytest.raises(Mismatch, match=r"2 samples a frame at 8000 Hz, and the voice in piper-host\.onnx 2 at 16000"):
        sample_rate_of(decoder, HOP, 16000, host)
    with pytest.raises(Mismatch, match="4 at 8000 Hz"):
        sample_rate_of(decoder, 4, 8000, host)
    silent = keys()
    silent["window"].update(sample_rate=None)
    with pytest.raises(BadInput, match=r"states no sample rate, nor does piper-host\.onnx"):
        sample_rate_of(open_decoder("piper", component(tmp_path, w8=silent), FakeBackend()), HOP, None, host)


def test_a_component_that_the_plan_leaves_to_the_host_application_is_refused(tmp_path: Path) -> None:
    plan = Plan(tmp_path / "plan.json", "piper", {}, ("decoder (ggml)",))
    with pytest.raises(BadInput, match=r"places no decoder of piper on the NPU \(decoder \(ggml\): left to the host"):
        component_of(plan, "decoder")
