from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from converters.kokoro.package import KOKORO, VOCABULARY_FILE, VOICES_FILE


def test_kokoro_is_the_whole_published_file_when_fetched(fetched_kokoro: Path) -> None:
    # The size is the published file's; its digest was checked when it was fetched.
    assert (fetched_kokoro / KOKORO.file).stat().st_size == 92_361_271


def test_voices_are_style_vectors_and_a_vocabulary_when_fetched(fetched_kokoro_voices: Path) -> None:
    with np.load(fetched_kokoro_voices / VOICES_FILE, allow_pickle=False) as voices:
        assert {voices[name].shape for name in voices.files} == {(510, 1, 256)}
    vocabulary = json.loads((fetched_kokoro_voices / VOCABULARY_FILE).read_text(encoding="utf-8"))["vocab"]
    assert 0 < max(vocabulary.values()) < 178
