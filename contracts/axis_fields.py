"""The hardware fields that a long time axis goes into, and which operators let the compiler fill them.

Measured with rknn-toolkit2 2.3.2: 45 operators on [1, C, T] between two convolutions, T = 30720 (C = 16, 22, 128) and
T around 8192 and 16384, their logs read for REGTASK lines; rk3588, and T = 30720, C = 16 on the other four targets.

The length alone overflows nothing: Conv, ConvTranspose, activations, sums and products of two full tensors, sums and
products with one number a channel, Concat, Transpose, Resize and the mean over all of time log no fatal field. What
does is an operand that the compiler has to spread:

- Sub and Div with a computed operand of one step spread it by an `Expand` layer of their own (0x4030 and, from 16384
  steps on, 0x1028 on rk3566, rk3568 and rk3588; 0x1030, 0x301c and 0x4020 on rk3562 and rk3576). Add and Mul spread it
  in the layer itself, and a constant is spread when the engine is built.
- Mul with a computed operand of one channel (a frame mask) does so in the layer itself, in a form whose fields are too
  narrow on rk3566, rk3568 and rk3588 (0x4030, 0x405c, 0x5048), unless something else, a pool, has brought it into the
  NPU's own layout. Add, Sub and Div spread it along the channels by an `Expand`, which logs nothing at any length.
- Pad in the modes reflect and edge numbers the steps it makes in the same fields (0x4030 or 0x4020).
"""

from __future__ import annotations

from collections.abc import Sequence

LONGEST_SPREAD = 8192
"""Steps of the last axis that such a spread reaches: the field holds the number of the last step, 0x1fff at most."""

LONGEST_PADDED = 8192
"""Steps of the last axis that a Pad of mode reflect or edge makes."""

COPYING_MODES = frozenset({"edge", "reflect"})
"""Modes of those."""

SPREADING = frozenset({"Div", "Sub"})
"""Operators that spread an operand of one step by an Expand."""

SPREAD_OFFSETS = {"rk3562": 0x301C, "rk3566": 0x4030, "rk3568": 0x4030, "rk3576": 0x301C, "rk3588": 0x4030}
PADDED_OFFSETS = {"rk3562": 0x4020, "rk3566": 0x4030, "rk3568": 0x4030, "rk3576": 0x4020, "rk3588": 0x4030}
"""Registers (shift 0, limit 0x1fff) that each overflow of a kind logs, among others."""

_RANK = 3
"""Axes of what was measured: [N, C, T]."""


def spread_overflow(wide: Sequence[int], narrow: Sequence[int]) -> bool:
    """Whether `narrow`, of one step, is spread further along `wide` [N, C, T] than the fields of any target hold.

    `narrow` is [N, C, 1], and [1, 1, 1] or [1] where N is 1: nothing else was measured. One channel overflows nothing.
    """
    if not _is_long(wide):
        return False
    return tuple(narrow) == (*wide[:2], 1) or (wide[0] == 1 and tuple(narrow) in {(1,), (1, 1, 1)})


def mask_overflow(wide: Sequence[int], narrow: Sequence[int]) -> bool:
    """Whether `narrow` [1, 1, T] multiplies all channels of `wide` [N, C, T] on a longer axis than the fields hold."""
    return _is_long(wide) and tuple(narrow) == (1, 1, wide[2])


def padded_overflow(sizes: Sequence[int], before: int, behind: int) -> bool:
    """Whether so many copied steps make the last axis of `sizes` [N, C, T] longer than the fields hold."""
    return len(sizes) == _RANK and before + behind > 0 and before + sizes[2] + behind > LONGEST_PADDED


def _is_long(wide: Sequence[int]) -> bool:
    return len(wide) == _RANK and wide[1] > 1 and wide[2] > LONGEST_SPREAD
