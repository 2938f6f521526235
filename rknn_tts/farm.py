"""The farm: a matrix of checkpoints and targets, planned, run and catalogued."""

from __future__ import annotations

from contracts.errors import UserInput
from rknn_tts.progress import Say
from rknn_tts.report import Report
from rknn_tts.request import Request


def farm(request: Request, say: Say) -> Report:
    """Build what the matrix of `request` names.

    Raises:
        UserInput: always, as yet.
    """
    raise UserInput("The farm cannot be run yet.")
