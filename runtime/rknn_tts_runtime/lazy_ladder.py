"""A ladder of engines that do not all fit into the NPU's address space: each is loaded when it is asked for.

Where the next one does not fit, those that were used longest ago are let go of until it does. An estimate may be wrong:
where the driver refuses one that should fit, all others are let go of, and it is tried once more. A refusal costs a
failed init and nothing else: it comes before the first step (reference, "The IOVA ceiling").

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Sequence

from rknn_tts_runtime.aperture_budget import APERTURE_BYTES, ApertureBudget, ContextCost, Share, as_mib, cost_of
from rknn_tts_runtime.backends.engine import Backend, Engine
from rknn_tts_runtime.faults import BadInput, RunFault
from rknn_tts_runtime.manifest import EngineManifest
from rknn_tts_runtime.npu.failures import NO_ROOM_CODES


class _Loaded(NamedTuple):
    """An engine that is loaded, and what it was counted with."""

    engine: Engine
    share: Share


class LazyLadder:
    """Engines of which as many are loaded as fit. Not for two threads at once.

    An engine that `engine` gave may be closed by the next call of it for another: run it before that.

    Attributes:
        rungs: manifests of all of them.
    """

    def __init__(self, backend: Backend, rungs: Sequence[EngineManifest], budget: ApertureBudget | None = None) -> None:
        """
        Args:
            backend: what opens them.
            rungs: their manifests.
            budget: counts what is loaded; the one of all engines of the process, or of this ladder alone.
        """
        self.rungs = tuple(rungs)
        self._backend = backend
        self._budget = ApertureBudget() if budget is None else budget
        self._loaded: dict[Path, _Loaded] = {}  # the one used last is the last
        self._costs: dict[Path, ContextCost] = {}

    @property
    def loaded(self) -> tuple[str, ...]:
        """Names of the engines that are loaded, the one that was used longest ago first."""
        return tuple(path.name for path in self._loaded)

    def engine(self, rung: EngineManifest) -> Engine:
        """The engine of `rung`, loaded.

        Raises:
            BadInput: it is larger than the budget by itself, and was not loaded.
            Mismatch: it is not the engine that its manifest tells of.
            RunFault: the driver refused it, with no other of the ladder loaded; or it cannot be loaded.
        """
        loaded = self._loaded.pop(rung.engine, None)
        if loaded is None:
            cost = self._cost(rung)
            self._make_room(rung, cost)
            engine = self._opened(rung, cost)
            loaded = _Loaded(engine, self._budget.take(rung.engine.name, cost))
        self._loaded[rung.engine] = loaded
        return loaded.engine

    def close(self) -> None:
        """Let go of all of them; once more does nothing."""
        while self._loaded:
            self._let_go()

    def _cost(self, rung: EngineManifest) -> ContextCost:
        """What it takes, asked for once: the driver needs half a second to tell (reference, the same place)."""
        if rung.engine not in self._costs:
            self._costs[rung.engine] = cost_of(rung, self._backend.memory(rung))
        return self._costs[rung.engine]

    def _make_room(self, rung: EngineManifest, cost: ContextCost) -> None:
        if not self._budget.holds(cost):
            raise BadInput(f"{rung.engine}: {self._too_large(cost)}. Use an engine of a shorter length.")
        while self._loaded and not self._budget.admits(cost):
            self._let_go()
        if not self._budget.admits(cost):
            others = ", ".join(share.name for share in self._budget.shares)
            raise RunFault(
                f"{rung.engine}: takes {as_mib(cost.context_bytes)} ({cost.source}) of the NPU's address space, and "
                f"{others} hold {as_mib(self._budget.taken_bytes)} of the {as_mib(self._budget.budget_bytes)} that a "
                "process can load. Close one of them first."
            )

    def _opened(self, rung: EngineManifest, cost: ContextCost) -> Engine:
        try:
            return self._backend.open(rung)
        except RunFault as error:
            if error.code not in NO_ROOM_CODES:
                raise
            if not self._loaded:
                raise self._refused(rung, cost, error) from error
        self.close()
        try:
            return self._backend.open(rung)
        except RunFault as error:
            if error.code not in NO_ROOM_CODES:
                raise
            raise self._refused(rung, cost, error) from error

    def _refused(self, rung: EngineManifest, cost: ContextCost, error: RunFault) -> RunFault:
        return RunFault(
            f"{error} It was refused with no other engine of its ladder loaded: {rung.engine.name} takes "
            f"{as_mib(cost.context_bytes)} ({cost.source}) of the {as_mib(self._budget.budget_bytes)} that a process "
            "can load. Where it does not fit, use an engine of a shorter length.",
            error.code,
        )

    def _too_large(self, cost: ContextCost) -> str:
        if cost.largest_mapping_bytes >= APERTURE_BYTES:
            return (
                f"asks for one mapping of {as_mib(cost.largest_mapping_bytes)}, and the NPU's whole address space has "
                f"{as_mib(APERTURE_BYTES)}"
            )
        return (
            f"takes {as_mib(cost.context_bytes)} ({cost.source}) of the NPU's address space, more than the "
            f"{as_mib(self._budget.budget_bytes)} that a process can load"
        )

    def _let_go(self) -> None:
        """Close the one that was used longest ago."""
        loaded = self._loaded.pop(next(iter(self._loaded)))
        loaded.engine.close()
        self._budget.give_back(loaded.share)
