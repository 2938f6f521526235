from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from rknn_tts_runtime.backends.engine import Array
from rknn_tts_runtime.backends.twins import TwinBackend
from rknn_tts_runtime.faults import BadInput, RunFault
from rknn_tts_runtime.probing.kit_reading import OpenKit, open_kit
from rknn_tts_runtime.probing.result import CaseMemory, Clock, ProbeResult
from rknn_tts_runtime.probing.run import run_case, run_kit

from tests.runtime.fake_backends import FakeBackend
from tests.runtime.probing.boards import BoardBackend, doubled, write_board
from tests.runtime.probing.kits import DOUBLED, replace_array, write_kit


@pytest.fixture
def kit(tmp_path: Path) -> OpenKit:
    write_kit(tmp_path / "kit")
    return open_kit(tmp_path / "kit")


def probed(kit: OpenKit, backend: FakeBackend, root: Path) -> ProbeResult:
    return run_kit(kit, backend, lambda line: None, repeats=3, root=root)


def test_twins_pass_the_whole_kit(kit: OpenKit, tmp_path: Path) -> None:
    said: list[str] = []
    result = run_kit(kit, TwinBackend(), said.append, repeats=2, root=tmp_path)
    assert said == ["1 of 2: net", "2 of 2: field"]
    assert result.passed
    assert (result.backend, result.warnings, result.conditions.soc) == ("onnx", (), None)
    assert list(result.versions) == ["onnxruntime"]
    net = result.cases[0]
    assert [(figure.name, figure.snr_db, figure.max_abs) for figure in net.outputs] == [("y", math.inf, 0.0)]
    assert (net.feeds, net.repeats, net.core_mask) == (2, 2, None)


def test_board_is_told_with_its_figures(kit: OpenKit, tmp_path: Path) -> None:
    backend = BoardBackend()
    result = probed(kit, backend, write_board(tmp_path / "board"))
    assert result.passed
    assert result.warnings == ()
    assert result.versions == {"api": "2.3.2", "driver": "0.9.8"}
    assert result.kit_sha256 == kit.sha256
    told = result.conditions
    assert (told.soc, told.board, told.kernel) == ("rk3588", "Orange Pi 5 Plus", "6.1.43-rockchip")
    assert (told.governor, told.idle_hz, told.highest_hz) == ("rknpu_ondemand", 10**9, 10**9)
    assert told.clock == Clock(10**9, 10**9)
    assert result.cases[0].core_mask == "0_1_2"
    assert result.cases[0].memory == CaseMemory(3 << 20, 1 << 20, measured=True)
    assert result.cases[1].memory is None
    assert backend.events == ["open net", "close net", "open part", "close part"]


def test_first_feed_is_run_again_for_its_time_and_every_feed_once(kit: OpenKit, tmp_path: Path) -> None:
    backend = BoardBackend()
    probed(kit, backend, tmp_path)
    fed = [feed["x"][0, 0] for feed in backend.engines["net"].feeds]
    assert fed == [1, 1, 1, 1, -1]


def test_times_are_median_and_least_of_the_repeats_without_the_warm_up(kit: OpenKit) -> None:
    ticks = iter([0.0, 0.030, 1.0, 1.010, 2.0, 2.021])
    case = run_case(kit, kit.kit.cases[0], BoardBackend(), 3, nullcontext, clock=lambda: next(ticks))
    assert case.ms == pytest.approx(21.0)
    assert case.least_ms == pytest.approx(10.0)
    assert case.repeats == 3


def test_what_is_wrong_only_when_it_is_run_again_fails(kit: OpenKit, tmp_path: Path) -> None:
    fed: list[float] = []

    def tiring(feed: Mapping[str, Array]) -> dict[str, Array]:
        fed.append(feed["x"][0, 0])
        return {"y": doubled(feed)["y"] + np.float32(len(fed) == 4)}  # the last of the first feed's repeats

    net = probed(kit, BoardBackend(tiring), tmp_path).cases[0]
    assert fed[:5] == [1, 1, 1, 1, -1]
    assert not net.passed
    assert net.outputs[0].max_abs == 1.0


def test_engine_that_is_refused_fails_its_case_and_the_others_run(kit: OpenKit, tmp_path: Path) -> None:
    result = probed(kit, BoardBackend(refusals={"net": 1}), tmp_path)
    net, field = result.cases
    assert (net.passed, net.outputs, net.ms, net.core_mask) == (False, (), None, None)
    assert net.problem == "it could not be loaded: rknn_init failed with code -13"
    assert field.passed
    assert not result.passed


def test_run_that_fails_fails_its_case_and_closes_the_engine(kit: OpenKit, tmp_path: Path) -> None:
    def failing(feed: Mapping[str, Array]) -> dict[str, Array]:
        raise RunFault("rknn_run failed with code -1", -1)

    backend = BoardBackend(failing)
    result = probed(kit, backend, tmp_path)
    assert result.cases[0].problem == "it could not be run: rknn_run failed with code -1"
    assert backend.events.count("close net") == 1


