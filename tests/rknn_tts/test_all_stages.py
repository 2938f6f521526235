"""Every stage of a family by one command: all of their files appear, with what is told of them together, or none."""

from __future__ import annotations

import gc
import json
import subprocess
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from contracts.contract import Source
from contracts.errors import GateFailure, NotWritten, ToolFailure, UserInput
from contracts.manifest import read_manifest
from contracts.quantisation import W8A8
from contracts.verdicts import failure
from converters.precision import Precision
from converters.stages import Checkpoint, Equality, Evidence, FetchHub, Opened, OpenSession, Stage, StageOptions, of_one
from rknn_tts import all_stages, many, onnx_to_engine
from rknn_tts.commands import perform
from rknn_tts.deliver import deliver
from rknn_tts.many_voices import request_for, words_of
from rknn_tts.outcome import Outcome
from rknn_tts.request import Request
from tests.rknn_tts.stand_in_converter import write_converter
from tests.rknn_tts.stand_in_stage import ENGINES, Doubled, by_role, export_of, feed, install, write_checkpoint
from tests.rknn_tts.workshop import Heard, Workshop, new_workshop

STEMS = {"net.full": "twin-net-full", "net.short": "twin-net-short", "tail": "twin-tail"}
SETS = {"twin-net.set.json", "twin.set.json"}
IN_FOLDER = {f"{stem}.{suffix}" for stem in STEMS.values() for suffix in ("rknn", "onnx", "json")} | SETS
IN_FOLDER |= {"twin-host.onnx"}
SUMS = "MANIFEST.sha256"
ALL = {f"{ENGINES}/{name}" for name in (*IN_FOLDER, SUMS)}
LOGS = {f"build-logs/mini-{stem}-rk3588.{suffix}" for stem in STEMS.values() for suffix in ("log", "layers.json")}

GOOD, BAD = 2.0, 2.5
"""What the simulator multiplies by, where the original doubles."""


def tail_of(made: Doubled, **others: Any) -> Stage:
    """A second stage, of one engine for 6 values, without a host half."""

    def opened(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
        made.opened.append("tail")
        factor = json.loads(checkpoint.path.read_text(encoding="utf-8"))["factor"]
        export = export_of(checkpoint, "", 6, factor)
        contract = replace(export.contract, stage="tail")
        export = replace(export, stem="twin-tail", contract=contract, host=None, notes=("of the tail",))
        return of_one(replace(export, **made.changes.get("tail", {})))

    stage = Stage("twin", "tail", "one engine", None, frozenset({"sine", "config"}), opened)
    return replace(stage, **others)


def convert_by(workshop: Workshop, net: float = GOOD, tail: float = GOOD) -> None:
    lines = by_role(net, net).replace(f"simulate({net} if", f"simulate({tail} if size == 6 else {net} if")
    write_converter(workshop.folder.parent / "converter", lines)


def install_all(patch: pytest.MonkeyPatch, *stages: Stage) -> None:
    install(patch, *stages)
    patch.setattr(all_stages, "STAGES", stages)


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> Doubled:
    made = Doubled([], {})
    install_all(monkeypatch, made.stage(), tail_of(made))
    return made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Its cache holds what the first test that needs it has built; its converter is not part of any step's key."""
    made = new_workshop(tmp_path_factory)
    convert_by(made)
    return made


@pytest.fixture
def workshop(tmp_path: Path, shared: Workshop, monkeypatch: pytest.MonkeyPatch, stages: Doubled) -> Workshop:
    """A folder of the test's own, and the shared cache."""
    monkeypatch.setenv("RKNN_TTS_CONVERTER_PYTHON", str(shared.folder.parent / "converter"))
    (tmp_path / "work").mkdir()
    write_checkpoint(tmp_path)
    return Workshop(tmp_path / "work", shared.cache)


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stages: Doubled) -> Workshop:
    """A folder, a cache and a converter of the test's own."""
    monkeypatch.setenv("RKNN_TTS_CONVERTER_PYTHON", str(tmp_path / "converter"))
    (tmp_path / "work").mkdir()
    write_checkpoint(tmp_path)
    made = Workshop(tmp_path / "work", tmp_path / "cache")
    convert_by(made)
    return made


def options_of(workshop: Workshop, **options: Any) -> dict[str, Any]:
    checkpoint = str(workshop.folder.parent / "mini.json")
    return {"family": "twin", "target": "rk3588", "all": True, "checkpoint": checkpoint, **options}


