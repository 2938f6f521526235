from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from models.kokoro.prosody import Prosody
from tests.kokoro_reference import kokoro_module
from tests.kokoro_writer.checkpoint import SMALL
from tests.models.kokoro.checkpoints import drawn, part, snr_db, tame_weights
from tests.models.kokoro.originals import original

TOKENS, FRAMES = 5, 9


@cache
def pair() -> tuple[Prosody, Any]:
    """Ours and the reference's, of the same weights."""
    weights = tame_weights(SMALL)
    reference = original(
        lambda: kokoro_module("modules").ProsodyPredictor(
            SMALL.style_dim, SMALL.hidden_dim, SMALL.n_layer, SMALL.max_dur
        ),
        weights,
        "predictor",
    )
    return Prosody(part(weights, "predictor"), SMALL.n_layer), reference


def encoded(reference: Any, text: Tensor, style: Tensor) -> Tensor:
    """The reference's duration encoder, which has channels before tokens; [1, T, C + S]."""
    whole: Tensor = reference.text_encoder(
        text.transpose(1, 2), style, torch.tensor([TOKENS]), torch.zeros(1, TOKENS, dtype=torch.bool)
    )
    return whole


def test_duration_encoder_is_the_references() -> None:
    ours, reference = pair()
    text, style = drawn(1, TOKENS, SMALL.hidden_dim), drawn(1, SMALL.style_dim, seed=1)
    with torch.inference_mode():
        assert snr_db(encoded(reference, text, style), ours.encoder(text, style)) > 120


@pytest.mark.parametrize("speed", [1.0, 0.5, 1.3])
def test_durations_are_the_references(speed: float) -> None:
    ours, reference = pair()
    given = 3 * drawn(1, TOKENS, SMALL.hidden_dim + SMALL.style_dim, seed=2)
    with torch.inference_mode():
        chances = reference.duration_proj(reference.lstm(given)[0])
        wanted = torch.round(torch.sigmoid(chances).sum(-1) / speed).clamp(min=1).long()
        got = ours.durations(given, torch.tensor([speed]))
    assert torch.equal(got, wanted)
    assert len(set(wanted[0].tolist())) > 1


def test_durations_are_at_least_one_when_speech_is_fast() -> None:
    ours, _ = pair()
    given = drawn(1, TOKENS, SMALL.hidden_dim + SMALL.style_dim, seed=2)
    with torch.inference_mode():
        assert ours.durations(given, torch.tensor([100.0])).tolist() == [[1] * TOKENS]


def test_curves_are_the_references() -> None:
    ours, reference = pair()
    aligned, style = drawn(1, FRAMES, SMALL.hidden_dim + SMALL.style_dim, seed=3), drawn(1, SMALL.style_dim, seed=4)
    with torch.inference_mode():
        wanted = reference.F0Ntrain(aligned.transpose(1, 2), style)
        got = ours.curves(aligned, style)
    assert [curve.shape for curve in got] == [(1, 2 * FRAMES)] * 2
    for of_reference, of_ours in zip(wanted, got, strict=True):
        assert snr_db(of_reference, of_ours) > 110
