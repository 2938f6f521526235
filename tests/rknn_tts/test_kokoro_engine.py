"""A small random Kokoro to both of its engines, with the real toolkit, at a window of 32."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from rknn_tts_runtime import frame_masks, walk_spectrogram

from contracts.contract import Source
from contracts.manifest import Manifest, read_manifest
from contracts.verdicts import Status
from converters.kokoro.checkpoint import open_checkpoint
from converters.stages import Checkpoint
from rknn_tts import checkpoint_to_onnx
from rknn_tts.outcome import Outcome
from tests.kokoro_writer.speaking import SPEAKING, speaking_weights, write_speaking, write_voices
from tests.models.kokoro.reference_generator import reference_generator, spec_phase
from tests.onnx_runs import open_session, snr_db
from tests.rknn_tts.workshop import Workshop, new_workshop

FOLDER = "engines/rk3588/model"
STEMS = {role: f"{FOLDER}/kokoro-generator-w32-c6-{role}" for role in ("full", "short")}
SET, HOST = f"{FOLDER}/kokoro-generator.set.json", f"{FOLDER}/kokoro-host.onnx"

SIMULATOR_DB = {"full": 59.0, "short": 55.0}
"""Issue 5; 64.6 and 62.4 measured of this checkpoint."""

SINES_DB = 85.0
"""Issue 5: the finished graph against the original."""

MOST_CPU_LAYERS = 5
"""Beside inputs and outputs (issue 5)."""

RATE = SPEAKING.istftnet.columns_per_frame
OPTIONS: dict[str, Any] = {"family": "kokoro", "target": "rk3588", "window": 32, "context": 6}

Array = NDArray[Any]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    made = new_workshop(tmp_path_factory)
    write_speaking(made.folder.parent)
    voices = Checkpoint(write_voices(made.folder.parent), Source("voices", "ab" * 32, "package"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint_to_onnx, "fetch_packaged", lambda wanted, cache, say: voices)
        yield made


@pytest.fixture(scope="module")
def checkpoint(workshop: Workshop) -> Path:
    return workshop.folder.parent / "model.pth"


@pytest.fixture(scope="module")
def built(workshop: Workshop, checkpoint: Path) -> Outcome:
    return workshop.run("engine", checkpoint=str(checkpoint), **OPTIONS)


def manifest(workshop: Workshop, role: str) -> Manifest:
    return read_manifest(workshop.folder / f"{STEMS[role]}.json")


def test_kokoro_becomes_a_set_of_two_engines(workshop: Workshop, built: Outcome) -> None:
    files = {f"{stem}.{suffix}" for stem in STEMS.values() for suffix in ("rknn", "onnx", "json")}
    assert {name for name in workshop.files() if name.startswith("engines/rk3588")} == files | {SET, HOST}
    assert built.files[-1] == SET
    assert workshop.json(SET)["members"] == [f"{Path(stem).name}.json" for stem in STEMS.values()]
    for role in STEMS:
        told = manifest(workshop, role)
        assert (told.family, told.stage, told.role, told.target) == ("kokoro", "generator", role, "rk3588")
        assert told.source.kind == "checkpoint"
        assert told.host is not None
        assert told.host.sha256 == workshop.digest(HOST)
        assert told.window is not None
        assert (told.window.frames, told.window.emitted, told.window.hop) == (32, 20, 30)
    assert [spec.name for spec in manifest(workshop, "short").inputs] == ["x", "har", "style", "mask", "mask_fine"]


def test_both_engines_pass_every_gate_at_the_issues_thresholds(workshop: Workshop, built: Outcome) -> None:
    assert {verdict.status for verdict in built.verdicts} == {Status.PASSED}
    for role, owed in SIMULATOR_DB.items():
        verdicts = {verdict.gate: verdict for verdict in manifest(workshop, role).verdicts}
        assert verdicts["simulator"].threshold == owed
        assert verdicts["fp32.finished_sentence"].threshold == SINES_DB
        assert {"sine.reach", "fp32.export", "fp64.window" if role == "full" else "fp64.padded"} <= verdicts.keys()


def test_both_engines_run_on_the_npu_but_for_a_few_layers(workshop: Workshop, built: Outcome) -> None:
    for role in STEMS:
        layers = manifest(workshop, role).layers
        assert layers is not None
        assert len(layers.cpu) <= MOST_CPU_LAYERS, [layer.op for layer in layers.cpu]


def seam(workshop: Workshop, tokens: list[int]) -> dict[str, Array]:
    """What the published host half makes of a sentence."""
    rng = np.random.default_rng(0)
    feed: dict[str, Array] = {
        "tokens": np.array([tokens], np.int64),
        "voice_style": (rng.standard_normal((1, 2 * SPEAKING.style_dim)) / 2).astype(np.float32),
        "speed": np.ones(1, np.float32),
        "noise_source": rng.standard_normal((1, 2 * 5 * len(tokens) * 30, 9)).astype(np.float32),
    }
    return open_session(read_onnx(workshop, HOST))(feed)


def read_onnx(workshop: Workshop, name: str) -> Any:
    import onnx

    return onnx.load(workshop.folder / name)


def reference(x: Array, har: Array, style: Array) -> Array:
    made = reference_generator(speaking_weights(), SPEAKING)
    found: Array = spec_phase(made, *(torch.from_numpy(np.ascontiguousarray(part)) for part in (x, har, style))).numpy()
    return found


def twin(workshop: Workshop, role: str) -> Any:
    """The engine's twin in onnxruntime, fed as the manifest says."""
    session, shapes = open_session(read_onnx(workshop, f"{STEMS[role]}.onnx")), manifest(workshop, role).inputs

    def run(*given: Array) -> Array:
        feed = {spec.name: array.reshape(spec.shape) for spec, array in zip(shapes, given, strict=True)}
        (output,) = session(feed).values()
        return output.reshape(1, 2 * SPEAKING.istftnet.bins, -1)

    return run


