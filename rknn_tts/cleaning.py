"""What `clean` removes: finished steps, fetched checkpoints, and the build logs of the working directory."""

from __future__ import annotations

import shutil

from engine.cache import StepCache
from rknn_tts.numbers import BYTES_PER_MB
from rknn_tts.places import LOGS
from rknn_tts.steps import CHECKPOINTS_FOLDER, STEPS_FOLDER, cache_folder

ENDINGS = (".log", ".layers.json", ".failed.json")
"""Of the files that a build leaves in the folder of logs."""


def remove_steps_and_logs() -> list[str]:
    """Remove them; one sentence for each kind. Engines stay."""
    removed = StepCache(cache_folder() / STEPS_FOLDER).clean()
    size_mb = removed.size_bytes / BYTES_PER_MB
    sentences = [f"{removed.entries} finished steps removed ({size_mb:.0f} MB) from {removed.folder}."]
    checkpoints = cache_folder() / CHECKPOINTS_FOLDER
    if checkpoints.is_dir():
        shutil.rmtree(checkpoints, ignore_errors=True)
        sentences.append(f"Fetched checkpoints removed from {checkpoints}.")
    if LOGS.is_dir():
        files = [path for path in LOGS.iterdir() if path.is_file() and path.name.endswith(ENDINGS)]
        for path in files:
            path.unlink(missing_ok=True)
        sentences.append(f"{len(files)} build logs removed from {LOGS}/.")
    return sentences
