"""Work beside the work: the gates run while the toolkit, a process of its own, compiles."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")

AT_ONCE = 2
"""Builds beside each other: the toolkit's own use one core each for the most of their time (measured, 2 cores)."""


def beside_each_other(works: Sequence[Callable[[], T]]) -> list[T]:
    """What each of `works` gives, in their order, `AT_ONCE` of them at a time; raises what the first to fail raised."""
    done: list[T] = []
    for start in range(0, len(works), AT_ONCE):
        running = [Background(work) for work in works[start : start + AT_ONCE]]
        done += [one.result() for one in running]
    return done


def each_beside_the_others(keys: Sequence[K], work: Callable[[K], T]) -> dict[K, T]:
    """What `work` gives for each of `keys`, `AT_ONCE` of them at a time."""
    return dict(zip(keys, beside_each_other([partial(work, key) for key in keys]), strict=True))


class Background(Generic[T]):
    """`work` in a thread that dies with the process; its result, or what it raised, is for whoever asks."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._value: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="gates", daemon=True)
        self._thread.start()

    def peek(self) -> T | None:
        """The result if there is one by now, else None; raises what the work raised. Never waits."""
        if self._error is not None:
            raise self._error
        return self._value[0] if self._value else None

    def result(self) -> T:
        """Wait for the work; its result, or raises what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._value[0]

    def _run(self) -> None:
        try:
            self._value.append(self._work())
        except BaseException as error:  # noqa: BLE001  (handed over to the thread that asks)
            self._error = error
