"""Holds docs/board.md and the board companion together: codes, core masks, and what is said of memory."""

from __future__ import annotations

import re

from rknn_tts_runtime.aperture_budget import BUDGET_BYTES, as_mib
from rknn_tts_runtime.npu import api
from rknn_tts_runtime.npu.api import EVERY_CORE
from rknn_tts_runtime.npu.failures import DRIVER_LOG, MEANINGS
from rknn_tts_runtime.npu.library import NAMES

from tests.docs.pages import ROOT, prose

TEXT = prose(ROOT / "docs" / "board.md")


def test_codes_of_the_page_are_the_headers() -> None:
    told = re.findall(r"^\| (-\d+) \| `(\w+)` \|", TEXT, re.MULTILINE)
    assert [(int(code), name) for code, name in told] == sorted(
        ((code, meaning.name) for code, meaning in MEANINGS.items()), reverse=True
    )


def test_core_masks_of_the_page_are_the_codes() -> None:
    (listed,) = re.findall(r"`--core-mask` is one of (.+?)\. The default is `(\w+)`", TEXT.replace("\n", " "))
    assert sorted(re.findall(r"`(\w+)`", listed[0])) == sorted(api.CORE_MASKS)
    assert listed[1] == EVERY_CORE


def test_what_the_page_says_of_memory_and_files_is_the_codes() -> None:
    assert f"about {as_mib(BUDGET_BYTES)} can be had" in TEXT
    assert DRIVER_LOG in TEXT.replace("\\|", "|")
    assert {f"`{NAMES[1].rsplit('/', 1)[0]}`"} <= set(re.findall(r"`[^`]+`", TEXT))
