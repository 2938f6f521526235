from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from contracts.board import BoardCase, BoardOutput
from contracts.contract import HostHalf
from contracts.errors import NotWritten
from contracts.files import sha256_of, sha256_of_bytes
from contracts.manifest import LogSummary, read_manifest
from contracts.serial import to_json
from contracts.verdicts import Measurement, Status, passed, unproven
from rknn_tts.build_gates import Judged
from rknn_tts.build_step import Build
from rknn_tts.graph_at_hand import GraphInfo, NumericGates, twin_of
from rknn_tts.outcome import Outcome
from rknn_tts.publication import Finished, publish_engine, publish_set
from rknn_tts.steps import open_steps
from tests.contracts.samples import BOARD
from tests.rknn_tts.sources import PROOF, build_of, doubling

ENGINE = b"RKNN engine"
GRAPH = GraphInfo(
    17, 1, (passed("structure.operators"),), (Measurement(name="vendor", measured=0, unit="", reason=""),)
)
NUMBERS = NumericGates(PROOF, passed("range.activations"))
JUDGED = Judged(
    verdicts=(passed("simulator"),),
    measurements=(Measurement(name="build.wall", measured=1.0, unit="s", reason=""),),
    layers=None,
    every_layer=(),
    memory=None,
    log=LogSummary(),
    aperture=None,
)


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    monkeypatch.setenv("RKNN_TTS_CACHE", str(tmp_path / "cache"))
    for name in ("work", "work/engines", "work/engines/rk3588", "work/build-logs", "result"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    (tmp_path / "result" / "engine.rknn").write_bytes(ENGINE)
    write_summary(tmp_path / "result", disabled_rules=[])
    return build_of(doubling(tmp_path), tmp_path / "converter")


def write_summary(result: Path, **changes: object) -> None:
    """`build.json`, as a build leaves it."""
    figures = {"engine_sha256": "", "outputs": ["y"], "windows": 1, "peak_rss_bytes": 1, "wall_s": 1.0, "cpu_s": 1.0}
    (result / "build.json").write_text(json.dumps({**figures, "fixed_addresses": True, **changes}))


def test_publication_states_the_fuse_rule_that_was_switched_off(build: Build) -> None:
    assert published(build).notes == ("a note",)
    write_summary(build.source.graph.parent / "result", disabled_rules=["rule_a"])
    done = published(build)
    assert read_manifest(build.places.manifest).toolkit.disabled_rules == ("rule_a",)
    assert [note for note in done.notes if "crashed in its fuse rule rule_a" in note]


def test_publication_tells_no_crash_of_a_fuse_rule_that_the_stage_leaves_out(build: Build) -> None:
    write_summary(build.source.graph.parent / "result", disabled_rules=["rule_a"])
    contract = dataclasses.replace(build.source.contract, disabled_rules=("rule_a",))
    stated = dataclasses.replace(build, source=dataclasses.replace(build.source, contract=contract))
    assert published(stated).notes == ("a note",)
    assert read_manifest(build.places.manifest).toolkit.disabled_rules == ("rule_a",)


def published(build: Build, judged: Judged = JUDGED) -> Outcome:
    steps = open_steps(False, lambda text: pytest.fail(text))
    steps.reused.append("build")
    return publish_engine(Finished(build, GRAPH, NUMBERS, judged, build.source.graph.parent / "result"), steps)


def files() -> set[str]:
    return {path.as_posix() for path in Path().rglob("*") if path.is_file()}


PLACES = {
    "engines/rk3588/net.rknn",
    "engines/rk3588/net.onnx",
    "engines/rk3588/net.json",
    "build-logs/net-rk3588.layers.json",
}


def test_publication_puts_engine_twin_layers_and_manifest_in_their_places(build: Build) -> None:
    done = published(build)
    assert files() == set(done.files) == PLACES
    assert (done.files[0], done.files[-1]) == ("engines/rk3588/net.rknn", "engines/rk3588/net.json")
    assert build.places.engine.read_bytes() == ENGINE
    assert build.places.onnx.read_bytes() == b"".join(twin_of(build.source, PROOF).chunks())
    manifest = read_manifest(build.places.manifest)
    assert manifest == done.manifest
    assert (manifest.engine.sha256, manifest.engine.bytes) == (sha256_of_bytes(ENGINE), len(ENGINE))
    assert (manifest.onnx.sha256, manifest.onnx.opset, manifest.onnx.nodes) == (sha256_of(build.places.onnx), 17, 1)
    gates = ["fp32.whole", "range.activations", "structure.operators", "simulator"]
    assert [verdict.gate for verdict in manifest.verdicts] == gates
    assert [figure.name for figure in manifest.measurements] == ["vendor", "build.wall"]
    assert (done.notes, done.reused, done.log) == (("a note",), ("build",), "build-logs/net-rk3588.log")


@pytest.mark.parametrize("there", [True, False])
def test_publication_adds_the_host_half_where_there_is_one(build: Build, tmp_path: Path, there: bool) -> None:
    half = tmp_path / "half.onnx"
    half.write_bytes(b"half")
    contract = dataclasses.replace(build.source.contract, host=HostHalf("piper-host.onnx", sha256_of_bytes(b"half")))
    source = dataclasses.replace(build.source, contract=contract, host=half if there else None)
    done = published(dataclasses.replace(build, source=source))
    assert done.manifest is not None
    assert done.manifest.host == (contract.host if there else None)
    assert Path("engines/rk3588/piper-host.onnx").exists() is there


@pytest.mark.parametrize(
    ("count", "says"), [(0, None), (1, "UNPROVEN: 1 verdict can"), (2, "UNPROVEN: 2 verdicts can")]
)
def test_publication_says_how_much_only_a_board_can_tell(build: Build, count: int, says: str | None) -> None:
    judged = dataclasses.replace(JUDGED, verdicts=tuple(unproven(f"log.{i}", "") for i in range(count)))
    notes = published(build, judged).notes[1:]
    assert len(notes) == (0 if says is None else 1)
    assert all(note.startswith(says or "") for note in notes)


def test_publication_leaves_everything_as_it_was_when_a_place_cannot_be_written(build: Build) -> None:
    build.places.engine.write_bytes(b"older engine")
    build.places.manifest.write_bytes(b"older manifest")
    build.places.failed.write_bytes(b"{}")
    build.places.onnx.mkdir()
    with pytest.raises(NotWritten, match=r"net\.onnx: cannot be written") as caught:
        published(build)
    assert caught.value.exit_code == 1
    assert build.places.engine.read_bytes() == b"older engine"
    assert build.places.manifest.read_bytes() == b"older manifest"
    assert files() == {"engines/rk3588/net.rknn", "engines/rk3588/net.json", "build-logs/net-rk3588.failed.json"}


def test_publication_removes_the_verdicts_of_an_earlier_failure(build: Build) -> None:
    build.places.failed.write_bytes(b"{}")
    published(build)
    assert files() == PLACES


PROBED = dataclasses.replace(
    JUDGED, verdicts=(passed("simulator"), unproven("log.aperture", "only a board can tell", 3950, "MiB"))
)
FOUND = dataclasses.replace(
    BOARD,
    cases=(BoardCase("net", "engine", "It runs.", True, 20.7, (BoardOutput("y", 50.0, 40.0, 0.1),), "", ()),),
    before={},
)
DEEP: Any = []
for _ in range(700):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("engine_sha256", "board", "kept"),
    [
        (sha256_of_bytes(ENGINE), to_json(FOUND), True),
        ("00" * 32, to_json(FOUND), False),
        (sha256_of_bytes(ENGINE), {"deep": DEEP}, False),
    ],
)
def test_publication_keeps_the_boards_figures_of_the_same_engine(
    build: Build, engine_sha256: str, board: Any, kept: bool
) -> None:
    published(build, PROBED)
    data = json.loads(build.places.manifest.read_text(encoding="utf-8"))
    data["engine"]["sha256"], data["board"] = engine_sha256, "HERE"
    build.places.manifest.write_text(json.dumps(data).replace('"HERE"', json.dumps(board)))
    done = published(build, PROBED)
    assert done.manifest is not None
    given = [(verdict.gate, verdict.status, verdict.measured) for verdict in done.manifest.verdicts[-2:]]
    if kept:
        before = {"log.aperture": PROBED.verdicts[1]}
        assert done.manifest.board == dataclasses.replace(FOUND, before=before)
        assert given == [("log.aperture", Status.PASSED, 3950), ("board.net", Status.PASSED, 50.0)]
        assert done.notes == ("a note",)
    else:
        assert done.manifest.board is None
        assert given[-1] == ("log.aperture", Status.UNPROVEN, 3950)
        lost = "LOST: a board's figures of 2026-11-30T12:00:00+00:00 were of another engine; probe this one."
        assert done.notes[1:-1] == ((lost,) if "date" in board else ())


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b"[" * 100_000, b"\xff\xfe", b'{"schema": "rknn-tts/engine/1"}'])
def test_publication_replaces_a_manifest_that_cannot_be_read(build: Build, damaged: bytes) -> None:
    build.places.manifest.write_bytes(damaged)
    assert read_manifest(build.places.manifest.with_name(Path(published(build).files[-1]).name)).board is None


