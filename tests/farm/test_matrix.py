from __future__ import annotations

import os
from pathlib import Path

import pytest

from contracts.errors import UserInput
from farm.matrix import ALL, DEFAULT_TWICE, LARGEST_BYTES, PACKAGE, Cuts, Matrix, Voices, read_matrix

SMALL = """
[[voices]]
family = "piper"
checkpoints = ["voices/*.onnx"]
"""

FULL = """
output = "farm"
toolkit = "2.5.0"
targets = "all"
cuts = "own"
pages = false
twice = 0

[[voices]]
family = "piper"
stages = ["decoder", "duration_encoder"]
checkpoints = ["voices/**/*.onnx", "package"]
language = "en-GB"
[[voices]]
family = "qwen3"
stages = "all"
checkpoints = "hf://OWNER/REPO"
targets = ["rk3588"]
widths = [{}, {codes = "32", member = "main"}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "m.toml"


def written(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file


def test_matrix_of_three_lines_has_defaults_for_all_else(file: Path) -> None:
    voices = Voices(place="[[voices]] 1 (line 2)", family="piper", checkpoints=("voices/*.onnx",))
    found = read_matrix(written(file, SMALL))
    assert found == Matrix(file, (voices,), file.parent / "engines", twice=DEFAULT_TWICE)
    assert voices.widths == ({},)
    assert found.folder == file.parent


def test_matrix_is_read_with_all_its_keys(file: Path) -> None:
    found = read_matrix(written(file, FULL))
    assert found == Matrix(
        file=file,
        voices=(
            Voices(
                place="[[voices]] 1 (line 9)",
                family="piper",
                checkpoints=("voices/**/*.onnx", PACKAGE),
                stages=("decoder", "duration_encoder"),
                language="en-GB",
            ),
            Voices(
                place="[[voices]] 2 (line 14)",
                family="qwen3",
                checkpoints=("hf://OWNER/REPO",),
                stages=(ALL,),
                targets=("rk3588",),
                widths=({}, {"codes": "32", "member": "main"}),
            ),
        ),
        output=file.parent / "farm",
        toolkit="2.5.0",
        targets=(ALL,),
        cuts=Cuts.OWN,
        pages=False,
        twice=0.0,
    )


def test_mark_at_the_beginning_and_line_ends_of_windows_are_no_part_of_a_matrix(file: Path) -> None:
    plain = read_matrix(written(file, SMALL))
    file.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    assert read_matrix(file) == plain


def test_output_that_is_whole_stays_as_it_is(file: Path) -> None:
    assert read_matrix(written(file, f'output = "/elsewhere/x"\n{SMALL}')).output == Path("/elsewhere/x")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "m.toml: names no checkpoints: give it a [[voices]] with a family and checkpoints"),
        ("voices = []", "m.toml: names no checkpoints"),
        ("\n\ntargets = [", "m.toml: is no TOML: "),
        ("a = 1\nb = = 2", "m.toml: is no TOML: invalid value (at line 2, column 5)."),
        ("x = " + "[" * 100_000, "m.toml: is no matrix: it is nested too deep."),
        (f"\ntarget = 'rk3588'\n{SMALL}", "m.toml: there is no key target (line 2). Did you mean targets?"),
        (f"xyzzy = 1\n{SMALL}", "m.toml: there is no key xyzzy (line 1). There are voices, output, toolkit, targets,"),
        (f"{SMALL}chekpoints = ['x']", "m.toml: [[voices]] 1 (line 2): there is no key chekpoints. Did you mean"),
        (f"targets = 3588\n{SMALL}", "m.toml: targets (line 1) is 3588; expected is targets, such as"),
        (f"targets = [3588]\n{SMALL}", "m.toml: targets (line 1) is [3588]; expected is targets, such as"),
        (f"targets = []\n{SMALL}", "m.toml: targets (line 1) is []; expected is targets, such as"),
        (f"pages = 1\n{SMALL}", "m.toml: pages (line 1) is 1; expected is true or false."),
        (f"twice = true\n{SMALL}", "m.toml: twice (line 1) is True; expected is a share from 0 to 1, such as 0.01."),
        (f"twice = 1.5\n{SMALL}", "m.toml: twice (line 1) is 1.5; expected is a share from 0 to 1, such as 0.01."),
        (f"twice = nan\n{SMALL}", "m.toml: twice (line 1) is nan; expected is a share from 0 to 1, such as 0.01."),
        (f"twice = {'9' * 5000}\n{SMALL}", "m.toml: is no matrix: Exceeds the limit (4300 digits) for integer string"),
        (f"cuts = 'few'\n{SMALL}", 'm.toml: cuts (line 1) is \'few\'; expected is "common" or "own".'),
        (f"toolkit = 2.3\n{SMALL}", "m.toml: toolkit (line 1) is 2.3; expected is a version in quotes"),
        (f"output = ''\n{SMALL}", "m.toml: output (line 1) is ''; expected is the name of a folder."),
        ("voices = 1", "m.toml: voices (line 1) is 1; expected is a list of tables, each under [[voices]]."),
        ("voices = [1]", "m.toml: [[voices]] 1: a table is expected."),
        ("[[voices]]\ncheckpoints = ['x']", "m.toml: [[voices]] 1 (line 1): family is missing; it is the name"),
        ("[[voices]]\nfamily = 'piper'", "m.toml: [[voices]] 1 (line 1): checkpoints is missing; it is a list"),
        (
            "[[voices]]\nfamily = 1",
            "m.toml: [[voices]] 1 (line 1): family is 1; expected is the name",
        ),
        (f"{SMALL}checkpoints2 = 1", "m.toml: [[voices]] 1 (line 2): there is no key checkpoints2. Did you mean"),
        (f"{SMALL}widths = {{}}", "m.toml: [[voices]] 1 (line 2): widths is {}; expected is a list of tables, such as"),
        (f"{SMALL}widths = [1]", "m.toml: [[voices]] 1 (line 2): widths is [1]; expected is a list of tables, such as"),
        (f"{SMALL}widths = []", "m.toml: [[voices]] 1 (line 2): widths is []; expected is a list of tables, such as"),
        (f"{SMALL}widths = [{{a = []}}]", "m.toml: [[voices]] 1 (line 2): widths is [{'a': []}]; expected is a list"),
        (f"{SMALL}language = '<b>en</b>'", "m.toml: [[voices]] 1 (line 2): language is '<b>en</b>'; expected is"),
        (f"{SMALL}language = 7", "m.toml: [[voices]] 1 (line 2): language is 7; expected is a language, such as"),
        (f"{SMALL}stages = ['']", "m.toml: [[voices]] 1 (line 2): stages is ['']; expected is stages, such as"),
    ],
)
def test_matrix_is_refused_when_it_is_none(file: Path, text: str, sentence: str) -> None:
    with pytest.raises(UserInput) as refused:
        read_matrix(written(file, text))
    assert f"{file.parent}/{sentence}" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_file_is_refused_when_it_is_missing_a_folder_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match=r"none.toml: there is no such file; a matrix is a TOML file"):
        read_matrix(tmp_path / "none.toml")
    with pytest.raises(UserInput, match="is a folder; name the matrix itself, a TOML file"):
        read_matrix(tmp_path)
    (tmp_path / "m.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserInput, match=r"m.toml: is no text in UTF-8"):
        read_matrix(tmp_path / "m.toml")


def test_file_is_refused_when_it_is_a_pipe_a_device_or_too_large(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    for endless in (tmp_path / "pipe.toml", Path("/dev/zero")):
        with pytest.raises(UserInput, match=rf"{endless}: is no plain file; a matrix is a TOML file"):
            read_matrix(endless)
    with (tmp_path / "m.toml").open("wb") as file:
        file.truncate(LARGEST_BYTES + 1)
    with pytest.raises(UserInput, match=r"m.toml: has more than 16 MiB, and is no matrix"):
        read_matrix(tmp_path / "m.toml")


def test_output_of_a_user_that_there_is_not_stays_as_it_is(file: Path) -> None:
    assert read_matrix(written(file, f'output = "~nobody-here/x"\n{SMALL}')).output == file.parent / "~nobody-here/x"


def test_matrix_is_refused_when_the_python_cannot_read_toml(file: Path) -> None:
    with pytest.raises(UserInput, match=r"The farm needs CPython 3.11 or 3.12, and this is 3.10.13: PYTHON=python3.11"):
        read_matrix(written(file, SMALL), (3, 10, 13))
