"""How Piper's phonemiser is run, and what is told where it is missing or breaks."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from rknn_tts_runtime.faults import BadInput, Fault, RunFault
from rknn_tts_runtime.speaking.phonemiser import piper_phonemes

from tests.runtime.speaking.stand_in_phonemiser import answer, giving


def test_it_is_told_voice_clusters_and_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answer(monkeypatch, tmp_path, giving(["h", "ʉ"], []))
    assert piper_phonemes("de", [("a", "ɪ")], "Hé\0ho") == [["h", "ʉ"], []]
    assert json.loads(asked.read_bytes()) == {"voice": "de", "clusters": [["a", "ɪ"]], "text": "Hé ho"}


def test_its_python_is_the_one_that_the_variable_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\ncat > /dev/null\necho \'{"phonemes": [["x"]]}\'\n', encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.setenv("RKNN_TTS_PHONEMISER_PYTHON", str(python))
    assert piper_phonemes("de", (), "x") == [["x"]]
    monkeypatch.setenv("RKNN_TTS_PHONEMISER_PYTHON", str(tmp_path / "nothing"))
    with pytest.raises(BadInput, match=r"nothing cannot be run \(No such file or directory\).*pip install piper-tts"):
        piper_phonemes("de", (), "x")


@pytest.mark.parametrize(
    ("lines", "kind", "says"),
    [
        ("sys.stderr.write('No module named piper'); sys.exit(3)", BadInput, r"has none \(No module named piper\); in"),
        ("print(json.dumps({'fault': 'Failed to set voice: xx'}))", BadInput, "'xx' (Failed to set voice: xx)"),
        ("print('nothing')", RunFault, "gave no phonemes (b'nothing"),
        ("print('[1]')", RunFault, "gave no phonemes"),
        ("print('{\"phonemes\": 4}')", RunFault, "gave no phonemes"),
        ("sys.exit('broken\\nat last')", RunFault, "ended with status 1 (at last); give --ids"),
        ("os.abort()", RunFault, "ended with signal 6 (silent)"),
        ("time.sleep(30)", RunFault, "no answer after 0.3 s"),
    ],
)
def test_what_goes_wrong_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, kind: type[Fault], says: str
) -> None:
    answer(monkeypatch, tmp_path, lines, 0.3 if "sleep" in lines else 60.0)
    with pytest.raises(kind, match=says if says.startswith("has none") else re.escape(says)):
        piper_phonemes("xx", (), "hi")


def test_a_python_without_piper_is_told_apart_from_one_that_has_a_module_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the program lies a piper.py of ours, which is not Piper."""
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n', encoding="utf-8")  # -S: no packages
    bare.chmod(0o755)
    monkeypatch.setenv("RKNN_TTS_PHONEMISER_PYTHON", str(bare))
    with pytest.raises(BadInput, match=r"has none \(No module named 'piper'\); install it \(pip install piper-tts"):
        piper_phonemes("en-us", (), "hi")


def test_it_reads_what_piper_reads() -> None:
    """Piper's own phonemiser, as in its documentation: a list a sentence, punctuation and stress among them."""
    sentences: Any = piper_phonemes("en-us", (), "Hi. Yes!")
    assert ["".join(sentence) for sentence in sentences] == ["hˈaɪ.", "jˈɛs!"]
    assert "piper" not in sys.modules
