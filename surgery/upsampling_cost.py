"""What a transposed convolution costs an engine, and what its phases cost: by the figures of the layer table.

Measured with rknn-toolkit2 2.3.2 on graphs of one such layer between two convolutions (C 24 to 1536, M 12 to 768, 109
to 10240 steps, strides 2 to 10). A convolution of K taps is listed with

    cycles = max(steps K C M / multiplications a cycle, bytes in and out / bytes a cycle)

with the steps rounded up to 16 and C and M to the blocks of `NPUS`; its own ConvTranspose with those of a convolution
over the input with the stride's zeros between its steps. A layer's traffic (RW) is what it reads, its channels rounded
up to 8, and layers that only move bytes have no cycles. What is weighed is the modelled time of `cost.model`:
cycles / 1e6 + MB read / 5 + 5 * MB read on the CPU. On 52 sites of the five targets
the sign of what the rewrite changes was foretold, and the amount within 0.02 ms where no input is spread on the CPU and
no ConvTranspose is split by its channels (both cost more than is counted here).
"""

from __future__ import annotations

from dataclasses import dataclass

from contracts.convolution_fields import SPARED_STRIDES, TRANSPOSED_FIELDS, Axis, transposed_overflow
from surgery.phase_groups import Grouped

CYCLES_PER_MS = 1e6
TRAFFIC_MS_PER_KB = 1 / 5000
CPU_MS_PER_KB = 5 / 1000
"""The weights of `cost.model` (a test holds them together)."""

KB = 1024
"""As the layer table counts them."""

ITEM_BYTES = 2
"""Of a value in fp16."""

STEP_BLOCK = 16
"""What the steps of a convolution are rounded up to."""

STORED_BLOCK = 8
"""Channels that stand together in memory."""


@dataclass(frozen=True)
class Npu:
    """The rates of a target's convolutions, in fp16.

    Attributes:
        products: multiplications a cycle.
        bytes: moved a cycle.
        given, made: what channels of the input and output are rounded up to.
    """

    products: int
    bytes: float
    given: int
    made: int


NPUS = {
    "rk3562": Npu(256, 7.46, 32, 8),
    "rk3566": Npu(128, 6.57, 16, 8),
    "rk3568": Npu(128, 6.57, 16, 8),
    "rk3576": Npu(512, 7.46, 32, 16),
    "rk3588": Npu(512, 23.6, 32, 16),
}


@dataclass(frozen=True)
class Cost:
    """Cycles, and KB read by all layers and by those on the CPU."""

    cycles: float = 0.0
    read_kb: float = 0.0
    cpu_kb: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        """Both."""
        return Cost(self.cycles + other.cycles, self.read_kb + other.read_kb, self.cpu_kb + other.cpu_kb)

    @property
    def ms(self) -> float:
        """The modelled time."""
        return self.cycles / CYCLES_PER_MS + self.read_kb * TRAFFIC_MS_PER_KB + self.cpu_kb * CPU_MS_PER_KB


@dataclass(frozen=True)
class Site:
    """A transposed convolution of one group along one axis.

    Attributes:
        batch, given, made: sizes of its input and output: batch, channels.
        axis: the strided one.
        phases: the same in phases.
        stands_alone: its output is read by one node and that reads nothing else (an activation): the compiler fuses
            that with the ConvTranspose, and not with what puts the phases together.
    """

    batch: int
    given: int
    made: int
    axis: Axis
    phases: Grouped
    stands_alone: bool


def transposed_cost(site: Site, target: str) -> Cost | None:
    """As the compiler for `target` has it; None where a hardware field overflows.

    A dilation may cost it more than this: the kernel is counted without the gaps.
    """
    fields, axis = TRANSPOSED_FIELDS[target], site.axis
    if transposed_overflow([axis], fields):
        return None
    read = _kb(site.batch * _up(site.given, STORED_BLOCK) * axis.length)
    made = site.made
    sizes = (site.given, made, axis.kernel)
    if axis.stride in SPARED_STRIDES or not (fields.spreads_any if axis.dilation > 1 else fields.spreads):
        return _convolution(target, site.batch, *sizes, site.phases.length, read)
    spread = Cost(read_kb=read, cpu_kb=read)  # exConvTransposePad, with a zero for every step that is not given
    return spread + _convolution(target, site.batch, *sizes, site.phases.length, read * axis.stride)


def phased_cost(site: Site, target: str) -> Cost:
    """Of the layers that `surgery.rewrite_transposed_conv` writes."""
    given, made = (_kb(site.batch * _up(channels, STORED_BLOCK)) for channels in (site.given, site.made))
    read, phases, axis = given * site.axis.length, site.phases, site.axis
    total = Cost(read_kb=read)
    for group in phases.groups:
        count = len(group.phases)
        sizes = (site.given, count * site.made, group.kernel)
        total += _convolution(target, site.batch, *sizes, phases.steps, read)
        total += Cost(read_kb=made * count * phases.steps if count > 1 else 0)  # Split
    whole = made * phases.steps * axis.stride
    layers = 2 + (phases.steps * axis.stride != phases.length) + site.stands_alone  # Concat, Reshape, Slice
    return total + Cost(read_kb=layers * whole)


def _convolution(target: str, batch: int, given: int, made: int, kernel: int, steps: int, read_kb: float) -> Cost:
    """A convolution that reads `read_kb` of input, and its weights."""
    npu = NPUS[target]
    products = batch * _up(steps, STEP_BLOCK) * kernel * _up(given, npu.given) * _up(made, npu.made)
    read_kb += _kb(given * made * kernel)
    moved_kb = read_kb + _kb(batch * _up(made, STORED_BLOCK) * steps)
    return Cost(max(products / npu.products, moved_kb * KB / npu.bytes), read_kb)


def _up(size: int, block: int) -> int:
    return -(-size // block) * block


def _kb(items: int) -> float:
    return items * ITEM_BYTES / KB
