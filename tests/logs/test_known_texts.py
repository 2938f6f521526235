"""The table of the toolkit's texts: each row finds what it says, and an excuse excuses a whole message only."""

from __future__ import annotations

import pytest

from logs.known_texts import FAILING, KNOWN_TEXTS, KnownText, LineClass

MESSAGES = {
    LineClass.RANDOM_WEIGHTS: (
        "Load external data for 'enc.w' failed! Generate random data for test!",
        {"tensor": "enc.w"},
    ),
    LineClass.NO_KERNEL: (
        "No lowering found for: at, node type = Atan, use CustomOperatorLower instead.",
        {"node": "at", "op": "Atan"},
    ),
    LineClass.BAD_TENSOR: (
        "invalid tensor malloc size, tensor name: x_1, target: CPU, size: 0",
        {"tensor": "x_1"},
    ),
}
"""A message of each failing class that names something, as the toolkit printed it."""


@pytest.mark.parametrize("kind", MESSAGES)
def test_known_text_tells_the_names_in_a_message(kind: LineClass) -> None:
    message, names = MESSAGES[kind]
    (row,) = [row for row in KNOWN_TEXTS if row.kind is kind]
    match = row.pattern.search(message)
    assert match is not None
    assert match.groupdict() == names


@pytest.mark.parametrize("row", KNOWN_TEXTS, ids=lambda row: row.needle)
def test_known_text_has_a_needle_that_its_own_pattern_holds(row: KnownText) -> None:
    assert len(row.needle) > 8  # shorter ones would be looked for in vain on most lines
    literal = row.pattern.pattern.replace("\\", "").replace("n?", "")
    assert row.needle in literal


@pytest.mark.parametrize(
    ("message", "excused"),
    [
        ("channel is too large, may produce thousands of regtask, fallback to cpu!", True),
        ("Deconv: Invalid stride of 3. Must be 1, 2, 4 or 8, fallback to CPU.", True),
        ("Deconv: Invalid stride of x. Must be 1, 2, 4 or 8, fallback to CPU.", False),
        ("Greater: meet unsupport input elems: -1 vs 20, fallback to cpu", True),
        ("Greater: meet unsupport input elems: -1 vs 20, fallback to cpu, and lost a tensor", False),
        ("Softmax:transpose Perm{0, 2, 3, 1} RKNPU not support, fallback CPU implement", True),
        ("Pad: RKNPU not support mode reflect, fallback CPU implement.", True),
    ],
)
def test_fallback_row_excuses_a_message_that_is_its_whole_text(message: str, excused: bool) -> None:
    rows = [row for row in KNOWN_TEXTS if row.kind is LineClass.FALLBACK and row.pattern.fullmatch(message)]
    assert bool(rows) is excused


def test_failing_classes_come_before_what_excuses() -> None:
    failing = [row.kind in FAILING for row in KNOWN_TEXTS]
    assert failing == sorted(failing, reverse=True)
