"""What an engine takes of the NPU's address space, and which engines fit into one process together.

An engine is mapped into an I/O address space of 32 bits, on RK3588 at least, and `rknn_init` returns -4 where that is
full: before the first step, and for want of addresses, not of memory (reference, "The IOVA ceiling"). Here it is
estimated from what the compiler prints. Three mappings are large:

    features   tensors between layers: the compiler's internal total
    weights    with the commands behind them, which no total counts: the engine's file, nearly
    tensors    a buffer for each input and output

(A public log of a board, toolkit 2.3.2, shows them of one convolution: internal 896 bytes, as its compiler printed;
weights 9728 bytes, of which 2624 are the compiler's total; 640 for the output. A fourth, the tasks, is small.)

Where features need more than 32 bits the compiler's own addresses wrap without a word (measured, 2.3.2 and 2.5.0, on
ten tensors of 1 GB): starts are printed in 32 bits, so from the first tensor that begins past 4 GB on they are laid
over others that are in use. Such an engine is wrong, and the printed total, where the last of these ends, is no more
than a sign of it: at least 4 GB, for some tensor began below and ended above. It is such a total that the reference's
engines of 900 frames and more asked to map, which is why it does not grow with the length there. What the driver
reported of them is that total in 32 bits once more (`rknn_mem_size.total_internal_size` is a uint32_t, rknn_api.h):
1039 MiB, 642 of weights and the 397 by which the 4710850560 bytes of the request exceed 2^32.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from contracts.contract import TensorSpec
from contracts.manifest import Aperture, SharedAperture
from contracts.verdicts import Verdict, failure, passed, unproven
from logs.layer_table import LayerTable

GATE = "log.aperture"

APERTURE_BYTES = 1 << 32
"""The address space that engines are mapped into: 32 bits (reference, "The IOVA ceiling")."""

MIB = 1 << 20

BUDGET_BYTES = 3900 * MIB
"""What the engines of one process may take together: sets of up to 3744 MiB were loaded on the reference's board, and
sets from 4041 MiB on were not."""

_PAGE_BYTES = 4096
"""What a mapping is rounded up to."""

_KIB = 1024

_ROUNDING = 1e-5
"""Of a total that is printed with six digits: twice what these leave open."""

MOST_LISTED = 12
"""Of more engines than this, which of them fit together is not listed: that may be a thousand sets and more."""


def aperture_of(table: LayerTable, engine_bytes: int, tensors: Iterable[TensorSpec]) -> Aperture | None:
    """What an engine takes; None where the log does not state its memory totals.

    Args:
        table: the compiler's layer table.
        engine_bytes: size of the engine's file.
        tensors: the engine's inputs and outputs.
    """
    if table.internal_kb is None or table.weight_kb is None:
        return None
    total_bytes, arena_bytes = _bytes(table.internal_kb), table.arena_bytes or 0
    features = arena_bytes if total_bytes <= arena_bytes * (1 + _ROUNDING) else total_bytes
    weights = max(_bytes(table.weight_kb), engine_bytes)
    buffers = sum(_pages(_buffer_bytes(tensor)) for tensor in tensors)
    return Aperture(_pages(features) + _pages(weights) + buffers, _pages(max(features, weights)))


def judge_aperture(table: LayerTable, aperture: Aperture) -> Verdict:
    """Whether an engine can be loaded at all: fails where one mapping, or all of them, need 32 bits or more.

    Between what processes were seen to load and that, only a board can tell.

    Args:
        table: the table that `aperture` was estimated from.
        aperture: the estimate.
    """
    context, largest = (size / MIB for size in (aperture.context_bytes, aperture.largest_mapping_bytes))
    if table.arena_bytes is None:
        return failure(GATE, "the log does not say where tensors lie, so what it states of memory cannot be checked")
    if table.arena_bytes >= APERTURE_BYTES:
        return failure(GATE, f"{_wrapped(table)}. {_REMEDY}", round(context), "MiB")
    taken = f"loaded, it takes an estimated {context:.0f} MiB of the NPU's address space, {largest:.0f} in one mapping"
    if aperture.context_bytes >= APERTURE_BYTES:
        return failure(GATE, f"{taken}, and there are {APERTURE_BYTES // MIB}. {_REMEDY}", round(context), "MiB")
    if aperture.context_bytes > BUDGET_BYTES:
        detail = f"{taken}; the reference's board loaded 3744, and not 4041: only a board can tell. {_REMEDY}"
        return unproven(GATE, detail, round(context), "MiB")
    return passed(GATE, taken, round(context), "MiB")


_REMEDY = "Convert it for a shorter length."


def _wrapped(table: LayerTable) -> str:
    arena_bytes, total_bytes = table.arena_bytes or 0, _bytes(table.internal_kb or 0)
    total = f"total of {total_bytes / MIB:.0f} MiB"
    printed = f"its {total} tells only that" if total_bytes >= arena_bytes * (1 - _ROUNDING) else f"its {total} wrapped"
    return (
        f"tensors between layers need more than the {APERTURE_BYTES // MIB} MiB of the NPU's address space: the "
        f"compiler's own addresses wrapped, so tensors lie over others that are in use ({printed})"
    )


def fits(contexts: Iterable[int], budget_bytes: int = BUDGET_BYTES) -> bool:
    """Whether engines that take `contexts` bytes each can be loaded by one process."""
    return sum(contexts) <= budget_bytes


def sharing(contexts: Mapping[str, int], budget_bytes: int = BUDGET_BYTES) -> SharedAperture:
    """Which engines fit into one process together: every set of them that no other that fits holds.

    Args:
        contexts: name to what each takes, in bytes.
        budget_bytes: what they may take together.

    Returns:
        The sets, the largest first, each in the order of `contexts`; none where there are more than `MOST_LISTED`
        engines and they do not all fit.
    """
    names = tuple(contexts)
    if fits(contexts.values(), budget_bytes):
        return SharedAperture(budget_bytes, dict(contexts), (names,) if names else ())
    if len(names) > MOST_LISTED:
        return SharedAperture(budget_bytes, dict(contexts), ())
    found = []
    for bits in range(1, 1 << len(names)):
        chosen = tuple(name for index, name in enumerate(names) if bits >> index & 1)
        left = [contexts[name] for name in names if name not in chosen]
        taken = [contexts[name] for name in chosen]
        if fits(taken, budget_bytes) and not fits([*taken, min(left)], budget_bytes):
            found.append(chosen)
    return SharedAperture(budget_bytes, dict(contexts), tuple(sorted(found, key=len, reverse=True)))


def _bytes(kb: float) -> int:
    return round(kb * _KIB)


def _pages(size_bytes: int) -> int:
    return -(-size_bytes // _PAGE_BYTES) * _PAGE_BYTES


def _buffer_bytes(tensor: TensorSpec) -> int:
    size = int("".join(filter(str.isdigit, tensor.dtype)) or 8) // 8
    for axis in tensor.shape:
        size *= max(axis, 1)
    return size
