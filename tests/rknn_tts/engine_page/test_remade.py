from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import pytest

from contracts.contract import Source
from contracts.errors import Refusal
from rknn_tts.engine_page.remade import Member, command_of, remade, stage_of
from rknn_tts.request import Request
from tests.rknn_tts.samples import MANIFEST
from tests.rknn_tts.workshop import Heard, fresh_steps


def test_command_says_what_is_asked_and_nothing_else() -> None:
    request = Request("engine", family="piper", target="rk3588", window=93, decoder_mask=True, no_pass=["a", "b"])
    told = "./rknn-tts engine piper --target rk3588 --window 93 --decoder-mask --no-pass a --no-pass b"
    assert command_of(request) == told


def test_command_quotes_what_a_shell_would_read() -> None:
    hostile = "a b'; rm -rf ~ #"
    words = shlex.split(command_of(Request("report", engines=["x.rknn", "--y"], checkpoint=hostile)))
    assert words == ["./rknn-tts", "report", "x.rknn", "--y", "--checkpoint", hostile]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"family": None, "stage": None}, "made of a foreign ONNX"),
        ({"family": "nobody"}, "There is no family 'nobody'"),
    ],
)
def test_stage_is_refused_when_the_engine_is_of_none(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refusal) as refused:
        stage_of(dataclasses.replace(MANIFEST, **change))
    assert sentence in str(refused.value)


def test_remade_needs_the_twin_that_the_manifest_tells_of(tmp_path: Path) -> None:
    twin = tmp_path / "twin.onnx"
    for what in ("not at hand", "another one than the manifest tells of"):
        with pytest.raises(Refusal) as refused:
            remade([Member(MANIFEST, twin)], None, fresh_steps(), Heard())
        assert what in str(refused.value)
        twin.write_bytes(b"another")


def test_remade_asks_for_a_checkpoint_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import rknn_tts.engine_page.remade as module

    monkeypatch.setattr(module, "sha256_of", lambda path: MANIFEST.onnx.sha256)
    monkeypatch.setattr(module, "without_carried", lambda data: data)
    (tmp_path / "twin.onnx").write_bytes(b"")
    manifest = dataclasses.replace(MANIFEST, source=Source("my.onnx", "ab" * 32, "checkpoint"))
    with pytest.raises(Refusal, match=r"its checkpoint my\.onnx is needed: --checkpoint names it"):
        remade([Member(manifest, tmp_path / "twin.onnx")], None, fresh_steps(), Heard())
