"""The program of docs/cosyvoice2.md over small twins: what it writes is what the original's arithmetic says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
import torch
from numpy.typing import NDArray
from rknn_tts_runtime import VocoderStream

from contracts.contract import CarriedState
from converters.cosyvoice2.flow_encoder import STAGE as FLOW_ENCODER
from converters.cosyvoice2.flow_encoder_opening import EncoderOpening
from converters.cosyvoice2.flow_estimator import STAGE as FLOW_ESTIMATOR
from converters.cosyvoice2.flow_estimator_drawn import Stream
from converters.cosyvoice2.flow_estimator_opening import EstimatorOpening
from converters.cosyvoice2.hift import STAGE as HIFT
from converters.cosyvoice2.hift_opening import HiftOpening, Seam
from converters.cosyvoice2.speaker import STAGE as SPEAKER
from converters.cosyvoice2.speaker_opening import SpeakerOpening
from converters.stages import Checkpoint, Stage, StageOptions
from models.cosyvoice2.estimator_graphs import carried_states
from models.cosyvoice2.hift_runs import excited
from surgery.rewrite_interface_axes import rewrite_interface_axes
from tests.converters.hubs import no_hub
from tests.cosyvoice2_encoder import SMALL as SMALL_ENCODER
from tests.cosyvoice2_encoder import weights_of, write_flow
from tests.cosyvoice2_estimator import write_flow as write_estimator
from tests.cosyvoice2_hift import write_hift
from tests.cosyvoice2_speaker import SMALL as SMALL_SPEAKER
from tests.cosyvoice2_speaker import original, original_embedding, raw_weights
from tests.docs.pages import ROOT, files_of
from tests.docs.test_speak_example import read_wav
from tests.onnx_runs import open_session, snr_db

PROGRAM = files_of(ROOT / "docs" / "cosyvoice2.md")["speak_cosyvoice2.py"]

CHUNK, FRAMES = 16, 32
HISTORY = 24
"""Tokens that the estimator remembers: fewer than there are, so that it forgets."""

WIDTHS, FBANK_FRAMES = (32, 40), 200
"""Of the vocoder's engines, and of the speaker encoder's."""

PROMPT, KEPT_PROMPT, FBANK = 21, 16, 150
"""Tokens of the voice's prompt, those that the program keeps, and frames of its features: fewer than an engine's."""

GUIDANCE = 0.7
LEAST_DB = 50.0
"""16-bit samples of a voice as loud as this one carry about 70 dB."""

SPEAKER_CONFIG = replace(SMALL_SPEAKER, embedding=SMALL_ENCODER.speaker)

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Member:
    """An engine.

    Attributes:
        role: as a set calls it.
        model: its twin.
        states: what goes from step to step.
        host: its host half.
    """

    role: str
    model: ir.Model
    states: tuple[CarriedState, ...] = ()
    host: ir.Model | None = None


@dataclass(frozen=True)
class Speaking:
    """A folder with the program, a set of engines' twins and a voice, and what they were made of."""

    folder: Path
    voice: dict[str, NDArray[np.generic]]
    encoder: EncoderOpening
    estimator: EstimatorOpening
    hift: HiftOpening

    def speak(self, tokens: NDArray[np.int64], solver_steps: int) -> list[str]:
        """The program on `tokens`; the lines that it printed. It writes said.wav."""
        np.save(self.folder / "tokens.npy", tokens)
        words = ["speak_cosyvoice2.py", "cosyvoice2.set.json", "said.wav", "tokens.npy", "voice.npz"]
        done = subprocess.run(
            [sys.executable, *words, str(solver_steps)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()


@pytest.fixture(scope="module")
def speaking(tmp_path_factory: pytest.TempPathFactory) -> Speaking:
    folder = tmp_path_factory.mktemp("speaking")
    (folder / "speak_cosyvoice2.py").write_text(PROGRAM, encoding="utf-8")
    options = StageOptions(history=HISTORY)
    encoder = EncoderOpening(located(FLOW_ENCODER, write_flow(folder / "e.pt")), StageOptions(history=64), open_session)
    estimator = EstimatorOpening(located(FLOW_ESTIMATOR, write_estimator(folder / "f.pt")), options, open_session)
    hift = HiftOpening(located(HIFT, write_hift(folder / "h.pt")), StageOptions(), open_session)
    torch.save({name: torch.from_numpy(array) for name, array in raw_weights(SPEAKER_CONFIG).items()}, folder / "s.pt")
    speaker = SpeakerOpening(located(SPEAKER, folder / "s.pt"), open_session)
    members = list(members_of(encoder, estimator, hift))
    members.append(Member(f"speaker.t{FBANK_FRAMES}", speaker.model(FBANK_FRAMES)))
    for member in members:
        write_member(folder, member)
    roles = {member.role: f"{member.role}.rknn" for member in members}
    (folder / "cosyvoice2.set.json").write_text(json.dumps({"roles": roles}), encoding="utf-8")
    rng = np.random.default_rng(5)
    voice: dict[str, NDArray[np.generic]] = {
        "tokens": rng.integers(0, SMALL_ENCODER.tokens, PROMPT),
        "mel": rng.standard_normal((SMALL_ENCODER.mel, 2 * PROMPT)).astype(np.float32),
        "fbank": rng.standard_normal((FBANK, SPEAKER_CONFIG.features)).astype(np.float32),
    }
    np.savez(folder / "voice.npz", allow_pickle=False, **voice)
    return Speaking(folder, voice, encoder, estimator, hift)


def located(stage: Stage, path: Path) -> Checkpoint:
    """The checkpoint at `path`."""
    assert stage.locate is not None
    return stage.locate(str(path), no_hub)


def members_of(encoder: EncoderOpening, estimator: EstimatorOpening, hift: HiftOpening) -> Iterator[Member]:
    """The engines of all stages but the speaker's."""
    carried = tuple(CarriedState(state.input, state.output, state.axis) for state in encoder.states())
    for role, sizes in encoder.geometry.sizes.items():
        yield Member(f"flow_encoder.{role}", encoder.model(sizes), carried, encoder.host)
    twin = with_four_axes(estimator.model("step"))
    yield Member("flow_estimator.step", twin, carried_states(estimator.config), estimator.host)
    for width in WIDTHS:
        yield Member(f"f0.b{width}", with_four_axes(hift.f0_model(width)))
        yield Member(f"hift.b{width}", with_four_axes(hift.hift_model(width)), host=hift.host)


def with_four_axes(model: ir.Model) -> ir.Model:
    """As engines are built."""
    return rewrite_interface_axes().rewrite(model).model


def write_member(folder: Path, member: Member) -> None:
    """The twin of an engine, its host half, and of its manifest what the program reads."""
    ir.save(member.model, folder / f"{member.role}.onnx")
    host = f"{member.role}-host.onnx"
    if member.host is not None:
        ir.save(member.host, folder / host)
    inputs = {
        str(value.name): [size for size in value.shape or () if isinstance(size, int)]
        for value in member.model.graph.inputs
    }
    manifest = {
        "inputs": [{"name": name, "shape": shape} for name, shape in inputs.items()],
        "state": [asdict(state) for state in member.states],
        "host": None if member.host is None else {"file": host},
        "onnx": {"file": f"{member.role}.onnx"},
    }
    (folder / f"{member.role}.json").write_text(json.dumps(manifest), encoding="utf-8")


@pytest.mark.parametrize(
    ("count", "solver_steps", "settled"),
    [
        (CHUNK, 1, [32]),  # one step, the last one at once
        (2 * CHUNK + 5, 2, [24, 32, 18]),  # 8 frames are held back by each step but the last
    ],
)
def test_speak_writes_what_the_originals_arithmetic_says(
    speaking: Speaking, count: int, solver_steps: int, settled: list[int]
) -> None:
    tokens = np.random.default_rng(3).integers(0, SMALL_ENCODER.tokens, count)
    printed = speaking.speak(tokens, solver_steps)
    written, rate = read_wav(speaking.folder / "said.wav")
    wanted = said(speaking, tokens, solver_steps)
    assert printed == [
        *(f"{frames / 50:.2f} s" for frames in settled),
        f"said.wav: {count / 25:.2f} s, {count} tokens",
    ]
    assert (rate, written.shape) == (24000, (960 * count,))
    assert np.abs(wanted).max() < 1
    assert snr_db(wanted, written) > LEAST_DB


def said(speaking: Speaking, tokens: NDArray[np.int64], solver_steps: int) -> Floats:
    """The samples by the original's arithmetic, of which each part is compared with the original elsewhere; the flow
    over the whole stream at once, whose frames see their chunk and what is remembered."""
    rng, hift = np.random.default_rng(0), speaking.hift  # as the program draws
    heard = np.concatenate([speaking.voice["tokens"][-KEPT_PROMPT:], tokens])[None]
    count = heard.shape[1]
    noise = rng.standard_normal((1, SMALL_ENCODER.mel, 2 * count + FRAMES)).astype(np.float32)[..., : 2 * count]
    mel = flowed(speaking, heard, noise, solver_steps)[..., 2 * KEPT_PROMPT :]

    def run_source(f0: Floats, before: Floats, known: Floats) -> tuple[Floats, Floats, Floats]:
        drawn = rng.standard_normal((1, 480 * f0.shape[1], 9)).astype(np.float32)
        return excited(hift.excitation, f0, drawn, before, known)

    stream = VocoderStream(hift.pitched, run_source, lambda part, har: hift.vocoded(Seam(part, har)), WIDTHS)
    starts = range(0, mel.shape[-1], FRAMES)
    return np.concatenate([stream.push(mel[..., at : at + FRAMES], at == starts[-1]) for at in starts])


def flowed(speaking: Speaking, heard: NDArray[np.int64], noise: Floats, solver_steps: int) -> Floats:
    """The mel frames [1, M, 2N] of all tokens, the prompt's among them."""
    aheads = [1 if start == KEPT_PROMPT else 3 for start in range(0, heard.shape[1], CHUNK)]
    mu = speaking.encoder.whole(heard, CHUNK, aheads)[:, :, 0]
    cond = np.zeros_like(mu)
    cond[..., : 2 * KEPT_PROMPT] = speaking.voice["mel"][None, :, -2 * KEPT_PROMPT :]
    rows = [np.concatenate([array, np.zeros_like(array)]) for array in (mu, cond, speaker_of(speaking))]
    times = [1 - np.cos(np.pi / 2 * step / solver_steps) for step in range(solver_steps + 1)]
    x = noise
    for start, stop in pairwise(times):
        stream = Stream(np.concatenate([x, x]), rows[0], rows[1], np.full(2, start, np.float32), rows[2])
        velocity = speaking.estimator.whole(stream, FRAMES, 2 * HISTORY)
        guided = (1 + GUIDANCE) * velocity[:1] - GUIDANCE * velocity[1:]
        x = np.asarray(x + (stop - start) * guided, np.float32)
    return x


def speaker_of(speaking: Speaking) -> Floats:
    """The flow's speaker [1, M], of the features said again from their start up to the engine's frames."""
    fbank = speaking.voice["fbank"].astype(np.float64)
    fitted = np.concatenate([fbank, fbank])[:FBANK_FRAMES]
    features = (fitted - fitted.mean(axis=0)).T.astype(np.float32)[None, None]
    embedding = original_embedding(original(SPEAKER_CONFIG), features)
    weights, unit = weights_of(), embedding / np.linalg.norm(embedding)
    spks = unit @ weights["spk_embed_affine_layer.weight"].T + weights["spk_embed_affine_layer.bias"]
    return np.asarray(spks, np.float32)
