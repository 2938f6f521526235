"""The tests stand apart from the user: run here with the user's settings, as a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

INNER = """
import os
def test_settings():
    kept = {name for name in os.environ if name.startswith("RKNN_TTS_") or name == "LD_LIBRARY_PATH"}
    assert kept == {"RKNN_TTS_CACHE", "RKNN_TTS_CONVERTER_PYTHON"}
    assert os.environ["RKNN_TTS_CONVERTER_PYTHON"] == "/theirs/python"
    assert os.environ["RKNN_TTS_CACHE"] != "/theirs/cache"
CACHES = []
def test_one(): CACHES.append(os.environ["RKNN_TTS_CACHE"])
def test_two(): assert CACHES and os.environ["RKNN_TTS_CACHE"] not in CACHES
"""


def test_settings_of_the_user_reach_no_test_but_for_the_converter(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n", encoding="utf-8")
    (tmp_path / "test_inner.py").write_text(INNER, encoding="utf-8")
    theirs = {
        "RKNN_TTS_TORCH": "real",
        "RKNN_TTS_CACHE": "/theirs/cache",
        "RKNN_TTS_TRACEBACK": "1",
        "RKNN_TTS_CONVERTER_PYTHON": "/theirs/python",
        "LD_LIBRARY_PATH": "/theirs/lib",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'runtime'}",
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(
        command, env={**os.environ, **theirs}, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_fetched_voice_lies_outside_the_caches(fetched_voice: Path) -> None:
    assert (fetched_voice / "en_US-joe-medium.onnx").is_file()
    assert not fetched_voice.is_relative_to(os.environ["RKNN_TTS_CACHE"])
    with pytest.raises(StopIteration):
        next(Path(os.environ["RKNN_TTS_CACHE"]).iterdir())