def test_windows_of_full_are_the_originals_on_a_sentence_of_the_host_half(workshop: Workshop, built: Outcome) -> None:
    spoken = seam(workshop, [0, *range(1, 10), *range(9, 0, -1), 0])
    run, style = twin(workshop, "full"), spoken["style"]

    def walked(window: Any) -> Array:
        return walk_spectrogram(window, spoken["x"], spoken["har"], 32, 6, 6, RATE)

    wanted = walked(lambda x, har, valid: reference(x, har, style))
    assert snr_db(wanted, walked(lambda x, har, valid: run(x, har, style))) >= SINES_DB


def test_short_is_the_original_on_a_sentence_shorter_than_the_window(workshop: Workshop, built: Outcome) -> None:
    spoken = seam(workshop, [0, 3, 0])
    frames = spoken["x"].shape[-1]
    assert frames < 32
    x, har = (np.pad(spoken[name], ((0, 0), (0, 0), (0, rest)))
              for name, rest in (("x", 32 - frames), ("har", RATE * (32 - frames))))  # fmt: skip
    masks = frame_masks(frames, 32, (SPEAKING.istftnet.upsample_rates[0], RATE))
    got = twin(workshop, "short")(x, har, spoken["style"], *masks)
    wanted = reference(spoken["x"], spoken["har"], spoken["style"])
    assert snr_db(wanted, got[..., : wanted.shape[-1]]) >= SINES_DB


def test_checkpoint_is_saved_beside_an_export_of_the_same_graphs(
    workshop: Workshop, built: Outcome, checkpoint: Path
) -> None:
    done = workshop.run("export", checkpoint=str(checkpoint), save_checkpoint="saved/again.pth", **OPTIONS)
    assert "export" in done.reused
    assert {"saved/again.pth", "saved/config.json"} < set(done.files)
    again = open_checkpoint(workshop.folder / "saved/again.pth")
    assert again.config == SPEAKING
    wanted = speaking_weights()
    assert again.weights.keys() == wanted.keys()
    assert all(np.array_equal(array, wanted[name]) for name, array in again.weights.items())
