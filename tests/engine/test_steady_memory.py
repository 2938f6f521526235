"""Memory at the same addresses, in processes of any history. Those that fill their address space are children."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.converter import child_environment
from engine.steady_memory import CALL_CEILING, SPAN_BYTES, gaps_above

MODULE = Path(__file__).resolve().parents[2] / "engine" / "steady_memory.py"

PRELUDE = f"""
import ctypes, json, resource, runpy, threading
steady = runpy.run_path({str(MODULE)!r})
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
noted = []
def allocate():  # small, of the heap; too large for it; what a thread goes by lies on its stack
    return [libc.malloc(100), libc.malloc(3000), libc.malloc(200 << 20), threading.get_ident()]
def ended_threads(count):  # each leaves a heap that has been used
    many = [threading.Thread(target=lambda: [libc.malloc(50000) for _ in range(9)]) for _ in range(count)]
    for thread in many: thread.start()
    for thread in many: thread.join()
"""
SHOW = "print(json.dumps([steady['run_steadily'](allocate, noted.append), noted]))\n"


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PRELUDE + code],
        env=child_environment({}), capture_output=True, text=True, check=False,
    )  # fmt: skip


HISTORIES = {
    "nothing": "",
    "its heap grew": "kept = [bytearray(5000) for _ in range(1000)]\n",
    "it mapped files and memory": "kept = [bytearray(40 << 20) for _ in range(5)]\n",
    # One after another: of several that end at the same time one block more may stand in the heap (once in eight runs).
    "threads have ended": "for _ in range(8): ended_threads(1)\n",
    "its stack may be larger": "resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, resource.RLIM_INFINITY))\n",
}


def test_addresses_are_the_same_whatever_the_process_did_before() -> None:
    """Addresses are random here: nobody switched that off."""
    told = {name: run(code + SHOW).stdout for name, code in HISTORIES.items()}
    addresses, noted = json.loads(told["nothing"])
    assert noted == [True]
    assert all(CALL_CEILING - SPAN_BYTES < address < CALL_CEILING for address in addresses)
    assert {name: text for name, text in told.items() if text != told["nothing"]} == {}


def test_no_heap_of_an_ended_thread_is_used_when_several_end_at_the_same_time() -> None:
    addresses, noted = json.loads(run("ended_threads(1); ended_threads(7)\n" + SHOW).stdout)
    assert noted == [True]
    assert all(CALL_CEILING - SPAN_BYTES < address < CALL_CEILING for address in addresses)


NO_SUCH_MEMORY = {
    "limited": "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n",
    "handed out upwards": """
import os, sys
if sys.argv[-1] != "again":  # ADDR_COMPAT_LAYOUT of sys/personality.h, which counts from the next program on
    libc.personality(0x0200000)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:], "again"])
""",
}


@pytest.mark.parametrize("code", NO_SUCH_MEMORY.values(), ids=list(NO_SUCH_MEMORY))
def test_call_is_run_all_the_same_when_addresses_cannot_be_had(code: str) -> None:
    addresses, noted = json.loads(run(code + SHOW).stdout)
    assert noted == [False]
    assert len(addresses) == 4


FEW_THREADS = """
start, allowed = threading.Thread.start, []
def limited(thread):  # as of `ulimit -u`, which does not hold for root: the first does not start
    allowed.append(True)
    if len(allowed) == 1:
        raise RuntimeError("can't start new thread")
    start(thread)
threading.Thread.start = limited
"""


def test_call_is_run_all_the_same_when_there_may_be_no_more_threads() -> None:
    addresses, noted = json.loads(run(FEW_THREADS + SHOW).stdout)
    assert (len(addresses), len(noted)) == (4, 1)


def test_what_the_call_raises_is_raised() -> None:
    failed = run("steady['run_steadily'](lambda: {}['absent'])\n")
    assert failed.stderr.endswith("KeyError: 'absent'\n")


def test_only_the_compilers_own_calls_run_there_when_it_is_opened(tmp_path: Path) -> None:
    """The C library stands in for the compiler, and its `labs` for the call that makes an engine."""
    library = tmp_path / "librknnc.so"
    code = f"""
import os
[found, *_] = [line.split()[-1] for line in open("/proc/self/maps") if "/libc.so" in line]
os.symlink(found, {str(library)!r})
steady["install"].__globals__["NATIVE_CALLS"] = ("labs",)
steady["install"](noted.append)
compiler = ctypes.CDLL({str(library)!r})
compiler.labs.restype, compiler.labs.argtypes = ctypes.c_long, [ctypes.c_long]
print(compiler.abs(-4), list(noted), compiler.labs(-(1 << 40)) == 1 << 40, noted)
"""
    done = run(code)
    assert done.stdout == "4 [] True [True]\n", done.stderr


MAPS = """\
555555554000-555555555000 r-xp 00000000 fe:00 1 /bin/python
6fffffff0000-700000000000 rw-p 00000000 00:00 0
700000002000-700000003000 r--p 00000000 fe:00 2 /a folder/b [stack] c.so
700000003000-700000004000 r--p 00001000 fe:00 2 /a folder/b.so
7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0 [stack]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]
"""
STACK_ROOM = 64 << 20


@pytest.mark.parametrize(
    ("ceiling", "gaps"),
    [
        pytest.param(
            0x6000_0000_0000,
            [
                (0x6000_0000_0000, 0x0FFF_FFFF_0000),
                (0x7000_0000_0000, 0x2000),
                (0x7000_0000_4000, 0x0FFF_FFFD_A000 - STACK_ROOM),
            ],
            id="below all but the program",
        ),
        pytest.param(0x7000_0000_2800, [(0x7000_0000_4000, 0x0FFF_FFFD_A000 - STACK_ROOM)], id="in a mapping"),
        pytest.param(0x7FFF_FFFD_D000, [], id="where the stack grows"),
    ],
)
def test_gaps_are_those_above_the_ceiling_and_below_the_stack(ceiling: int, gaps: list[tuple[int, int]]) -> None:
    assert list(gaps_above(ceiling, MAPS)) == gaps
