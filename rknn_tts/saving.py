"""`export --save-checkpoint`: the checkpoint as it was read, to be written with the exports made of it."""

from __future__ import annotations

from pathlib import Path

from contracts.contract import NAME_ADVICE, is_file_name
from contracts.errors import UserInput
from converters.stages import SavedCheckpoint
from rknn_tts.checkpoint_to_onnx import OpenCheckpoint
from rknn_tts.extras import ensure_extras
from rknn_tts.overwriting import check_saved_places
from rknn_tts.places import ANOTHER_PLACE, make_folder

ANOTHER_PLACE_TO_SAVE = f"{ANOTHER_PLACE}, and so does --save-checkpoint"


def saved_checkpoint(origin: OpenCheckpoint, place: Path) -> SavedCheckpoint:
    """The checkpoint `origin` as files for `place` and beside it; nothing is written yet.

    Raises:
        UserInput: something stands there that must not be replaced, or the folder cannot be written.
        UserInput, Refusal: the checkpoint is not one of the stage.
    """
    assert origin.stage.save is not None
    if not is_file_name(place.name):
        raise UserInput(f"--save-checkpoint {place!s:.300}: {NAME_ADVICE}")
    check_saved_places([place], origin.inputs)
    ensure_extras(origin.extras, origin.say)
    origin.say.step(f"reading {origin.checkpoint.path.name} to save it")
    saved = origin.stage.save(origin.checkpoint, origin.options, place)
    check_saved_places([path for path, _ in saved.files], origin.inputs)
    make_folder(place.parent, "--save-checkpoint names another place")
    return saved
