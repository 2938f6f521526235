"""`--weigh` on a small voice: what is built, what is kept, and what becomes of the engine. Costs are made up, but for
the engines that the real toolkit builds in the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from contracts.choices import ON_THIS_ENGINE, WITH, WITHOUT, Choice
from contracts.errors import GateFailure, UserInput
from contracts.manifest import Layers
from contracts.verdicts import passed
from rknn_tts import pipeline
from rknn_tts.checkpoint_to_onnx import Conversion, open_conversions
from rknn_tts.earning import weighing
from rknn_tts.earning.weighing import figures_of, weighed
from rknn_tts.export_step import Proof
from rknn_tts.graph_at_hand import NumericGates, OnnxSource
from rknn_tts.graph_cost import CostBuilds, GraphCost
from rknn_tts.request import Request
from rknn_tts.steps import Steps
from tests.rknn_tts.workshop import Heard, Workshop, fresh_steps, new_workshop
from tests.vits_writer.voice import write_voice

W109 = "piper-decoder-w109 for rk3588 by rknn-toolkit2 2.3.2"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    made = new_workshop(tmp_path_factory)
    write_voice(made.folder / "mini.onnx")
    return made


@pytest.fixture
def steps(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Steps:
    monkeypatch.chdir(shop.folder)
    monkeypatch.setenv("RKNN_TTS_CACHE", str(shop.cache))
    return fresh_steps()


@pytest.fixture
def built_graphs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the graphs that were built for their layer tables; an engine takes the longer the more Muls it has, and
    each Slice saves something."""
    names: list[str] = []

    def cost(builds: CostBuilds, name: str, graph: bytes) -> GraphCost:
        names.append(name)
        made = [node.op_type for node in onnx.load_from_string(graph).graph.node]
        spent = 10.0 + made.count("Mul") - made.count("Slice")
        return GraphCost(Layers(len(made), 1000, 50.0, spent, (), None))

    monkeypatch.setattr(CostBuilds, "cost", cost)
    return names


def conversion(skipped: tuple[str, ...] = ()) -> tuple[Conversion, Request]:
    request = Request(
        command="engine", family="piper", checkpoint="mini.onnx", target="rk3588", window=109, no_pass=list(skipped)
    )
    (made,) = open_conversions(request, "rk3588", Heard())
    return made, request


def choices(steps: Steps) -> dict[str, Choice]:
    made, request = conversion()
    (done,) = weighed([made], request, "rk3588", steps)
    assert done.choosing.weighed is not None
    return {choice.name: choice for choice in done.choosing.weighed}


def gates(answer: str) -> Callable[..., str]:
    return lambda *given: answer


def test_variant_that_fails_a_gate_is_not_kept_though_cheaper(
    steps: Steps, built_graphs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weighing, "_fault", gates("fp32.whole: 12 dB"))
    choice = choices(steps)["fold_channel_flips"]
    spent = {variant.name: (variant.modelled_ms or 0.0, variant.fault) for variant in choice.variants}
    assert choice.kept == WITH
    assert spent[WITHOUT][0] < spent[WITH][0]
    assert spent[WITHOUT][1] == "fp32.whole: 12 dB"


def test_pass_that_the_user_leaves_out_is_not_weighed(steps: Steps) -> None:
    made, request = conversion(("fold_channel_flips",))
    scales = weighing.Scales(made, CostBuilds(request, "rk3588", Path("python"), steps, Path()))
    names = [offer.name for offer in scales.offers]
    assert "fold_scales" in names
    assert "fold_channel_flips" not in names


def test_gates_of_a_variant_are_those_of_an_engine(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    made, request = conversion()
    asked: list[tuple[Choice, ...]] = []

    def judged(source: OnnxSource, steps: Steps) -> NumericGates:
        asked.append(source.contract.choices)
        return NumericGates(Proof((), (), ()), passed("fp16"))

    def built(build: object, *others: object) -> Path:
        raise GateFailure("log.errors: the toolkit said so.", (passed("structure"),), None)

    monkeypatch.setattr(weighing, "built", built)
    monkeypatch.setattr(weighing, "judge_numbers", judged)
    told = weighing._fault(made, request, "rk3588", Path("python"), steps, {"fold_channel_flips": WITHOUT})
    assert told == "log.errors: the toolkit said so."
    ((choice,),) = asked
    assert (choice.name, choice.kept) == ("fold_channel_flips", WITHOUT)


def test_engine_says_what_was_weighed_and_is_that_of_no_pass_byte_for_byte(
    shop: Workshop, built_graphs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"family": "piper", "checkpoint": "mini.onnx", "target": "rk3588", "window": 109}
    outcome = shop.run("engine", weigh=True, **options)
    assert outcome.manifest is not None
    assert len(built_graphs) == len(set(built_graphs))  # each graph once
    kept = {choice.name: choice.kept for choice in outcome.manifest.choices}
    assert kept["fold_scales"] == WITH
    (flips,) = (choice for choice in outcome.manifest.choices if choice.name == "fold_channel_flips")
    assert (flips.kept, flips.weighed_on) == (WITHOUT, W109)
    assert [variant.modelled_ms for variant in flips.variants] == [13.0, 11.0]  # its flips are two Slices without
    assert {choice.basis for choice in outcome.manifest.choices} == {ON_THIS_ENGINE}
    assert all(choice.variants for choice in outcome.manifest.choices)
    left = [name for name, variant in kept.items() if variant == WITHOUT]
    engine = outcome.manifest.engine.sha256
    again = shop.run("engine", weigh=True, **options)
    assert again.manifest is not None
    assert (again.manifest.engine.sha256, again.manifest.choices) == (engine, outcome.manifest.choices)
    plain = shop.run("engine", no_pass=left, **options)
    assert plain.manifest is not None
    assert plain.manifest.engine.sha256 == engine
    assert [c.weighed_on for c in plain.manifest.choices if c.name in left] == ["--no-pass"] * len(left)


def test_export_that_is_weighed_needs_a_target(shop: Workshop) -> None:
    with pytest.raises(UserInput, match=r"^--weigh weighs for one SoC: say which with --target\.$"):
        shop.run("export", family="piper", checkpoint="mini.onnx", window=109, weigh=True)


def test_fault_says_that_more_fields_overflow_or_that_nothing_was_built() -> None:
    layers = Layers(9, 1000, 50.0, 10.0, (), None)
    told = "3 lines of its log tell of overflowing fields, 2 as it was"
    assert figures_of(GraphCost(layers, regtask_lines=3), 2).fault == told
    assert figures_of(GraphCost(layers, regtask_lines=3), 3).fault == ""
    assert figures_of(GraphCost(fault="no memory"), 0).modelled_ms is None
    assert figures_of(GraphCost(layers), 0).modelled_ms == 10.0


def test_pipeline_weighs_every_engine_of_a_set(monkeypatch: pytest.MonkeyPatch, shop: Workshop) -> None:
    seen: list[str] = []

    def noted(conversions: tuple[Conversion, ...], *others: object) -> tuple[Conversion, ...]:
        seen.extend(one.role for one in conversions)
        raise UserInput("seen")

    monkeypatch.setattr(pipeline, "weighed", noted)
    options: dict[str, Any] = {
        "stage": "duration_encoder",
        "checkpoint": "mini.onnx",
        "widths": "128,192",
        "weigh": True,
    }
    with pytest.raises(UserInput, match="seen"):
        shop.run("engine", family="piper", target="rk3588", **options)
    assert seen == ["n128", "n192"]
