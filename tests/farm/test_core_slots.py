from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from farm.core_slots import own_processors

ROOT = Path(__file__).resolve().parents[2]
HOLDER = """
import sys
from farm.core_slots import own_processors
with own_processors(1, [5, 6], sys.argv[1]) as processors:
    print(processors, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    """Names that no other test has."""
    return f"test-{tmp_path}"[-80:]


def test_processors_are_a_holders_own_until_it_ends(prefix: str) -> None:
    with own_processors(1, [5, 6, 7], prefix) as first, own_processors(2, [5, 6, 7], prefix) as second:
        assert (first, second) == (frozenset({5}), frozenset({6, 7}))
        with own_processors(1, [5, 6, 7], prefix) as third:
            assert third is None
    with own_processors(3, [5, 6, 7], prefix) as all_of_them:
        assert all_of_them == frozenset({5, 6, 7})


def test_none_is_kept_when_not_as_many_are_free(prefix: str) -> None:
    with own_processors(1, [5, 6], prefix), own_processors(2, [5, 6], prefix) as two:
        assert two is None
        with own_processors(1, [5, 6], prefix) as one:
            assert one == frozenset({6})


def test_holders_do_not_see_each_other_when_their_names_differ(prefix: str) -> None:
    with own_processors(1, [5], prefix) as one, own_processors(1, [5], prefix + "other") as other:
        assert one == other == frozenset({5})


def test_processors_are_free_again_when_their_holder_was_killed(prefix: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-S", "-c", HOLDER, prefix],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "frozenset({5})\n"
        with own_processors(2, [5, 6], prefix) as processors:
            assert processors is None
        holder.kill()
        holder.wait()
    with own_processors(2, [5, 6], prefix) as processors:
        assert processors == frozenset({5, 6})
