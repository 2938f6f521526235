"""Large graphs: one is in memory at a time, none while the toolkit runs, and what is finished is found again."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx_ir as ir
import pytest

from contracts.errors import GateFailure, ToolFailure
from contracts.verdicts import Verdict
from converters.stages import Checkpoint, Opened, OpenSession, Stage, StageExport, StageOptions
from gates import fp16_range
from rknn_tts import build_step, exported_sources, onnx_to_engine
from rknn_tts.carried import Feed
from rknn_tts.outcome import Outcome
from tests.rknn_tts.stand_in_converter import GOOD_LOG, write_converter
from tests.rknn_tts.stand_in_stage import FULL, SET, SHORT, Doubled, by_role, install, write_checkpoint
from tests.rknn_tts.workshop import Workshop, new_workshop


@dataclass
class Watched(Doubled):
    """The stage, which knows whether its graphs, and what they are made of, are still in memory."""

    models: list[weakref.ref[ir.Model]] = field(default_factory=list)
    open: list[weakref.ref[object]] = field(default_factory=list)
    at_opening: list[int] = field(default_factory=list)

    def stage(self, **others: object) -> Stage:
        return super().stage(open=self._watched, **others)

    def held(self) -> int:
        """How many graphs are in memory."""
        return sum(model() is not None for model in self.models)

    def _watched(self, checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
        opened = self._open(checkpoint, options, open_session)

        def export(role: str) -> StageExport:
            self.at_opening.append(self.held())
            made = opened(role)
            self.models.append(weakref.ref(made.model))
            return made

        self.open.append(weakref.ref(export))
        return export


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Watched:
    made = Watched([], {})
    install(monkeypatch, made.stage())
    return made


@pytest.fixture
def workshop(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, stage: Watched) -> Workshop:
    made = new_workshop(tmp_path_factory)
    write_checkpoint(made.folder.parent)
    monkeypatch.setenv("RKNN_TTS_CONVERTER_PYTHON", str(made.folder.parent / "converter"))
    write_converter(made.folder.parent / "converter", by_role(2.0, 2.0))
    return made


def build(workshop: Workshop, **options: object) -> Outcome:
    checkpoint = str(workshop.folder.parent / "mini.json")
    return workshop.run("engine", None, family="twin", checkpoint=checkpoint, target="rk3588", **options)


@pytest.fixture
def at_builds(monkeypatch: pytest.MonkeyPatch, stage: Watched) -> list[tuple[int, bool]]:
    """At each build: how many graphs are in memory, and whether the open checkpoint is."""
    seen: list[tuple[int, bool]] = []
    built = build_step.built

    def watched(*arguments: object) -> Path:
        seen.append((stage.held(), any(one() is not None for one in stage.open)))
        return built(*arguments)  # type: ignore[arg-type]  # whatever it is called with

    monkeypatch.setattr(onnx_to_engine, "built", watched)
    return seen


def test_large_graph_is_let_go_of_before_the_next_is_opened_and_before_the_toolkit_runs(
    workshop: Workshop, stage: Watched, at_builds: list[tuple[int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exported_sources, "LARGE_GRAPH_BYTES", 0)
    done = build(workshop)
    assert stage.opened == ["checkpoint", "full", "short"]  # each once
    assert stage.at_opening == [0, 0]
    assert at_builds == [(0, False), (0, False)]
    assert {"full.fp32.doubled", "short.fp32.doubled"} <= {verdict.gate for verdict in done.verdicts}


def test_activations_of_large_graphs_are_judged_before_the_toolkit_runs(
    workshop: Workshop, at_builds: list[tuple[int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exported_sources, "LARGE_GRAPH_BYTES", 0)
    builds_before: list[int] = []
    judge = fp16_range.activation_range

    def watched(model: ir.Model, feeds: Sequence[Feed]) -> Verdict:
        builds_before.append(len(at_builds))
        return judge(model, feeds)

    monkeypatch.setattr(fp16_range, "activation_range", watched)
    build(workshop)
    assert builds_before == [0, 0]


def test_small_graphs_stay_and_are_proven_while_the_toolkit_runs(
    workshop: Workshop, stage: Watched, at_builds: list[tuple[int, bool]]
) -> None:
    build(workshop)
    assert stage.opened == ["checkpoint", "full", "short"]
    assert at_builds == [(2, True), (2, True)]


def test_large_graph_that_proves_wrong_is_opened_once_and_not_built(
    workshop: Workshop, stage: Watched, at_builds: list[tuple[int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exported_sources, "LARGE_GRAPH_BYTES", 0)
    write_checkpoint(workshop.folder.parent, factor=3.0)
    with pytest.raises(GateFailure, match=r"fp32\.doubled"):
        build(workshop)
    assert stage.opened == ["checkpoint", "full", "short"]
    assert workshop.files() <= {path for path in workshop.files() if path.startswith("build-logs/")}


def test_rungs_that_are_finished_are_found_again_behind_one_that_was_not(
    workshop: Workshop, stage: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exported_sources, "LARGE_GRAPH_BYTES", 0)
    runs = workshop.folder.parent / "runs"
    write_converter(
        workshop.folder.parent / "converter",
        f"""
        import numpy as np
        (size,) = {{array.shape[-1] for array in np.load(folder / "feeds.npz").values()}}
        with open({str(runs)!r}, "a") as log:
            print(size, file=log)
        print({GOOD_LOG!r}, end="", flush=True)
        if size == 4 and open({str(runs)!r}).read().split().count("4") == 1:
            sys.exit(9)  # as if it was killed
        simulate(2.0)
        """,
    )
    with pytest.raises(ToolFailure):
        build(workshop)
    assert not {f"{FULL}.rknn", SET} & workshop.files()
    stage.opened.clear()
    done = build(workshop)
    assert runs.read_text().split() == ["8", "4", "4"]
    assert stage.opened == []
    assert {f"{FULL}.rknn", f"{SHORT}.rknn", SET} <= workshop.files()
    assert "build" in done.reused
