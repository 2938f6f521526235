"""The reference's ladder, with what its board reported of each rung ("The IOVA ceiling")."""

from __future__ import annotations

from pathlib import Path

import pytest
from rknn_tts_runtime.aperture_budget import MIB, ApertureBudget, ContextCost
from rknn_tts_runtime.backends.engine import MemoryUse
from rknn_tts_runtime.faults import BadInput, RunFault
from rknn_tts_runtime.lazy_ladder import LazyLadder
from rknn_tts_runtime.manifest import EngineManifest

from tests.runtime.fake_backends import FakeBackend, written_manifest

WEIGHTS_MIB = 642
REFERENCE_MIB = {110: 786, 200: 1129, 250: 1426, 400: 2615, 500: 3752, 900: 1039}
MEASURED = {
    f"n{frames}": MemoryUse(WEIGHTS_MIB * MIB, (mib - WEIGHTS_MIB) * MIB, True) for frames, mib in REFERENCE_MIB.items()
}


@pytest.fixture
def rungs(tmp_path: Path) -> dict[int, EngineManifest]:
    """The rungs by their frames; the one of 900 says what it would map."""
    wide = {"context_bytes": 5135 * MIB, "largest_mapping_bytes": 4710850560}
    return {
        frames: written_manifest(tmp_path, f"n{frames}", aperture=wide if frames == 900 else None)
        for frames in REFERENCE_MIB
    }


def walked(rungs: dict[int, EngineManifest], order: tuple[int, ...], backend: FakeBackend) -> LazyLadder:
    ladder = LazyLadder(backend, list(rungs.values()))
    for frames in order:
        ladder.engine(rungs[frames])
    return ladder


def test_rungs_stay_loaded_while_they_fit(rungs: dict[int, EngineManifest]) -> None:
    backend = FakeBackend(MEASURED)
    ladder = walked(rungs, (110, 200, 250, 110), backend)
    assert backend.events == ["open n110", "open n200", "open n250"]
    assert ladder.loaded == ("n200.rknn", "n250.rknn", "n110.rknn")


def test_nothing_is_loaded_before_it_is_asked_for(rungs: dict[int, EngineManifest]) -> None:
    backend = FakeBackend(MEASURED)
    LazyLadder(backend, list(rungs.values())).close()
    assert (backend.events, backend.asked) == ([], [])


def test_the_one_used_longest_ago_makes_room_first(rungs: dict[int, EngineManifest]) -> None:
    # 110 + 200 + 250 are 3341; with 400 (2615) only 110 or 200 of them fits: 200 and 250 were used before 110.
    backend = FakeBackend(MEASURED)
    ladder = walked(rungs, (110, 200, 250, 110, 400), backend)
    assert backend.events[3:] == ["close n200", "close n250", "open n400"]
    assert ladder.loaded == ("n110.rknn", "n400.rknn")


def test_the_largest_rung_takes_the_place_of_all(rungs: dict[int, EngineManifest]) -> None:
    backend = FakeBackend(MEASURED)
    assert walked(rungs, (110, 500), backend).loaded == ("n500.rknn",)


def test_a_rung_comes_back_after_it_was_let_go_of(rungs: dict[int, EngineManifest]) -> None:
    backend = FakeBackend(MEASURED)
    ladder = walked(rungs, (250, 400, 250), backend)
    assert backend.events == ["open n250", "close n250", "open n400", "close n400", "open n250"]
    assert ladder.loaded == ("n250.rknn",)
    assert backend.asked == ["n250", "n400"]  # what it takes is asked for once


@pytest.mark.parametrize("code", [-4, -6])
def test_a_refusal_lets_go_of_the_others_and_tries_once_more(rungs: dict[int, EngineManifest], code: int) -> None:
    backend = FakeBackend(MEASURED, refusals={"n200": 1}, code=code)
    ladder = walked(rungs, (110, 200), backend)
    assert backend.events == ["open n110", "refuse n200", "close n110", "open n200"]
    assert ladder.loaded == ("n200.rknn",)


def test_a_second_refusal_names_engine_bytes_and_budget(rungs: dict[int, EngineManifest]) -> None:
    backend = FakeBackend(MEASURED, refusals={"n200": 2})
    ladder = walked(rungs, (110,), backend)
    with pytest.raises(RunFault, match=r"code -4.* n200\.rknn takes 1129 MiB \(measured\) of the 3900 MiB") as caught:
        ladder.engine(rungs[200])
    assert caught.value.code == -4
    assert not ladder.loaded
    ladder.engine(rungs[500])  # 3752 MiB: what was refused is not counted
    assert backend.events[-1] == "open n500"


def test_a_refusal_with_nothing_to_let_go_of_is_not_tried_again(rungs: dict[int, EngineManifest]) -> None:
    backend = FakeBackend(MEASURED, refusals={"n200": 1})
    with pytest.raises(RunFault, match=r"n200\.rknn"):
        walked(rungs, (200,), backend)
    assert backend.events == ["refuse n200"]


def test_another_failure_is_not_tried_again(rungs: dict[int, EngineManifest]) -> None:
    backend = FakeBackend(MEASURED, refusals={"n200": 1}, code=-13)
    ladder = walked(rungs, (110,), backend)
    with pytest.raises(RunFault, match="code -13") as caught:
        ladder.engine(rungs[200])
    assert caught.value.code == -13
    assert backend.events == ["open n110", "refuse n200"]
    assert ladder.loaded == ("n110.rknn",)


def test_a_rung_above_the_budget_is_refused_before_it_is_loaded(rungs: dict[int, EngineManifest]) -> None:
    backend = FakeBackend(MEASURED)
    ladder = LazyLadder(backend, list(rungs.values()), ApertureBudget(1000 * MIB))
    ladder.engine(rungs[110])
    with pytest.raises(BadInput, match=r"n200\.rknn: takes 1129 MiB \(measured\) .* 1000 MiB"):
        ladder.engine(rungs[200])
    assert backend.events == ["open n110"]


def test_a_rung_with_a_mapping_beyond_the_address_space_is_refused(rungs: dict[int, EngineManifest]) -> None:
    backend = FakeBackend(MEASURED)
    with pytest.raises(BadInput, match=r"n900\.rknn: asks for one mapping of 4493 MiB.* 4096 MiB"):
        walked(rungs, (900,), backend)
    assert backend.events == []


def test_engines_outside_of_the_ladder_count_and_are_named(rungs: dict[int, EngineManifest]) -> None:
    backend, budget = FakeBackend(MEASURED), ApertureBudget()
    vocoder = budget.take("hift-b40.rknn", ContextCost(3000 * MIB, 0, "measured"))
    ladder = LazyLadder(backend, list(rungs.values()), budget)
    with pytest.raises(RunFault, match=r"n200\.rknn: takes 1129 MiB.*hift-b40\.rknn hold 3000 MiB of the 3900 MiB"):
        ladder.engine(rungs[200])
    budget.give_back(vocoder)
    ladder.engine(rungs[200])
    assert budget.taken_bytes == 1129 * MIB


def test_close_lets_go_of_all_and_gives_back(rungs: dict[int, EngineManifest]) -> None:
    backend, budget = FakeBackend(MEASURED), ApertureBudget()
    ladder = LazyLadder(backend, list(rungs.values()), budget)
    ladder.engine(rungs[110])
    ladder.engine(rungs[200])
    ladder.close()
    ladder.close()
    assert backend.events == ["open n110", "open n200", "close n110", "close n200"]
    assert (budget.taken_bytes, ladder.loaded) == (0, ())
