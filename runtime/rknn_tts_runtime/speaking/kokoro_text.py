"""What is to be said, as a Kokoro's tokens: phonemes by its vocabulary, a boundary before and behind.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Iterable, NamedTuple

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.speaking.ids import checked_ids
from rknn_tts_runtime.speaking.kokoro_card import KokoroCard
from rknn_tts_runtime.speaking.kokoro_phonemiser import EXTRAS, Phonemise
from rknn_tts_runtime.speaking.listed import listed
from rknn_tts_runtime.speaking.speaker import Asked

BOUNDARY = 0
"""The token before and behind every sentence (reference, `kokoro.model.KModel.forward`)."""


class Said(NamedTuple):
    """What is spoken, one utterance after the other, each as tokens; and what a person should know of it."""

    utterances: tuple[tuple[int, ...], ...]
    notes: tuple[str, ...]


def said_by(card: KokoroCard, where: Path, voice: str, asked: Asked, phonemise: Phonemise) -> Said:
    """The tokens of what is `asked`.

    Args:
        card: of the checkpoint.
        where: its host half, for sentences.
        voice: the voice's name, whose first letter tells the language of a text.
        asked: ids, phonemes, or a text, each line of which is an utterance.
        phonemise: reads a text.

    Raises:
        BadInput: there is nothing to say, or more at once than the checkpoint takes; an id or a phoneme is none of its
            own; or a text cannot be read here.
        RunFault: the phonemiser broke.
    """
    if asked.ids is not None:
        said = Said((_framed(asked.ids, card, where),), ())
    elif asked.phonemes is not None:
        said = Said((_of_phonemes(asked.phonemes, card, where),), ())
    else:
        said = _of_text(asked.text or "", voice, card, where, phonemise)
    for tokens in said.utterances:
        spoken = len(tokens) - 2
        if spoken < 1:
            raise BadInput("There is nothing to say between the boundaries: give a phoneme or more.")
        if spoken > card.most_phonemes:
            raise BadInput(
                f"{spoken} phonemes are more than this Kokoro takes at once, {card.most_phonemes}; part what is said, "
                "a text by lines."
            )
    return said


def _framed(ids: tuple[int, ...], card: KokoroCard, where: Path) -> tuple[int, ...]:
    checked_ids(ids, card.tokens, where)
    if len(ids) < 2 or ids[0] != BOUNDARY or ids[-1] != BOUNDARY:
        raise BadInput(f"--ids: what Kokoro says begins and ends with {BOUNDARY}; put one before and one behind.")
    return ids


def _of_phonemes(phonemes: str, card: KokoroCard, where: Path) -> tuple[int, ...]:
    _check_vocabulary(card, where, "--phonemes")
    signs = _spelled(phonemes, card)
    unknown = [sign for sign in signs if sign not in card.vocabulary]
    if unknown:
        raise BadInput(f"--phonemes: the Kokoro in {where.name} does not have {_named(unknown)}; leave it out.")
    return (BOUNDARY, *(card.vocabulary[sign] for sign in signs), BOUNDARY)


def _of_text(text: str, voice: str, card: KokoroCard, where: Path, phonemise: Phonemise) -> Said:
    _check_vocabulary(card, where, "--text")
    language = voice[:1]
    if language not in EXTRAS:
        raise BadInput(
            f"--text: the name of a voice tells its language by its first letter ({', '.join(EXTRAS)}), and "
            f"{voice!r:.60} has none of them; name the file as the voice is published, or give --phonemes or --ids."
        )
    lines = [_spelled(line, card) for line in phonemise(language, text)]
    unknown = [sign for signs in lines for sign in signs if sign not in card.vocabulary]
    known = [[card.vocabulary[sign] for sign in signs if sign in card.vocabulary] for signs in lines]
    if not any(known):
        raise BadInput(
            f"--text: the Kokoro in {where.name} has a token for nothing in it"
            + (f" ({_named(unknown)})" if unknown else "")
            + f"; is it in the language of {voice}?"
        )
    note = f"The Kokoro in {where.name} does not have {_named(unknown)}: left out." if unknown else ""
    # A phoneme that is not known is left out by the reference too.
    return Said(tuple((BOUNDARY, *tokens, BOUNDARY) for tokens in known if tokens), (note,) if note else ())


def _spelled(phonemes: str, card: KokoroCard) -> list[str]:
    """The characters of `phonemes`; where one is not known and is made of several that are, those."""
    signs: list[str] = []
    for sign in phonemes:
        parts = [sign] if sign in card.vocabulary else list(unicodedata.normalize("NFD", sign))
        signs += parts if all(part in card.vocabulary for part in parts) else [sign]
    return signs


def _check_vocabulary(card: KokoroCard, where: Path, option: str) -> None:
    if not card.vocabulary:
        raise BadInput(
            f"{option}: the Kokoro in {where.name} was exported without a vocabulary (the key vocab of its config.json)"
            ", and without one nothing but ids is spoken: give --ids."
        )


def _named(signs: Iterable[str]) -> str:
    return listed(f"{sign!r} (U+{ord(sign):04X})" for sign in signs)
