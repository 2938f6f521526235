"""The command `bench`: a stand-in stage on a clock of the test's own, and Qwen3's small steps on the real one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from contracts.contract import CodeStep, Source, Window
from contracts.files import sha256_of
from contracts.manifest import EngineFile, Layers, Manifest, manifest_text
from converters.qwen3.stand_in import stand_in
from converters.stages import Checkpoint, OpenSession, Stage, StageOptions, Streamed
from rknn_tts import bench as bench_module
from rknn_tts.bench import Bench, Machine, bench
from rknn_tts.blocks import plain_text
from rknn_tts.cli import run
from rknn_tts.present_bench import COMPUTED, bench_blocks
from rknn_tts.request import Request
from rknn_tts.streaming_bench import StepTime, StreamingBench, StreamTime, Total
from tests.qwen3_configs import REDUCED
from tests.qwen3_snapshots import write_snapshot
from tests.rknn_tts.samples import MANIFEST
from tests.rknn_tts.stand_in_stage import Doubled, install, write_checkpoint
from tests.rknn_tts.workshop import Heard

Array = NDArray[Any]

SAMPLES, RATE = 4, 100
"""Of a code, and of a second: a code sounds 40 ms."""

STEMS = {2: "twin-net-b2", 8: "twin-net-b8"}
SECONDS = {2: 0.010, 8: 0.020}
MACHINE = Machine("a processor", 3, "1.2.3")


class Clocked:
    """A stage whose steps take a known time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asked: list[StageOptions] = []

    def stage(self) -> Stage:
        return Doubled([], {}).stage(stream=self._stream, options=frozenset({"codes", "cache"}))

    def _stream(self, checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Streamed:
        self.asked.append(options)
        return Streamed(
            stems=STEMS,
            run=self._opened,
            latent=lambda codes: np.zeros((1, 5, codes), np.float32),
            cache_numel=7,
            samples_per_code=SAMPLES,
            sample_rate=RATE,
            notes=("a note of the stage",),
        )

    def _opened(self, codes: int) -> Any:
        def run(window: Array, cache: Array) -> tuple[Array, Array]:
            assert (window.shape, cache.shape) == ((1, 5, codes), (7,))
            self.now += SECONDS[codes]
            return np.zeros((1, 1, SAMPLES * codes)), np.zeros(7)

        return run


@pytest.fixture
def clocked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Clocked:
    """The only stage there is; the working directory is the test's own, and the checkpoint in it."""
    made = Clocked()
    install(monkeypatch, made.stage(), Doubled([], {}).stage(name="still"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench_module, "this_machine", lambda: MACHINE)
    write_checkpoint(tmp_path)
    return made


def benched(clocked: Clocked, **options: Any) -> Bench:
    request = Request("bench", family="twin", checkpoint="mini.json", **options)
    return bench(request, Heard(), clock=lambda: clocked.now)


def write_manifest(codes: int, modelled_ms: float, **changes: Any) -> Path:
    """An engine of a step of so many codes and its manifest, where `engine` writes them."""
    folder = Path("engines", "rk3588", "mini")
    folder.mkdir(parents=True, exist_ok=True)
    engine = folder / f"{STEMS[codes]}.rknn"
    engine.write_bytes(b"an engine")
    manifest: Manifest = replace(
        MANIFEST,
        source=Source("mini.json", sha256_of(Path("mini.json")), "checkpoint"),
        engine=EngineFile(engine.name, sha256_of(engine), 9),
        layers=Layers(3, 1, 1.0, modelled_ms, (), None),
        window=None,
        step=CodeStep(codes, SAMPLES, RATE, None, None, 0, codes),
    )
    place = engine.with_suffix(".json")
    place.write_text(manifest_text(replace(manifest, **changes)), encoding="utf-8")
    return place


def test_bench_times_every_step_of_the_stage(clocked: Clocked) -> None:
    found = benched(clocked, length=12, codes="8,2", cache="minimal")
    assert clocked.asked == [StageOptions(codes="8,2", cache="minimal")]
    assert (found.family, found.stage, found.machine, found.target) == ("twin", "net", MACHINE, "rk3588")
    assert (found.measured.codes, found.measured.code_ms) == (12, 40)
    # By hand: 10 / 2 and 20 / 8 ms, of 40 ms that a code sounds.
    figures = [
        (s.codes, round(s.ms, 6), round(s.ms_a_code, 6), round(s.real_time_factor, 6)) for s in found.measured.steps
    ]
    assert figures == [(2, 10, 5, 0.125), (8, 20, 2.5, 0.0625)]
    assert {stream.chunks for stream in found.measured.streams} == {"2", "8", "2, then 8"}


def test_bench_streams_192_codes_by_default(clocked: Clocked) -> None:
    assert benched(clocked).measured.codes == 192


def test_modelled_cost_is_read_where_engines_are_at_hand(clocked: Clocked) -> None:
    places = [write_manifest(2, 30.0), write_manifest(8, 64.0)]
    found = benched(clocked, length=2)
    # By hand: 30 / 2 and 64 / 8 ms, of 40 ms.
    assert [(s.codes, s.ms, s.ms_a_code, s.real_time_factor) for s in found.modelled] == [
        (2, 30, 15, 0.375),
        (8, 64, 8, 0.2),
    ]
    assert [step.manifest for step in found.modelled] == [str(place) for place in places]
    assert found.notes == ("a note of the stage",)


def test_missing_engine_is_told_with_the_command_that_builds_it(clocked: Clocked) -> None:
    write_manifest(8, 64.0)
    found = benched(clocked, length=2, codes="8,2", target="RK3588S")
    assert [step.codes for step in found.modelled] == [8]
    sentence = (
        "The cost on rk3588 of a step of 2 codes is not known: `./rknn-tts engine twin --target rk3588 --checkpoint "
        "mini.json --codes 8,2` builds the engines, whose manifests this command reads here."
    )
    assert found.notes[1:] == (sentence,)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"source": Source("mini.json", "9" * 64, "checkpoint")},
            "is of another checkpoint (sha256 9999999999999999).",
        ),
        ({"engine": EngineFile("twin-net-b8.rknn", "0" * 64, 9)}, "STALE: the engine twin-net-b8.rknn beside it is "),
        ({"layers": None}, "tells no cost of a step of 8 codes."),
        ({"step": None}, "tells no cost of a step of 8 codes."),
        ({"step": None, "window": Window(8, 8, 0, 0, 4, 100)}, "tells no cost of a step of 8 codes."),
    ],
)
def test_manifest_of_something_else_is_not_taken(clocked: Clocked, changes: dict[str, Any], sentence: str) -> None:
    write_manifest(2, 30.0)
    place = write_manifest(8, 64.0, **changes)
    found = benched(clocked, length=2)
    assert [step.codes for step in found.modelled] == [2]
    _, told, missing = found.notes
    assert told.startswith(f"{place}: {sentence}")
    assert missing.startswith("The cost on rk3588 of a step of 8 codes is not known: ")


