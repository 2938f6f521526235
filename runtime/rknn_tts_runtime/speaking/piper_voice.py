"""What a Piper voice's host half tells of the voice: enough to speak with it, and no other file.

The converter writes it into the host half's metadata (`converters/piper/voice_metadata.py`, `voice_keys`).

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Mapping

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.speaking.voice_keys import voice_keys

FAMILY = "piper"
"""As manifests name it."""

SMALLEST_LENGTH_SCALE = 0.01
"""As the converter: a hundred times the usual speed."""

ESPEAK, CHARACTERS = "espeak", "text"
"""Values of `phoneme_type`: phonemes of espeak-ng, and the text's own characters."""

_NAMED_SPEAKERS = 3
"""Names of speakers that a sentence tells at most."""


@dataclass(frozen=True)
class InputNames:
    """What the host half calls its inputs; None where it has no such input."""

    ids: str
    lengths: str
    scales: str
    speaker: str | None
    language: str | None


@dataclass(frozen=True)
class PiperVoice:
    """A voice, as its host half tells of it.

    Attributes:
        where: the host half's file.
        sample_rate: in Hz; None where the voice states none.
        hop: samples a frame.
        symbols: rows of the phoneme embedding; ids go from 0 to one less.
        speakers: how many there are.
        speaker_ids: name of a speaker to its number.
        scales: noise scale, length scale, noise width: what the voice's authors speak with.
        inputs: names of the host half's inputs.
        phoneme_type: how a text becomes phonemes.
        espeak_voice: espeak-ng's name of the language; None where the voice states none.
        vowel_clusters: phonemes that follow each other and are one symbol of the table.
        table: symbol to its ids; empty where the voice came without its JSON: then it speaks ids only.
        begin, pad, end: ids that begin a sentence, that follow its beginning and every symbol, and that end it.
    """

    where: Path
    sample_rate: int | None
    hop: int
    symbols: int
    speakers: int
    speaker_ids: Mapping[str, int]
    scales: tuple[float, float, float]
    inputs: InputNames
    phoneme_type: str | None
    espeak_voice: str | None
    vowel_clusters: tuple[tuple[str, ...], ...]
    table: Mapping[str, tuple[int, ...]]
    begin: tuple[int, ...]
    pad: tuple[int, ...]
    end: tuple[int, ...]

    def check_speaker(self, number: int) -> None:
        """See that the voice has a speaker `number`.

        Raises:
            BadInput: it has none; the message tells which there are.
        """
        if 0 <= number < self.speakers:
            return
        if self.speakers == 1:
            raise BadInput(f"--speaker {number}: the voice in {self.where.name} has one speaker; leave the option out.")
        some = [f"{name}: {speaker}" for name, speaker in list(self.speaker_ids.items())[:_NAMED_SPEAKERS]]
        more = ", ..." if len(self.speaker_ids) > len(some) else ""
        hint = f" ({', '.join(some)}{more})" if some else ""
        raise BadInput(
            f"--speaker {number}: the voice in {self.where.name} has the speakers 0 to {self.speakers - 1}{hint:.200}."
        )


def read_voice(metadata: Mapping[str, str], where: Path) -> PiperVoice:
    """The voice that the metadata of the host half `where` tells of.

    Raises:
        BadInput: it tells of none, or a key is missing or of another kind; the key is named.
    """
    read = voice_keys(metadata, where, FAMILY)
    inputs, inference, frame = read.inner("inputs"), read.inner("inference"), read.inner("frame")
    symbols, speakers = read.count("num_symbols"), read.count("num_speakers")
    return PiperVoice(
        where=where,
        sample_rate=None if read.data.get("sample_rate") is None else read.count("sample_rate"),
        hop=read.count("hop_length"),
        symbols=symbols,
        speakers=speakers,
        speaker_ids={
            name: read.below(f"speaker_id_map[{name!r:.40}]", number, speakers)
            for name, number in read.inner("speaker_id_map").data.items()
        },
        scales=(
            inference.number("noise_scale", 0.0),
            inference.number("length_scale", SMALLEST_LENGTH_SCALE),
            inference.number("noise_w", 0.0),
        ),
        inputs=InputNames(
            ids=inputs.text("ids"),
            lengths=inputs.text("lengths"),
            scales=inputs.text("scales"),
            speaker=inputs.optional("speaker"),
            language=inputs.optional("language"),
        ),
        phoneme_type=read.optional("phoneme_type"),
        espeak_voice=read.optional("espeak_voice"),
        vowel_clusters=read.clusters("vowel_clusters"),
        table={
            symbol: read.ids(f"phoneme_id_map[{symbol!r:.20}]", ids, symbols)
            for symbol, ids in read.inner("phoneme_id_map").data.items()
        },
        begin=frame.ids("begin", frame.data.get("begin"), symbols),
        pad=frame.ids("pad", frame.data.get("pad"), symbols),
        end=frame.ids("end", frame.data.get("end"), symbols),
    )
