"""The reference's rungs and sets are its measurements on a board ("The IOVA ceiling")."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rknn_tts_runtime.aperture_budget import APERTURE_BYTES, BUDGET_BYTES, MIB, ApertureBudget, ContextCost, cost_of
from rknn_tts_runtime.backends.engine import MemoryUse
from rknn_tts_runtime.manifest import EngineManifest, read_manifest

from cost import aperture

REFERENCE_MIB = {110: 786, 200: 1129, 250: 1426, 400: 2615, 500: 3752, 900: 1039}
REFUSED_MAPPING_BYTES = 4710850560
"""What the engine of 900 frames asked to map, while the driver reported 1039 MiB of it."""


def measured(frames: int) -> ContextCost:
    mapping = REFUSED_MAPPING_BYTES if frames >= 900 else 0
    return ContextCost(REFERENCE_MIB[frames] * MIB, mapping, "measured")


def all_admitted(rungs: tuple[int, ...]) -> bool:
    budget = ApertureBudget()
    for frames in rungs:
        if not budget.admits(measured(frames)):
            return False
        budget.take(f"flow-n{frames}.rknn", measured(frames))
    return True


def manifest_with(tmp_path: Path, mapped: dict[str, int] | None) -> EngineManifest:
    data: dict[str, Any] = {
        "schema": "rknn-tts/engine/1",
        "target": "rk3588",
        "toolkit": {"version": "2.3.2"},
        "onnx": {"file": "flow.onnx"},
        "engine": {"file": "flow.rknn", "sha256": "0", "bytes": 661 * MIB},
        "inputs": [],
        "outputs": [],
        "aperture": mapped,
    }
    path = tmp_path / "flow.json"
    path.write_text(json.dumps(data))
    return read_manifest(path)


@pytest.mark.parametrize(
    "rungs",
    [(110, 200, 250), (110,) * 4, (200,) * 3, (250, 250, 110), (110, 400), (200, 400), (500,)],
)
def test_the_budget_admits_what_the_board_loaded(rungs: tuple[int, ...]) -> None:
    assert all_admitted(rungs)


@pytest.mark.parametrize("rungs", [(250, 400), (110, 500), (900,), (900, 110)])
def test_the_budget_refuses_what_the_board_did_not_load(rungs: tuple[int, ...]) -> None:
    assert not all_admitted(rungs)


def test_the_budget_is_that_of_the_toolchain() -> None:
    assert (BUDGET_BYTES, APERTURE_BYTES) == (aperture.BUDGET_BYTES, aperture.APERTURE_BYTES)


def test_what_is_given_back_is_free_again() -> None:
    budget = ApertureBudget()
    share = budget.take("flow-n400.rknn", measured(400))
    assert budget.taken_bytes == 2615 * MIB
    assert not budget.admits(measured(250))
    budget.give_back(share)
    budget.give_back(share)
    assert budget.taken_bytes == 0
    assert budget.admits(measured(250))


def test_two_engines_of_one_name_count_twice() -> None:
    budget = ApertureBudget()
    first = budget.take("flow-n110.rknn", measured(110))
    budget.take("flow-n110.rknn", measured(110))
    budget.give_back(first)
    assert [share.context_bytes for share in budget.shares] == [786 * MIB]


def test_a_board_with_fewer_addresses_has_its_own_budget() -> None:
    assert not ApertureBudget(700 * MIB).holds(measured(110))


def test_cost_is_what_the_driver_measured_where_it_did(tmp_path: Path) -> None:
    manifest = manifest_with(tmp_path, {"context_bytes": 668 * MIB, "largest_mapping_bytes": 660 * MIB})
    assert cost_of(manifest, MemoryUse(642 * MIB, 144 * MIB, True)) == (786 * MIB, 660 * MIB, "measured")


@pytest.mark.parametrize("told", [None, MemoryUse(5 * MIB, 0, False)])
def test_cost_is_the_manifests_estimate_where_nothing_was_measured(tmp_path: Path, told: MemoryUse | None) -> None:
    manifest = manifest_with(tmp_path, {"context_bytes": 668 * MIB, "largest_mapping_bytes": 660 * MIB})
    assert cost_of(manifest, told) == (668 * MIB, 660 * MIB, "estimated")


def test_cost_is_the_files_size_where_nothing_is_known(tmp_path: Path) -> None:
    assert cost_of(manifest_with(tmp_path, None), None) == (661 * MIB, 661 * MIB, "the size of its file")


def test_a_mapping_beyond_the_address_space_counts_though_the_driver_reports_less(tmp_path: Path) -> None:
    mapped = {"context_bytes": 5135 * MIB, "largest_mapping_bytes": REFUSED_MAPPING_BYTES}
    cost = cost_of(manifest_with(tmp_path, mapped), MemoryUse(642 * MIB, 397 * MIB, True))
    assert cost.context_bytes == 1039 * MIB
    assert not ApertureBudget().holds(cost)


def test_budget_is_used_to_the_last_byte_and_no_mapping_is_all_of_the_address_space() -> None:
    budget = ApertureBudget(1000)
    budget.take("a.rknn", ContextCost(400, 0, "measured"))
    assert budget.admits(ContextCost(600, 0, "measured"))
    assert not budget.admits(ContextCost(601, 0, "measured"))
    # What the driver told wrapped at 32 bits (docs/cost.md): the sum is small, the mapping is not.
    assert budget.holds(ContextCost(1000, (1 << 32) - 1, "measured"))
    assert not budget.holds(ContextCost(1000, 1 << 32, "measured"))
