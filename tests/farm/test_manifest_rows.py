from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from contracts.manifest import EngineFile, Manifest, OnnxTwin, SetManifest, Toolkit, manifest_text
from contracts.verdicts import Measurement
from farm.jobs import Kind
from farm.learning import brought_up_to_date
from farm.manifest_rows import OWN_BYTES, OWN_TIMES, from_manifests
from farm.outcomes import Ended, JobOutcome
from farm.rows import Table
from tests.contracts.samples import MANIFEST, SHA
from tests.farm.piper_job import COMPILE

JOB = replace(COMPILE, folder="rk3588/Ærø", voice="Ærø")


def figures(wall_s: float, cpu_s: float, peak_mb: float) -> tuple[Measurement, ...]:
    told = (("wall", wall_s, "s"), ("cpu", cpu_s, "s"), ("peak_memory", peak_mb, "MB"))
    return tuple(
        Measurement(name=f"build.{name}", measured=value, unit=unit, reason="why") for name, value, unit in told
    )


def write_engine(output: Path, name: str, told: tuple[Measurement, ...], **changes: object) -> int:
    """An engine with its manifest in the job's folder; how many bytes it, its twin and its manifest have."""
    folder = output / JOB.folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.rknn").write_bytes(b"engine!")
    (folder / f"{name}.onnx").write_bytes(b"twin")
    manifest = replace(
        MANIFEST,
        family="piper",
        stage="decoder",
        target="rk3588",
        toolkit=Toolkit("rknn-toolkit2", "2.3.2"),
        onnx=OnnxTwin(f"{name}.onnx", SHA, 15, 3),
        engine=EngineFile(f"{name}.rknn", SHA, 7),
        measurements=told,
    )
    text = manifest_text(_changed(manifest, **changes)).encode()
    (folder / f"{name}.json").write_bytes(text)
    return len(text) + len(b"engine!" + b"twin")


def _changed(manifest: Manifest, **changes: object) -> Manifest:
    return replace(manifest, **changes)  # type: ignore[arg-type]


def test_engines_of_a_job_are_one_row(tmp_path: Path) -> None:
    left = write_engine(tmp_path, "w128", figures(4.0, 3.5, 728))
    left += write_engine(tmp_path, "w256", figures(6.0, 5.5, 900))
    (tmp_path / JOB.folder / "piper-decoder.set.json").write_text(manifest_text(SetManifest(("w128.json",))))
    (row,) = from_manifests(tmp_path, [JOB]).rows
    assert (row.kind, row.width, row.target, row.checkpoint_bytes) == (Kind.COMPILE, "", "rk3588", 63_201_294)
    assert (row.times, row.wall_s, row.largest_wall_s) == (1, OWN_TIMES * 10.0, OWN_TIMES * 10.0)
    assert (row.cpu_s, row.largest_cpu_s) == (OWN_TIMES * 9.0, OWN_TIMES * 9.0)
    assert row.peak_bytes == OWN_BYTES + 900_000_000  # one is built after the other
    assert row.disk_bytes == left


def test_jobs_of_one_sort_are_one_row(tmp_path: Path) -> None:
    write_engine(tmp_path, "w128", figures(4.0, 3.5, 728))
    (row,) = from_manifests(tmp_path, [JOB, replace(JOB, id="compile-2")]).rows
    assert row.times == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"target": "rk3566"},
        {"stage": "duration_encoder"},
        {"family": "inflect"},
        {"toolkit": Toolkit("rknn-toolkit2", "2.5.0")},
        {"measurements": figures(4.0, 3.5, 728)[:2]},
        {
            "measurements": (
                Measurement(name="build.wall", measured=None, unit="s", reason="why"),
                *figures(4.0, 3.5, 728)[1:],
            )
        },
    ],
)
def test_manifest_that_tells_nothing_of_the_job_is_no_row(changes: dict[str, object], tmp_path: Path) -> None:
    write_engine(tmp_path, "w128", figures(4.0, 3.5, 728), **changes)
    assert from_manifests(tmp_path, [JOB]).rows == ()


def test_job_is_no_row_when_one_of_its_engines_does_not_tell(tmp_path: Path) -> None:
    write_engine(tmp_path, "w128", figures(4.0, 3.5, 728))
    write_engine(tmp_path, "w256", ())
    assert from_manifests(tmp_path, [JOB]).rows == ()


def test_damaged_manifest_is_passed_over(tmp_path: Path) -> None:
    write_engine(tmp_path, "w128", figures(4.0, 3.5, 728))
    (tmp_path / JOB.folder / "damaged.json").write_text("{")
    assert len(from_manifests(tmp_path, [JOB]).rows) == 1


def test_only_what_compiles_is_looked_for(tmp_path: Path) -> None:
    write_engine(tmp_path, "w128", figures(4.0, 3.5, 728))
    assert from_manifests(tmp_path, [replace(JOB, kind=Kind.PAGE), replace(JOB, folder="rk3588/none")]).rows == ()


def test_outcome_counts_and_not_the_manifest_when_a_job_has_both(tmp_path: Path) -> None:
    write_engine(tmp_path, "w128", figures(4.0, 3.5, 728))
    outcome = JobOutcome(JOB.id, Ended.DONE, None, "here", 1, 100.0, 18.0, 17.0, 1_350_000_000)
    other = replace(JOB, id="compile-2", width="window-109", folder="none")
    (row,) = brought_up_to_date(Table(), tmp_path, [JOB, other], [outcome]).rows
    assert row.peak_bytes == 1_350_000_000
    found_again = replace(outcome, reused=("build",))
    assert brought_up_to_date(Table(), tmp_path, [JOB, other], [found_again]).rows == ()


def test_own_row_counts_and_not_the_manifest_when_the_job_has_no_outcome(tmp_path: Path) -> None:
    write_engine(tmp_path, "w128", figures(4.0, 3.5, 728))
    first = brought_up_to_date(Table(), tmp_path, [JOB], [])
    assert [row.peak_bytes for row in first.rows] == [OWN_BYTES + 728_000_000]
    own = replace(first, rows=(replace(first.rows[0], peak_bytes=5),))
    assert brought_up_to_date(own, tmp_path, [JOB], []) == own
