"""`say`: a sentence, spoken by the engines of a plan, as a WAV file.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from rknn_tts_runtime.commands.chosen_backend import TWINS, TWINS_NOTE, add_backend_arguments, chosen_backend
from rknn_tts_runtime.commands.output import tell
from rknn_tts_runtime.commands.utterance import add_plan_arguments, add_utterance_arguments, asked_by
from rknn_tts_runtime.faults import EXIT_DONE, BadInput, RunFault
from rknn_tts_runtime.plans.reading import read_plans
from rknn_tts_runtime.speaking.streaming_report import measured
from rknn_tts_runtime.speaking.voices import check_asked, open_speaker, the_plan
from rknn_tts_runtime.wav import write_wav
from rknn_tts_runtime.whole_file import check_place

NAME = "say"
HELP = "speak a sentence with the engines of a plan, into a WAV file"

RIFF = b"RIFF"
"""How a WAV file begins."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("--plan", type=Path, required=True, metavar="PLAN.json", help="as `rknn-tts plan` writes it")
    add_plan_arguments(parser)
    add_utterance_arguments(parser, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="X.wav", help="what is written; an older WAV goes")
    add_backend_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Speak.

    Raises:
        BadInput, RunFault: it cannot be said; an earlier file is as it was.
    """
    asked = asked_by(arguments)
    check_wav_place(arguments.out)
    plan = the_plan(read_plans(arguments.plan, arguments.model, arguments.family), arguments.plan)
    check_asked(plan.family, asked)
    backend = chosen_backend(arguments)
    speaker = open_speaker(plan, backend)
    try:
        samples, report = measured(plan.family, backend.name, backend.versions, speaker, asked)
        if not np.isfinite(samples).all():
            raise RunFault("The engines gave samples that are not finite numbers, so nothing was written.")
        try:
            clipped = write_wav(arguments.out, samples, speaker.sample_rate)
        except OSError as error:
            raise RunFault(f"{arguments.out}: cannot be written ({error.strerror}).") from error
    finally:
        speaker.close()
    tell(
        f"wrote:   {arguments.out} ({report.audio_ms / 1000:.2f} s at {speaker.sample_rate} Hz)",
        f"time:    {report.total_ms:.0f} ms, first audio after {report.first_audio_ms:.0f} ms, on {report.backend}",
        f"stages:  {', '.join(f'{stage.name} {stage.runs} x' for stage in report.stages)}",
    )
    notes = (*report.notes, *([TWINS_NOTE] if backend.name == TWINS else []))
    notes += (f"{clipped} samples went beyond full scale, and were clipped.",) if clipped else ()
    tell(*(f"note:    {note}" for note in notes))
    return EXIT_DONE


def check_wav_place(path: Path) -> None:
    """See that a WAV file can be written at `path`, and replaces nothing but one, or an empty file.

    Raises:
        BadInput: it cannot, or would.
    """
    if not check_place(path):
        return
    try:
        with path.open("rb") as file:
            start = file.read(len(RIFF))
    except OSError as error:
        raise BadInput(f"--out {path}: cannot be read ({error.strerror}).") from error
    if start not in (b"", RIFF):
        raise BadInput(f"--out {path}: is no WAV file, and would be replaced; name another.")
