"""What a person sees of a page that was written."""

from __future__ import annotations

from rknn_tts.blocks import Block, Facts, Notice
from rknn_tts.engine_page.write_page import WrittenPage
from rknn_tts.numbers import BYTES_PER_KB, size


def page_blocks(page: WrittenPage) -> list[Block]:
    """Where the page is, what it is of, and what it lacks."""
    pairs = [("page", f"{page.file} ({size(page.bytes / BYTES_PER_KB)})"), *(("engine", name) for name in page.engines)]
    return [Facts(tuple(pairs)), *(Notice("note", note, "warn") for note in page.notes)]
