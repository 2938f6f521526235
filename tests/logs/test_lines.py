"""Bytes to clean lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logs.lines import CUT_MARK, LineSplitter, Progress, clean_lines, parse_progress

BAR = "I Loading :   0%|          | 0/1 [00:00<?, ?it/s]"
FULL_BAR = "I Loading : 100%|██████████| 133/133 [00:00<00:00, 9406.65it/s]"
RANDOM = "load_onnx: Load external data for 'w' failed! Generate random data for test!"


@pytest.mark.parametrize(
    ("log", "lines"),
    [
        pytest.param("a\nb\n", ["a", "b"], id="two_lines"),
        pytest.param("a\r\nb", ["a", "b"], id="windows_end_and_no_end"),
        pytest.param("\n\r\n  \n", [], id="empty_lines"),
        pytest.param("a  \x00\n  b\n", ["a", "  b"], id="trailing_blanks_and_nul"),
        pytest.param("\x1b[1;31mE\x1b[0m \x1b[1;31mbuild: no\x1b[0m\n", ["E build: no"], id="colour"),
        pytest.param("\x1b]0;title\x07a\x1b[2K\x1b[38;5;1mb\n", ["ab"], id="other_escapes"),
        pytest.param("1\r2\r3\n", ["1", "2", "3"], id="redraws"),
        pytest.param(f"\r{BAR}\r{FULL_BAR}\n", [BAR, FULL_BAR], id="progress"),
        pytest.param(
            f"\r{BAR}\x1b[1;33mW\x1b[0m \x1b[1;33m{RANDOM}\x1b[0m\n", [BAR, f"W {RANDOM}"], id="record_glued_to_a_bar"
        ),
        pytest.param(f"{BAR}I rknn building done.\n", [BAR, "I rknn building done."], id="plain_text_glued_to_a_bar"),
        pytest.param(
            "0E RKNN: [12:00:00.000] x\n", ["0", "E RKNN: [12:00:00.000] x"], id="native_record_glued_to_text"
        ),
        pytest.param(
            "E RKNN: [1:0:0.0] aW RKNN: [1:0:0.0] b\n", ["E RKNN: [1:0:0.0] a", "W RKNN: [1:0:0.0] b"], id="two_records"
        ),
        pytest.param("a\u2028b\x0bc\x85d\n", ["a\u2028b\x0bc\x85d"], id="other_separators_do_not_end_a_line"),
    ],
)
def test_clean_lines_gives_each_record_its_own_line(log: str, lines: list[str]) -> None:
    assert list(clean_lines(log)) == lines


def test_clean_lines_replaces_what_is_no_utf8() -> None:
    assert list(clean_lines(b"a\xff\xe2\x96b\n")) == ["a\ufffd\ufffdb"]


def test_splitter_keeps_a_character_whole_when_it_arrives_in_two_chunks() -> None:
    splitter = LineSplitter()
    first, second = "ü\n".encode()[:1], "ü\n".encode()[1:]
    assert splitter.feed(first) == []
    assert splitter.feed(second) == ["ü"]


def test_splitter_cuts_a_line_without_end_and_marks_its_pieces() -> None:
    splitter = LineSplitter(max_line_bytes=4)
    assert splitter.feed(b"aaaabbbbE x") == ["aaaa", f"{CUT_MARK}bbbb"]
    assert splitter.feed(b"\nnext\n") == [f"{CUT_MARK}E x", "next"]


def test_splitter_holds_bounded_memory_when_a_line_never_ends() -> None:
    splitter = LineSplitter(max_line_bytes=1000)
    pieces = [line for _ in range(100) for line in splitter.feed(b"x" * 999)]
    assert sum(len(piece.removeprefix(CUT_MARK)) for piece in pieces) >= 99_900 - 1000


TOKENS = [b"\r", b"\n", b" ", b"\x1b[1;31mE\x1b[0m ", "█".encode(), b"\xff", b"E RKNN: [1", BAR.encode(), b"text"]


@given(st.lists(st.sampled_from(TOKENS), max_size=30), st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_splitter_gives_the_same_lines_however_the_bytes_are_chunked(tokens: list[bytes], sizes: list[int]) -> None:
    data = b"".join(tokens)
    once, pieces = LineSplitter(max_line_bytes=16), LineSplitter(max_line_bytes=16)
    expected = once.feed(data) + once.close()
    lines: list[str] = []
    start = index = 0
    while start < len(data):
        size = sizes[index % len(sizes)]
        lines += pieces.feed(data[start : start + size])
        start, index = start + size, index + 1
    assert lines + pieces.close() == expected


@pytest.mark.parametrize(
    ("line", "progress"),
    [
        (BAR, Progress("Loading", 0, 1)),
        (FULL_BAR, Progress("Loading", 133, 133)),
        ("I OpFusing 2:  66%|███▎ | 169/257 [00:00<00:00, 1.9it/s]", Progress("OpFusing 2", 169, 257)),
        ("I OpFusing 0:  50%", None),
        ("I rknn building done.", None),
        ("", None),
    ],
)
def test_parse_progress_reads_a_bar(line: str, progress: Progress | None) -> None:
    assert parse_progress(line) == progress
