"""A log of any bytes is read to its end: what the toolkit prints is not ours to choose."""

from __future__ import annotations

import pytest

from engine.fuse_rules import crashed_rule
from engine.stages import stage_of
from logs.judge import judge_log
from logs.layer_table import parse_layer_table
from logs.lines import clean_lines, parse_progress
from logs.live import LiveJudge
from tests.logs.build_logs import END, START
from tests.logs.layer_tables import RK3588
from tests.mutations import mutations

REGTASK = (
    "E RKNN: [10:00:00.000] REGTASK: The bit width of field value exceeds the limit, target: v2, offset: 0x1014, "
    "shift = 0, limit: 0x7, value: 0x9"
)
LOG = (START + RK3588 + f"{REGTASK}\n" + END).encode()

PIECES = (
    b"\x1b[31m", b"\r", b"\n", b"E RKNN: [", b"0x", b"9" * 30, b"-", b"%|", b"\xff", b"\0", b"nan", b"1e999",
    REGTASK.encode(), "\x85".encode(), "\u2028".encode(), "\u0663".encode(), "\u00b2".encode(),
)  # fmt: skip


def test_damaged_log_is_read_and_judged_to_its_end() -> None:
    for damaged in mutations(LOG, 300, PIECES):
        lines, live = list(clean_lines(damaged)), LiveJudge(())
        for line in lines:
            parse_progress(line)
            stage_of(line)
            live.feed(line)
        judge_log(lines, ())
        parse_layer_table(lines)
        crashed_rule(lines)


@pytest.mark.parametrize("endless", [b"0" * 300_000, b"E RKNN: [" * 30_000, b"\x1b[31m" * 30_000, b"\r" * 300_000])
def test_line_without_end_is_read_in_bounded_time_and_pieces(endless: bytes) -> None:
    lines = list(clean_lines(LOG + endless))
    assert max(map(len, lines)) < 100_000
    assert judge_log(lines, ()).verdicts
