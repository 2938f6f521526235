"""What a user wants to hear as a voice's ids: a text as the board reads it, or the ids themselves, checked."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rknn_tts_runtime.faults import BadInput, RunFault
from rknn_tts_runtime.speaking.phonemiser import piper_phonemes
from rknn_tts_runtime.speaking.piper_text import OtherPhonemes, framed, text_as_ids
from rknn_tts_runtime.speaking.piper_voice import read_voice
from rknn_tts_runtime.speaking.reading_program import Phonemiser, answer_in, started
from rknn_tts_runtime.speaking.voice_keys import VOICE_METADATA

from contracts.errors import Refusal, ToolFailure, UserInput
from converters.piper.config import frame_of
from converters.piper.voice import Voice
from converters.piper.voice_metadata import voice_metadata
from converters.stages import AddExtras, Sentence
from converters.vits_sample import MOST_IDS

PHONEMES_EXTRA = "phonemes"
"""The lock of requirements/ that holds Piper's phonemiser."""

INSTEAD = "give --ids"
"""What a user does where a text does not become ids."""


def spoken_ids(voice: Voice, sentence: Sentence, add_extras: AddExtras) -> Sentence:
    """`sentence` with the ids that `voice` speaks of it, and what it cannot speak among the notes.

    Args:
        voice: who speaks.
        sentence: a text or ids.
        add_extras: makes the phonemiser importable; called when a text needs it.

    Raises:
        UserInput: ids that the voice does not have, no way from the text to ids, or more than it is sensible to hear.
        Refusal: phonemes of a type whose phonemiser is not known.
        ToolFailure: the phonemiser broke.
    """
    if sentence.text is not None:
        made = _text_ids(voice, sentence.text, add_extras)
    else:
        made = Sentence(None, _checked(voice, sentence.ids or ()))
    if made.ids is not None and len(made.ids) > MOST_IDS:
        option = "--ids" if sentence.text is None else "--text"
        raise UserInput(f"{option}: a sample speaks up to {MOST_IDS} ids, and these are {len(made.ids)}; shorten it.")
    return made


def framed_ids(table: Mapping[str, Sequence[int]], symbols: Iterable[Sequence[int]]) -> list[int]:
    """Piper's ids of one sentence: BOS, then a PAD behind every symbol, EOS (0 for PAD where the map has none)."""
    return list(framed(*frame_of(table), symbols))


def _checked(voice: Voice, ids: tuple[int, ...]) -> tuple[int, ...]:
    wrong = [i for i in ids if not 0 <= i < voice.symbols]
    if wrong:
        raise UserInput(f"--ids: {wrong[0]} is no id of {voice.path.name}, whose ids go from 0 to {voice.symbols - 1}.")
    return ids


def _text_ids(voice: Voice, text: str, add_extras: AddExtras) -> Sentence:
    """`text` as the board has it once the voice's host half tells of the voice."""
    beside = voice.beside
    if not voice.config.phoneme_ids:
        raise UserInput(
            f"--text: {beside.name} is not there or has no phoneme_id_map, and without one no text becomes ids: put "
            f"the voice's JSON beside it, or {INSTEAD}."
        )

    def phonemise(language: str, clusters: Sequence[Sequence[str]], what: str) -> list[list[str]]:
        add_extras()
        return piper_phonemes(language, clusters, what, _by_the_locked, INSTEAD)

    try:
        said = text_as_ids(read_voice({VOICE_METADATA: voice_metadata(voice)}, beside), text, phonemise, INSTEAD)
    except OtherPhonemes as fault:
        raise Refusal(str(fault)) from fault
    except BadInput as fault:
        raise UserInput(str(fault)) from fault
    except RunFault as fault:
        raise ToolFailure(str(fault)) from fault
    return Sentence(text, tuple(number for ids in said.sentences for number in ids), said.notes)


def _by_the_locked(phonemiser: Phonemiser, asked: Mapping[str, object]) -> dict[str, Any]:
    # -I: no folder, variable or package of the user's comes before the locked one.
    return answer_in(phonemiser, started(phonemiser, (sys.executable, "-I"), asked))