Compute = Callable[[Mapping[str, Array]], dict[str, Array]]


def noisy(feed: Mapping[str, Array]) -> dict[str, Array]:
    return {"y": np.asarray(feed["x"] * 2.1, np.float32)}


def unfinite(feed: Mapping[str, Array]) -> dict[str, Array]:
    return {"y": np.where(np.arange(4) == 2, np.nan, doubled(feed)["y"]).astype(np.float32)}


def wide(feed: Mapping[str, Array]) -> dict[str, Array]:
    return {"y": np.zeros((1, 5), np.float32)}


def misnamed(feed: Mapping[str, Array]) -> dict[str, Array]:
    return {"z": doubled(feed)["y"]}


@pytest.mark.parametrize(
    ("compute", "problem"),
    [
        (noisy, ""),
        (unfinite, "it has 1 of 4 values that are not finite"),
        (wide, "its shape is [1, 5], not [1, 4]"),
        (misnamed, "the engine did not give it"),
    ],
)
def test_wrong_outputs_fail_with_their_reason(kit: OpenKit, tmp_path: Path, compute: Compute, problem: str) -> None:
    case = probed(kit, BoardBackend(compute), tmp_path).cases[0]
    assert not case.passed
    assert case.outputs[0].problem == problem
    assert case.problem == ""


def test_ratio_of_a_tenth_too_much_is_26_db(kit: OpenKit, tmp_path: Path) -> None:
    figure = probed(kit, BoardBackend(noisy), tmp_path).cases[0].outputs[0]
    assert figure.snr_db == pytest.approx(20 * math.log10(20), abs=1e-4)
    assert figure.max_abs == pytest.approx(0.4, abs=1e-5)


def test_output_that_is_right_only_once_fails(kit: OpenKit, tmp_path: Path) -> None:
    runs: list[int] = []

    def tired(feed: Mapping[str, Array]) -> dict[str, Array]:
        runs.append(1)
        return doubled(feed) if len(runs) == 1 else noisy(feed)

    assert not probed(kit, BoardBackend(tired), tmp_path).cases[0].passed


def test_second_feed_counts(kit: OpenKit, tmp_path: Path) -> None:
    def right_on_the_first(feed: Mapping[str, Array]) -> dict[str, Array]:
        return doubled(feed) if feed["x"][0, 0] == 1 else noisy(feed)

    result = probed(kit, BoardBackend(right_on_the_first), tmp_path)
    assert [case.passed for case in result.cases] == [False, True]


def test_expected_output_that_is_not_finite_fails(kit: OpenKit, tmp_path: Path) -> None:
    broken = np.where(np.arange(4) == 1, np.nan, DOUBLED).astype(np.float32)
    replace_array(kit.folder, "y0.npy", broken, kit.kit)
    case = probed(open_kit(kit.folder), BoardBackend(), tmp_path).cases[0]
    assert case.outputs[0].problem == "what is expected has 1 of 4 values that are not finite"


def test_array_that_is_damaged_meanwhile_fails_its_case(kit: OpenKit, tmp_path: Path) -> None:
    (kit.folder / "x1.npy").write_bytes(b"")
    result = probed(kit, BoardBackend(), tmp_path)
    assert "x1.npy" in result.cases[0].problem
    assert result.cases[1].passed


def test_twin_of_another_digest_fails_its_case(kit: OpenKit, tmp_path: Path) -> None:
    (kit.folder / "part.onnx").write_bytes((kit.folder / "part.onnx").read_bytes() + b"\x00")
    result = run_kit(kit, TwinBackend(), lambda line: None, repeats=1, root=tmp_path)
    assert result.cases[0].passed
    assert "part.onnx" in result.cases[1].problem


def test_memory_that_is_refused_is_not_told(kit: OpenKit, tmp_path: Path) -> None:
    class Forgetful(BoardBackend):
        def memory(self, manifest: object) -> None:
            raise BadInput("no")

    case = run_case(kit, dataclasses.replace(kit.kit.cases[0]), Forgetful(), 1, nullcontext)
    assert (case.memory, case.passed) == (None, True)


def test_engine_that_is_right_once_and_wrong_when_it_is_run_again_fails(kit: OpenKit, tmp_path: Path) -> None:
    runs: list[int] = []

    def stale(feed: Mapping[str, Array]) -> Mapping[str, Array]:
        runs.append(1)
        return {"y": doubled(feed)["y"] * (0 if len(runs) == 4 else 1)}  # the last of the three that are timed

    case = run_case(kit, kit.kit.cases[0], BoardBackend(stale), 3, nullcontext)
    assert not case.passed
    assert case.outputs[0].problem.startswith("it is all zero")
    assert len(runs) == 5