def set_of(build: Build, tmp_path: Path, judged: Judged = JUDGED) -> list[Finished]:
    """Two engines of one host half, `full` and `short`."""
    half = tmp_path / "half.onnx"
    half.write_bytes(b"half")
    members = []
    for role in ("full", "short"):
        contract = dataclasses.replace(
            build.source.contract, role=role, host=HostHalf("piper-host.onnx", sha256_of_bytes(b"half"))
        )
        source = dataclasses.replace(
            build.source, contract=contract, stem=f"net-{role}", host=half, notes=("a note", f"of {role}")
        )
        members.append(Finished(build_of(source, build.python), GRAPH, NUMBERS, judged, tmp_path / "result"))
    return members


SET_PLACE = Path("engines/rk3588/net.set.json")


def published_set(members: list[Finished]) -> Outcome:
    return publish_set(members, SET_PLACE, open_steps(False, lambda text: pytest.fail(text)))


def test_publication_of_a_set_writes_the_host_half_once_and_the_sets_manifest_last(
    build: Build, tmp_path: Path
) -> None:
    done = published_set(set_of(build, tmp_path))
    assert len(done.files) == len(set(done.files))
    assert set(done.files) == files()
    assert done.files.index("engines/rk3588/piper-host.onnx") < done.files.index("engines/rk3588/net-full.json")
    assert done.files[-1] == str(SET_PLACE)
    assert json.loads(SET_PLACE.read_text())["members"] == ["net-full.json", "net-short.json"]
    gates = ["fp32.whole", "range.activations", "structure.operators", "simulator"]
    assert [v.gate for v in done.verdicts] == [f"{role}.{gate}" for role in ("full", "short") for gate in gates]
    assert [m.name for m in done.measurements] == [
        f"{role}.{name}" for role in ("full", "short") for name in ("vendor", "build.wall")
    ]
    for role in ("full", "short"):
        kept = read_manifest(Path(f"engines/rk3588/net-{role}.json"))
        assert (kept.role, [verdict.gate for verdict in kept.verdicts]) == (role, gates)
    assert done.notes == ("a note", "of full", "of short")


def test_publication_of_a_set_counts_what_only_a_board_can_tell_of_all_its_engines(
    build: Build, tmp_path: Path
) -> None:
    judged = dataclasses.replace(JUDGED, verdicts=(unproven("log.a", ""), unproven("log.b", "")))
    done = published_set(set_of(build, tmp_path, judged))
    assert [note for note in done.notes if note.startswith("UNPROVEN")] == [
        "UNPROVEN: 4 verdicts can only be given by a board; nothing here was run on one."
    ]


def test_publication_of_a_set_leaves_everything_as_it_was_when_one_place_cannot_be_written(
    build: Build, tmp_path: Path
) -> None:
    members = set_of(build, tmp_path)
    members[0].build.places.engine.write_bytes(b"older engine")
    members[1].build.places.failed.write_bytes(b"{}")
    SET_PLACE.mkdir()
    with pytest.raises(NotWritten, match=r"net\.set\.json: cannot be written"):
        published_set(members)
    assert files() == {"engines/rk3588/net-full.rknn", "build-logs/net-short-rk3588.failed.json"}
    assert members[0].build.places.engine.read_bytes() == b"older engine"
