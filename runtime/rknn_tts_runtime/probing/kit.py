"""The probe kit: a folder of engines, inputs and expected outputs, and `probe.json`, which says what belongs together.

`rknn-tts probe` writes it on a PC, `python -m rknn_tts_runtime probe` runs it on a board. All its files stand in the
folder itself, no folder within:

    probe.json              schema "rknn-tts/probe-kit/1", the fields of `Kit`
    NAME.rknn, NAME.json    an engine and its manifest, one pair a case
    NAME.onnx               its twin, which a kit needs that is to run on a PC as well
    NAME.npy                inputs and expected outputs, float32 or int64 (`arrays`)

A kit is data from elsewhere: every file that it names is checked against the digest in `files` before it is used, and
is a plain file in the folder.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping

from rknn_tts_runtime.probing.serial import as_data, text_of

KIT_SCHEMA = "rknn-tts/probe-kit/1"
KIT_FILE = "probe.json"

ENGINE = "engine"
OPERATOR = "operator"
REGTASK = "regtask"
KINDS = (ENGINE, OPERATOR, REGTASK)
"""What a case is: the engine itself, one rewritten operator, or the layer behind one hardware field."""


@dataclass(frozen=True)
class Subject:
    """The engine that the kit is about.

    Attributes:
        family, stage, role: as in its manifest; None of a foreign ONNX, or where it has none.
        target: the chip.
        toolkit: version of the toolkit that compiled it.
        engine_sha256: its digest.
        engine_file: its name in the folder.
    """

    family: str | None
    stage: str | None
    role: str | None
    target: str
    toolkit: str
    engine_sha256: str
    engine_file: str


@dataclass(frozen=True)
class CaseInput:
    """An input of the case's engine, and the file that holds it."""

    name: str
    file: str


@dataclass(frozen=True)
class CaseOutput:
    """An output of the case's engine, the file that holds what is expected, and the least SNR that passes, in dB."""

    name: str
    file: str
    bound_db: float


@dataclass(frozen=True)
class CaseRun:
    """One feed: every input of the engine, and those outputs that are compared."""

    inputs: tuple[CaseInput, ...]
    outputs: tuple[CaseOutput, ...]


@dataclass(frozen=True)
class Case:
    """One engine and the feeds that it is judged on.

    Attributes:
        name: its name, the only one of the kit.
        kind: one of `KINDS`.
        what: a sentence: what it shows.
        manifest: the name of its engine's manifest.
        runs: its feeds.
        proves: verdicts that it decides, by name: unproven ones of the subject's manifest (a gate's name, and behind it
            a hardware field's key where the gate has one verdict a field: `log.regtask:v2:0x4038:0:0x1fff`), or a
            pass's own (`pass.rewrite_sine`), which is then told as seen on a board.
    """

    name: str
    kind: str
    what: str
    manifest: str
    runs: tuple[CaseRun, ...]
    proves: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kit:
    """What `probe.json` says.

    Attributes:
        subject: the engine that it is about.
        cases: in the order in which they run.
        files: every file of the folder but `probe.json`: its name and its SHA-256, as hex digits.
    """

    subject: Subject
    cases: tuple[Case, ...]
    files: Mapping[str, str]
    schema: str = KIT_SCHEMA


def kit_text(kit: Kit) -> str:
    """The text of `probe.json`. Whether it can be run, `kit_reading.open_kit` says of the written folder."""
    return text_of(as_data(kit))
