"""The `.onnx.json` beside a Piper voice: read when it is there, never trusted over the graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rknn_tts_runtime.speaking.piper_voice import ESPEAK

from contracts.errors import UserInput
from contracts.serial import parse_json

PAD, BOS, EOS = "_", "^", "$"
"""Symbols of Piper's phoneme map that frame a sentence and separate its phonemes."""

SMALLEST_LENGTH_SCALE = 0.01
"""A hundred times the usual speed: below it every phoneme is one frame, and nothing is spoken."""


@dataclass(frozen=True)
class VoiceConfig:
    """What a voice's JSON states; None where it states nothing.

    Attributes:
        sample_rate: samples per second.
        hop: samples per latent frame (`hop_length`, newer exporters).
        symbols: rows of the phoneme embedding (`num_symbols`).
        speakers: number of speakers.
        phoneme_ids: symbol to ids, of which it has some.
        speaker_ids: name of a speaker to its number.
        scales: noise scale, length scale, noise width: what the voice's authors speak with.
        phoneme_type: how a text becomes phonemes: by espeak-ng (Piper's default), as its own characters ("text"), or a
            language's way.
        espeak_voice: espeak-ng's name of the language (`en-us`).
        vowel_clusters: phonemes that follow each other and are one symbol of the map (`aɪ`).
    """

    sample_rate: int | None = None
    hop: int | None = None
    symbols: int | None = None
    speakers: int | None = None
    phoneme_ids: dict[str, tuple[int, ...]] = field(default_factory=dict)
    scales: tuple[float, float, float] = (0.667, 1.0, 0.8)  # VITS's inference defaults, also Piper's
    speaker_ids: dict[str, int] = field(default_factory=dict)
    phoneme_type: str = ESPEAK
    espeak_voice: str | None = None
    vowel_clusters: tuple[tuple[str, ...], ...] = ()


def frame_of(table: Mapping[str, Sequence[int]]) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """The ids that begin a sentence, that part its symbols (0 where the map has none), and that end it."""
    return table.get(BOS, ()), table.get(PAD, (0,)), table.get(EOS, ())


def config_path(voice: Path) -> Path:
    """Where the JSON of `voice` is expected: `voice.onnx.json`."""
    return voice.with_name(voice.name + ".json")


def read_config(voice: Path, path: Path | None = None) -> VoiceConfig:
    """The config beside `voice`, or in the file `path`; one that states nothing where there is no such file.

    Raises:
        UserInput: the file is there, and is not JSON or a key in it has the wrong type; the message names it.
    """
    path = path or config_path(voice)
    if not path.is_file():
        return VoiceConfig()
    try:
        data = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserInput(f"{path}: is not readable JSON ({error}); mend it, or move it away to go without.") from error
    if not isinstance(data, dict):
        raise UserInput(f"{path}: a JSON object is expected, not {type(data).__name__}.")
    audio, inference = _object(path, data, "audio"), _object(path, data, "inference")
    defaults = VoiceConfig.scales
    return VoiceConfig(
        sample_rate=_whole(path, audio, "sample_rate"),
        hop=_whole(path, audio if "hop_length" in audio else data, "hop_length"),
        symbols=_whole(path, data, "num_symbols"),
        speakers=_whole(path, data, "num_speakers"),
        phoneme_ids=_phoneme_ids(path, data.get("phoneme_id_map") or {}),
        scales=(
            _scale(path, inference, "noise_scale", defaults[0], least=0.0),
            _scale(path, inference, "length_scale", defaults[1], least=SMALLEST_LENGTH_SCALE),
            _scale(path, inference, "noise_w", defaults[2], least=0.0),
        ),
        speaker_ids=_speaker_ids(path, data.get("speaker_id_map") or {}),
        phoneme_type=_text(path, data, "phoneme_type") or ESPEAK,
        espeak_voice=_text(path, _object(path, data, "espeak"), "voice"),
        vowel_clusters=_clusters(path, data.get("vowel_clusters") or []),
    )


def _object(path: Path, data: dict[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UserInput(f"{path}: the key {key!r} must be an object, not {value!r:.40}.")
    return value


def _whole(path: Path, data: dict[str, Any], key: str) -> int | None:
    value = data.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UserInput(f"{path}: the key {key!r} must be a whole number above 0, not {value!r:.40}.")
    return value


def _text(path: Path, data: dict[str, Any], key: str) -> str | None:
    value = data.get(key)
    if value is not None and not isinstance(value, str):
        raise UserInput(f"{path}: the key {key!r} must be a text, not {value!r:.40}.")
    return value or None


def _clusters(path: Path, data: object) -> tuple[tuple[str, ...], ...]:
    if not isinstance(data, list) or not all(isinstance(c, list) and all(type(p) is str for p in c) for c in data):
        raise UserInput(f"{path}: the key 'vowel_clusters' must be a list of lists of phonemes.")
    return tuple(tuple(cluster) for cluster in data)


def _scale(path: Path, data: dict[str, Any], key: str, default: float, least: float) -> float:
    value = data.get(key, default)
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not good or value < least:
        raise UserInput(f"{path}: the key {key!r} must be a number of at least {least:g}, not {value!r:.40}.")
    return float(value)


def _phoneme_ids(path: Path, data: object) -> dict[str, tuple[int, ...]]:
    if not isinstance(data, dict):
        raise UserInput(f"{path}: the key 'phoneme_id_map' must be an object.")
    for symbol, ids in data.items():
        if not isinstance(ids, list) or not all(type(i) is int and i >= 0 for i in ids):
            raise UserInput(f"{path}: phoneme_id_map[{symbol!r}] must be a list of ids, not {ids!r:.40}.")
    known = {symbol: tuple(ids) for symbol, ids in data.items() if ids}
    if data and not known:
        raise UserInput(f"{path}: the key 'phoneme_id_map' has no id for any symbol; mend it, or leave the key out.")
    return known


def _speaker_ids(path: Path, data: object) -> dict[str, int]:
    if not isinstance(data, dict):
        raise UserInput(f"{path}: the key 'speaker_id_map' must be an object.")
    for name, number in data.items():
        if type(number) is not int or number < 0:
            raise UserInput(f"{path}: speaker_id_map[{name!r:.40}] must be a whole number, not {number!r:.40}.")
    return dict(data)
