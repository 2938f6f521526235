"""The memory there is, on control groups written here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.memory import available_bytes, memory_bytes

PHYSICAL_BYTES = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
MB = 10**6
V1, V2 = "memory.limit_in_bytes", "memory.max"


@pytest.mark.parametrize(
    ("groups", "files", "wanted"),
    [
        pytest.param(None, {}, PHYSICAL_BYTES, id="no control groups"),
        pytest.param("0::/\n", {}, PHYSICAL_BYTES, id="no limit file"),
        pytest.param("0::/\n", {V2: "max\n"}, PHYSICAL_BYTES, id="v2, no limit"),
        pytest.param("0::/\n", {V2: f"{50 * MB}\n"}, 50 * MB, id="v2, container"),
        pytest.param("0::/a/b\n", {f"a/b/{V2}": "max", f"a/{V2}": f"{60 * MB}"}, 60 * MB, id="v2, a group above"),
        pytest.param(
            "0::/a/b\n", {f"a/b/{V2}": f"{9 * MB}", f"a/{V2}": f"{60 * MB}"}, 9 * MB, id="v2, the group itself"
        ),
        pytest.param("0::/a/b\n", {f"c/{V2}": "1"}, PHYSICAL_BYTES, id="v2, another group"),
        pytest.param(
            "9:name=systemd:/\n4:cpu,memory:/docker/f00\n0::/\n",
            {f"memory/{V1}": f"{70 * MB}\n"},
            70 * MB,
            id="v1, container",
        ),
        pytest.param("4:memory:/a\n", {f"memory/a/{V1}": f"{80 * MB}"}, 80 * MB, id="v1, nested"),
        pytest.param("4:memory:/\n", {f"memory/{V1}": "9223372036854771712\n"}, PHYSICAL_BYTES, id="v1, no limit"),
        pytest.param("4:cpu:/\n0::/\n", {f"memory/{V1}": "1"}, PHYSICAL_BYTES, id="v1, not ours"),
        pytest.param("4:memory:/\n0::/a\n", {f"unified/a/{V2}": f"{40 * MB}"}, 40 * MB, id="both versions"),
        pytest.param("damaged\n::\n0::/\n", {V2: "what is this"}, PHYSICAL_BYTES, id="damaged"),
    ],
)
def test_memory_is_the_least_of_machine_and_limits_when(
    tmp_path: Path, groups: str | None, files: dict[str, str], wanted: int
) -> None:
    (tmp_path / "self").mkdir()
    if groups is not None:
        (tmp_path / "self" / "cgroup").write_text(groups)
    for name, text in files.items():
        path = tmp_path / "cgroups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert memory_bytes(tmp_path, tmp_path / "cgroups") == wanted


def test_memory_is_some_when_this_machine_is_asked() -> None:
    assert 100 * MB < memory_bytes() <= PHYSICAL_BYTES


@pytest.mark.parametrize(
    ("meminfo", "limit", "wanted"),
    [
        ("MemTotal: 9 kB\nMemAvailable:    2048 kB\nCached: 1 kB\n", "max", 2048 * 1024),
        ("MemAvailable: 2048 kB\n", "1000", 1000),
        ("MemTotal: 9 kB\n", "max", PHYSICAL_BYTES),
        ("MemAvailable:\nMemAvailable: much kB\n", "5000", 5000),
        (None, "max", PHYSICAL_BYTES),
    ],
)
def test_available_memory_is_what_the_kernel_tells_within_the_limits(
    tmp_path: Path, meminfo: str | None, limit: str, wanted: int
) -> None:
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroups"
    (proc / "self").mkdir(parents=True)
    cgroups.mkdir()
    (proc / "self" / "cgroup").write_text("0::/\n", encoding="utf-8")
    (cgroups / V2).write_text(limit, encoding="utf-8")
    if meminfo is not None:
        (proc / "meminfo").write_text(meminfo, encoding="utf-8")
    assert available_bytes(proc, cgroups) == wanted
