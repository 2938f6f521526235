"""A program: Kokoro's own phonemiser, misaki, which is told a text on stdin and gives its phonemes on stdout, as JSON.

    {"language": "a", "text": "Hi."}   ->   {"phonemes": ["hˈI."]}   or   {"fault": "..."}

One item for each line of the text that is not empty. It is run by path, in a process of its own, and imports nothing of
the project: misaki is under Apache-2.0, but reads most languages with espeak-ng, by way of phonemizer, and both are
under the GNU GPL, version 3 or later. `kokoro_phonemiser.py` starts it.

What is called with what follows `kokoro.pipeline.KPipeline` (hexgrad/kokoro); a language is a voice's first letter.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Callable

NOT_INSTALLED = 3
"""The exit code where the Python that runs this has no misaki, or not what it needs for the language."""

AMERICAN, BRITISH, JAPANESE, CHINESE = "a", "b", "j", "z"
ESPEAK_LANGUAGES = {"e": "es", "f": "fr-fr", "h": "hi", "i": "it", "p": "pt-br"}
"""Those that misaki reads with espeak-ng alone, and what espeak-ng calls them."""


def phonemes_of(language: str, text: str) -> list[str]:
    """The phonemes of each line of `text`."""
    read = reader(language)
    lines = [line for line in text.splitlines() if line.strip()]
    return [phonemes for phonemes in (" ".join(read(line).split()) for line in lines) if phonemes]


def reader(language: str) -> Callable[[str], str]:
    """What reads a line in the `language`."""
    if language in (AMERICAN, BRITISH):
        en = import_module("misaki.en")
        british = language == BRITISH
        english = en.G2P(trf=False, british=british, fallback=_fallback(british), unk="")
        return lambda line: _first(english(line)).replace("ɾ", "T")  # Kokoro's sign for it
    if language == JAPANESE:
        japanese = import_module("misaki.ja").JAG2P()
        return lambda line: _first(japanese(line))
    if language == CHINESE:
        chinese = import_module("misaki.zh").ZHG2P()
        return lambda line: _first(chinese(line))
    other = import_module("misaki.espeak").EspeakG2P(language=ESPEAK_LANGUAGES[language])
    return lambda line: _first(other(line))


def _fallback(british: bool) -> Any:
    """What reads words that misaki's English dictionary has not; None where espeak-ng is not there: it skips them."""
    try:
        return import_module("misaki.espeak").EspeakFallback(british=british)
    except Exception as error:  # noqa: BLE001 - of phonemizer, which may miss its library in many ways
        sys.stderr.write(f"words that are in no dictionary are skipped: {error}\n")
        return None


def _first(answer: Any) -> str:
    """Phonemes of an answer: some versions and languages give tokens beside them."""
    return str(answer[0] if isinstance(answer, tuple) else answer)


def main() -> None:
    """Answers the one question on stdin."""
    # The folder of this file has modules of ours, which would hide others of the same name.
    ours = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != ours]
    # What the packages print, of models that they fetch, is no part of the answer.
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    asked = json.loads(sys.stdin.buffer.read())
    answer: dict[str, object]
    try:
        answer = {"phonemes": phonemes_of(**asked)}
    except ImportError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(NOT_INSTALLED)
    except Exception as error:  # noqa: BLE001 - misaki's and its readers' word on what they were asked
        answer = {"fault": f"{type(error).__name__}: {error}"}
    answers.write(json.dumps(answer))
    answers.close()


if __name__ == "__main__":
    main()
