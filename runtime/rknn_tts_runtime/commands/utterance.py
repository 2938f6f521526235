"""The options that say what is to be spoken, and of which plan.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.npy import array_in
from rknn_tts_runtime.speaking.speaker import Asked

LARGEST_ID = 2**31 - 1
"""Of an id: tables have some hundreds."""

MOST_IDS = 1 << 16
"""In one utterance: an hour of speech."""

LARGEST_CODES_BYTES = 64 << 20
"""Of a file of codes: 16 codebooks of int64 take 1600 bytes a second of Qwen3's speech, so this is 11 hours."""

SLOWEST, FASTEST = 0.1, 10.0
"""Of speeds: beyond them nothing is speech, and a slow voice takes memory without bound."""


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the plan of a voice, beside the plan's file itself."""
    parser.add_argument("--family", metavar="NAME", help="of a file with several plans: which")
    parser.add_argument(
        "--model", type=Path, metavar="DIR", help="the folder that files are named under (default: the plan's own)"
    )


def add_utterance_arguments(parser: argparse.ArgumentParser, required: bool) -> None:
    """Add the options that say what is spoken, and how."""
    said = parser.add_mutually_exclusive_group(required=required)
    said.add_argument("--text", help="words; needs the family's phonemiser")
    said.add_argument("--phonemes", help="IPA, as the voice's table spells it")
    said.add_argument("--ids", metavar="N,N,...", help="numbers of the voice's table, as the voice takes them")
    said.add_argument("--codes", type=Path, metavar="FILE.npy", help="a language model's codes [Q, N] (qwen3)")
    parser.add_argument("--speaker", type=int, default=0, metavar="N", help="of a voice with several speakers")
    parser.add_argument("--voice", type=Path, metavar="FILE", help="a voice's style, where a family needs one (kokoro)")
    parser.add_argument("--speed", type=float, default=1.0, metavar="X", help="2 is twice as fast (default: 1)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of all noise that is drawn (default: 0)")


def asked_by(arguments: argparse.Namespace) -> Asked:
    """What `arguments` ask for.

    Raises:
        BadInput: the ids are no numbers, or another number is out of its range.
    """
    if not (math.isfinite(arguments.speed) and SLOWEST <= arguments.speed <= FASTEST):
        raise BadInput(f"--speed {arguments.speed}: expected from {SLOWEST} to {FASTEST:g}.")
    for name in ("speaker", "seed"):
        if not 0 <= getattr(arguments, name) <= LARGEST_ID:
            raise BadInput(f"--{name} {getattr(arguments, name)}: expected from 0 to {LARGEST_ID}.")
    for name in ("text", "phonemes"):
        given = getattr(arguments, name)
        if given is not None and not given.strip():
            raise BadInput(f"--{name}: there is nothing to speak in it.")
        if given is not None and any("\ud800" <= sign <= "\udfff" for sign in given):
            raise BadInput(f"--{name}: is not valid UTF-8; write it in that encoding.")
    return Asked(
        text=arguments.text,
        phonemes=arguments.phonemes,
        ids=None if arguments.ids is None else ids_of(arguments.ids),
        codes=None if arguments.codes is None else codes_in(arguments.codes),
        speaker=arguments.speaker,
        voice=arguments.voice,
        speed=arguments.speed,
        seed=arguments.seed,
    )


def ids_of(text: str) -> tuple[int, ...]:
    """The ids in `text`: whole numbers with commas or blanks between them.

    Raises:
        BadInput: there are none, too many, or something else is among them.
    """
    parts = text.replace(",", " ").split()
    digits = len(str(LARGEST_ID))
    if not parts or not all(part.isascii() and part.isdigit() and len(part) <= digits for part in parts):
        raise BadInput(f"--ids {text:.60}: whole numbers are expected, with commas between them: 1,0,20,0,2.")
    if len(parts) > MOST_IDS:
        raise BadInput(f"--ids: {len(parts)} are too many at once, {MOST_IDS} is the most; speak sentence by sentence.")
    return tuple(int(part) for part in parts)


def codes_in(path: Path) -> npt.NDArray[np.integer[Any]]:
    """The codes in the file `path`: `[Q, N]` whole numbers, from `[Q, N]` or `[1, Q, N]`.

    Raises:
        BadInput: it cannot be read, is no .npy of whole numbers of that shape, or is too large.
    """
    try:
        size = path.stat().st_size
        if size > LARGEST_CODES_BYTES:
            raise BadInput(f"--codes {path}: has {size} bytes, and {LARGEST_CODES_BYTES} is the most.")
        if path.exists() and not path.is_file():  # a pipe is waited for, a device may have no end
            raise BadInput(f"--codes {path}: is no file; name an .npy file.")
        codes: npt.NDArray[np.integer[Any]] = array_in(path.read_bytes())
    except OSError as error:
        raise BadInput(f"--codes {path}: cannot be read ({error.strerror}).") from error
    except ValueError as error:
        raise BadInput(f"--codes {path}: is no .npy file of numbers ({error}).") from error
    if codes.dtype.kind not in "iu":
        raise BadInput(f"--codes {path}: is no .npy file of whole numbers.")
    if codes.ndim == 3 and codes.shape[0] == 1:
        codes = codes[0]
    if codes.ndim != 2 or not codes.size:
        raise BadInput(f"--codes {path}: expected [Q, N] whole numbers, Q codebooks, not {list(codes.shape)}.")
    return codes
