"""A program: Piper's own phonemiser, which is told a text on stdin and gives its phonemes on stdout, both as JSON.

    {"voice": "en-us", "clusters": [["a", "ɪ"]], "text": "Hi."}   ->   {"phonemes": [["h", "ˈ", "aɪ", "."]]}
                                                                  or   {"fault": "Failed to set voice: xx"}

One list a sentence. It is run by path, in a process of its own, and imports nothing of the project: piper-tts and the
espeak-ng inside it are under the GNU GPL, version 3 or later, and are never loaded where the project itself runs.
`phonemiser.py` asks it, on a board and for the toolchain's samples, so both speak the same phonemes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

NOT_INSTALLED = 3
"""The exit code where the Python that runs this has no piper-tts."""


def phonemes_of(voice: str, clusters: list[list[str]], text: str) -> list[list[str]]:
    """The phonemes of `text` in the language that espeak-ng calls `voice`, a list for each sentence."""
    from piper import PhonemeType, PiperConfig, PiperVoice

    config = PiperConfig(
        num_symbols=1,
        num_speakers=1,
        sample_rate=1,
        espeak_voice=voice,
        phoneme_id_map={},
        phoneme_type=PhonemeType.ESPEAK,
        vowel_clusters={tuple(cluster) for cluster in clusters} or None,
    )
    speaker = PiperVoice(None, config)  # no graph: it only reads
    return speaker.phonemize(text)


def main() -> None:
    """Answers the one question on stdin."""
    # The folder of this file has modules of ours, and one is called piper.
    ours = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != ours]
    asked = json.loads(sys.stdin.buffer.read())
    answer: dict[str, object]
    try:
        answer = {"phonemes": phonemes_of(**asked)}
    except ModuleNotFoundError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(NOT_INSTALLED)
    except (RuntimeError, ValueError) as error:  # espeak-ng's word on what it was asked
        answer = {"fault": str(error)}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
