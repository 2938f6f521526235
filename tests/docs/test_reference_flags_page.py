"""Holds docs/reference-flags.md to both sides: the reference's flags, and the commands that are written instead."""

from __future__ import annotations

import re

import pytest

from tests.docs.command_lines import fault_of_command, request_of
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "reference-flags.md").read_text(encoding="utf-8")

REFERENCE = {
    "all": {"--target", "--skip-rknn", "--onnx", "--output"},
    "qwen3": {"--model-dir", "--codes-length"},
    "piper": {"--voice-onnx", "--dec-mask", "--encoder", "--frames"},
    "inflect": {"--decode-onnx", "--duration-onnx", "--no-dec-mask"},
    "kokoro": {
        "--checkpoint",
        "--config",
        "--output-dir",
        "--frames",
        "--no-sin-reduce",
        "--no-snake-fold",
        "--max-axis",
        "--padding",
    },
}
"""Flags of the reference's converters, as its document has them (Model preparation; Kokoro, measured)."""

_ROW = re.compile(r"^\| (all|`[a-z0-9]+`) \| `([^`]+)` \| (none|`[^`]+`) \|", re.MULTILINE)
_FLAG = re.compile(r"--[a-z]+(?:-[a-z]+)*")

ROWS = [(script.strip("`"), theirs, ours.strip("`")) for script, theirs, ours in _ROW.findall(PAGE)]


def test_every_flag_of_the_reference_is_told_once() -> None:
    told = [(script, flag) for script, theirs, _ in ROWS for flag in _FLAG.findall(theirs)]
    assert sorted(told) == sorted((script, flag) for script, flags in REFERENCE.items() for flag in flags)


@pytest.mark.parametrize(("script", "ours"), [(script, ours) for script, _, ours in ROWS if ours != "none"])
def test_what_is_written_instead_is_a_command_of_that_family(script: str, ours: str) -> None:
    line = f"./rknn-tts {ours}"
    if "FILE --target" in ours and ours.startswith("compile"):
        assert request_of(line).model == "FILE"
        return
    assert fault_of_command(line) == ""
    assert script in ("all", request_of(line).family)


def test_masks_are_off_or_on_by_default_as_in_the_reference() -> None:
    off, on = request_of("./rknn-tts engine piper --target rk3588"), request_of("./rknn-tts engine inflect --target x")
    assert (off.decoder_mask, on.no_decoder_mask) == (False, False)
