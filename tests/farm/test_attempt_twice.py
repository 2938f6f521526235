"""What is made twice has a cache of its own, but not its own copy of what packages carry."""

from __future__ import annotations

from pathlib import Path

import pytest

from farm.attempt import Allotment, attempt_job
from farm.jobs import Job, Kind
from farm.outcomes import Ended, JobOutcome, read_outcome, write_outcome
from farm.places import FarmPlaces
from farm.settings import Settings

PROGRAM = """#!/bin/sh
ls "$RKNN_TTS_CACHE" > {seen}
cat "$RKNN_TTS_CACHE/checkpoints/voice/a.onnx" >> {seen}
echo '{{"exit_code": 0}}'
"""


@pytest.mark.parametrize(
    ("fetched", "seen"),
    [(["steps/x", "checkpoints/voice/a.onnx"], "checkpoints\nfetched\n"), (["steps/x"], "")],
)
def test_what_is_made_twice_finds_what_was_fetched_and_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fetched: list[str], seen: str
) -> None:
    places = FarmPlaces(tmp_path / "out")
    for name in fetched:
        (tmp_path / "cache" / name).parent.mkdir(parents=True)
        (tmp_path / "cache" / name).write_text("fetched\n")
    monkeypatch.setenv("RKNN_TTS_CACHE", str(tmp_path / "cache"))
    program = tmp_path / "program"
    program.write_text(PROGRAM.format(seen=tmp_path / "seen"))
    program.chmod(0o755)
    first = JobOutcome("compile-1", Ended.DONE, None, "n", 1, 0.0, 1.0, 1.0, 1)
    write_outcome(first, places.outcome(first.job))
    of = ("piper", "decoder", "a", "", "rk3588", "2.3.2")
    job = Job("twice-1", Kind.TWICE, (("export", "--json"),), ".farm/twice/twice-1", ("compile-1",), *of)
    allotment = Allotment(attempt=1, last=True, alone=False, memory_bytes=10**9)
    assert attempt_job(job, places, Settings(str(program), "python", 10**9), allotment)
    outcome = read_outcome(places.outcome(job.id))
    assert outcome is not None
    assert outcome.ended is Ended.DONE
    assert (tmp_path / "seen").read_text() == seen
    assert not (places.scratch / job.id).exists()
    assert all((tmp_path / "cache" / name).is_file() for name in fetched)
