from __future__ import annotations

import dataclasses
from collections import Counter

from converters.registry import STAGES
from converters.stages import StageOptions


def test_registry_has_no_stage_twice_and_pipers_decoder_first() -> None:
    assert max(Counter((stage.family, stage.name) for stage in STAGES).values()) == 1
    assert (STAGES[0].family, STAGES[0].name) == ("piper", "decoder")


def test_registry_names_only_options_there_are() -> None:
    known = {field.name for field in dataclasses.fields(StageOptions)}
    for stage in STAGES:
        assert stage.options <= known
        assert stage.summary
