from __future__ import annotations

from pathlib import Path

import pytest

from converters.piper.duration_sentences import filling, sentences_of, tokens_feed
from tests.converters.voices import opened
from tests.vits_writer.recipe import ALPHABET

BEGIN, END, PAD = (ALPHABET.index(symbol) for symbol in "^$_")


@pytest.mark.parametrize("width", [1, 2, 3, 17, 128, 512])
def test_sentences_fill_the_width_and_then_get_shorter(tmp_path: Path, width: int) -> None:
    counts = [len(ids) for ids in sentences_of(opened(tmp_path), width)]
    assert counts[0] == width
    assert counts == sorted(set(counts), reverse=True)
    assert min(counts) >= 1
    assert len(counts) == (4 if width >= 17 else len(counts))


def test_sentences_are_whole_where_one_fits(tmp_path: Path) -> None:
    voice = opened(tmp_path)
    for ids in sentences_of(voice, 512)[1:]:
        assert (ids[0], ids[-1]) == (BEGIN, END)
        assert ids.count(BEGIN) == ids.count(END) == 1
    (*_, cut) = sentences_of(voice, 40)  # ten tokens
    assert cut[0] == BEGIN
    assert END not in cut


def test_filling_begins_anew_where_the_sentences_end(tmp_path: Path) -> None:
    ids = filling(opened(tmp_path), 3000)
    assert len(ids) == 3000
    assert ids.count(BEGIN) > 1
    assert max(ids) < len(ALPHABET)


def test_tokens_feed_pads_on_the_right_and_counts_the_tokens(tmp_path: Path) -> None:
    feed = tokens_feed(opened(tmp_path), [1, 5, 2], 6)
    assert feed["input"].tolist() == [[1, 5, 2, PAD, PAD, PAD]]
    assert feed["input_lengths"].tolist() == [3]
    assert {array.dtype.name for array in feed.values()} == {"int64"}
