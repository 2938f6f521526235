"""Lines of real logs, and the stage each starts."""

from __future__ import annotations

import pytest

from engine.stages import stage_of


@pytest.mark.parametrize(
    ("line", "stage"),
    [
        ("D fold_constant ...", "fold constant"),
        ("D fold_constant done.", None),
        ("D fuse_ops results:", None),
        ("I rknn building ...", "compiling"),
        ("I rknn building done.", None),
        ("D RKNN: [15:53:07.579] >>>>>> start: rknn::RKNNTilingPass", "compiling: TilingPass"),
        ("D RKNN: [15:53:07.585] >>>>>> start: OpEmit", "compiling: OpEmit"),
        ("D RKNN: [15:53:07.617] <<<<<<<< end: OpEmit", None),
        ("I Loading : 100%|██████████████████| 133/133 [00:00<00:00, 9406.65it/s]", "loading"),
        ("I SessionPreparing :   0%|      | 0/257 [00:00<?, ?it/s]", "simulator"),
        ("I Other : 50%|█   | 1/2 [00:00<?, ?it/s]", None),
        ("", None),
    ],
)
def test_stage_is_named_when_a_line_starts_one(line: str, stage: str | None) -> None:
    assert stage_of(line) == stage
