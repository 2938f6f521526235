"""What a bench speaks where nothing was asked for."""

from __future__ import annotations

import numpy as np
from rknn_tts_runtime.commands.example import example
from rknn_tts_runtime.speaking.speaker import Asked


def test_example_leaves_what_was_asked_for() -> None:
    for asked in (Asked(text="Hello"), Asked(ids=(1,)), Asked(phonemes="a"), Asked(codes=np.ones((16, 1), np.int64))):
        assert example("piper", asked) is asked


def test_example_is_of_the_kind_that_a_family_takes() -> None:
    assert example("piper", Asked(seed=3)) == Asked(phonemes="həlˈoʊ wˈɜːld, aɪ lˈɪv ɔn ə smˈɔːl bˈɔːɹd.", seed=3)
    assert example("kokoro", Asked()).phonemes is not None
    assert example("inflect", Asked()).ids == tuple(range(1, 65))
    codes = example("qwen3", Asked()).codes
    assert codes is not None
    assert (codes.shape, int(codes.min()) >= 0, int(codes.max()) < 8) == ((16, 100), True, True)