def build(workshop: Workshop, said: Heard | None = None, **options: Any) -> Outcome:
    """`engine twin --all --target rk3588`."""
    return workshop.run("engine", said, **options_of(workshop, **options))


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sha256sum", "--strict", "-c", SUMS], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )


def nothing_is_built(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(onnx_to_engine, "converter_python", lambda toolkit: pytest.fail("something is built"))


def test_every_stage_is_written_with_one_manifest_and_the_digests_of_all(workshop: Workshop) -> None:
    done = build(workshop)
    assert workshop.files() == ALL | LOGS
    members = [f"{stem}.json" for stem in STEMS.values()]
    manifests = {name: workshop.json(f"{ENGINES}/{name}") for name in members}
    assert workshop.json(f"{ENGINES}/twin.set.json") == {
        "schema": "rknn-tts/set/1",
        "members": members,
        "roles": {name: f"{stem}.rknn" for name, stem in STEMS.items()},
        "cache": None,
        "aperture": {
            "budget_bytes": 3900 << 20,
            "context_bytes": {name: told["aperture"]["context_bytes"] for name, told in manifests.items()},
            "together": [members],
        },
    }
    assert workshop.json(f"{ENGINES}/twin-net.set.json")["members"] == ["twin-net-full.json", "twin-net-short.json"]
    told = checked(workshop.folder / ENGINES)
    assert (told.returncode, told.stdout.splitlines()) == (0, [f"{name}: OK" for name in sorted(IN_FOLDER)])
    assert done.files[-1] == f"{ENGINES}/{SUMS}"
    assert set(done.files) == ALL | {name for name in LOGS if name.endswith(".layers.json")}
    assert done.notes == ("a note", "of the tail")


def test_outcome_names_the_stage_in_verdicts_and_measurements_and_the_manifests_do_not(workshop: Workshop) -> None:
    done = build(workshop)
    gates = [verdict.gate for verdict in done.verdicts]
    assert len(gates) == len(set(gates))
    assert {"net.full.simulator", "net.short.fp32.doubled", "tail.simulator", "tail.fp32.doubled"} <= set(gates)
    assert {gate.partition(".")[0] for gate in gates} == {"net", "tail"}
    assert {figure.name.partition(".")[0] for figure in done.measurements} == {"net", "tail"}
    kept = {verdict.gate for verdict in read_manifest(workshop.folder / f"{ENGINES}/twin-tail.json").verdicts}
    assert {"simulator", "fp32.doubled"} <= kept


def test_an_earlier_set_stays_as_it_was_when_one_stage_fails(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(workshop)
    before = {name: (workshop.folder / name).read_bytes() for name in ALL}
    monkeypatch.setenv("RKNN_TTS_CONVERTER_PYTHON", str(tmp_path / "converter"))
    convert_by(workshop, tail=BAD)
    with pytest.raises(GateFailure, match=r"^tail: twin-tail\.rknn was not written: .*\(simulator\)") as caught:
        build(Workshop(workshop.folder, tmp_path / "cache"))
    assert {name: (workshop.folder / name).read_bytes() for name in ALL} == before
    assert workshop.files() - ALL - LOGS == {"build-logs/mini-twin-tail-rk3588.failed.json"}
    statuses = {verdict.gate: verdict.status.value for verdict in caught.value.verdicts}
    assert len(statuses) == len(caught.value.verdicts)
    assert (statuses["net.full.simulator"], statuses["net.short.simulator"], statuses["tail.simulator"]) == (
        "passed",
        "passed",
        "failed",
    )
    assert str(caught.value.log) == "build-logs/mini-twin-tail-rk3588.log"


def test_what_was_built_before_a_stage_broke_is_not_built_again(fresh: Workshop, stages: Doubled) -> None:
    broken = by_role(GOOD, GOOD).replace("    simulate(", "    size != 6 or sys.exit('no memory')\n    simulate(")
    write_converter(fresh.folder.parent / "converter", broken)
    with pytest.raises(ToolFailure, match=r"^tail: .*no memory"):
        build(fresh)
    assert not ALL & fresh.files()
    convert_by(fresh)
    stages.opened.clear()
    said = Heard()
    done = build(fresh, said)
    assert [step.partition(":")[0] for step in said.steps if step.startswith("building")][:1] == [
        "building for rk3588 (tail)"
    ]
    assert not any("(net" in step for step in said.steps)
    assert (stages.opened, set(done.reused)) == ([], {"export", "graph", "prove", "activations", "build", "judge"})
    assert checked(fresh.folder / ENGINES).returncode == 0


def test_no_stage_is_written_when_a_place_cannot_be(workshop: Workshop) -> None:
    (workshop.folder / f"{ENGINES}/twin-tail.onnx").mkdir(parents=True)
    with pytest.raises(NotWritten, match=r"twin-tail\.onnx: cannot be written"):
        build(workshop)
    assert not any((workshop.folder / name).is_file() for name in ALL)


def test_what_one_stage_cannot_prove_is_told_before_anything_is_built(
    fresh: Workshop, stages: Doubled, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing_is_built(monkeypatch)
    own = Evidence((Equality("fp32.cut", feed(6), feed(6), 120.0, ""),), verdicts=(failure("own", "it cannot be"),))
    stages.changes["tail"] = {"evidence": lambda: own}
    with pytest.raises(GateFailure, match=r"^tail: twin-tail\.rknn was not built: .*own.*it cannot be") as caught:
        build(fresh)
    assert {"tail.own", "tail.fp32.cut"} <= {verdict.gate for verdict in caught.value.verdicts}
    assert fresh.files() == {"build-logs/mini-twin-tail-rk3588.failed.json"}


def test_a_verdict_of_one_of_a_stages_engines_says_of_which(fresh: Workshop, stages: Doubled) -> None:
    own = Evidence((Equality("fp32.cut", feed(4), feed(4), 120.0, ""),), verdicts=(failure("own", "it cannot be"),))
    stages.changes["short"] = {"evidence": lambda: own}
    with pytest.raises(GateFailure, match=r"^net: twin-net-short\.rknn was not built") as caught:
        build(fresh)
    assert "net.short.own" in {verdict.gate for verdict in caught.value.verdicts}


def lacking(text: str, fetch_hub: FetchHub) -> Checkpoint:
    raise UserInput(f"--checkpoint {text}: holds no tail.pt.")


def test_a_checkpoint_that_one_stage_lacks_is_told_before_any_is_opened(
    workshop: Workshop, stages: Doubled, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_all(monkeypatch, stages.stage(), tail_of(stages, locate=lacking))
    with pytest.raises(UserInput, match=r"^tail: --checkpoint .*mini\.json: holds no tail\.pt\.$"):
        build(workshop)
    assert (workshop.files(), stages.opened) == (set(), [])


def test_what_all_stages_refuse_alike_is_said_once(workshop: Workshop) -> None:
    with pytest.raises(UserInput, match=r"^net, tail: --checkpoint none\.json: there is no such file\.$"):
        build(workshop, checkpoint="none.json")


def test_a_family_without_default_checkpoints_asks_for_one(workshop: Workshop) -> None:
    wanted = r"^Which checkpoint\? Of twin, net, tail has no default one: --checkpoint FILE\.$"
    with pytest.raises(UserInput, match=wanted):
        build(workshop, checkpoint=None)


def test_a_checkpoint_of_another_kind_is_refused_in_the_name_of_the_stage(fresh: Workshop, stages: Doubled) -> None:
    def refuse(*_: object) -> Opened:
        raise UserInput("mini.json: holds no words.")

    with pytest.MonkeyPatch.context() as patch:
        install_all(patch, stages.stage(), tail_of(stages, open=refuse))
        nothing_is_built(patch)
        with pytest.raises(UserInput, match=r"^tail: mini\.json: holds no words\.$"):
            build(fresh)
    assert fresh.files() == set()


def test_options_reach_the_stages_that_have_them(workshop: Workshop, stages: Doubled) -> None:
    config = workshop.folder / "config.json"
    config.write_text("{}")
    plan = dict(all_stages.plan_of(Request(command="engine", **options_of(workshop, sine="fine", config=str(config)))))
    asked = {stage.name: (request.stage, request.sine, request.config) for stage, request in plan.items()}
    assert asked == {"net": ("net", None, str(config)), "tail": ("tail", "fine", str(config))}


def test_a_calibration_set_is_for_the_stage_of_8_bits_alone(
    workshop: Workshop, stages: Doubled, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = frozenset({"precision", "calibration", "allow_quantized"})
    net = stages.stage(options=both, precision=Precision(loses="it loses too much"))
    tail = tail_of(stages, options=both, precision=Precision(default=W8A8))
    install_all(monkeypatch, net, tail)
    request = Request(command="engine", **options_of(workshop, calibration="real.npz"))
    assert [asked.calibration for _, asked in all_stages.plan_of(request)] == [None, "real.npz"]
    with pytest.raises(UserInput, match=r"^net: twin net is not built in W8A8: it loses too much"):
        build(workshop, precision=W8A8)
    assert stages.opened == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"window": 93}, r"^twin has no stage with an option --window\.$"),
        ({"allow_quantized": True}, r"^twin has no stage with an option --allow-quantized\.$"),
        ({"member": "full"}, r"^--all builds every engine, and --member is about one: leave one of them out\.$"),
        ({"stage": "net"}, r"^--all builds every engine, and --stage is about one"),
        ({"sample": "out"}, r"^--all builds every engine, and --sample is about one"),
        ({"output": "one.rknn"}, r"^--output one\.rknn: several files are written; name a folder\.$"),
    ],
)
def test_an_option_is_refused_when_it_makes_no_sense_for_all(
    workshop: Workshop, stages: Doubled, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UserInput, match=sentence):
        build(workshop, **options)
    assert (workshop.files(), stages.opened) == (set(), [])


def test_nothing_of_a_stage_is_kept_open_beside_the_next_and_the_builds(
    workshop: Workshop, stages: Doubled, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive: list[weakref.ref[object]] = []

    def counted(make: Callable[..., Opened]) -> Callable[..., Opened]:
        def opened(*args: Any) -> Opened:
            gc.collect()
            assert [ref() for ref in alive if ref() is not None] == []
            exports = make(*args)

            def kept(role: str) -> Any:
                export = exports(role)
                alive.append(weakref.ref(export.model))
                return export

            return kept

        return opened

    net, tail = stages.stage(), tail_of(stages)
    install_all(monkeypatch, replace(net, open=counted(net.open)), replace(tail, open=counted(tail.open)))
    finished: list[int] = []
    finish = onnx_to_engine.finish_set

    def finishing(*args: Any) -> Any:
        gc.collect()
        finished.append(sum(ref() is not None for ref in alive))
        return finish(*args)

    monkeypatch.setattr(all_stages, "finish_set", finishing)
    build(workshop, force=True)
    assert (len(alive), finished) == (3, [0, 0])


def test_progress_tells_of_which_stage_and_engine_it_is_and_nothing_is_said_to_be_found(fresh: Workshop) -> None:
    said = Heard()
    assert build(fresh, said).reused == ()
    heads = list(dict.fromkeys(step.partition(":")[0] for step in said.steps))
    assert [head for head in heads if head.startswith(("opening", "building"))] == [
        "opening mini.json (net)",
        "opening mini.json (tail)",
        "building for rk3588 (net full)",
        "building for rk3588 (net short)",
        "building for rk3588 (tail)",
    ]


@pytest.mark.parametrize("name", ["twin.set.json", SUMS, "twin-tail.json"])
def test_a_file_of_the_users_is_not_replaced_and_nothing_is_built(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    nothing_is_built(monkeypatch)
    (workshop.folder / "out").mkdir()
    (workshop.folder / "out" / name).write_text("{}")
    with pytest.raises(UserInput, match=rf"out/{name}: is no .*, and would be replaced"):
        build(workshop, output="out")
    assert workshop.files() == {f"out/{name}"}


def test_stages_that_would_lie_apart_are_put_into_the_folder_that_output_names(
    workshop: Workshop, stages: Doubled
) -> None:
    def located(text: str, fetch_hub: FetchHub) -> Checkpoint:
        return Checkpoint(Path(text), Source("other.pt", "ab" * 32, "checkpoint"))

    with pytest.MonkeyPatch.context() as patch:
        install_all(patch, stages.stage(), tail_of(stages, locate=located))
        wanted = r"net in engines/rk3588/mini, tail in engines/rk3588/other\); --output names one folder for all"
        with pytest.raises(UserInput, match=wanted):
            build(workshop)
        build(workshop, output="out")
    assert {name for name in workshop.files() if name.startswith("out/")} == {f"out/{n}" for n in (*IN_FOLDER, SUMS)}


def test_digests_stay_true_when_one_engine_is_built_again_into_the_folder(workshop: Workshop) -> None:
    build(workshop)
    before = (workshop.folder / ENGINES / SUMS).read_text()
    write_checkpoint(workshop.folder.parent, factor=2.0 + 1e-5)
    for stage, member in (("tail", None), ("net", "short")):
        done = build(workshop, all=False, stage=stage, member=member)
        assert f"{ENGINES}/{SUMS}" in done.files
        assert checked(workshop.folder / ENGINES).returncode == 0
    assert (workshop.folder / ENGINES / SUMS).read_text() != before


def test_digests_stay_true_when_a_graph_is_exported_over_a_twin(workshop: Workshop) -> None:
    build(workshop, output="out")
    workshop.run("export", **options_of(workshop, all=False, stage="tail", output="out"))
    assert checked(workshop.folder / "out").returncode == 0


def ended(workshop: Workshop, monkeypatch: pytest.MonkeyPatch, **options: Any) -> int:
    """The exit code of the command, whose output is captured."""
    monkeypatch.chdir(workshop.folder)
    monkeypatch.setenv("RKNN_TTS_CACHE", str(workshop.cache))
    request = Request(command="engine", **options_of(workshop, **options))
    return deliver(perform(request, Heard(), lambda option: option.flag))


def test_json_has_a_member_for_each_engine_of_each_stage(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(workshop, monkeypatch, json=True) == 0
    data = json.loads(capsys.readouterr().out)
    told = [(member["manifest"]["stage"], member["manifest"]["role"]) for member in data["members"]]
    assert told == [("net", "full"), ("net", "short"), ("tail", None)]
    assert data["request"]["all"] is True
    assert "tail.simulator" in {verdict["gate"] for verdict in data["verdicts"]}


def test_junit_and_terminal_say_of_which_stage_a_failure_is(
    fresh: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    convert_by(fresh, tail=BAD)
    assert ended(fresh, monkeypatch, junit="report.xml") == 1
    told = capsys.readouterr()
    assert "error: tail: twin-tail.rknn was not written" in told.err
    assert told.out == ""
    cases = list(ET.parse(fresh.folder / "report.xml").getroot().iter("testcase"))
    names = [case.attrib["name"] for case in cases]
    assert {"net.full.simulator", "net.short.simulator", "tail.simulator"} <= set(names)
    assert len(names) == len(set(names))
    assert {case.attrib["classname"] for case in cases} == {"twin"}


def test_terminal_shows_a_row_for_each_engine_and_where_they_are(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(workshop, monkeypatch) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    rows = {line[0]: line[1:] for line in lines if line and line[0] in STEMS.values()}
    manifest = read_manifest(workshop.folder / f"{ENGINES}/twin-tail.json")
    assert list(rows) == list(STEMS.values())
    assert manifest.layers is not None
    assert rows["twin-tail"][-4:-2] == [str(len(manifest.layers.cpu)), "0"]
    assert ["folder:", f"{ENGINES},", "13", "files"] in lines
    assert ["sha256:", f"{ENGINES}/{SUMS}"] in lines


def test_each_process_of_a_pattern_builds_every_stage_and_finds_what_all_need(
    workshop: Workshop, stages: Doubled, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed: list[frozenset[str]] = []
    asked: list[list[str]] = []

    def run(crew: many.Crew) -> list[Any]:
        asked.extend(words_of(request_for(crew.request, voice)) for voice in crew.voices)
        return []

    monkeypatch.setattr(many, "ensure_extras", lambda extras, say: needed.append(extras))
    monkeypatch.setattr(many, "converter_python", lambda toolkit: Path("python"))
    monkeypatch.setattr(many.Crew, "run", run)
    install_all(monkeypatch, stages.stage(extras=frozenset({"hub"})), tail_of(stages, extras=frozenset({"torch"})))
    (workshop.folder / "a.onnx").write_bytes(b"0")
    pattern = str(workshop.folder / "*.onnx")
    many.convert_many(Request(command="engine", **options_of(workshop, checkpoint=pattern)), Heard())
    assert needed == [frozenset({"hub", "torch"})]
    assert [("--all" in words, words[1]) for words in asked] == [(True, "twin")]
    with pytest.raises(UserInput, match=r"^--all builds every engine, and --member is about one"):
        many.convert_many(Request(command="engine", **options_of(workshop, checkpoint=pattern, member="full")), Heard())
