from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.speaking.kokoro_card import KokoroCard, card_text, read_card
from rknn_tts_runtime.speaking.voice_keys import VOICE_METADATA

CARD = KokoroCard(24000, 300, 20, 5, 256, 9, 178, 510, 100, {"a": 43, "ʨ": 21})
WRITTEN = {
    "family": "kokoro",
    "sample_rate": 24000,
    "hop": 300,
    "n_fft": 20,
    "istft_hop": 5,
    "style_size": 256,
    "noise_width": 9,
    "tokens": 178,
    "most_phonemes": 510,
    "most_frames_per_token": 100,
    "vocabulary": {"a": 43, "ʨ": 21},
}
HOST = Path("kokoro-host.onnx")


def test_card_is_written_as_documented_and_read_back() -> None:
    assert json.loads(card_text(CARD)) == WRITTEN
    assert read_card({VOICE_METADATA: json.dumps({**WRITTEN, "newer": [1]})}, HOST) == CARD
    assert CARD.columns_per_frame == 60


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"family": "piper"}, r"kokoro-host\.onnx: is a host half of piper, not of kokoro"),
        ({"family": None}, "is a host half of None"),
        ({"hop": None}, "has hop = None, expected a whole number from 1"),
        ({"hop": 0}, "has hop = 0"),
        ({"hop": True}, "has hop = True"),
        ({"hop": 300.0}, r"has hop = 300\.0"),
        ({"hop": 1 << 40}, "has hop = 1099511627776"),
        ({"hop": 299}, "hop of 299 samples is no multiple of istft_hop 5"),
        ({"vocabulary": None}, "has vocabulary = None, expected an object"),
        ({"vocabulary": {"ab": 1}}, "has phonemes of several characters"),
        ({"vocabulary": {"a": 178}}, r"has vocabulary\['a'\] = 178, expected a whole number from 0 to 177"),
        ({"vocabulary": {"a": True}}, r"has vocabulary\['a'\] = True"),
        ({"vocabulary": {"a": -1}}, r"has vocabulary\['a'\] = -1"),
    ],
)
def test_card_that_is_not_as_it_must_be_is_refused(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        read_card({VOICE_METADATA: json.dumps({**WRITTEN, **changed})}, HOST)


def test_card_is_text_that_a_file_can_hold_whatever_its_phonemes_are() -> None:
    stray = replace(CARD, vocabulary={"\ud800": 1})  # half of a pair, as JSON can state it
    assert read_card({VOICE_METADATA: card_text(stray).encode().decode()}, HOST) == stray


def test_host_half_without_a_card_is_refused() -> None:
    with pytest.raises(BadInput, match="tells nothing of its voice"):
        read_card({}, HOST)
