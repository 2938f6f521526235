from __future__ import annotations

import io
import re

import pytest

from rknn_tts.blocks import Block, Facts, Notice, Row, Table, Verbatim, is_terminal, plain_text, write_blocks

TABLE = Table(
    "Verdicts",
    ("status", "gate", "measured", "detail"),
    (Row(("passed", "fp32.noise", "98.2", "A sentence."), "good"), Row(("failed", "log", "", "Another."), "bad")),
    right=frozenset({2}),
    prose="wide",
)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return Terminal()


def test_plain_text_aligns_columns_and_dashes_empty_cells() -> None:
    assert plain_text([TABLE]).splitlines() == [
        "status  gate        measured  detail",
        "passed  fp32.noise      98.2  A sentence.",
        "failed  log                -  Another.",
    ]


def test_plain_text_parts_blocks_but_not_notices() -> None:
    blocks: list[Block] = [
        Facts((("engine", "a.rknn"), ("log", "b.log"))),
        Notice("note", "One."),
        Notice("note", "Two."),
    ]
    assert plain_text(blocks) == "engine:  a.rknn\nlog:     b.log\n\nnote: One.\nnote: Two.\n"


def test_lines_of_a_file_stay_as_they_are_but_for_control_characters(terminal: Terminal) -> None:
    block = Verbatim('{\n  "a":  "[bold]\x1b\r\u2028"\n}\n')
    seen = '{\n  "a":  "[bold]\\x1b\\r\\u2028"\n}\n'
    assert plain_text([block]) == seen
    write_blocks([block, Verbatim("x" * 200)], terminal)
    assert terminal.getvalue() == f"{seen}\n{'x' * 200}\n"


def test_write_blocks_writes_no_escapes_when_the_stream_is_no_terminal() -> None:
    stream = io.StringIO()
    write_blocks([TABLE, Notice("UNPROVEN", "x", "warn")], stream)
    assert stream.getvalue() == plain_text([TABLE, Notice("UNPROVEN", "x", "warn")])


def test_write_blocks_colours_the_status_when_the_stream_is_a_terminal(terminal: Terminal) -> None:
    write_blocks([TABLE], terminal)
    assert "\x1b[32mpassed" in terminal.getvalue()
    assert "\x1b[1;31mfailed" in terminal.getvalue()


@pytest.mark.parametrize(("columns", "there"), [("80", False), ("140", True)])
def test_write_blocks_shows_sentences_beside_figures_when_there_is_room(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, columns: str, there: bool
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    write_blocks([TABLE], terminal)
    assert ("A sentence." in terminal.getvalue()) is there


def test_write_blocks_reads_no_markup_when_a_name_looks_like_it(terminal: Terminal) -> None:
    write_blocks([Facts((("file", "[red]x[/red] [/nothing]"),)), Notice("note", "[bold]")], terminal)
    assert "[red]x[/red] [/nothing]" in terminal.getvalue()
    assert "[bold]" in terminal.getvalue()


def test_write_blocks_keeps_within_the_width_when_the_terminal_is_narrow(terminal: Terminal) -> None:
    write_blocks([TABLE, Facts((("engine", "x" * 200),)), Notice("note", "words " * 40 + "y" * 200)], terminal)
    text = re.sub(r"\x1b\[[\d;]*m", "", terminal.getvalue())
    assert max(map(len, text.splitlines())) <= 80
    assert (text.count("x"), text.count("y")) == (200, 200)


def test_write_blocks_breaks_a_dotted_name_after_a_dot_when_it_is_too_long(terminal: Terminal) -> None:
    gate = f"fp32.{'e' * 40}.worst_{'i' * 20}"
    table = Table("Verdicts", ("status", "gate", "measured"), (Row(("passed", gate, "98.2"), "good"),), wraps=1)
    write_blocks([table], terminal)
    lines = [line.split() for line in terminal.getvalue().splitlines()]
    assert lines[-2][1:] == [f"fp32.{'e' * 40}.", "98.2"]
    assert lines[-1] == [f"worst_{'i' * 20}"]


def test_write_blocks_puts_sentences_below_when_the_table_says_so(terminal: Terminal) -> None:
    table = Table("Measured", ("figure", "measured", "reason"), (Row(("short", "26.5", "why " * 30)),), prose="below")
    write_blocks([table], terminal)
    text = terminal.getvalue()
    assert text.count("why") == 30
    assert text.index("26.5") < text.index("why")


@pytest.mark.parametrize("width", [50, 80, 130])
def test_write_blocks_loses_no_column_when_the_terminal_is_too_narrow_for_all(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    columns = ("pass", *(f"figure_{index}" for index in range(10)))
    rows = tuple(Row((f"{name}_of_a_pass", *(f"{index}.{name}" for index in range(10)))) for name in ("one", "two"))
    write_blocks([Table("Passes", columns, rows, right=frozenset(range(1, 11)))], terminal)
    text = re.sub(r"\x1b\[[\d;]*m", "", terminal.getvalue())
    assert max(map(len, text.splitlines())) <= width
    lines = [line.split() for line in text.splitlines()]
    for head, row in zip(columns[1:], rows[0].cells[1:], strict=True):
        (heading,) = (line for line in lines if head in line)
        (cells,) = (line for line in lines if row in line)
        assert heading[0] == "pass"
        assert cells[0] == "one_of_a_pass"
        assert heading.index(head) == cells.index(row)
    assert text.count("Passes") == 1


def test_write_blocks_names_every_row_when_sentences_stand_below(terminal: Terminal) -> None:
    rows = (Row(("rewrite_long_transposed_conv", "exact", "rk3562, rk3566, rk3568, rk3576", "why " * 30)),)
    write_blocks([Table("Passes", ("pass", "algebra", "for", "what it does"), rows, prose="below")], terminal)
    text = terminal.getvalue()
    assert text.count("why") == 30
    assert "rewrite_long_transposed_conv" in text
    assert "rk3562, rk3566, rk3568, rk3576" in text


@pytest.mark.parametrize(("term", "expected"), [("xterm", True), ("dumb", False), ("", False)])
def test_is_terminal_asks_what_it_can_do(monkeypatch: pytest.MonkeyPatch, term: str, expected: bool) -> None:
    monkeypatch.setenv("TERM", term)
    assert is_terminal(Terminal()) is expected
    assert not is_terminal(io.StringIO())


def test_label_of_a_notice_is_shown_as_a_name_is() -> None:
    assert plain_text([Notice("a\x1b[31m\nb", "One.")]) == "a\\x1b[31m b: One.\n"
