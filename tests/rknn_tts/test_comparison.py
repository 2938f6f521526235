"""Two engines side by side; the arithmetic by operator is in tests/cost/test_comparison.py."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contracts.contract import Cache, CodeStep, PassRecord, Window
from contracts.errors import UserInput
from contracts.manifest import CpuLayer, Layers, Manifest, Memory, SetManifest, manifest_text
from contracts.serial import to_json
from contracts.verdicts import at_least
from cost.model import modelled_ms
from cost.table import cpu_layers_of_sums
from gates.simulator import GATE
from rknn_tts.comparison import (
    BOARD_TIME,
    CODE,
    FRAME,
    RUN,
    Comparison,
    FactChange,
    Figure,
    PassChange,
    compare,
    compare_files,
)
from rknn_tts.inspection import Inspection
from rknn_tts.report import Report, report_json
from rknn_tts.request import Request
from tests.contracts.samples import BOARD
from tests.cost.layers import PIPER_W93
from tests.rknn_tts.engines import engine_bytes
from tests.rknn_tts.samples import MANIFEST
from tests.rknn_tts.test_inspection import write_engine, write_onnx

CPU = CpuLayer("Slice", "Slice:s", 100.0)
LAYERS = Layers(10, 9_000_000, 45_000.0, 18.5, (CPU,), None)
"""By hand: 9 + 45 / 5 + 5 * 0.1."""

A = replace(MANIFEST, layers=LAYERS, window=Window(109, 45, 32, 32, 256, 22050), passes=())


def found(manifest: Manifest, name: str = "x.json") -> Inspection:
    cpu = cpu_layers_of_sums(manifest.layers.cpu if manifest.layers else ())
    return Inspection(name, "manifest", 1, "0" * 64, manifest=manifest, layers=manifest.layers, cpu=cpu)


def compared(a: Manifest, b: Manifest) -> Comparison:
    return compare(found(a, "a.json"), found(b, "b.json"))


def figure(comparison: Comparison, name: str, unit: str | None = None) -> Figure:
    (one,) = [f for f in comparison.figures if f.name == name and unit in (None, f.unit)]
    return one


def test_costs_are_of_an_emitted_frame_when_both_have_a_window() -> None:
    b = replace(
        A,
        layers=replace(LAYERS, count=12, cycles=7_700_000, rw_kb=77_000.0, modelled_ms=23.1, cpu=()),
        window=Window(141, 77, 32, 32, 256, 22050),
    )
    comparison = compared(A, b)
    assert (comparison.unit, comparison.a.units, comparison.b.units) == (FRAME, 45, 77)
    # By hand: 9 / 45 and 7.7 / 77; 45 / 45 and 77 / 77; 18.5 / 45 and 23.1 / 77.
    cycles, traffic = figure(comparison, "cycles"), figure(comparison, "traffic")
    assert (cycles.unit, cycles.a, round(cycles.b or 0, 9)) == ("M/frame", 0.2, 0.1)
    assert (traffic.unit, traffic.a, traffic.b, traffic.difference, traffic.ratio) == ("MB/frame", 1, 1, 0, 1)
    time = figure(comparison, "modelled time")
    assert (time.unit, round(time.a or 0, 6), round(time.b or 0, 6)) == ("ms/frame", 0.411111, 0.3)
    assert (round(time.difference or 0, 6), round(time.ratio or 0, 6)) == (-0.111111, 0.72973)
    assert figure(comparison, "layers") == Figure("layers", "", 10, 12, 2, 1.2)
    assert figure(comparison, "layers on the CPU") == Figure("layers on the CPU", "", 1, 0, -1, 0.0)
    assert not comparison.same
    assert comparison.targets is None


def test_sizes_are_not_divided_by_frames() -> None:
    b = replace(
        A, engine=replace(A.engine, bytes=2 * A.engine.bytes), memory=Memory(6_106.25, 17_129.8), window=A.window
    )
    comparison = compared(A, b)
    assert figure(comparison, "engine file") == Figure("engine file", "MB", 19.717587, 39.435174, 19.717587, 2.0)
    internal = figure(comparison, "internal memory")
    assert (internal.unit, internal.a, internal.ratio) == ("MB", 12.2125, 0.5)
    assert figure(comparison, "weight memory").difference == 0


def test_time_on_a_board_is_compared_where_a_probe_measured_one() -> None:
    assert [f.name for f in compared(A, A).figures if f.name == BOARD_TIME] == []
    a, b = replace(A, board=replace(BOARD, ms=22.5)), replace(A, board=replace(BOARD, ms=18.0))
    assert figure(compared(a, b), BOARD_TIME) == Figure(BOARD_TIME, "ms/frame", 0.5, 0.4, 0.4 - 0.5, 0.8)
    assert figure(compared(a, A), BOARD_TIME) == Figure(BOARD_TIME, "ms/frame", 0.5, None, None, None)
    assert compared(a, A).same
    refused = replace(A, board=replace(BOARD, ms=None))
    assert [f.name for f in compared(refused, A).figures if f.name == BOARD_TIME] == []


def test_simulator_is_compared_in_db_without_a_ratio() -> None:
    a = replace(A, verdicts=(at_least(GATE, 48.0, 40, "dB"),))
    b = replace(A, verdicts=(at_least(GATE, 50.5, 40, "dB"),))
    assert figure(compared(a, b), "simulator") == Figure("simulator", "dB", 48.0, 50.5, 2.5, None)


@pytest.mark.parametrize(("measured", "known"), [(math.nan, True), (math.inf, True), ("a text", False), (None, False)])
def test_simulator_has_no_difference_when_it_is_no_finite_figure(measured: float | str | None, known: bool) -> None:
    verdict = replace(at_least(GATE, 48.0, 40, "dB"), measured=measured)
    db = figure(compared(A, replace(A, verdicts=(verdict,))), "simulator")
    assert (db.b is not None, db.difference) == (known, None)


@pytest.mark.parametrize(("which", "name"), [("a", "A"), ("b", "B")])
def test_costs_are_of_a_run_when_only_one_has_a_window(which: str, name: str) -> None:
    bare = replace(A, window=None)
    comparison = compared(A, bare) if which == "a" else compared(bare, A)
    assert (comparison.unit, comparison.a.units, comparison.b.units) == (RUN, 1, 1)
    assert figure(comparison, "modelled time").unit == "ms/run"
    assert f"Only {name} is known to have a window: costs are of a run, not of an emitted frame." in comparison.notes


def test_costs_are_of_a_run_without_a_word_when_none_has_a_window() -> None:
    bare = replace(A, window=None)
    comparison = compared(bare, bare)
    assert (comparison.unit, figure(comparison, "modelled time").a) == (RUN, 18.5)
    assert [note for note in comparison.notes if "window" in note] == []


@pytest.mark.parametrize(("hop", "rate"), [(512, 22050), (256, 44100)])
def test_time_is_of_a_second_of_audio_too_when_frames_differ(hop: int, rate: int) -> None:
    comparison = compared(A, replace(A, window=Window(109, 45, 32, 32, hop, rate)))
    audio = figure(comparison, "modelled time", "ms/s of audio")
    # By hand: 45 frames of 256 samples at 22050 Hz are 0.5224490 s.
    assert round(audio.a or 0, 4) == 35.4102
    assert round(audio.ratio or 0, 9) == round(256 / hop * rate / 22050, 9)
    assert any(note.endswith("compare by second of audio.") for note in comparison.notes)
    assert any(fact.name == "window" for fact in comparison.facts)


def test_time_is_of_no_second_of_audio_when_one_states_no_sample_rate() -> None:
    comparison = compared(A, replace(A, window=Window(109, 45, 32, 32, 256, None)))
    audio = figure(comparison, "modelled time", "ms/s of audio")
    assert (audio.b, audio.ratio) == (None, None)
    assert any("without a sample rate of both nothing compares them" in note for note in comparison.notes)


def test_layers_on_the_cpu_that_went_and_came_are_named() -> None:
    sine = CpuLayer("Sin", "Sin:/dec/sin", 800.0)
    comparison = compared(A, replace(A, layers=replace(LAYERS, cpu=(sine, sine))))
    assert [layer.name for layer in comparison.cpu_gone] == ["Slice:s"]
    assert [layer.name for layer in comparison.cpu_come] == ["Sin:/dec/sin", "Sin:/dec/sin"]


def test_passes_differ_when_they_rewrote_another_number_of_places() -> None:
    a = replace(A, passes=(PassRecord("p", 3, True), PassRecord("q", 1, True), PassRecord("r", 2, True)))
    b = replace(A, passes=(PassRecord("p", 3, False), PassRecord("q", 4, True), PassRecord("s", 5, True)))
    expected = (PassChange("q", 1, 4), PassChange("r", 2, None), PassChange("s", None, 5))
    assert compared(a, b).passes == expected


def test_pass_that_found_nothing_is_as_good_as_one_that_did_not_run() -> None:
    comparison = compared(A, replace(A, passes=(PassRecord("p", 0, True),)))
    assert (comparison.passes, comparison.same) == ((), True)


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"target": "rk3566"}, FactChange("target", "rk3588", "rk3566")),
        (
            {"toolkit": replace(A.toolkit, version="2.5.0")},
            FactChange("toolkit", "rknn-toolkit2 2.3.2", "rknn-toolkit2 2.5.0"),
        ),
        ({"toolkit": replace(A.toolkit, disabled_rules=("x", "y"))}, FactChange("rules off", "none", "x, y")),
        ({"stage": "encoder"}, FactChange("stage", "piper decoder", "piper encoder")),
        ({"role": "short"}, FactChange("stage", "piper decoder", "piper decoder, short")),
        ({"family": None, "stage": None}, FactChange("stage", "piper decoder", "a foreign ONNX")),
        (
            {"source": replace(A.source, sha256="9" * 64)},
            FactChange(
                "source",
                "en_US-joe-medium.onnx (package), sha256 58b058b058b058b0",
                "en_US-joe-medium.onnx (package), sha256 9999999999999999",
            ),
        ),
        ({"inputs": A.inputs[:1]}, FactChange(
            "inputs", "z [1, 192, 109] float32, y_mask [1, 1, 109] float32", "z [1, 192, 109] float32"
        )),
        ({"outputs": ()}, FactChange("outputs", "output [1, 1, 1, 27904] float32", "none")),
        ({"onnx": replace(A.onnx, nodes=300)}, FactChange("graph", "281 nodes, opset 15", "300 nodes, opset 15")),
        ({"skipped": ("p",)}, FactChange("passes left out", "none", "p")),
    ],
)  # fmt: skip
def test_facts_differ_when_one_is_another(change: dict[str, object], fact: FactChange) -> None:
    comparison = compared(A, replace(A, **change))  # type: ignore[arg-type] # a table of differences
    assert comparison.facts == (fact,)
    assert comparison.targets == (("rk3588", "rk3566") if fact.name == "target" else None)
    assert not comparison.same


def test_nothing_differs_when_a_manifest_is_compared_with_itself() -> None:
    comparison = compared(A, A)
    assert (comparison.same, comparison.facts, comparison.passes, comparison.cpu_gone) == (True, (), (), ())
    assert comparison.a.engine_sha256 == comparison.b.engine_sha256 == "b" * 64


@pytest.mark.parametrize(
    ("key", "value"), [("modelled_ms", math.nan), ("modelled_ms", -1.0), ("rw_kb", math.inf), ("cycles", -5)]
)
def test_figures_that_no_build_has_are_left_out_and_told(key: str, value: float) -> None:
    bad = replace(A, layers=replace(LAYERS, **{key: value}))  # type: ignore[arg-type] # a table of differences
    comparison = compared(A, bad)
    name = {"modelled_ms": "modelled time", "rw_kb": "traffic", "cycles": "cycles"}[key]
    assert (figure(comparison, name).b, figure(comparison, name).ratio) == (None, None)
    assert f"The manifest of B states {key} {value:g}, which no build has: it is left out." in comparison.notes


def test_ratio_is_none_when_the_first_has_no_layers() -> None:
    empty = replace(A, layers=Layers(0, 0, 0.0, 0.0, (), None))
    comparison = compared(empty, A)
    assert {f.name: f.ratio for f in comparison.figures if f.name in ("layers", "cycles", "modelled time")} == {
        "layers": None,
        "cycles": None,
        "modelled time": None,
    }


def test_costs_are_said_to_be_unknown_when_nothing_tells_the_layers() -> None:
    comparison = compared(A, replace(A, layers=None))
    assert figure(comparison, "layers on the CPU").b is None
    assert comparison.cpu_gone == ()
    assert "What B costs is not known: nothing says which layers it has." in comparison.notes


def test_operators_are_compared_when_both_layer_tables_are_at_hand(tmp_path: Path) -> None:
    path, _ = write_engine(tmp_path)
    other = tmp_path / "piper.layers.json"
    other.write_text(json.dumps(to_json(PIPER_W93)))
    comparison = compare_files(path, other, tmp_path)
    assert comparison.unit == RUN
    time = figure(comparison, "modelled time")
    assert (time.a, time.b) == (0.2, modelled_ms(PIPER_W93))
    # By hand: 5.244692 + 50 / 5 of all Conv, which A has not.
    assert round(comparison.operators[0].difference_ms, 6) == 15.244692
    assert comparison.operators[0].name == "Conv (NPU)"
    assert figure(comparison, "engine file").b is None
    assert "Only A is known to have a window: costs are of a run, not of an emitted frame." in comparison.notes


def test_sums_are_compared_alone_when_a_layer_table_is_gone(tmp_path: Path) -> None:
    path, _ = write_engine(tmp_path)
    whole = compare_files(path, path.with_suffix(".json"), tmp_path)
    assert (whole.same, len(whole.operators)) == (True, 3)
    (tmp_path / "build-logs" / "x.layers.json").unlink()
    bare = compare_files(path, path.with_suffix(".json"), tmp_path)
    assert (bare.same, bare.operators) == (True, ())
    assert [note for note in bare.notes if note.startswith("A and B: The layer table build-logs/x.layers.json is not")]


def test_stale_manifest_is_told_and_what_it_says_is_not_used(tmp_path: Path) -> None:
    path, _ = write_engine(tmp_path / "a")
    stale, _ = write_engine(tmp_path / "b")
    stale.write_bytes(engine_bytes(b"another"))
    comparison = compare_files(path, stale, tmp_path)
    assert any(note.startswith("B: STALE: ") for note in comparison.notes)
    assert figure(comparison, "modelled time").b is None
    assert figure(comparison, "engine file").b is not None


def test_engines_without_manifests_are_compared_by_what_they_carry(tmp_path: Path) -> None:
    path, _ = write_engine(tmp_path / "a")
    other, _ = write_engine(tmp_path / "b")
    for one in (path, other):
        one.with_suffix(".json").unlink()
    assert compare_files(path, other, tmp_path).same
    told = {"target_platform": ["rk3566"], "version": "2.5.0"}
    other.write_bytes(engine_bytes(description=json.dumps(told).encode()))
    comparison = compare_files(path, other, tmp_path)
    assert comparison.targets == ("rk3588", "rk3566")
    assert FactChange("toolkit", "2.3.2", "2.5.0") in comparison.facts


def test_engine_without_a_manifest_is_compared_with_one_that_has_one(tmp_path: Path) -> None:
    path, manifest = write_engine(tmp_path / "a")
    other, _ = write_engine(tmp_path / "b")
    other.with_suffix(".json").unlink()
    comparison = compare_files(path, other, tmp_path)
    assert [fact.name for fact in comparison.facts] == ["source"]  # the sample's manifest is of another one
    assert comparison.facts[0].a == f"sha256 {manifest.source.sha256[:16]}"


@pytest.mark.parametrize("which", ["a", "b"])
@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("none", "there is no such file."),
        ("folder", "is not a file; name "),
        ("onnx", "is an ONNX, which has no layers yet; diff takes engines"),
        ("set", "is the manifest of a set; compare its members one by one: m.json, n.json."),
        ("text", "is neither an engine"),
        ("empty", "is empty."),
        ("no_frames", "a window needs positive sizes"),
        ("no_layers", "is a layer table without a layer."),
        ("nan_layers", "layer 0: 1 cycles and nan KB are no figures of a build"),
    ],
)
def test_diff_refuses_in_a_sentence_when_one_cannot_be_read(
    tmp_path: Path, which: str, kind: str, sentence: str
) -> None:
    good, manifest = write_engine(tmp_path)
    bad = tmp_path / "bad"
    if kind == "folder":
        bad.mkdir()
    elif kind == "onnx":
        write_onnx(bad)
    elif kind == "no_frames":
        text = manifest_text(manifest)
        assert '"emitted": 45' in text
        bad.write_text(text.replace('"emitted": 45', '"emitted": 0'))
    elif kind == "nan_layers":
        bad.write_text(json.dumps([{**to_json(PIPER_W93[0]), "cycles": 1, "rw_kb": math.nan}]))  # type: ignore[dict-item] # a dict
    elif kind != "none":
        texts = {"set": manifest_text(SetManifest(("m.json", "n.json"))), "text": "hello", "no_layers": "[]"}
        bad.write_text(texts.get(kind, ""))
    with pytest.raises(UserInput) as refused:
        compare_files(*((bad, good) if which == "a" else (good, bad)), tmp_path)
    assert str(refused.value).startswith(f"{bad}: ")
    assert sentence in str(refused.value)


def test_comparison_goes_whole_into_json() -> None:
    comparison = compared(A, replace(A, layers=replace(LAYERS, modelled_ms=math.inf), target="rk3566"))
    data = json.loads(report_json(Report(Request("diff", a="a.json", b="b.json"), extra={"diff": comparison})))
    assert data["diff"]["targets"] == ["rk3588", "rk3566"]
    assert {"a", "b", "unit", "same", "figures", "operators", "cpu_gone", "passes", "facts", "notes"} <= set(
        data["diff"]
    )
    assert data["request"]["a"] == "a.json"


def of_codes(codes: int, context: int = 0, **others: Any) -> Manifest:
    step = CodeStep(codes, 1920, 24000, 71, 64, context, codes - context)
    return replace(A, window=None, step=step, cache=Cache(12, ()), **others)


def test_costs_are_of_an_emitted_code_when_both_are_steps() -> None:
    b = of_codes(37, 25, layers=replace(LAYERS, cycles=1_200_000))
    comparison = compared(of_codes(64), b)
    assert (comparison.unit, comparison.a.units, comparison.b.units) == (CODE, 64, 12)
    cycles = figure(comparison, "cycles")  # by hand: 9 / 64 and 1.2 / 12
    assert (cycles.unit, cycles.a, round(cycles.b or 0, 9)) == ("M/code", 0.140625, 0.1)
    assert [fact.name for fact in comparison.facts] == ["step"]
    assert comparison.notes == ()


def test_costs_are_of_a_run_and_a_second_of_audio_when_one_emits_codes_and_the_other_frames() -> None:
    comparison = compared(A, of_codes(64))
    assert (comparison.unit, comparison.a.units, comparison.b.units) == (RUN, 1, 1)
    assert "A emits frames and B codes: costs are of a run." in comparison.notes
    # By hand: 45 x 256 / 22050 s and 64 x 1920 / 24000 s of audio in 18.5 ms.
    time = figure(comparison, "modelled time", "ms/s of audio")
    assert [time.a, time.b] == [pytest.approx(18.5 / (45 * 256 / 22050)), pytest.approx(18.5 / 5.12)]


def test_costs_are_of_a_run_when_only_one_is_a_step() -> None:
    comparison = compared(of_codes(64), replace(A, window=None))
    assert comparison.unit == RUN
    assert "Only A is known to be a step: costs are of a run, not of an emitted code." in comparison.notes


def test_outputs_that_are_judged_alone_are_compared_each() -> None:
    a = replace(A, verdicts=(at_least("simulator.audio", 36.0, 33, "dB"), at_least("simulator.state", 45.0, 43, "dB")))
    b = replace(A, verdicts=(at_least("simulator.audio", 38.5, 33, "dB"), at_least("simulator", 50.0, 40, "dB")))
    found = [figure for figure in compared(a, b).figures if figure.name.startswith("simulator")]
    assert found == [
        Figure("simulator.audio", "dB", 36.0, 38.5, 2.5, None),
        Figure("simulator.state", "dB", 45.0, None, None, None),
        Figure("simulator", "dB", None, 50.0, None, None),
    ]
