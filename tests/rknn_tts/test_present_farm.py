from __future__ import annotations

from dataclasses import replace

from farm.jobs import Kind
from rknn_tts.blocks import Notice, Table, plain_text
from rknn_tts.farm import FARM, FarmRun, KindCount
from rknn_tts.present_farm import farm_blocks

RUN = FarmRun(
    matrix="m.toml",
    output="/out",
    kinds=(
        KindCount(Kind.EXPORT, 3, 1, 3, {}),
        KindCount(Kind.COMPILE, 6, 2, 3, {"failed": 1, "waiting": 2}),
    ),
    unplanned=2,
    seconds=125.4,
)


def test_jobs_are_shown_kind_by_kind_with_what_did_not_go_well() -> None:
    blocks = farm_blocks({FARM: RUN})
    assert plain_text(blocks) == (
        "step     jobs  at hand before  done  not done\n"
        "export      3               1     3  -\n"
        "compile     6               2     3  1 failed, 2 waiting\n"
        "\n"
        "output:  /out\n"
        "time:    2 min 5 s\n"
    )
    assert isinstance(blocks[0], Table)
    assert [row.tone for row in blocks[0].rows] == ["good", "bad"]


def test_a_dry_run_shows_what_is_to_do_and_what_it_takes() -> None:
    blocks = farm_blocks({FARM: replace(RUN, dry_run=True, paper="On paper 6 jobs.")})
    assert plain_text(blocks) == (
        "step     jobs  at hand  to do\n"
        "export      3        1      2\n"
        "compile     6        2      4\n"
        "\n"
        "on paper: On paper 6 jobs.\n"
        "\n"
        "output:  /out\n"
        "\n"
        "left out: 2 checkpoints, of which no job can be made.\n"
    )
    assert [block.label for block in blocks if isinstance(block, Notice)] == ["on paper", "left out"]
