"""Tests of reading a command line without running it."""

from __future__ import annotations

import pytest

from rknn_tts.request import Request
from tests.docs.command_lines import fault_of_command, fault_of_companion, request_of


def test_request_of_is_the_commands_when_make_or_the_command_line_is_read() -> None:
    wanted = Request(command="engine", family="kokoro", target="rk3588", window=128, context=12)
    assert request_of("make engine FAMILY=kokoro TARGET=rk3588 WINDOW=128 CONTEXT=12") == wanted
    assert request_of("./rknn-tts engine kokoro --target rk3588 --window 128 --context 12") == wanted


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("make engine FAMILY=kokoro TARGET=rk3588", ""),
        ("./rknn-tts export kokoro --save-checkpoint k.pth", ""),
        ("make engine FAMILY=kokoro TARGTE=rk3588", "There is no variable TARGTE"),
        ("make engine FAMILY=kokorro TARGET=rk3588", "There is no family 'kokorro'"),
        ("make engine FAMILY=kokoro TARGET=rk3599", "there is no target rk3599"),
        ("make engine FAMILY=kokoro TARGET=rk3588 DECODER_MASK=1", "kokoro takes no decoder_mask"),
        ("make engine FAMILY=kokoro TARGET=rk3588 WINDOW=wide", "WINDOW=wide"),
        ("make engine FAMILY=piper TARGET=rk3588 NORM=gap", "piper takes no norm"),
        ("./rknn-tts engine kokoro --target rk3588 --member long", "--member long"),
        ("./rknn-tts engine kokoro --target rk3588 --windwo 32", "No such option"),
        ("./rknn-tts engine kokoro", "Missing parameter"),
        ("./rknn-tts engines kokoro --target rk3588", "There is no command engines"),
    ],
)
def test_fault_of_command_names_what_the_command_would_be_refused_for(line: str, fault: str) -> None:
    found = fault_of_command(line)
    assert fault in found
    assert bool(found) == bool(fault)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("check voice/plan.json --backend onnx", ""),
        ("say --plan plan.json --ids 1,0,2 --out x.wav", ""),
        ("say --plan plan.json --out x.wav", "--text --phonemes --ids --codes is required"),
        ("bench plan.json --speeed 2", "--speeed"),
        ("bench plan.json --backend gpu", "'gpu'"),
        ("sing plan.json", "no command sing"),
    ],
)
def test_fault_of_companion_names_what_the_board_would_refuse(words: str, fault: str) -> None:
    found = fault_of_companion(f"python3 -m rknn_tts_runtime {words}")
    assert fault in found
    assert bool(found) == bool(fault)
