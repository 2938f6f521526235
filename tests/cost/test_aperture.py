"""What an engine takes of the NPU's address space; the reference's rungs and sets are its measurements on a board."""

from __future__ import annotations

import pytest

from contracts.contract import TensorSpec
from contracts.manifest import Aperture
from cost.aperture import BUDGET_BYTES, MIB, MOST_LISTED, aperture_of, fits, judge_aperture, sharing
from logs.layer_table import LayerTable

GIB = 1 << 30
REFERENCE_MIB = {"s110": 786, "s200": 1129, "s250": 1426, "s400": 2615, "s500": 3752}
"""What the driver reported of one flow estimator at each length (reference, "The IOVA ceiling")."""

RUNGS = {name: mib * MIB for name, mib in REFERENCE_MIB.items()}
REFUSED_MAPPING_BYTES = 4710850560
"""What the engine of 900 frames asked to map, as dmesg told (the same)."""


def table(internal_kb: float | None, weight_kb: float | None, arena_bytes: int | None) -> LayerTable:
    return LayerTable((), internal_kb, weight_kb, (), arena_bytes)


def judged(internal_bytes: int, engine_bytes: int) -> tuple[str, str]:
    logged = table(internal_bytes / 1024, 1.0, internal_bytes)
    aperture = aperture_of(logged, engine_bytes, ())
    assert aperture is not None
    verdict = judge_aperture(logged, aperture)
    return verdict.status.value, verdict.detail


@pytest.mark.parametrize(
    "rungs",
    [
        ("s110", "s200", "s250"),
        ("s110",) * 4,
        ("s200",) * 3,
        ("s250", "s250", "s110"),
        ("s110", "s400"),
        ("s200", "s400"),
    ],
)
def test_fits_takes_what_the_board_loaded(rungs: tuple[str, ...]) -> None:
    assert fits(RUNGS[rung] for rung in rungs)


@pytest.mark.parametrize("rungs", [("s250", "s400"), ("s110", "s500")])
def test_fits_refuses_what_the_board_did_not_load(rungs: tuple[str, ...]) -> None:
    assert not fits(RUNGS[rung] for rung in rungs)


def test_sharing_lists_the_largest_sets_of_the_reference_ladder() -> None:
    shared = sharing({rung: RUNGS[rung] for rung in ("s110", "s200", "s250", "s400")})
    assert shared.budget_bytes == 3900 * 1024 * 1024
    assert shared.together == (("s110", "s200", "s250"), ("s110", "s400"), ("s200", "s400"))


def test_sharing_leaves_out_what_does_not_fit_alone() -> None:
    # 642 MiB of weights and a mapping of 4493: 5135, though the driver reports 1039 of it.
    assert sharing({"s500": RUNGS["s500"], "s900": REFUSED_MAPPING_BYTES + 642 * MIB}).together == (("s500",),)
    assert sharing({"s900": REFUSED_MAPPING_BYTES}).together == ()


def test_sharing_is_one_set_when_all_fit() -> None:
    few = {f"window{number}": 60 * MIB for number in range(3)}
    many = {f"window{number}": 60 * MIB for number in range(MOST_LISTED + 40)}
    assert sharing(few).together == (tuple(few),)
    assert sharing(many).together == (tuple(many),)
    assert sharing({}).together == ()


def test_sharing_lists_nothing_of_too_many_engines() -> None:
    assert sharing({f"rung{number}": GIB for number in range(MOST_LISTED + 1)}).together == ()
    # Of twelve of 1 GiB any three fit into 3900 MiB: 220 sets.
    assert len(sharing({f"rung{number}": GIB for number in range(MOST_LISTED)}).together) == 220


def test_aperture_counts_features_the_whole_engine_and_buffers_in_pages() -> None:
    tensors = (TensorSpec("x", (1, 80, 200), "float32"), TensorSpec("codes", (1, 3), "int64"))
    # By hand: 8000 -> 8192; 20000 -> 20480 (with commands; the weights alone are 1024); 64000 -> 65536; 24 -> 4096.
    assert aperture_of(table(7.8125, 1.0, 8000), 20_000, tensors) == Aperture(98_304, 20_480)


def test_aperture_takes_the_largest_of_total_and_addresses() -> None:
    # A total of six digits: 2.29719e+06 KB is what the compiler printed of an arena of 0x8c358e00 bytes (2.3.2).
    exact = aperture_of(table(2.29719e06, 2.0625, 0x8C358E00), 4096, ())
    assert exact == Aperture(0x8C359000 + 4096, 0x8C359000)
    # A total that wrapped: 5 GiB less 4.
    wrapped = aperture_of(table(1024.0 * 1024, 1.0, 5 * GIB), 4096, ())
    assert wrapped == Aperture(5 * GIB + 4096, 5 * GIB)


@pytest.mark.parametrize("totals", [(None, 1.0), (1.0, None)])
def test_aperture_is_unknown_without_both_totals(totals: tuple[float | None, float | None]) -> None:
    assert aperture_of(table(*totals, 4096), 4096, ()) is None


def test_judge_passes_what_a_process_can_load() -> None:
    status, detail = judged(BUDGET_BYTES - 700 * MIB, 700 * MIB)
    assert (status, "3900 MiB" in detail, "3200 in one mapping" in detail) == ("passed", True, True)


def test_judge_leaves_open_what_lies_between_what_was_seen_to_load_and_the_ceiling() -> None:
    assert judged(BUDGET_BYTES - 700 * MIB + 1, 700 * MIB)[0] == "unproven"
    assert judged(4096 * MIB - 700 * MIB - 4096, 700 * MIB)[0] == "unproven"


def test_judge_fails_when_all_mappings_together_need_more_than_32_bits() -> None:
    status, detail = judged(4096 * MIB - 700 * MIB, 700 * MIB)
    assert status == "failed"
    assert "4096 MiB of the NPU's address space, 3396 in one mapping, and there are 4096. Convert it" in detail


def test_judge_fails_when_one_mapping_needs_more_than_32_bits() -> None:
    status, detail = judged(REFUSED_MAPPING_BYTES, 700 * MIB)
    assert status == "failed"
    assert "more than the 4096 MiB" in detail
    assert "its total of 4493 MiB tells only that" in detail
    assert "shorter length" in detail
    assert judged(4096 * MIB, 0)[0] == "failed"
    assert judged(0, 4096 * MIB)[0] == "failed"


def test_judge_fails_when_the_printed_total_wrapped() -> None:
    # The total of the refused mapping, once more in 32 bits: 415883264 bytes.
    logged = table(415883264 / 1024, 657818.0, REFUSED_MAPPING_BYTES)
    aperture = aperture_of(logged, 700 * MIB, ())
    assert aperture is not None
    verdict = judge_aperture(logged, aperture)
    assert verdict.status.value == "failed"
    assert "its total of 397 MiB wrapped" in verdict.detail


def test_judge_fails_when_the_log_does_not_say_where_tensors_lie() -> None:
    verdict = judge_aperture(table(1.0, 1.0, None), Aperture(8192, 4096))
    assert (verdict.status.value, "cannot be checked" in verdict.detail) == ("failed", True)


def test_the_reference_driver_reports_the_refused_mapping_once_more_in_32_bits() -> None:
    # 1039 MiB reported; the weights are what its other rungs leave where features grow with the square of the length.
    weights_mib = 1039 - (REFUSED_MAPPING_BYTES - (1 << 32)) / MIB
    per_square = [(REFERENCE_MIB[f"s{n}"] - weights_mib) / n**2 for n in (110, 200, 250, 400, 500)]
    assert max(per_square) < 1.06 * min(per_square)