def test_manifest_that_is_broken_is_told(clocked: Clocked) -> None:
    write_manifest(2, 30.0)
    place = write_manifest(8, 64.0)
    place.write_text("{")
    assert any(note.startswith(f"{place}: is no manifest, or is cut off") for note in benched(clocked, length=2).notes)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--length", "0"], "--length 0: a stream of 1 to 4096 codes is expected."),
        (["--length=-3"], "--length -3: a stream of 1 to 4096 codes is expected."),
        (["--length", "4097"], "--length 4097: a stream of 1 to 4096 codes is expected."),
        (["--length", "long"], "--length: a whole number is expected. `rknn-tts bench --help` lists what there is."),
        (["--target", "rk3589"], "The target 'rk3589' is unknown; "),
        (["--seam", "codes"], "twin net has no option --seam."),
        (["--window", "3"], "bench takes no --window. "),
        (
            ["--stage", "still"],
            "twin still does not go along a stream step by step, so there is nothing to bench; name twin net.",
        ),
    ],
)
def test_bench_is_refused_in_one_sentence(
    clocked: Clocked, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    assert run(["bench", "twin", "--checkpoint", "mini.json", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"error: {sentence}")
    assert clocked.asked == []


BENCH = Bench(
    family="twin",
    stage="net",
    source=Source("mini.json", "ab" * 32, "checkpoint"),
    machine=Machine("a processor", 1, "1.2.3"),
    target="rk3588",
    measured=StreamingBench(
        12,
        40.0,
        (StepTime(2, 10.0, 5.0, 0.125, 5, 1.5), StepTime(8, 2500.0, 312.5, 7.8125, 3, 1.625)),
        (StreamTime("2, then 8", 10, 10.0, Total(1234.5, 123.45, False), Total(98_765.4, 9876.54, True), 80.004),),
    ),
    modelled=(bench_module.ModelledStep(2, 30.0, 15.0, 0.375, "engines/x.json"),),
    notes=("a note",),
)


def lines_of(shown: Bench) -> list[str]:
    return [" ".join(line.split()) for line in plain_text(bench_blocks(shown)).splitlines()]


def test_bench_is_shown_in_tables() -> None:
    lines = lines_of(BENCH)
    assert lines[:14] == [
        "stage: twin net",
        "source: mini.json (checkpoint), sha256 abababababababab",
        "stream: 12 random codes of 40 ms: 0.48 s of audio",
        "machine: a processor, 1 thread",
        "graph: the export before any pass, fp32, onnxruntime 1.2.3, every optimisation",
        "",
        "step ms ms a code real-time factor runs",
        "2 codes 10 5 0.125 5",
        "8 codes 2500 312 7.81 3",
        "",
        "chunks of codes first audio, ms with state, ms a code again, ms a code ratio",
        "2, then 8 10 10 1234 123 98765 computed 9877 80x",
        "",
        "step on rk3588 modelled ms ms a code real-time factor manifest",
    ]
    assert lines[14] == "2 codes 30 15 0.375 engines/x.json"
    assert "note: the cost on rk3588 is modelled, not measured on a board" in lines
    assert f"note: {COMPUTED}" in lines
    (unsteady,) = [line for line in lines if line.startswith("UNSTEADY")]
    assert unsteady.startswith("UNSTEADY: the longest run of a step of 8 codes took 1.62x as long as the shortest: ")
    assert lines[-1] == "note: a note"


def test_bench_shows_no_modelled_cost_when_none_is_known() -> None:
    lines = lines_of(replace(BENCH, modelled=()))
    assert not any("modelled" in line for line in lines)


def test_bench_of_qwen3_tells_times_of_its_steps(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = replace(REDUCED, num_hidden_layers=1)
    write_snapshot(tmp_path, config, stand_in(config, 0))
    monkeypatch.chdir(tmp_path)
    assert run(["bench", "qwen3", "--checkpoint", ".", "--codes", "4", "--length", "9", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["exit_code"], data["error"]) == ("rknn-tts/result/1", 0, None)
    found = data["bench"]
    assert set(found) == {"family", "stage", "source", "machine", "target", "measured", "modelled", "notes"}
    assert set(found["machine"]) == {"processor", "threads", "onnxruntime"}
    measured = found["measured"]
    assert set(measured) == {"codes", "code_ms", "steps", "streams"}
    assert (measured["codes"], measured["code_ms"]) == (9, 80)
    assert [set(step) for step in measured["steps"]] == [
        {"codes", "ms", "ms_a_code", "real_time_factor", "runs", "spread"}
    ]
    assert [step["codes"] for step in measured["steps"]] == [4]
    ends = [(stream["chunks"], stream["codes"]) for stream in measured["streams"]]
    assert ends == [("4", 4), ("4", 8), ("4", 9)]
    for stream in measured["streams"]:
        assert set(stream) == {"chunks", "codes", "first_audio_ms", "with_state", "again", "ratio"}
        assert set(stream["with_state"]) == set(stream["again"]) == {"ms", "ms_a_code", "computed"}
        assert 0 < stream["first_audio_ms"] <= stream["with_state"]["ms"]
        assert stream["again"]["computed"] is False
    assert found["modelled"] == []
    assert "./rknn-tts engine qwen3 --target rk3588 --checkpoint . --codes 4`" in found["notes"][-1]
