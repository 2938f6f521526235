"""What a user wants to hear as a voice's ids: a text through Piper's phonemiser, or the ids themselves, checked."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rknn_tts_runtime.speaking import piper_phonemiser
from rknn_tts_runtime.speaking.piper_text import framed

from contracts.errors import Refusal, ToolFailure, UserInput
from converters.piper.config import BOS, CHARACTERS, EOS, ESPEAK, PAD, VoiceConfig
from converters.piper.voice import Voice
from converters.stages import AddExtras, Sentence
from converters.vits_sample import MOST_IDS

PHONEMISER = Path(piper_phonemiser.__file__)
"""The program that knows Piper's phonemiser: the board's own."""

PHONEMES_EXTRA = "phonemes"
"""The lock of requirements/ that holds it."""

PHONEMISER_SECONDS = 60.0
"""A page of text takes 0.2 s, most of it to load: a phonemiser that is still at it hangs."""


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


def frame_of(table: Mapping[str, Sequence[int]]) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """The ids that begin a sentence, that part its symbols, and that end it."""
    return table.get(BOS, ()), table.get(PAD, (0,)), table.get(EOS, ())


def _checked(voice: Voice, ids: tuple[int, ...]) -> tuple[int, ...]:
    wrong = [i for i in ids if not 0 <= i < voice.symbols]
    if wrong:
        raise UserInput(f"--ids: {wrong[0]} is no id of {voice.path.name}, whose ids go from 0 to {voice.symbols - 1}.")
    return ids


def _text_ids(voice: Voice, text: str, add_extras: AddExtras) -> Sentence:
    table, beside = voice.config.phoneme_ids, voice.beside
    if not table:
        raise UserInput(
            f"--text: {beside.name} is not there or has no phoneme_id_map, and without one no text becomes ids: put "
            "the voice's JSON beside it, or give --ids."
        )
    sentences = _phonemes(voice, text, add_extras)
    phonemes = [phoneme for spoken in sentences for phoneme in spoken]
    unknown = list(dict.fromkeys(phoneme for phoneme in phonemes if phoneme not in table))
    if all(phoneme in unknown for phoneme in phonemes):
        raise UserInput(
            f"--text: {voice.path.name} has an id for nothing in it"
            + (f" ({_listed(unknown)})" if unknown else "")
            + "; is it in the voice's language?"
        )
    # Sentence by sentence, as Piper makes the ids that voices are trained on.
    framed = (framed_ids(table, [table[p] for p in spoken if p in table]) for spoken in sentences)
    notes = (f"{beside.name} has no id for {_listed(unknown)}: left out of the sample.",) if unknown else ()
    return Sentence(text, tuple(i for ids in framed for i in ids), notes)


def _phonemes(voice: Voice, text: str, add_extras: AddExtras) -> list[list[str]]:
    """The phonemes of `text`, by sentence; characters are Piper's phonemes in NFD, one code point each."""
    config = voice.config
    if config.phoneme_type == CHARACTERS:
        return [list(unicodedata.normalize("NFD", text))]
    if config.phoneme_type != ESPEAK:
        raise Refusal(
            f"--text: the phonemes of {voice.path.name} are of the type {config.phoneme_type!r}, and texts are read "
            f"for {ESPEAK} and {CHARACTERS} only so far; give --ids."
        )
    if config.espeak_voice is None:
        raise UserInput(
            f"--text: {voice.beside.name} does not say in which language espeak-ng reads for the voice "
            "(espeak.voice); add it, or give --ids."
        )
    add_extras()
    return _espeak_phonemes(config, config.espeak_voice, text)


def _espeak_phonemes(config: VoiceConfig, espeak_voice: str, text: str) -> list[list[str]]:
    # A zero ends a text in C.
    asked = {"voice": espeak_voice, "clusters": config.vowel_clusters, "text": text.replace("\0", " ")}
    try:
        # -I: no folder, variable or package of the user's comes before the locked one.
        done = subprocess.run(
            [sys.executable, "-I", str(PHONEMISER)],
            input=json.dumps(asked).encode("ascii"),
            capture_output=True,
            timeout=PHONEMISER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolFailure(f"Piper's phonemiser had no answer after {error.timeout:g} s; give --ids.") from error
    if done.returncode != 0:
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ToolFailure(f"Piper's phonemiser ended with {how} ({(told or ['silent'])[-1]:.200}); give --ids.")
    answer = _answer(done.stdout)
    if "fault" in answer:
        raise UserInput(
            f"--text: espeak-ng cannot read it in the language {espeak_voice!r} ({answer['fault']!s:.200}); correct "
            "espeak.voice in the voice's JSON, or give --ids."
        )
    return [list(map(str, spoken)) for spoken in answer["phonemes"]]


def _answer(printed: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(printed)
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or not {"fault", "phonemes"} & answer.keys():
        raise ToolFailure(f"Piper's phonemiser gave no phonemes ({printed[:80]!r}); give --ids.")
    return answer


def _listed(phonemes: Sequence[str]) -> str:
    shown = ", ".join(repr(phoneme) for phoneme in phonemes[:8])
    return shown + (f" and {len(phonemes) - 8} more" if len(phonemes) > 8 else "")
