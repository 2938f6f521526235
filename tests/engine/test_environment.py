"""Where the converter's Python comes from: a variable, or the set-up of the checkout (here a script in its place)."""

from __future__ import annotations

import os
import sys
import threading
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.errors import UserInput
from engine import environment
from engine.environment import converter_python, environment_digest, passed_on


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
        "print('installing 1', file=sys.stderr); print('installing 2\\n', end='', file=sys.stderr, flush=True)\n"
        "print(sys.executable)"
    )
    assert converter_python("2.5.0") == Path(sys.executable)
    assert capfd.readouterr().err == "installing 1\ninstalling 2\n"


def test_set_up_is_shown_while_it_goes_on(capfd: pytest.CaptureFixture[str]) -> None:
    """The set-up says nothing more until its last line has been shown."""
    ours, theirs = os.pipe()

    def set_up() -> None:
        os.write(theirs, b"installing 1\ninstalling 2\n")
        shown = ""
        while "2\n" not in shown:
            shown += capfd.readouterr().err
        os.write(theirs, b"the sentence\n")
        os.close(theirs)

    thread = threading.Thread(target=set_up)
    thread.start()
    _, last = environment._pass_through(ours)
    thread.join()
    os.close(ours)
    assert last == b"the sentence\n"


@pytest.mark.parametrize(
    ("hold_s", "ends_after_s", "shown"), [(60.0, 0, ""), (0.01, 1, "rknn-tts: no network: do this\n")]
)
def test_converter_python_passes_on_the_sentence_when_the_set_up_fails(
    setup_script: Callable[[str], None],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    hold_s: float,
    ends_after_s: float,
    shown: str,
) -> None:
    """A set-up that ends right after its sentence, and one that takes so long that it is shown before."""
    monkeypatch.setattr(environment, "_HOLD_S", hold_s)
    setup_script(
        "print('making it', file=sys.stderr); print('rknn-tts: no network: do this', file=sys.stderr, flush=True)\n"
        f"import time; time.sleep({ends_after_s}); sys.exit(2)"
    )
    with pytest.raises(UserInput, match=r"^no network: do this$"):
        converter_python()
    assert capfd.readouterr().err == f"making it\n{shown}"  # if it can be, the sentence is left to whoever catches it


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


def make_environment(folder: Path, **installed: str) -> Path:
    """The Python of a virtual environment that has the packages `installed`, by version."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    for name, version in installed.items():
        metadata = site / f"{name}-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return folder / "bin" / "python"


def test_environment_digest_is_the_same_when_the_environment_is_equal_elsewhere(tmp_path: Path) -> None:
    one = make_environment(tmp_path / "one", rknn_toolkit2="2.3.2", torch="2.4.0")
    two = make_environment(tmp_path / "t w o", torch="2.4.0", rknn_toolkit2="2.3.2")
    (tmp_path / "lock").write_text("torch==2.4.0")
    digest = environment_digest(one, tmp_path / "lock", {"PATH": "/bin"})
    assert digest == environment_digest(two, tmp_path / "lock", {"PATH": "/usr/bin", "PYTHONPATH": "/x", "HOME": "/y"})
    assert len(digest) == 64


def test_environment_digest_differs_when_anything_does_that_builds(tmp_path: Path) -> None:
    python = make_environment(tmp_path / "one", rknn_toolkit2="2.3.2", torch="2.4.0")
    torch = make_environment(tmp_path / "torch", rknn_toolkit2="2.3.2", torch="2.5.0")
    more = make_environment(tmp_path / "more", rknn_toolkit2="2.3.2", torch="2.4.0", numpy="1.26.4")
    older = make_environment(tmp_path / "older", rknn_toolkit2="2.3.2", torch="2.4.0")
    real = older.resolve()
    older.unlink()  # another Python, with the same packages
    older.write_text(f'#!/bin/sh\nexec {real} -c "import sys; sys.version = \'3.9.0\'; exec(sys.argv[1])" "$3"\n')
    older.chmod(0o755)
    lock, other = tmp_path / "lock", tmp_path / "other"
    lock.write_text("torch==2.4.0")
    other.write_text("torch==2.4.0 --hash=sha256:0")
    digests = [
        environment_digest(python, lock, {}),
        environment_digest(torch, lock, {}),
        environment_digest(more, lock, {}),
        environment_digest(older, lock, {}),
        environment_digest(python, other, {}),
        environment_digest(python, tmp_path / "none", {}),
        environment_digest(python, lock, {"RKNN_TTS_CONVERTER_PYTHON": str(python)}),
        environment_digest(python, lock, {"RKNN_TTS_TORCH": "real"}),
        environment_digest(python, lock, {"LD_LIBRARY_PATH": "/opt/lib"}),
        environment_digest(python, lock, {"LD_LIBRARY_PATH": ""}),
    ]
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("#!/bin/sh\necho why >&2\nexit 3\n", r"converter cannot say what is installed there: why\.$"),
        ("#!/bin/sh\nexit 3\n", r"converter cannot say what is installed there: exit code 3\.$"),
        ("#!/nowhere/sh\n", r"converter does not run \(.*No such file"),
    ],
)
def test_environment_digest_is_refused_when_the_python_does_not_run(tmp_path: Path, script: str, words: str) -> None:
    python = tmp_path / "converter"
    python.write_text(script)
    python.chmod(0o755)
    with pytest.raises(UserInput, match=words):
        environment_digest(python, tmp_path / "lock", {})


def test_passed_on_variables_are_the_toolkits_alone_when_they_are_set() -> None:
    assert passed_on({"LD_LIBRARY_PATH": "", "PYTHONPATH": "/x", "HOME": "/y"}) == {"LD_LIBRARY_PATH": ""}
    assert passed_on({"RKNN_TTS_TORCH": "real"}) == {"RKNN_TTS_TORCH": "real"}
