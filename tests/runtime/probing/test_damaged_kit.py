"""Damaged kits end in a sentence, or are read: nothing else."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.probing.arrays import npy_bytes, read_array
from rknn_tts_runtime.probing.kit import KIT_FILE
from rknn_tts_runtime.probing.kit_reading import open_kit

from tests.contracts.test_damaged_json import PIECES
from tests.mutations import mutations
from tests.runtime.probing.kits import write_kit


def test_damaged_kit_ends_in_a_sentence_or_is_read(tmp_path: Path) -> None:
    write_kit(tmp_path)
    for damaged in mutations((tmp_path / KIT_FILE).read_bytes(), 300, PIECES):
        (tmp_path / KIT_FILE).write_bytes(damaged)
        with suppress(BadInput):
            assert open_kit(tmp_path).kit.cases


def test_damaged_array_ends_in_a_sentence_or_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    for damaged in mutations(npy_bytes(np.arange(8, dtype=np.float32).reshape(1, 2, 4)), 400):
        path.write_bytes(damaged)
        with suppress(BadInput):
            assert read_array(path).size <= len(damaged)
