from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rknn_tts_runtime.backends.twins import TwinBackend
from rknn_tts_runtime.probing.kit_reading import open_kit
from rknn_tts_runtime.probing.result import result_text, signed_off
from rknn_tts_runtime.probing.run import run_kit

from contracts.board import Board, BoardConditions, BoardMemory
from contracts.contract import TensorSpec
from contracts.errors import NotWritten, UserInput
from contracts.files import sha256_of, write_whole
from contracts.manifest import Manifest, manifest_text, read_manifest
from contracts.verdicts import Status
from rknn_tts.checksums import SUMS, read_sums, sums_text
from rknn_tts.cli import run as run_command
from rknn_tts.verify import Verified, verify
from tests.rknn_tts.signed_results import BEFORE, DATE, LATER, noisy, probe, refused, write_probed_engine
from tests.runtime.probing.boards import BoardBackend
from tests.runtime.probing.kits import PROVES, replace_array, write_kit


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """The engine that `rknn-tts probe` made a kit of."""
    return write_probed_engine(tmp_path)


def board_of(done: Verified) -> Board:
    """What the manifest says of the board."""
    assert done.outcome.manifest is not None
    assert done.outcome.manifest.board is not None
    return done.outcome.manifest.board


def verdicts_of(manifest: Manifest) -> dict[str, tuple[Status, object, object]]:
    """Status and figures by gate; of hardware fields the offset too."""
    return {
        f"{v.gate} {v.detail.partition('field ')[2][:6]}".strip(): (v.status, v.measured, v.threshold)
        for v in manifest.verdicts
    }


def test_probe_turns_the_unproven_verdict_into_its_figure_and_leaves_the_rest(engine: Path, tmp_path: Path) -> None:
    done = verify(engine, probe(tmp_path, BoardBackend(noisy(2.001))))
    assert done.failure is None
    manifest = read_manifest(engine.with_suffix(".json"))
    assert manifest == done.outcome.manifest
    figure = pytest.approx(20 * math.log10(2000), abs=1e-2)  # every element is off by a 2000th
    assert verdicts_of(manifest) == {
        "structure.operators": (Status.PASSED, None, None),
        "log.regtask 0x4038": (Status.PASSED, figure, 40.0),
        "log.regtask 0x5048": (Status.UNPROVEN, "0x2001", None),
        "pass.rewrite_sine": (Status.PASSED, None, None),
        "board.net": (Status.PASSED, figure, 40.0),
        "board.field": (Status.PASSED, figure, 40.0),
    }
    proven = manifest.verdicts[1]
    assert proven.unit == "dB"
    assert proven.detail == (
        "on a board, case field: The layer behind 0x4038, alone. Before: field 0x4038: only a board can tell"
    )


def test_manifest_keeps_what_the_board_found_and_under_which_conditions(engine: Path, tmp_path: Path) -> None:
    place = probe(tmp_path)
    board = board_of(verify(engine, place))
    assert (board.ms, board.least_ms, board.repeats) == (20.714, 19.5, 5)
    assert [(o.name, o.snr_db, o.bound_db, o.max_abs) for o in board.outputs] == [("y", math.inf, 40.0, 0.0)]
    assert board.memory == BoardMemory(3 << 20, 1 << 20)
    assert board.conditions == BoardConditions(
        soc="rk3588",
        model="Orange Pi 5 Plus",
        kernel="6.1.43-rockchip",
        governor="rknpu_ondemand",
        least_hz=10**9,
        most_hz=10**9,
        core_mask="0_1_2",
        api="2.3.2",
        driver="0.9.8",
    )
    assert (board.date, board.by) == (DATE, "Ada")
    assert board.kit_sha256 == sha256_of(tmp_path / "kit" / "probe.json")
    assert board.probe_sha256 == json.loads(place.read_text(encoding="utf-8"))["signed_off"]["sha256"]
    assert [(case.name, case.kind, case.passed, case.proves) for case in board.cases] == [
        ("net", "engine", True, ("pass.rewrite_sine",)),
        ("field", "regtask", True, (PROVES,)),
    ]
    assert {name: verdict.status for name, verdict in board.before.items()} == {PROVES: Status.UNPROVEN}


def test_estimated_memory_is_not_told_as_the_boards(engine: Path, tmp_path: Path) -> None:
    def estimated(data: dict[str, Any]) -> None:
        data["cases"][0]["memory"]["measured"] = False

    assert board_of(verify(engine, probe(tmp_path, change=estimated))).memory is None


