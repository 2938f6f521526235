"""A small speech head through the real toolkit: 8 bits on seeded and on given hidden states, and fp16."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from contracts.errors import GateFailure
from rknn_tts.outcome import Outcome
from tests.rknn_tts.workshop import Workshop, new_workshop

LOGITS, HIDDEN = 512, 256
FIGURES = ("quality.logits_cosine", "quality.logits_cosine_mean", "quality.logits_top1", "simulator")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Even weights: their largest is 1.7 of their root mean square, so that 8 bits lose less than of normal ones."""
    made, drawn = new_workshop(tmp_path_factory), torch.Generator().manual_seed(5)
    held = {
        "llm_decoder.weight": (torch.rand(LOGITS, HIDDEN, generator=drawn) - 0.5) / 4,
        "llm_decoder.bias": torch.rand(LOGITS, generator=drawn) - 0.5,
        "llm.model.model.norm.weight": torch.ones(HIDDEN),
    }
    torch.save(held, made.folder.parent / "llm.pt")
    return made


def build(workshop: Workshop, **options: Any) -> Outcome:
    checkpoint = str(workshop.folder.parent / "llm.pt")
    return workshop.run(
        "engine", family="cosyvoice2", stage="speech_head", target="rk3588", checkpoint=checkpoint, **options
    )


def figures(done: Outcome) -> dict[str, float]:
    found = {verdict.gate: verdict.measured for verdict in done.verdicts}
    found.update({item.name: item.measured for item in done.measurements})
    return {name: float(found[name] or 0) for name in FIGURES}


def hidden_of(folder: Path, even: bool) -> str:
    drawn = np.random.default_rng(3)
    states = drawn.uniform(-1, 1, (72, HIDDEN)) if even else drawn.standard_normal((72, HIDDEN))
    np.savez(folder / "real.npz", hidden=states)
    return str(folder / "real.npz")


def test_head_in_8_bits_chooses_nearly_as_in_fp32_and_in_fp16_more_so(workshop: Workshop) -> None:
    done = build(workshop)
    coarse = figures(done)
    assert done.manifest is not None
    assert done.manifest.quantisation is not None
    assert (done.manifest.quantisation.calibration, done.manifest.quantisation.windows) == ("synthetic", 100)
    assert done.manifest.engine.file == "cosyvoice2-speech_head-w8a8.rknn"
    assert done.manifest.layers is not None
    assert done.manifest.layers.cpu == ()
    assert 0.9998 <= coarse["quality.logits_cosine"] < 0.99999
    assert 30 < coarse["simulator"] < 45
    whole = build(workshop, precision="fp16")
    fine = figures(whole)
    assert whole.manifest is not None
    assert whole.manifest.quantisation is None
    assert whole.manifest.engine.file == "cosyvoice2-speech_head.rknn"
    assert whole.manifest.engine.bytes > 1.6 * done.manifest.engine.bytes
    assert fine["quality.logits_cosine"] > 0.999999
    assert fine["simulator"] > 60
    assert fine["quality.logits_top1"] >= coarse["quality.logits_top1"] > 75


@pytest.mark.parametrize("even", [True, False])
def test_head_owes_more_on_given_hidden_states(even: bool, workshop: Workshop, tmp_path: Path) -> None:
    given = hidden_of(tmp_path, even)
    if not even:  # normal ones have an end at four times their root mean square, and 8 bits reach 0.9998 of them
        with pytest.raises(GateFailure, match=r"quality\.logits_cosine"):
            build(workshop, calibration=given)
        return
    done = build(workshop, calibration=given)
    assert done.manifest is not None
    assert done.manifest.quantisation is not None
    assert (done.manifest.quantisation.calibration, done.manifest.quantisation.windows) == ("file", 63)
    assert figures(done)["quality.logits_cosine"] >= 0.9999
