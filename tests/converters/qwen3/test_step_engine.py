from __future__ import annotations

from pathlib import Path

import pytest

from contracts.contract import CodeStep
from converters.qwen3 import step_engine
from converters.qwen3.checkpoint import locate
from converters.qwen3.opening import Opening
from converters.qwen3.stage import STAGE
from converters.qwen3.step_engine import step_export
from converters.stages import StageOptions
from models.qwen3.config import TRUE_CONFIG
from tests.converters.hubs import no_hub
from tests.converters.qwen3.openings import open_small, write_small
from tests.onnx_runs import open_session


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small(tmp_path_factory.mktemp("snapshot"))


@pytest.fixture(scope="module")
def opening(folder: Path) -> Opening:
    return open_small(folder, codes="8,4", window_role="6+2")


@pytest.mark.parametrize(
    ("role", "step"),
    [
        ("main", CodeStep(8, 96, 24_000, 71, 32, 0, 8)),
        ("first", CodeStep(4, 96, 24_000, 71, 32, 0, 4)),
        ("window", CodeStep(8, 96, 24_000, 71, 32, 6, 2)),
    ],
)
def test_contract_states_the_step_its_cache_and_its_thresholds(role: str, step: CodeStep, opening: Opening) -> None:
    export = step_export(opening, role)
    contract = export.contract
    assert (contract.family, contract.stage, contract.role) == ("qwen3", "speech_decoder", role)
    assert contract.step == step
    assert contract.cache == opening.layout
    assert contract.source.kind == "checkpoint"
    assert {spec.name: spec.shape for spec in contract.inputs} == opening.shapes(step.codes)
    assert {spec.dtype for spec in contract.inputs} == {"float32"}
    assert [spec.name for spec in contract.outputs] == ["audio", "cache_out"]
    # The issue: the simulator on the reduced model, audio >= 33 dB and cache >= 43.
    assert contract.thresholds == {"simulator.audio": 33.0, "simulator.cache_out": 43.0}


@pytest.mark.parametrize(("codes", "measured_gb"), [(16, 6.88), (64, 19.0)])
def test_simulator_takes_what_was_measured_at_the_published_sizes(codes: int, measured_gb: float) -> None:
    assert step_engine.simulator_bytes(TRUE_CONFIG, codes) / 1e9 == pytest.approx(measured_gb, rel=0.03)


def test_contract_states_what_simulating_takes(opening: Opening) -> None:
    stated = [step_export(opening, role).contract.simulator_bytes for role in ("main", "first")]
    assert stated == [step_engine.simulator_bytes(opening.config, codes) for codes in (8, 4)]
    assert max(filter(None, stated)) < 1e9


def test_export_has_real_feeds_one_of_them_with_padding_and_what_is_owed_for_both(opening: Opening) -> None:
    export = step_export(opening, "main")
    assert export.stem == opening.geometry.stem("main")
    assert (len(export.feeds), len(export.padded_feeds), len(export.references)) == (1, 1, 2)
    assert [array.shape[-1] for array in (owed["audio"] for owed in export.references)] == [8 * 96, 6 * 96]
    assert (export.host, export.host_file, export.notes) == (opening.host, "qwen3-host.onnx", ())
    assert [made.name for made in export.cuts("rk3588")] == ["rewrite_sines"]


def test_codes_are_an_input_of_integers_and_no_host_half_is_owed(folder: Path) -> None:
    export = step_export(open_small(folder, codes="4", seam="codes", cache="minimal"), "main")
    assert export.host is None
    assert [(spec.name, spec.dtype) for spec in export.contract.inputs] == [("codes", "int64"), ("cache", "float32")]
    assert "-codes-minimal-" in export.stem


def test_stage_opens_a_checkpoint_into_its_engines(folder: Path) -> None:
    options = StageOptions(codes="4")
    assert STAGE.roles is not None
    assert STAGE.roles(options) == ("main",)
    export = STAGE.open(locate(str(folder), no_hub), options, open_session)("main")
    assert export.contract.role == "main"
    assert STAGE.extras == {"torch"}


def test_stage_streams_what_bench_walks(folder: Path) -> None:
    options = StageOptions(codes="8,4")
    assert STAGE.stream is not None
    streamed = STAGE.stream(locate(str(folder), no_hub), options, open_session)
    assert list(streamed.stems) == [8, 4]
    assert (streamed.samples_per_code, streamed.sample_rate, streamed.notes) == (96, 24_000, ())
    assert streamed.latent(20).shape == (1, 64, 20)
    assert streamed.cache_numel == open_small(folder).layout.numel