@pytest.mark.parametrize(
    ("backend", "said", "failed"),
    [
        (BoardBackend(noisy(2.1)), "board.net, and 2 more", {"board.net", "board.field", "log.regtask 0x4038"}),
        (BoardBackend(refusals={"part": 1}), "board.field, and 1 more", {"board.field", "log.regtask 0x4038"}),
        (BoardBackend(refusals={"net": 1}), "board.net; its manifest", {"board.net"}),
    ],
)
def test_failed_case_fails_the_command_and_the_manifest_says_so(
    engine: Path, tmp_path: Path, backend: BoardBackend, said: str, failed: set[str]
) -> None:
    done = verify(engine, probe(tmp_path, backend))
    assert done.failure is not None
    assert said in done.failure
    told = verdicts_of(read_manifest(engine.with_suffix(".json")))
    assert {gate for gate, (status, _, _) in told.items() if status is Status.FAILED} == failed


def test_engine_that_did_not_load_has_a_board_without_figures(engine: Path, tmp_path: Path) -> None:
    def unmeasured(data: dict[str, Any]) -> None:
        data["cases"][0].update(ms=None, least_ms=None, repeats=0)

    done = verify(engine, probe(tmp_path, BoardBackend(refusals={"net": 1}), unmeasured))
    manifest = done.outcome.manifest
    assert manifest is not None
    assert manifest.board is not None
    assert (manifest.board.ms, manifest.board.outputs) == (None, ())
    verdict = next(v for v in manifest.verdicts if v.gate == "board.net")
    assert verdict.measured is None
    assert "could not be loaded: rknn_init failed with code -13" in verdict.detail


def test_several_cases_of_one_verdict_decide_it_by_the_worst(engine: Path, tmp_path: Path) -> None:
    kit = write_kit(tmp_path / "kit")
    both = tuple(case if case.kind == "regtask" else dataclasses.replace(case, proves=(PROVES,)) for case in kit.cases)
    done = verify(engine, probe(tmp_path, BoardBackend(refusals={"net": 1}), cases=both))
    assert done.outcome.manifest is not None
    status, _, _ = verdicts_of(done.outcome.manifest)["log.regtask 0x4038"]
    assert status is Status.FAILED


def test_same_probe_again_changes_nothing(engine: Path, tmp_path: Path) -> None:
    place = probe(tmp_path)
    verify(engine, place)
    manifest = engine.with_suffix(".json")
    before, stamp = manifest.read_bytes(), manifest.stat().st_mtime_ns
    again = verify(engine, place)
    assert (manifest.read_bytes(), manifest.stat().st_mtime_ns) == (before, stamp)
    assert again.outcome.notes[0] == "These figures were in the manifest already."


def test_later_probe_replaces_the_earlier_and_says_what_is_lost(engine: Path, tmp_path: Path) -> None:
    bare = read_manifest(engine.with_suffix(".json"))
    verify(engine, probe(tmp_path, BoardBackend(noisy(2.1))))
    kit = write_kit(tmp_path / "kit")
    done = verify(engine, probe(tmp_path, date=LATER, cases=kit.cases[:1]))
    assert done.failure is None
    assert done.outcome.notes[:2] == (
        f"The figures of {DATE} (by Ada) are replaced by those of {LATER} (by Ada).",
        f"LOST: that probe had decided {PROVES}, and this one does not: unproven again.",
    )
    manifest = read_manifest(engine.with_suffix(".json"))
    assert manifest.verdicts[:4] == bare.verdicts
    assert [v.gate for v in manifest.verdicts[4:]] == ["board.net"]


def test_probe_that_replaces_a_later_one_is_told(engine: Path, tmp_path: Path) -> None:
    verify(engine, probe(tmp_path))
    done = verify(engine, probe(tmp_path, date=BEFORE))
    assert "The probe that is replaced was the later one." in done.outcome.notes


def test_warnings_of_the_conditions_and_what_stays_unproven_are_told(engine: Path, tmp_path: Path) -> None:
    def slow(data: dict[str, Any]) -> None:
        data["warnings"] = ["The NPU ran at 300 MHz at most, and could at 1000: times are of that clock."]

    notes = verify(engine, probe(tmp_path, change=slow)).outcome.notes
    assert notes == (
        "The NPU ran at 300 MHz at most, and could at 1000: times are of that clock.",
        "UNPROVEN: 1 verdict can only be given by a board, and this probe gives none on it.",
    )


def test_board_that_does_not_tell_its_chip_is_taken_and_told(engine: Path, tmp_path: Path) -> None:
    told = "The board did not tell its chip; that it is an rk3588 follows only from what ran on it."
    assert told not in verify(engine, probe(tmp_path)).outcome.notes
    place = probe(tmp_path, change=lambda data: data["conditions"].update(soc=None), date=LATER)
    assert told in verify(engine, place).outcome.notes


def test_output_that_the_kit_leaves_out_is_told(engine: Path, tmp_path: Path) -> None:
    place = engine.with_suffix(".json")
    manifest = read_manifest(place)
    wider = dataclasses.replace(manifest, outputs=(*manifest.outputs, TensorSpec("cache_out", (1, 4))))
    place.write_text(manifest_text(wider), encoding="utf-8")
    assert "Not compared on the board: cache_out." in verify(engine, probe(tmp_path)).outcome.notes


