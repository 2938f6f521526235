"""The command that lists what a folder of engines holds."""

from __future__ import annotations

from contracts.errors import UserInput
from rknn_tts.progress import Say
from rknn_tts.report import Report
from rknn_tts.request import Request


def catalogue(request: Request, say: Say) -> Report:
    """Write the catalogue of `request.folder`.

    Raises:
        UserInput: always, as yet.
    """
    raise UserInput("A catalogue cannot be written yet.")
