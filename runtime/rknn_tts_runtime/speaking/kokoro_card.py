"""What a Kokoro's host half tells of it: all that a board must know beside the graphs and a voice's style.

In the host half's metadata (`voice_keys`), written by `converters/kokoro/host_half.py`:

    {"family": "kokoro", "sample_rate": 24000, "hop": 300, "n_fft": 20, "istft_hop": 5, "style_size": 256,
     "noise_width": 9, "tokens": 178, "most_phonemes": 510, "most_frames_per_token": 100,
     "vocabulary": {"a": 43, ...}}

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Mapping

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.speaking.voice_keys import voice_keys

FAMILY = "kokoro"
"""As manifests name it."""

_VOCABULARY = "vocabulary"


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
    # In ASCII: JSON can state characters that no file's text can hold.
    return json.dumps({"family": FAMILY, **content, _VOCABULARY: dict(card.vocabulary)})


def read_card(metadata: Mapping[str, str], host: Path) -> KokoroCard:
    """The card among the `metadata` of the host half in the file `host`.

    Raises:
        BadInput: there is none, it is another family's, or a key of it is not as it must be; it is named.
    """
    keys = voice_keys(metadata, host, FAMILY)
    sizes = {field.name: keys.count(field.name) for field in fields(KokoroCard) if field.name != _VOCABULARY}
    table = keys.inner(_VOCABULARY).data
    vocabulary = {
        sign: keys.below(f"{_VOCABULARY}[{sign!r:.40}]", token, sizes["tokens"]) for sign, token in table.items()
    }
    card = KokoroCard(**sizes, vocabulary=vocabulary)
    if card.hop % card.istft_hop:
        raise BadInput(
            f"{host}: its hop of {card.hop} samples is no multiple of istft_hop {card.istft_hop}; export it again."
        )
    if any(len(sign) != 1 for sign in vocabulary):
        raise BadInput(f"{host}: its vocabulary has phonemes of several characters; export it again.")
    return card