def test_digests_of_the_folder_stay_true(engine: Path, tmp_path: Path) -> None:
    folder = engine.parent
    write_whole(folder / SUMS, sums_text({path.name: sha256_of(path) for path in folder.iterdir()}).encode())
    done = verify(engine, probe(tmp_path))
    sums = read_sums((folder / SUMS).read_text(encoding="utf-8"))
    assert sums == {path.name: sha256_of(path) for path in folder.iterdir() if path.name != SUMS}
    assert done.outcome.files == (str(folder / "net.json"), str(folder / SUMS))


def test_a_manifest_that_was_changed_since_it_was_listed_is_not_made_true(engine: Path, tmp_path: Path) -> None:
    folder, place = engine.parent, engine.with_suffix(".json")
    listed = sums_text({path.name: sha256_of(path) for path in folder.iterdir()})
    write_whole(folder / SUMS, listed.encode())
    place.write_text(place.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    changed = place.read_bytes()
    with pytest.raises(UserInput, match=r"net\.json: is not the file that MANIFEST\.sha256 beside it tells of"):
        verify(engine, probe(tmp_path))
    assert (place.read_bytes(), (folder / SUMS).read_text(encoding="utf-8")) == (changed, listed)


def test_manifest_may_be_named_in_the_engines_place(engine: Path, tmp_path: Path) -> None:
    assert verify(engine.with_suffix(".json"), probe(tmp_path)).failure is None


def test_stale_manifest_is_refused(engine: Path, tmp_path: Path) -> None:
    place = probe(tmp_path)
    engine.write_bytes(b"RKNN another")
    assert "net.json: is stale" in refused(engine, place)


def test_engine_without_manifest_or_file_is_refused(engine: Path, tmp_path: Path) -> None:
    place = probe(tmp_path)
    assert "there is no such engine beside its manifest" in refused(_without(engine), place)
    assert "there is no such manifest" in refused(tmp_path / "gone.rknn", place)


def _without(engine: Path) -> Path:
    engine.unlink()
    return engine


def test_engine_of_another_name_than_its_manifests_is_refused(engine: Path, tmp_path: Path) -> None:
    copy = engine.with_name("copy.rknn")
    copy.write_bytes(engine.read_bytes())
    copy.with_suffix(".json").write_bytes(engine.with_suffix(".json").read_bytes())
    assert "the manifest beside it is of net.rknn" in refused(copy, probe(tmp_path))


def test_manifest_whose_fields_have_no_verdicts_is_refused(engine: Path, tmp_path: Path) -> None:
    place = engine.with_suffix(".json")
    manifest = read_manifest(place)
    bare = dataclasses.replace(manifest, verdicts=manifest.verdicts[:2])
    place.write_text(manifest_text(bare), encoding="utf-8")
    assert "has 1 verdicts on 2 REGTASK fields" in refused(engine, probe(tmp_path))


def test_manifest_that_cannot_be_written_stays_as_it_was(
    engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = probe(tmp_path)
    before = engine.with_suffix(".json").read_bytes()

    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device", str(engine.with_suffix(".json")))

    monkeypatch.setattr("rknn_tts.publish.write_all_whole", full)
    with pytest.raises(NotWritten, match="No space left"):
        verify(engine, place)
    assert engine.with_suffix(".json").read_bytes() == before


def test_expected_output_that_is_not_finite_is_a_failure_on_record(engine: Path, tmp_path: Path) -> None:
    kit = write_kit(tmp_path / "kit")
    replace_array(tmp_path / "kit", "y0.npy", np.full((1, 4), np.nan, np.float32), kit)
    found = run_kit(open_kit(tmp_path / "kit"), BoardBackend(), lambda line: None, repeats=1, root=tmp_path)
    place = tmp_path / "r.json"
    place.write_text(result_text(signed_off(found, "Ada", DATE)), encoding="utf-8")
    done = verify(engine, place)
    verdict = next(v for v in done.outcome.verdicts if v.gate == "board.net")
    assert "what is expected has 4 of 4 values that are not finite" in verdict.detail
    assert verdict.status is Status.FAILED


def test_command_shows_the_verdicts_and_ends_as_they_say(
    engine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["verify", str(engine), str(probe(tmp_path))]) == 0
    shown = capsys.readouterr().out
    assert "board.net" in shown
    assert "probed:" in shown
    assert "2 cases, all passed" in shown
    assert run_command(["verify", str(engine), str(probe(tmp_path, BoardBackend(noisy(2.1)), date=LATER))]) == 1
    assert "error: net.rknn failed on a board: board.net, and 2 more" in capsys.readouterr().err
    assert run_command(["verify", str(engine), str(probe(tmp_path, TwinBackend()))]) == 2
