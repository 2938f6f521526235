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
  narrow on the targets of `MASKING_TARGETS` (0x4030, 0x405c, 0x5048). Add, Sub and Div spread it along the channels by
  an `Expand` first, which logs nothing at any length.
- Pad in the modes reflect and edge counts its steps in the same fields (0x4030 or 0x4020), one step earlier.
"""

from __future__ import annotations

from collections.abc import Sequence

LONGEST_SPREAD = 8192
"""Steps of the last axis that such a spread reaches: the field holds the number of the last step, 0x1fff at most."""

LONGEST_PADDED = LONGEST_SPREAD - 1
"""Steps of an axis that a Pad of mode reflect or edge reads: its field holds their count."""

SPREADING = frozenset({"Div", "Sub"})
"""Operators that spread an operand of one step by an Expand."""

MASKING_TARGETS = frozenset({"rk3566", "rk3568", "rk3588"})

_RANK = 3
"""Axes of what was measured: [N, C, T]."""


def spread_overflow(wide: Sequence[int], narrow: Sequence[int]) -> bool:
    """Whether `narrow`, of one step, is spread further along `wide` [N, C, T] than the fields of any target hold.

    `narrow` is [1, C, 1], [1, 1, 1] or [1]; nothing else was measured, nor was a `wide` of one channel.
    """
    if not _is_long(wide):
        return False
    return tuple(narrow) in {(1,), (1, 1, 1), (1, wide[1], 1), (*wide[:2], 1)}


def mask_overflow(wide: Sequence[int], narrow: Sequence[int]) -> bool:
    """Whether `narrow` [1, 1, T] multiplies all channels of `wide` [N, C, T] on a longer axis than the fields hold."""
    return _is_long(wide) and tuple(narrow) == (1, 1, wide[2])


def _is_long(wide: Sequence[int]) -> bool:
    return len(wide) == _RANK and wide[1] > 1 and wide[2] > LONGEST_SPREAD
