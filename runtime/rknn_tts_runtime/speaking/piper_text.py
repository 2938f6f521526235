"""What is asked of a Piper voice as its ids: a text, phonemes or ids, by sentences, checked before anything runs.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import unicodedata
from typing import Iterable, Mapping, NamedTuple, Sequence

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.speaking.ids import checked_ids
from rknn_tts_runtime.speaking.listed import listed
from rknn_tts_runtime.speaking.phonemiser import Phonemise
from rknn_tts_runtime.speaking.piper_voice import CHARACTERS, ESPEAK, PiperVoice
from rknn_tts_runtime.speaking.reading_program import INSTEAD
from rknn_tts_runtime.speaking.speaker import Asked


class OtherPhonemes(BadInput):
    """The voice's phonemes are of a type that no text becomes here."""


class Said(NamedTuple):
    """What is spoken, sentence by sentence, each as Piper's ids; and what a person should know of it."""

    sentences: tuple[tuple[int, ...], ...]
    notes: tuple[str, ...]


def said_by(voice: PiperVoice, asked: Asked, phonemise: Phonemise) -> Said:
    """What `voice` speaks of what is `asked`.

    Args:
        voice: who speaks.
        asked: a text, phonemes or ids.
        phonemise: called where a text needs it.

    Raises:
        BadInput: ids that the voice does not have, a symbol that it has no id for, no way from a text to ids, or a
            sentence that is too long.
        RunFault: the phonemiser broke.
    """
    if asked.ids is not None:
        said = Said((asked.ids,), ())
    elif asked.phonemes is not None:
        said = Said((_of_phonemes(voice, asked.phonemes),), ())
    else:
        said = text_as_ids(voice, asked.text or "", phonemise)
    for ids in said.sentences:
        checked_ids(ids, voice.symbols, voice.where)
    return said


def text_as_ids(voice: PiperVoice, text: str, phonemise: Phonemise, instead: str = INSTEAD) -> Said:
    """The ids that `voice` speaks of `text`, however many they are.

    Args:
        voice: who speaks.
        text: what is said.
        phonemise: called where the voice's phonemes are espeak-ng's.
        instead: what a person does where there is no way from a text to ids, for sentences.

    Raises:
        OtherPhonemes: there is no such way, by the type of the voice's phonemes.
        BadInput: there is none, or the voice has an id for nothing in it.
        RunFault: the phonemiser broke.
    """
    _check_table(voice, "--text")
    sentences = _phonemes_of(voice, text, phonemise, instead)
    unknown = [phoneme for spoken in sentences for phoneme in spoken if phoneme not in voice.table]
    known = [[voice.table[phoneme] for phoneme in spoken if phoneme in voice.table] for spoken in sentences]
    if not any(known):
        raise BadInput(
            f"--text: the voice in {voice.where.name} has an id for nothing in it"
            + (f" ({_named(unknown)})" if unknown else "")
            + "; is it in the voice's language?"
        )
    note = f"The voice in {voice.where.name} has no id for {_named(unknown)}: left out of what is said."
    # Sentence by sentence, as Piper makes the ids that voices are trained on.
    ids = tuple(framed(voice.begin, voice.pad, voice.end, symbols) for symbols in known)
    return Said(ids, (note,) if unknown else ())


def framed(
    begin: Sequence[int], pad: Sequence[int], end: Sequence[int], symbols: Iterable[Sequence[int]]
) -> tuple[int, ...]:
    """Piper's ids of one sentence: its beginning, then a pad behind that and every symbol, its end."""
    ids = [*begin, *pad]
    for symbol in symbols:
        ids += [*symbol, *pad]
    return (*ids, *end)


def spelled(table: Mapping[str, Sequence[int]], phonemes: str) -> list[str]:
    """`phonemes` as symbols of `table`: each time the longest that fits; of what fits none, one character alone."""
    longest = max((len(symbol) for symbol in table), default=1)
    symbols, place = [], 0
    while place < len(phonemes):
        fits = (phonemes[place : place + size] for size in range(longest, 0, -1))
        symbols.append(next((symbol for symbol in fits if symbol in table), phonemes[place]))
        place += len(symbols[-1])
    return symbols


def _of_phonemes(voice: PiperVoice, phonemes: str) -> tuple[int, ...]:
    _check_table(voice, "--phonemes")
    symbols = spelled(voice.table, phonemes)
    if any(symbol not in voice.table for symbol in symbols):
        # Piper's tables have accents as characters of their own; a keyboard or a page may give both as one.
        symbols = spelled(voice.table, unicodedata.normalize("NFD", phonemes))
    unknown = [symbol for symbol in symbols if symbol not in voice.table]
    if unknown:
        raise BadInput(f"--phonemes: the voice in {voice.where.name} has no id for {_named(unknown)}; leave it out.")
    return framed(voice.begin, voice.pad, voice.end, [voice.table[symbol] for symbol in symbols])


def _phonemes_of(voice: PiperVoice, text: str, phonemise: Phonemise, instead: str) -> Sequence[Sequence[str]]:
    """The phonemes of `text`, by sentence; characters are Piper's phonemes in NFD, one code point each."""
    if voice.phoneme_type == CHARACTERS:
        return [list(unicodedata.normalize("NFD", text))]
    if voice.phoneme_type != ESPEAK:
        raise OtherPhonemes(
            f"--text: the phonemes of the voice in {voice.where.name} are of the type {voice.phoneme_type!r}, and "
            f"texts are read for {ESPEAK} and {CHARACTERS} only so far; {instead}."
        )
    if voice.espeak_voice is None:
        raise BadInput(
            f"--text: the voice in {voice.where.name} does not say in which language espeak-ng reads for it "
            f"(espeak.voice in the JSON that it is exported with); add it there, or {instead}."
        )
    return phonemise(voice.espeak_voice, voice.vowel_clusters, text)


def _check_table(voice: PiperVoice, option: str) -> None:
    if not voice.table:
        raise BadInput(
            f"{option}: the voice in {voice.where.name} came without a phoneme_id_map, and without one nothing but ids "
            "is spoken: give --ids, or export the voice again with its JSON beside it."
        )


def _named(phonemes: Iterable[str]) -> str:
    return listed(repr(phoneme) for phoneme in phonemes)
