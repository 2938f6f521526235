"""Where the converter's Python comes from: a variable, or the set-up of the checkout (here a script in its place)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.errors import UserInput
from engine import environment
from engine.environment import converter_python


@pytest.fixture
def setup_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Replaces `environments/create.py` by the given lines."""
    monkeypatch.delenv("RKNN_TTS_CONVERTER_PYTHON", raising=False)
    monkeypatch.setattr(environment, "_ROOT", tmp_path)
    (tmp_path / "environments").mkdir()

    def write(lines: str) -> None:
        (tmp_path / "environments" / "create.py").write_text(f"import sys\n{lines}\n")

    return write


def test_converter_python_is_what_the_set_up_prints_when_it_is_done(
    setup_script: Callable[[str], None], capfd: pytest.CaptureFixture[str]
) -> None:
    setup_script(
        "assert sys.argv[1:] == ['rknn-2.5.0', '--print-python']\n"
        "import time; print('installing 1', file=sys.stderr); print('installing 2', file=sys.stderr, flush=True)\n"
        "time.sleep(1); print(sys.executable)"
    )
    assert converter_python("2.5.0") == Path(sys.executable)
    assert capfd.readouterr().err == "installing 1\ninstalling 2\n"


def test_converter_python_passes_on_the_sentence_when_the_set_up_fails(
    setup_script: Callable[[str], None], capfd: pytest.CaptureFixture[str]
) -> None:
    setup_script(
        "print('making it', file=sys.stderr); print('rknn-tts: no network: do this', file=sys.stderr); sys.exit(2)"
    )
    with pytest.raises(UserInput, match=r"^no network: do this$"):
        converter_python()
    assert capfd.readouterr().err == "making it\n"  # the sentence is shown once, by whoever catches it


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("sys.exit(3)", r"rknn-2\.3\.2 could not be set up \(exit code 3\)"),
        ("pass", "named no Python that runs: ''"),
        ("print('/nowhere/python')", "named no Python that runs: '/nowhere/python'"),
    ],
)
def test_converter_python_is_an_error_when_the_set_up_misbehaves(
    lines: str, words: str, setup_script: Callable[[str], None]
) -> None:
    setup_script(lines)
    with pytest.raises(UserInput, match=words):
        converter_python()


def test_converter_python_is_the_variable_when_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKNN_TTS_CONVERTER_PYTHON", sys.executable)
    assert converter_python() == Path(sys.executable)


def test_converter_python_is_refused_when_the_variable_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKNN_TTS_CONVERTER_PYTHON", "/nowhere/python")
    with pytest.raises(UserInput, match="RKNN_TTS_CONVERTER_PYTHON is /nowhere/python, which is missing"):
        converter_python()
