"""What is to be said, as a Kokoro's tokens: phonemes by its vocabulary, a boundary before and behind.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.speaking.kokoro_card import KokoroCard
from rknn_tts_runtime.speaking.speaker import Asked

BOUNDARY = 0
"""The token before and behind every sentence (reference, `kokoro.model.KModel.forward`)."""

_MOST_SHOWN = 10
"""Characters that a sentence names."""


def tokens_of(asked: Asked, card: KokoroCard, voice: str) -> tuple[int, ...]:
    """The tokens of what is `asked`, the boundaries among them.

    Args:
        asked: ids, phonemes or text.
        card: of the checkpoint.
        voice: its name, which tells the language of a text.

    Raises:
        BadInput: there is nothing to say, or more than a sentence holds; an id or a phoneme is none of the
            checkpoint's; or a text cannot be phonemised here.
    """
    if asked.ids is not None:
        tokens = _checked(asked.ids, card)
    elif asked.phonemes is not None:
        tokens = of_phonemes(asked.phonemes, card)
    else:
        raise BadInput("There is nothing to say: give --phonemes, --text or --ids.")
    spoken = len(tokens) - 2
    if spoken < 1:
        raise BadInput("There is nothing to say between the boundaries: give a phoneme or more.")
    if spoken > card.most_phonemes:
        raise BadInput(
            f"{spoken} phonemes are more than a sentence of this Kokoro holds, {card.most_phonemes}; speak sentence by "
            "sentence."
        )
    return tokens


def of_phonemes(phonemes: str, card: KokoroCard) -> tuple[int, ...]:
    """`phonemes` as tokens, a boundary before and behind.

    Raises:
        BadInput: the vocabulary does not have them all; those it has not are named.
    """
    if not card.vocabulary:
        raise BadInput("This Kokoro's host half carries no vocabulary: its checkpoint came without one; give --ids.")
    unknown = sorted({sign for sign in phonemes if sign not in card.vocabulary})
    if unknown:
        shown = ", ".join(f"{sign!r} (U+{ord(sign):04X})" for sign in unknown[:_MOST_SHOWN])
        more = f" and {len(unknown) - _MOST_SHOWN} more" if len(unknown) > _MOST_SHOWN else ""
        raise BadInput(
            f"Not among this Kokoro's phonemes: {shown}{more}; it has {''.join(card.vocabulary)}. Leave them out."
        )
    return (BOUNDARY, *(card.vocabulary[sign] for sign in phonemes), BOUNDARY)


def _checked(ids: tuple[int, ...], card: KokoroCard) -> tuple[int, ...]:
    for place, token in enumerate(ids):
        if not 0 <= token < card.tokens:
            raise BadInput(f"--ids: the id {token} at place {place} is none of this Kokoro's: 0 to {card.tokens - 1}.")
    if len(ids) < 2 or ids[0] != BOUNDARY or ids[-1] != BOUNDARY:
        raise BadInput(f"--ids: a sentence of Kokoro begins and ends with {BOUNDARY}; put one before and one behind.")
    return ids
