"""What loaded engines take of the NPU's address space, and whether one more fits.

An engine is mapped into an I/O address space of 32 bits, at least on RK3588, and `rknn_init` returns -4 or -6 where
that is full: for want of addresses, not of memory. What the engines of one process may take together is less than the
4096 MiB: the reference's board loaded sets of 3744 MiB, and none of 4041 (reference, "The IOVA ceiling").

One mapping of 4 GiB and more is refused whatever else is loaded, and what the driver reports of such an engine wrapped
at 32 bits (docs/cost.md, "Address space"). So its manifest's estimate of the largest mapping is heard before any
measured sum.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import NamedTuple

from rknn_tts_runtime.backends.engine import MemoryUse
from rknn_tts_runtime.manifest import EngineManifest

MIB = 1 << 20

APERTURE_BYTES = 1 << 32
"""The address space that engines are mapped into (reference, "The IOVA ceiling")."""

BUDGET_BYTES = 3900 * MIB
"""What the engines of one process may take together (the same place; the toolchain's estimates use it as well)."""


class ContextCost(NamedTuple):
    """What one loaded engine takes of the address space.

    Attributes:
        context_bytes: all that it maps.
        largest_mapping_bytes: the largest of its mappings, as far as known.
        source: how that is known, as words of a sentence: "measured", "estimated" or "the size of its file".
    """

    context_bytes: int
    largest_mapping_bytes: int
    source: str


class Share(NamedTuple):
    """What one loaded engine was counted with.

    Attributes:
        name: the engine's file.
        context_bytes: what it takes.
        number: tells engines of one name apart.
    """

    name: str
    context_bytes: int
    number: int


class ApertureBudget:
    """Counts what loaded engines take together. All engines of a process share one.

    Attributes:
        budget_bytes: what they may take.
    """

    def __init__(self, budget_bytes: int = BUDGET_BYTES) -> None:
        self.budget_bytes = budget_bytes
        self._shares: dict[int, Share] = {}
        self._numbers = 0

    @property
    def shares(self) -> tuple[Share, ...]:
        """What is counted now, in the order in which it was taken."""
        return tuple(self._shares.values())

    @property
    def taken_bytes(self) -> int:
        """The sum of it."""
        return sum(share.context_bytes for share in self._shares.values())

    def holds(self, cost: ContextCost) -> bool:
        """Whether the engine fits at all, with nothing else loaded."""
        return cost.largest_mapping_bytes < APERTURE_BYTES and cost.context_bytes <= self.budget_bytes

    def admits(self, cost: ContextCost) -> bool:
        """Whether the engine fits beside what is counted now."""
        return self.holds(cost) and self.taken_bytes + cost.context_bytes <= self.budget_bytes

    def take(self, name: str, cost: ContextCost) -> Share:
        """Count an engine that is loaded, whether or not it was admitted."""
        self._numbers += 1
        share = Share(name, cost.context_bytes, self._numbers)
        self._shares[share.number] = share
        return share

    def give_back(self, share: Share) -> None:
        """Count it no longer; once more does nothing."""
        self._shares.pop(share.number, None)


def cost_of(manifest: EngineManifest, measured: MemoryUse | None) -> ContextCost:
    """What the engine of `manifest` takes.

    Args:
        manifest: the engine's.
        measured: what its backend tells of it, if anything (`Backend.memory`).

    Returns:
        What the driver measured; else the manifest's estimate; else the size of the engine's file. That is less than it
        takes, for tensors between layers are not in it: where the driver then refuses, the ladder makes room.
    """
    estimate = manifest.context_bytes
    mapping = manifest.largest_mapping_bytes or 0
    if measured is not None and measured.measured:
        parts = (measured.weight_bytes, measured.internal_bytes)
        return ContextCost(sum(parts), max(mapping, *parts), "measured")
    if estimate is not None:
        return ContextCost(estimate, mapping, "estimated")
    return ContextCost(manifest.engine_bytes, max(mapping, manifest.engine_bytes), "the size of its file")


def as_mib(size_bytes: int) -> str:
    """A number of bytes as a person reads it: "786 MiB"."""
    return f"{size_bytes / MIB:.0f} MiB"
