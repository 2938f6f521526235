"""Runs the compiler's one native call where every block of memory has the address it has in any other process.

An engine holds a little of what the compiler never wrote: bytes of its stack that earlier calls left there, addresses
of its heap and of its own code (measured, 2.3.2 and 2.5.0). Its heap is that of the whole process, so these tell how
much was allocated before: how long the paths of the environment are, whether a module was compiled or read, when
Python collected its garbage. And what the compiler keeps in the order of addresses, it allocates for in that order.

So the call has a thread of its own, with a stack and a heap that are empty and begin at a fixed address: all address
space above a ceiling is taken first, and the kernel hands out the highest that is left. The compiler's library is
opened below a ceiling likewise. All this holds with address randomisation too. What the call allocates then follows
from its arguments and the library alone. glibc gives a new thread a new heap, but for one that an ended thread left:
those are given to threads that wait. One thing is left to chance: where several threads have ended at the same time,
the new heap begins with one block more now and then (seen in a trial, in no build). The rest is set in the environment
(`engine.converter`): a freed block goes back to the heap it came from, and what is large enough for a mapping of its
own does not change as the process grows older.

The worker imports this by path, in the converter environment, so it imports nothing of this project.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LIBRARY = "librknnc.so"
"""The compiler, which the toolkit opens with ctypes."""

NATIVE_CALLS = ("RKNNCompiler_build", "RKNNCompiler_build_dynshape")
"""Its functions that make an engine (2.3.2 and 2.5.0)."""

LIBRARY_CEILING, WAITING_CEILING, CALL_CEILING = 0x6D00_0000_0000, 0x6C00_0000_0000, 0x6B00_0000_0000
SPAN_BYTES = 1 << 40
"""The library is mapped below the first of them, all that the call maps below the last one, `SPAN_BYTES` apart.

On x86-64 Linux maps downwards from below 2^47, with the widest randomisation (2^32 pages) from 0x7000_0000_0000 at
least; the program and its first heap end at 0x6556_0000_0000 at most (2/3 of 2^47, and as much randomisation)."""

STACK_BYTES = 64 << 20
"""Of the call's thread: eight times a program's usual stack, the same whatever `ulimit -s` says. Only what is used of
it takes memory."""

WAITING_STACK_BYTES = 1 << 20
"""Of a thread that only waits."""

_WAITING_THREADS = 1000
"""More than any machine has cores, as many as the toolkit's libraries may have ended threads."""

_MAIN_STACK_BYTES = 64 << 20
"""Left free below the main stack, which grows."""

_LOOKS = 100
"""To find the address space filled: to look may map something more, so that what is found to be free is not."""

_PROT_NONE = 0x0
_MAP_FLAGS = 0x02 | 0x20 | 0x4000 | 0x100000
"""sys/mman.h: MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE, MAP_FIXED_NOREPLACE. A kernel before 4.17 takes the last one
for a wish, which does as well: nothing is mapped there."""


def install(note: Callable[[bool], object]) -> None:
    """From now on the compiler that ctypes opens makes its engines in steady memory.

    Args:
        note: told before each whether it does.
    """
    opened, function = ctypes.CDLL.__init__, ctypes.CDLL.__getitem__

    def open_steadily(library: ctypes.CDLL, name: Any, *arguments: Any, **named: Any) -> None:
        if name and Path(name).name == LIBRARY:
            fill(LIBRARY_CEILING)
        opened(library, name, *arguments, **named)

    def steady_function(library: ctypes.CDLL, name: Any) -> Any:
        if name not in NATIVE_CALLS:
            return function(library, name)
        return _steady(library._FuncPtr, note)((name, library))

    ctypes.CDLL.__init__ = open_steadily  # type: ignore[method-assign, assignment] # it hands on whatever it is given
    ctypes.CDLL.__getitem__ = steady_function  # type: ignore[method-assign]


def _steady(kind: Any, note: Callable[[bool], object]) -> Any:
    """The type `kind` of a library's functions, whose calls are run in steady memory."""

    class Steady(kind):  # type: ignore[misc] # a type that ctypes makes for each library
        _flags_, _restype_ = kind._flags_, kind._restype_  # ctypes does not look for them in a base

        def __call__(self, *arguments: Any) -> Any:
            return run_steadily(lambda: kind.__call__(self, *arguments), note)

    return Steady


def run_steadily(call: Callable[[], Any], note: Callable[[bool], object] = lambda _: None) -> Any:
    """What `call` returns or raises, run once in this process, in memory that begins below `CALL_CEILING`.

    Args:
        call: what to run.
        note: told before whether its heap is such memory. It is not where the address space is limited (`ulimit -v`),
            has fewer than 47 bits, or is handed out from its lower end; then the call is run all the same.
    """
    returned: list[Any] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            note(_is_below(CALL_CEILING, _heap_address()))
            returned.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again below
            raised.append(error)

    with _used_heaps_taken():
        fill(CALL_CEILING)
        _started(run, STACK_BYTES).join()
    if raised:
        raise raised[0]
    return returned[0]


@contextmanager
def _used_heaps_taken() -> Iterator[None]:
    """Meanwhile each heap of a thread that has ended belongs to one that waits, so that the next thread has a new one.

    A thread's heap that lies below `WAITING_CEILING` was made for it, so none is left.
    """
    go_on = threading.Event()
    waiting: list[threading.Thread] = []
    addresses: list[int] = []
    seen = threading.Semaphore(0)

    def wait() -> None:
        addresses.append(_heap_address())
        seen.release()
        go_on.wait()

    try:
        filled = fill(WAITING_CEILING)
        while filled and len(waiting) < _WAITING_THREADS:
            try:
                waiting.append(_started(wait, WAITING_STACK_BYTES))
            except RuntimeError:  # there may be no more threads: the call may get a used heap then
                break
            seen.acquire()
            if _is_below(WAITING_CEILING, addresses[-1]):
                break
        yield
    finally:
        go_on.set()
        for thread in waiting:
            thread.join()


def _started(run: Callable[[], None], stack_bytes: int) -> threading.Thread:
    before = threading.stack_size(stack_bytes)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    return thread


def _is_below(ceiling: int, address: int) -> bool:
    """Whether `address` is of what was handed out after all above `ceiling` was taken."""
    return ceiling - SPAN_BYTES <= address < ceiling


def _heap_address() -> int:
    """Where C allocates in this thread."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
    block: int = libc.malloc(1)
    libc.free(block)
    return block


def fill(ceiling: int) -> bool:
    """Takes all free address space above `ceiling`, none of which becomes memory; whether that went well."""
    for _ in range(_LOOKS):
        gaps = list(gaps_above(ceiling, Path("/proc/self/maps").read_text()))
        if not gaps:
            return True
        for start, size in gaps:
            _reserve(start, size)
    return False


def gaps_above(ceiling: int, maps: str) -> Iterator[tuple[int, int]]:
    """Start and size in bytes of what is free between `ceiling` and the highest mapping; `maps` as of proc(5)."""
    free_from = ceiling
    for line in maps.splitlines():
        start, end = (int(address, 16) for address in line.split(maxsplit=1)[0].split("-"))
        if line.endswith("[vsyscall]"):  # the kernel's half
            continue
        until = start - _MAIN_STACK_BYTES if line.endswith("[stack]") else start
        if until > free_from:
            yield free_from, until - free_from
        free_from = max(free_from, end)


def _reserve(start: int, size: int) -> None:
    """Maps `size` bytes at `start` that nobody may touch; where it cannot, the next look tells."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.mmap(start, size, _PROT_NONE, _MAP_FLAGS, -1, 0)
