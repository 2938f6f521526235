"""Holds docs/farm.md and the farm together: keys, jobs, failures, the figures that it names, the plan on paper."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from environments.locks import DEFAULT_TOOLKIT
from farm.catalogue import Fault
from farm.catalogue_diff import RULES
from farm.jobs import Kind
from farm.matrix import Matrix, Voices, read_matrix
from farm.needs import BYTES_PER_CHECKPOINT_BYTE, LEAST_BYTES, MARGIN
from farm.piper_paper import BYTES_PER_CORE, paper_table
from farm.rows import SEED, read_table
from farm.settings import ATTEMPTS
from rknn_tts.farm_rows import rows_of
from tests.docs.pages import ROOT, files_of

PAGE = ROOT / "docs" / "farm.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "farm" / "matrix.toml"
_ROW = re.compile(r"^\| `(\w+)` \|(.*)\|$", re.MULTILINE)


def rows_behind(begins: str) -> dict[str, list[str]]:
    """The rows of the first table behind the text `begins`: the word in the first cell to the other cells."""
    table = TEXT.split(begins, 1)[1].split("\n|", 1)[1].split("\n\n", 1)[0]
    return {key: [cell.strip() for cell in cells.split("|")] for key, cells in _ROW.findall(f"|{table}")}


MATRIX_ROWS, VOICES_ROWS = rows_behind("\nAt the top:"), rows_behind("\nIn each `[[voices]]`:")


def test_keys_of_the_page_are_those_of_a_matrix() -> None:
    assert set(MATRIX_ROWS) == {field.name for field in fields(Matrix)} - {"file"}
    assert set(VOICES_ROWS) == {field.name for field in fields(Voices)} - {"place"}


def test_defaults_of_the_page_are_those_of_a_matrix(tmp_path: Path) -> None:
    named = "".join(f"{key} = {value}\n" for key, value in _defaults(MATRIX_ROWS).items())
    voices = '[[voices]]\nfamily = "piper"\ncheckpoints = ["a.onnx"]\n'
    (tmp_path / "matrix.toml").write_text(voices, encoding="utf-8")
    silent = read_matrix(tmp_path / "matrix.toml")
    (tmp_path / "matrix.toml").write_text(f"{named}{voices}widths = {_defaults(VOICES_ROWS)['widths']}", "utf-8")
    told = read_matrix(tmp_path / "matrix.toml")
    assert (silent.toolkit, told.toolkit) == (None, DEFAULT_TOOLKIT)
    for field in fields(Matrix):
        if field.name not in ("toolkit", "voices"):
            assert getattr(told, field.name) == getattr(silent, field.name), field.name
    assert told.voices[0].widths == silent.voices[0].widths


def _defaults(rows: dict[str, list[str]]) -> dict[str, str]:
    """The default of each key that has one, as TOML."""
    found = {key: re.match(r"`([^`]+)`", cells[1]) for key, cells in rows.items()}
    return {key: match[1] for key, match in found.items() if match}


def test_matrix_of_the_page_is_one(tmp_path: Path) -> None:
    (name,) = files_of(PAGE)
    (tmp_path / name).write_text(files_of(PAGE)[name], encoding="utf-8")
    assert [asked.stage.name for asked in rows_of(read_matrix(tmp_path / name))] == ["decoder"]


def test_example_is_a_matrix() -> None:
    asked = [(row.stage.family, row.stage.name, row.targets) for row in rows_of(read_matrix(EXAMPLE))]
    assert asked == [
        ("piper", "decoder", ("rk3588", "rk3566")),
        ("piper", "duration_encoder", ("rk3588", "rk3566")),
        ("kokoro", "generator", ("rk3588",)),
    ]


def test_jobs_of_the_page_are_the_rules() -> None:
    assert list(rows_behind("\n## What is done")) == [kind.value for kind in Kind]


def test_failures_of_the_page_are_those_of_a_catalogue() -> None:
    assert list(rows_behind("\n## When something goes wrong")) == [fault.value for fault in Fault]


@pytest.mark.parametrize(
    ("told", "figure"),
    [
        ("a fifth is added", MARGIN == 1.2),
        ("a GB, or\n25 bytes for each of its own", (BYTES_PER_CHECKPOINT_BYTE, LEAST_BYTES) == (25, 10**9)),
        ("tries again, three times in all", ATTEMPTS == 3),
        (
            "by more than 1 %, its simulator's figure by\nmore than 1 dB",
            [r.least for r in RULES[:3]] == [0.01, 1, 0.01],
        ),
        ("needs 4 GB for each core", BYTES_PER_CORE == 4 * 10**9),
    ],
)
def test_figures_of_the_page_are_the_code_s(told: str, figure: bool) -> None:
    assert told in TEXT
    assert figure


def test_plan_on_paper_of_the_page_is_that_of_the_table() -> None:
    assert paper_table(read_table(SEED)) in TEXT, "python -m farm.piper_paper prints it"
