"""A written plan, or the schema of plans, as a person sees it."""

from __future__ import annotations

from rknn_tts.blocks import Block, Facts, Notice, Verbatim
from rknn_tts.plan import WrittenPlan, plan_text


def plan_blocks(found: WrittenPlan) -> list[Block]:
    """What the file holds, where it is, and what is to be known of it."""
    notes = [Notice("note", note) for note in found.notes]
    return [Verbatim(plan_text(found.plan)), Facts((("plan", found.file),)), *notes]


def schema_blocks(schema: object) -> list[Block]:
    """The schema alone, so that it can go into a file."""
    return [Verbatim(plan_text(schema))]
