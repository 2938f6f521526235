"""Sentences for the duration encoder, as the voice's ids, padded on the right to the width that is compiled."""

from __future__ import annotations

import numpy as np

from converters.piper.utterances import SENTENCE, phoneme_ids
from converters.piper.voice import Voice
from converters.stages import Array

SENTENCES = (
    SENTENCE,
    "ɪts ˈiːzi tə tˈɛl ðə dˈɛpθ əvə wˈɛl.",
    "ðiːz dˈeɪz ɐ tʃˈɪkɪn lˈɛɡ ɪz ɐ ɹˈɛɹ dˈɪʃ.",
    "ɹˈaɪs ɪz ˈɔfən sˈɜːvd ɪn ɹˈaʊnd bˈoʊlz.",
    "ðə dʒˈuːs ʌv lˈɛmənz mˌeɪks fˈaɪn pˈʌntʃ.",
    "ðə bˈɑːks wʌz θɹˈoʊn bᵻsˌaɪd ðə pˈɑːɹkt tɹˈʌk.",
)
"""Harvard sentences (IEEE 1969, list 1) in espeak-ng's en-us phonemes: the one of the other gates, then the third to
the seventh."""

PADDED_SHARES = (0.75, 0.5, 0.25)
"""How much of the width the padded sentences take at most."""

PAD_ID = 0
"""What stands behind the last token (reference, Piper duration encoder); it is masked."""


def sentences_of(voice: Voice, width: int) -> tuple[list[int], ...]:
    """Ids to speak: first as many as fill `width` (a sentence may break off there), then fewer, by whole sentences
    where one fits; no two of the same number."""
    found = {width: filling(voice, width)}
    for number, share in enumerate(PADDED_SHARES, start=1):
        ids = _whole_sentences(voice, number, max(1, round(width * share)))
        found.setdefault(len(ids), ids)
    return tuple(found.values())


def filling(voice: Voice, count: int) -> list[int]:
    """The first `count` ids of the sentences, one behind the other, begun anew where they end."""
    ids: list[int] = []
    while len(ids) < count:
        ids += phoneme_ids(voice, " ".join(SENTENCES))
    return ids[:count]


def _whole_sentences(voice: Voice, first: int, most: int) -> list[int]:
    """As many sentences from the one at `first` on as fit `most` ids; the beginning of that where none does."""
    ordered = [*SENTENCES[first:], *SENTENCES[:first]]
    best = phoneme_ids(voice, ordered[0])[:most]
    for last in range(1, len(ordered) + 1):
        ids = phoneme_ids(voice, " ".join(ordered[:last]))
        if len(ids) > most:
            break
        best = ids
    return best


def tokens_feed(voice: Voice, ids: list[int], width: int) -> dict[str, Array]:
    """The encoder's inputs for `ids` in a graph of `width` tokens."""
    padded = [*ids, *[PAD_ID] * (width - len(ids))]
    return {
        voice.inputs.ids: np.array([padded], np.int64),
        voice.inputs.lengths: np.array([len(ids)], np.int64),
    }
