from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from farm.catalogue import Catalogue, Fault, exit_code_of
from farm.gathering import gather_farm
from farm.jobs import Kind
from farm.outcomes import Ended, JobOutcome, MadeFile
from farm.repeats import repeat_failure, repeat_of
from tests.farm.farm_folder import FarmFolder

NAME = "piper-decoder-w102"


@pytest.fixture
def farm(tmp_path: Path) -> FarmFolder:
    return FarmFolder(tmp_path / "out")


def gathered(farm: FarmFolder) -> Catalogue:
    return gather_farm(farm.plan().places)


def test_repeat_is_the_same_when_engines_and_graphs_are(farm: FarmFolder) -> None:
    farm.twice("amy", "rk3588", farm.compiled("amy", "rk3588", farm.export("amy")))
    found = gathered(farm)
    (repeat,) = found.repeats
    # The manifests differ, as they tell of the moment.
    assert [(file.name, file.same) for file in repeat.files] == [(f"{NAME}.onnx", True), (f"{NAME}.rknn", True)]
    assert (repeat.measured.first_node, repeat.measured.second_node) == ("n1", "n2")
    assert (repeat.same, found.totals.repeated, found.totals.same, exit_code_of(found)) == (True, 1, 1, 0)


def test_repeat_with_other_bytes_fails_with_the_files_and_both_nodes(farm: FarmFolder) -> None:
    job = farm.twice("amy", "rk3588", farm.compiled("amy", "rk3588", farm.export("amy")), engine=b"other")
    found = gathered(farm)
    (failed,) = found.failures
    assert (failed.fault, failed.job, failed.kind) == (Fault.DIFFERS, job.id, "twice")
    assert failed.sentence == (
        f"Made twice, on n1 and on n2, it has other bytes in {NAME}.rknn; their digests are in catalogue.json."
    )
    assert exit_code_of(found) == 1
    (differing,) = (file for file in found.repeats[0].files if not file.same)
    assert differing.second_sha256 == hashlib.sha256(b"other").hexdigest()
    assert differing.first_sha256 == found.engines[0].sha256


@pytest.mark.parametrize("ended", [Ended.FAILED, Ended.WAITING])
def test_repeat_that_is_not_done_says_nothing_of_bytes(farm: FarmFolder, ended: Ended) -> None:
    compiled = farm.compiled("amy", "rk3588")
    farm.ended(farm.job(Kind.TWICE, "amy", "rk3588", compiled), ended=ended, sentence="No.")
    found = gathered(farm)
    assert (found.repeats, [failure.fault.value for failure in found.failures]) == ((), [ended.value])


def test_repeat_says_nothing_of_bytes_when_the_first_export_is_gone(farm: FarmFolder) -> None:
    export = farm.export("amy")
    farm.twice("amy", "rk3588", farm.compiled("amy", "rk3588", export))
    farm.places.outcome(export.id).unlink()
    found = gathered(farm)
    assert (found.repeats, [failure.fault for failure in found.failures]) == ((), [Fault.LOST])


@pytest.mark.parametrize(
    ("reused", "node"), [((), "n1"), (("export", "graph", "judge"), "n1"), (("export", "build"), None)]
)
def test_first_node_is_not_known_when_the_engine_was_found_again(
    farm: FarmFolder, reused: tuple[str, ...], node: str | None
) -> None:
    job = farm.job(Kind.TWICE, "amy", "rk3588")
    first = replace(outcome("n1", ("a.rknn", "1")), reused=reused)
    repeat = repeat_of(job, "compile", [first], outcome("n2", ("a.rknn", "2")))
    assert (repeat.measured.first_node, repeat.measured.apart) == (node, node is not None)
    failed = repeat_failure(repeat)
    assert failed is not None
    assert failed.sentence.startswith(f"Made twice, {'on n1' if node else 'by an earlier run'} and on n2, it has other")


def outcome(node: str, *files: tuple[str, str]) -> JobOutcome:
    made = tuple(MadeFile(path, digest, 1) for path, digest in files)
    return JobOutcome("job", Ended.DONE, None, node, 1, 0.0, 0.0, 0.0, 0, made)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ([("a.rknn", "1")], [("a.rknn", "1")], True),
        ([("a.rknn", "1"), ("b.rknn", "2")], [("a.rknn", "1")], False),
        ([("a.rknn", "1")], [("a.rknn", "1"), ("b.rknn", "2")], False),
        # The graph of the export and the one beside the engine, which are one or two, as the first time.
        ([("onnx/a.onnx", "1"), ("rk3588/a.onnx", "1")], [("x/a.onnx", "1")], True),
        ([("onnx/a.onnx", "1"), ("rk3588/a.onnx", "2")], [("x/a.onnx", "1"), ("y/a.onnx", "2")], True),
        ([("onnx/a.onnx", "1"), ("rk3588/a.onnx", "2")], [("x/a.onnx", "1"), ("y/a.onnx", "3")], False),
        ([], [], False),
        ([("a.json", "1")], [("a.json", "1")], False),
    ],
)
def test_repeat_is_the_same_when_each_file_is_made_both_times(
    farm: FarmFolder, first: list[tuple[str, str]], second: list[tuple[str, str]], same: bool
) -> None:
    job = farm.job(Kind.TWICE, "amy", "rk3588")
    assert repeat_of(job, "compile", [outcome("n1", *first)], outcome("n2", *second)).same is same
