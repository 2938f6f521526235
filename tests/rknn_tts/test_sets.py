"""Stages of several engines: all of them appear, with the manifest of their set, or none."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import onnx
import pytest

from contracts.contract import Cache, CacheSlice, Contract, Source, TensorSpec, contract_from_metadata
from contracts.errors import EXIT_FAILED, GateFailure, NotWritten, ToolFailure, UserInput
from contracts.files import sha256_of_bytes
from contracts.manifest import read_manifest
from contracts.serial import to_json
from contracts.verdicts import failure, passed
from converters.stages import Equality, Evidence
from rknn_tts import onnx_to_engine
from rknn_tts.commands import perform
from rknn_tts.deliver import deliver
from rknn_tts.outcome import Outcome
from rknn_tts.request import Request
from tests.rknn_tts.stand_in_converter import write_converter
from tests.rknn_tts.stand_in_stage import (
    ENGINES,
    FULL,
    LOG_FULL,
    LOG_SHORT,
    SET,
    SHORT,
    SIZES,
    Doubled,
    by_role,
    doubled,
    feed,
    install,
    write_checkpoint,
)
from tests.rknn_tts.workshop import Heard, Workshop, new_workshop

BOTH = {
    *(f"{stem}.{suffix}" for stem in (FULL, SHORT) for suffix in ("rknn", "onnx", "json")),
    SET,
    f"{ENGINES}/twin-host.onnx",
}
LOGS = {f"{stem}.{suffix}" for stem in (LOG_FULL, LOG_SHORT) for suffix in ("log", "layers.json")}
OLDER = b"an older one"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workshop, Outcome]:
    """A set that is only looked at."""
    workshop = new_workshop(tmp_path_factory)
    write_checkpoint(workshop.folder.parent)
    with pytest.MonkeyPatch.context() as patch:
        install(patch, Doubled([], {}).stage())
        patch.setenv("RKNN_TTS_CONVERTER_PYTHON", str(workshop.folder.parent / "converter"))
        converter(workshop, full=2.0, short=2.0)
        return workshop, build(workshop)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Doubled:
    made = Doubled([], {})
    install(monkeypatch, made.stage())
    return made


@pytest.fixture
def workshop(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, stage: Doubled) -> Workshop:
    made = new_workshop(tmp_path_factory)
    write_checkpoint(made.folder.parent)
    monkeypatch.setenv("RKNN_TTS_CONVERTER_PYTHON", str(made.folder.parent / "converter"))
    converter(made, full=2.0, short=2.0)
    return made


def converter(workshop: Workshop, full: float, short: float) -> None:
    write_converter(workshop.folder.parent / "converter", by_role(full, short))


def checkpoint(workshop: Workshop) -> str:
    return str(workshop.folder.parent / "mini.json")


def build(workshop: Workshop, said: Heard | None = None, **options: Any) -> Outcome:
    """`engine twin --target rk3588`."""
    return workshop.run("engine", said, family="twin", checkpoint=checkpoint(workshop), target="rk3588", **options)


def aperture(workshop: Workshop, stem: str) -> int:
    """What the engine takes when it is loaded, by its manifest: 12212.5 KB in 3054 pages, 17129.8 KB in 4283, ..."""
    found = read_manifest(workshop.folder / f"{stem}.json").aperture
    assert found is not None
    # ... and a page for each of its two small tensors.
    assert found.context_bytes == (3054 + 4283 + 2) * 4096
    return found.context_bytes


def test_set_has_both_engines_and_its_manifest_behind_them(made: tuple[Workshop, Outcome]) -> None:
    workshop, done = made
    assert workshop.files() == BOTH | LOGS
    contexts = {f"twin-net-{role}.json": aperture(workshop, stem) for role, stem in (("full", FULL), ("short", SHORT))}
    assert workshop.json(SET) == {
        "schema": "rknn-tts/set/1",
        "members": ["twin-net-full.json", "twin-net-short.json"],
        "roles": {"full": "twin-net-full.rknn", "short": "twin-net-short.rknn"},
        "cache": None,
        "aperture": {
            "budget_bytes": 3900 * 1024 * 1024,
            "context_bytes": contexts,
            "together": [["twin-net-full.json", "twin-net-short.json"]],
        },
    }
    assert to_json(done.aperture) == workshop.json(SET)["aperture"]
    assert (done.files[0], done.files[-1]) == (f"{FULL}.rknn", SET)
    assert Counter(done.files) == Counter(BOTH | {f"{stem}.layers.json" for stem in (LOG_FULL, LOG_SHORT)})
    assert (done.manifest, done.log) == (None, None)
    assert [(one.files[0], one.log) for one in done.members] == [
        (f"{FULL}.rknn", f"{LOG_FULL}.log"),
        (f"{SHORT}.rknn", f"{LOG_SHORT}.log"),
    ]
    assert done.notes == ("a note",)


def test_set_says_each_engines_role_in_manifest_and_twin(made: tuple[Workshop, Outcome]) -> None:
    workshop, done = made
    for role, stem, size in (("full", FULL, 8), ("short", SHORT, 4)):
        manifest = read_manifest(workshop.folder / f"{stem}.json")
        assert (manifest.role, manifest.inputs[0].shape) == (role, (1, size))
        twin = onnx.load(workshop.folder / f"{stem}.onnx")
        contract = contract_from_metadata({entry.key: entry.value for entry in twin.metadata_props})
        assert contract is not None
        assert contract.role == role
        assert manifest in [member.manifest for member in done.members]


def test_set_names_the_role_in_the_outcomes_verdicts_and_not_in_the_manifests(made: tuple[Workshop, Outcome]) -> None:
    workshop, done = made
    gates = [verdict.gate for verdict in done.verdicts]
    assert len(gates) == len(set(gates))
    assert {"full.simulator", "short.simulator", "full.fp32.doubled", "short.fp32.doubled"} <= set(gates)
    assert {gate.partition(".")[0] for gate in gates} == {"full", "short"}
    assert {figure.name.partition(".")[0] for figure in done.measurements} == {"full", "short"}
    for stem in (FULL, SHORT):
        kept = {verdict.gate for verdict in read_manifest(workshop.folder / f"{stem}.json").verdicts}
        assert {"simulator", "fp32.doubled"} <= kept
        assert not any(gate.startswith(("full.", "short.")) for gate in kept)


def test_set_has_one_host_half_that_both_manifests_name(made: tuple[Workshop, Outcome]) -> None:
    workshop, _ = made
    digest = sha256_of_bytes((workshop.folder / f"{ENGINES}/twin-host.onnx").read_bytes())
    for stem in (FULL, SHORT):
        host = read_manifest(workshop.folder / f"{stem}.json").host
        assert host is not None
        assert (host.file, host.sha256) == ("twin-host.onnx", digest)


def older_set(workshop: Workshop) -> dict[str, bytes]:
    """Files of an earlier set; what they hold."""
    for name in BOTH:
        path = workshop.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(OLDER)
    return dict.fromkeys(BOTH, OLDER)


def content(workshop: Workshop, names: set[str]) -> dict[str, bytes]:
    return {name: (workshop.folder / name).read_bytes() for name in names if (workshop.folder / name).exists()}


@pytest.mark.parametrize("older", [True, False])
def test_set_is_not_written_when_the_second_engine_fails_a_gate(workshop: Workshop, older: bool) -> None:
    before = older_set(workshop) if older else {}
    converter(workshop, full=2.0, short=2.5)
    with pytest.raises(GateFailure, match=r"^twin-net-short\.rknn was not written: .*\(simulator\)") as caught:
        build(workshop)
    assert caught.value.exit_code == EXIT_FAILED
    assert content(workshop, BOTH) == before
    assert workshop.files() - set(before) == {f"{LOG_FULL}.log", f"{LOG_SHORT}.log", f"{LOG_SHORT}.failed.json"}
    kept = {verdict["gate"]: verdict["status"] for verdict in workshop.json(f"{LOG_SHORT}.failed.json")["verdicts"]}
    assert (kept["simulator"], kept["fp32.doubled"]) == ("failed", "passed")
    statuses = {verdict.gate: verdict.status.value for verdict in caught.value.verdicts}
    assert (statuses["full.simulator"], statuses["short.simulator"]) == ("passed", "failed")
    assert len(statuses) == len(caught.value.verdicts)
    assert str(caught.value.log) == f"{LOG_SHORT}.log"


def test_set_is_not_written_when_a_place_of_the_second_cannot_be(workshop: Workshop) -> None:
    (workshop.folder / f"{SHORT}.onnx").mkdir(parents=True)
    with pytest.raises(NotWritten, match=r"twin-net-short\.onnx: cannot be written"):
        build(workshop)
    assert content(workshop, {f"{FULL}.rknn", f"{FULL}.json", SET}) == {}


def test_set_that_is_mended_removes_the_verdicts_of_the_failure(workshop: Workshop) -> None:
    converter(workshop, full=2.0, short=2.5)
    with pytest.raises(GateFailure):
        build(workshop)
    converter(workshop, full=2.0, short=2.0)
    build(workshop, force=True)
    assert workshop.files() == BOTH | LOGS


def test_set_builds_nothing_when_a_place_of_the_second_is_refused(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workshop.folder / "out").mkdir()
    (workshop.folder / "out/twin-net-short.json").write_text("{}")
    monkeypatch.setattr(onnx_to_engine, "converter_python", lambda toolkit: pytest.fail("something is built"))
    with pytest.raises(UserInput, match=r"out/twin-net-short\.json: is no file of rknn-tts, and would be replaced"):
        build(workshop, output="out")


def test_set_is_refused_when_its_manifest_would_replace_a_file_of_the_users(workshop: Workshop) -> None:
    (workshop.folder / "out").mkdir()
    (workshop.folder / "out/twin-net.set.json").write_text("{}")
    with pytest.raises(UserInput, match=r"out/twin-net\.set\.json: is no file of rknn-tts, and would be replaced"):
        build(workshop, output="out")
    assert workshop.files() == {"out/twin-net.set.json"}


def test_set_is_refused_when_its_manifest_would_replace_an_input(workshop: Workshop) -> None:
    (workshop.folder / "twin-net.set.json").write_text("{}")
    with pytest.raises(UserInput, match=r"twin-net\.set\.json: is an input of this command, and would be replaced"):
        build(workshop, output=".", config="twin-net.set.json")


@pytest.mark.parametrize(("command", "file"), [("engine", "out.rknn"), ("export", "out.onnx")])
def test_set_is_refused_before_anything_is_opened_when_output_names_one_file(
    workshop: Workshop, stage: Doubled, command: str, file: str
) -> None:
    wanted = rf"^--output {file}: several files are written; name a folder, or ask for one engine alone \(--member, "
    wanted += r"or one number in --windows, --widths, --codes, --lengths, --buckets or --look-ahead\)\.$"
    with pytest.raises(UserInput, match=wanted):
        workshop.run(command, family="twin", checkpoint=checkpoint(workshop), target="rk3588", output=file)
    assert (workshop.files(), stage.opened) == (set(), [])


def test_set_goes_into_the_folder_that_output_names(workshop: Workshop) -> None:
    done = build(workshop, output="my engines")
    names = {name.replace(ENGINES, "my engines") for name in BOTH}
    assert {name for name in workshop.files() if not name.startswith("build-logs")} == names
    assert done.files[-1] == "my engines/twin-net.set.json"


def test_set_may_be_written_again_where_it_stands(workshop: Workshop) -> None:
    build(workshop, output="out")
    assert build(workshop, output="out").files[-1] == "out/twin-net.set.json"


def test_repeated_set_is_found_without_opening_the_checkpoint_or_what_that_needs(
    workshop: Workshop, stage: Doubled, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed: list[frozenset[str]] = []
    monkeypatch.setattr(
        "rknn_tts.checkpoint_to_onnx.ensure_extras", lambda extras, say: needed.append(frozenset(extras))
    )
    install(monkeypatch, stage.stage(extras=frozenset({"torch"})))
    first = build(workshop)
    assert (needed, stage.opened) == ([frozenset({"torch"})], ["checkpoint", "full", "short"])
    before = {name: (workshop.folder / name).stat().st_mtime_ns for name in BOTH | LOGS}
    said = Heard()
    again = build(workshop, said)
    assert (needed, stage.opened, said.steps) == ([frozenset({"torch"})], ["checkpoint", "full", "short"], [])
    assert set(again.reused) == {"export", "graph", "prove", "activations", "build", "judge"}
    assert dataclasses.replace(again, reused=(), members=()) == dataclasses.replace(first, reused=(), members=())
    assert {name: (workshop.folder / name).stat().st_mtime_ns for name in BOTH | LOGS} == before


def test_progress_tells_of_which_engine_it_is(workshop: Workshop) -> None:
    said = Heard()
    build(workshop, said)
    heads = list(dict.fromkeys(step.partition(":")[0] for step in said.steps))
    wanted = [
        "opening mini.json",
        "rewriting the graph for the NPU (full)",
        "rewriting the graph for the NPU (short)",
        "checking the graph (full)",
        "building for rk3588 (full)",
        "judging the log and the simulator (full)",
        "checking the graph (short)",
        "building for rk3588 (short)",
        "judging the log and the simulator (short)",
    ]
    assert [head for head in heads if head in wanted] == wanted
    assert set(heads) - set(wanted) == {f"comparing with the full-length decode ({role})" for role in ("full", "short")}


@pytest.mark.parametrize(("member", "stem", "other"), [("full", FULL, SHORT), ("short", SHORT, FULL)])
def test_member_is_built_alone_when_it_is_named(workshop: Workshop, member: str, stem: str, other: str) -> None:
    done = build(workshop, member=member)
    assert (done.files[0], done.members) == (f"{stem}.rknn", ())
    assert done.manifest is not None
    assert done.manifest.role == member
    assert "simulator" in {verdict.gate for verdict in done.verdicts}
    assert not (workshop.folder / SET).exists()
    assert not (workshop.folder / f"{other}.rknn").exists()
    place = workshop.beside(f"alone-{member}")
    assert build(place, member=member, output="one.rknn").files[0] == "one.rknn"


def test_member_that_is_none_is_refused_before_anything_is_opened(workshop: Workshop, stage: Doubled) -> None:
    with pytest.raises(UserInput, match=r"--member third: there are: full, short\."):
        build(workshop, member="third")
    assert stage.opened == []


def test_export_writes_a_graph_for_each_engine_and_one_host_half(workshop: Workshop) -> None:
    done = workshop.run("export", family="twin", checkpoint=checkpoint(workshop))
    folder = "engines/onnx/mini"
    names = [f"{folder}/twin-net-full.onnx", f"{folder}/twin-host.onnx", f"{folder}/twin-net-short.onnx"]
    assert (list(done.files), workshop.files()) == (names, set(names))
    assert done.models == (names[0], names[2])
    gates = [verdict.gate for verdict in done.verdicts]
    assert len(gates) == len(set(gates))
    assert {"full.fp32.doubled", "short.fp32.doubled"} <= set(gates)
    assert {figure.name.partition(".")[0] for figure in done.measurements} <= {"full", "short"}
    assert done.notes == ("a note",)


def test_export_writes_nothing_when_the_second_graph_fails(workshop: Workshop, stage: Doubled) -> None:
    lower = Evidence((Equality("fp32.cut", doubled(feed(4)), feed(4), 120.0, ""),), verdicts=(passed("own"),))
    stage.changes["short"] = {"evidence": lambda: lower}
    with pytest.raises(GateFailure, match=r"^twin-net-short\.onnx was not written: .*fp32\.cut") as caught:
        workshop.run("export", family="twin", checkpoint=checkpoint(workshop))
    assert workshop.files() == {"build-logs/mini-twin-net-short.failed.json"}
    statuses = {verdict.gate: verdict.status.value for verdict in caught.value.verdicts}
    assert (statuses["full.fp32.cut"], statuses["short.fp32.cut"], statuses["short.own"]) == (
        "passed",
        "failed",
        "passed",
    )


def test_export_of_one_of_a_set_is_compiled_as_the_set_builds_it(workshop: Workshop) -> None:
    build(workshop)
    place = workshop.beside("elsewhere")
    place.run("export", family="twin", checkpoint=checkpoint(workshop), target="rk3588")
    done = place.run("compile", model="engines/onnx/rk3588/mini/twin-net-short.onnx", target="rk3588")
    assert done.files[0] == f"{SHORT}.rknn"
    for suffix in ("rknn", "onnx"):
        assert place.digest(f"{SHORT}.{suffix}") == workshop.digest(f"{SHORT}.{suffix}")
    assert done.manifest is not None
    assert done.manifest.role == "short"


def request(workshop: Workshop, **options: Any) -> Request:
    return Request(command="engine", family="twin", checkpoint=checkpoint(workshop), target="rk3588", **options)


def ended(workshop: Workshop, monkeypatch: pytest.MonkeyPatch, **options: Any) -> int:
    """The exit code of the command, whose output is captured."""
    monkeypatch.chdir(workshop.folder)
    monkeypatch.setenv("RKNN_TTS_CACHE", str(workshop.cache))
    return deliver(perform(request(workshop, **options), Heard(), lambda option: option.flag))


def names_in(junit: Path) -> list[str]:
    return [case.attrib["name"] for case in ET.parse(junit).getroot().iter("testcase")]


def test_json_has_a_member_for_each_engine(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(workshop, monkeypatch, json=True) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["manifest"], data["log"], data["files"][-1]) == (None, None, SET)
    assert [member["manifest"]["role"] for member in data["members"]] == ["full", "short"]
    assert [member["log"] for member in data["members"]] == [f"{LOG_FULL}.log", f"{LOG_SHORT}.log"]
    for member, stem in zip(data["members"], (FULL, SHORT), strict=True):
        assert member["manifest"] == workshop.json(f"{stem}.json")
        assert f"{stem}.rknn" in member["files"]


def test_json_has_no_members_when_there_is_one_engine(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(workshop, monkeypatch, json=True, member="full") == 0
    assert "members" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("short", "code"), [(2.0, 0), (2.5, 1)])
def test_junit_names_each_verdict_of_both_engines_once(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, short: float, code: int
) -> None:
    converter(workshop, full=2.0, short=short)
    assert ended(workshop, monkeypatch, junit="report.xml") == code
    names = names_in(workshop.folder / "report.xml")
    assert {"full.simulator", "short.simulator"} <= set(names)
    assert len(names) == len(set(names))


def test_terminal_shows_a_block_for_each_engine(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(workshop, monkeypatch) == 0
    text = capsys.readouterr().out
    lines = [line.split() for line in text.splitlines()]
    roles = [line[2] for line in lines if line[:2] == ["engine", "of:"]]
    assert roles == ["full", "short"]
    assert lines.index(["engine:", f"{FULL}.rknn"]) < lines.index(["engine", "of:", "short"])
    assert lines.index(["engine:", f"{SHORT}.rknn"]) < lines.index(["set:", SET])
    for file in BOTH - {f"{ENGINES}/twin-host.onnx"}:
        assert text.count(file) == 1, file


def test_unproven_verdicts_of_all_engines_are_counted_together(workshop: Workshop) -> None:
    from tests.rknn_tts.test_build_gates import WIDE_ADDRESS

    lines = by_role(2.0, 2.0).replace("    import numpy", f"    print({WIDE_ADDRESS!r}, end='')\n    import numpy")
    write_converter(workshop.folder.parent / "converter", lines)
    done = build(workshop)
    unproven = [verdict.gate for verdict in done.verdicts if verdict.status.value == "unproven"]
    assert unproven == ["full.log.regtask", "short.log.regtask"]
    assert [note for note in done.notes if note.startswith("UNPROVEN")] == [
        "UNPROVEN: 2 verdicts can only be given by a board; nothing here was run on one."
    ]


def test_tool_that_breaks_on_the_second_leaves_no_engine(workshop: Workshop) -> None:
    broken = by_role(2.0, 2.0).replace("    simulate(", "    size == 8 or sys.exit('no memory')\n    simulate(")
    write_converter(workshop.folder.parent / "converter", broken)
    with pytest.raises(ToolFailure, match="no memory"):
        build(workshop)
    assert content(workshop, BOTH) == {}


def test_failed_verdict_of_the_stages_own_keeps_the_set_from_being_built(workshop: Workshop, stage: Doubled) -> None:
    own = Evidence((Equality("fp32.cut", feed(8), feed(8), 120.0, ""),), verdicts=(failure("own", "it cannot be"),))
    stage.changes["full"] = {"evidence": lambda: own}
    with pytest.raises(GateFailure, match=r"own.*it cannot be"):
        build(workshop)
    assert content(workshop, BOTH) == {}


CACHE = Cache(8, (CacheSlice("keys", 0, (2, 4)),))


def keep_caches(stage: Doubled, full: Cache, short: Cache) -> None:
    """Have both engines of the next set keep a cache."""
    source = Source("mini.json", "ab" * 32, "checkpoint")
    for role, cache in (("full", full), ("short", short)):
        x, y = (TensorSpec(name, (1, SIZES[role])) for name in "xy")
        stage.changes[role] = {"contract": Contract("twin", "net", source, (x,), (y,), cache=cache)}


def test_set_tells_the_cache_that_its_engines_share(workshop: Workshop, stage: Doubled) -> None:
    keep_caches(stage, CACHE, CACHE)
    build(workshop)
    assert workshop.json(SET)["cache"] == {"numel": 8, "layout": [{"name": "keys", "offset": 0, "shape": [2, 4]}]}
    assert {read_manifest(workshop.folder / f"{stem}.json").cache for stem in (FULL, SHORT)} == {CACHE}


@pytest.mark.parametrize("command", ["engine", "export"])
def test_set_of_unlike_caches_is_refused_before_anything_is_built(
    workshop: Workshop, stage: Doubled, command: str
) -> None:
    keep_caches(stage, CACHE, dataclasses.replace(CACHE, numel=9))
    target = {"target": "rk3588"} if command == "engine" else {}
    with pytest.raises(ToolFailure, match="full lays it out in another way than short"):
        workshop.run(command, None, family="twin", checkpoint=checkpoint(workshop), **target)
    assert workshop.files() == set()
