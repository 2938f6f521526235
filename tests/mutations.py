"""Damaged copies of good data, the same in every run: for readers that may refuse them, and do nothing else."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

_LONGEST_EDIT = 40


def mutations(whole: bytes, count: int, pieces: Sequence[bytes] = (b"\0", b"\xff", b"-", b"\x7f")) -> Iterator[bytes]:
    """`count` copies of `whole`, each changed in one to eight places, a tenth of them cut off.

    A change flips a bit, removes or doubles a few bytes, or puts one of `pieces` in.
    """
    rng = random.Random(0)
    for _ in range(count):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
            at, length = rng.randrange(len(data) + 1), rng.randrange(1, _LONGEST_EDIT)
            match rng.randrange(5):
                case 0 | 1 if at < len(data):
                    data[at] ^= 1 << rng.randrange(8)
                case 2:
                    del data[at : at + length]
                case 3:
                    data[at:at] = data[at : at + length]
                case _:
                    data[at:at] = rng.choice(pieces)
        if rng.randrange(10) == 0:
            del data[rng.randrange(len(data) + 1) :]
        yield bytes(data)
