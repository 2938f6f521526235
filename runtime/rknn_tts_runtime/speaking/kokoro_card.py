"""What a board must know of a Kokoro beside its graphs: carried in the host half's `metadata_props`, as JSON.

    {"family": "kokoro", "sample_rate": 24000, "hop": 300, "n_fft": 20, "istft_hop": 5, "style_size": 256,
     "noise_width": 9, "tokens": 178, "most_phonemes": 510, "most_frames_per_token": 100,
     "vocabulary": {"a": 43, ...}}

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Mapping

from rknn_tts_runtime.faults import BadInput

VOICE_KEY = "rknn-tts/voice/1"
"""Key of `metadata_props` under which a host half carries it."""

FAMILY = "kokoro"

LARGEST_CARD = 1 << 20
"""Characters of a card that is believed: Kokoro-82M's has two thousand."""

LARGEST_SIZE = 1 << 16
"""Of any size on it: Kokoro-82M's largest, the sample rate, is 24000."""

_AGAIN = "make the engines again: make engine FAMILY=kokoro"


@dataclass(frozen=True)
class KokoroCard:
    """Sizes and table of a Kokoro.

    Attributes:
        sample_rate: samples a second.
        hop: samples a latent frame.
        n_fft, istft_hop: of the inverse transform, in samples.
        style_size: numbers of a voice's style.
        noise_width: numbers of noise for each sample: one for each sine of the harmonic source.
        tokens: how many there are, the boundary (0) among them.
        most_phonemes: of a sentence, without the boundaries around it.
        most_frames_per_token: latent frames that a token can take at speed 1.
        vocabulary: phoneme to token; empty where the checkpoint came without one.
    """

    sample_rate: int
    hop: int
    n_fft: int
    istft_hop: int
    style_size: int
    noise_width: int
    tokens: int
    most_phonemes: int
    most_frames_per_token: int
    vocabulary: Mapping[str, int]

    @property
    def columns_per_frame(self) -> int:
        """Spectrogram columns a latent frame."""
        return self.hop // self.istft_hop


def card_text(card: KokoroCard) -> str:
    """`card` as the host half carries it."""
    content = {field.name: getattr(card, field.name) for field in fields(card)}
    return json.dumps({"family": FAMILY, **content, "vocabulary": dict(card.vocabulary)}, ensure_ascii=False)


def read_card(metadata: Mapping[str, str], host: Path) -> KokoroCard:
    """The card among the `metadata` of the host half in the file `host`.

    Raises:
        BadInput: there is none, it is another family's, or a key of it is not as it must be.
    """
    text = metadata.get(VOICE_KEY)
    if text is None:
        raise BadInput(f"{host}: carries no voice data ({VOICE_KEY}), as host halves made before it do not; {_AGAIN}.")
    try:
        data = json.loads(text) if len(text) <= LARGEST_CARD else None
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise BadInput(f"{host}: its voice data ({VOICE_KEY}) cannot be read; {_AGAIN}.")
    if data.get("family") != FAMILY:
        raise BadInput(f"{host}: is the host half of {data.get('family')!s:.40}, not of {FAMILY}; name {FAMILY}'s.")
    sizes = {field.name: _size(data, field.name, host) for field in fields(KokoroCard) if field.name != "vocabulary"}
    card = KokoroCard(**sizes, vocabulary=_vocabulary(data.get("vocabulary"), sizes["tokens"], host))
    if card.hop % card.istft_hop:
        raise BadInput(f"{host}: its hop of {card.hop} samples is no multiple of istft_hop {card.istft_hop}; {_AGAIN}.")
    return card


def _size(data: Mapping[str, Any], key: str, host: Path) -> int:
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_SIZE:
        raise BadInput(
            f"{host}: its voice data has {key} {value!s:.40}, expected a whole number from 1 to {LARGEST_SIZE}; "
            f"{_AGAIN}."
        )
    return value


def _vocabulary(value: object, tokens: int, host: Path) -> dict[str, int]:
    if not isinstance(value, dict):
        raise BadInput(f"{host}: its voice data has no vocabulary; {_AGAIN}.")
    for sign, token in value.items():
        if len(sign) != 1 or isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < tokens:
            raise BadInput(
                f"{host}: its vocabulary has {sign!r:.40}: {token!s:.40}, expected a character and a token below "
                f"{tokens}; {_AGAIN}."
            )
    return value
