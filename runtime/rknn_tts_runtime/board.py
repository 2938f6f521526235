"""What the machine says of itself: chip, board, NPU driver, governor and clock, memory.

Figures of a board are told with these, for they depend on them: the NPU's governor and clock above all (reference,
"Conditions on the board numbers"). All of it is read from files of the kernel, and nothing is written. A file that is
missing, cannot be read or says something else gives None, never an error: a PC has none of them, and a container few.

Python 3.8, standard library only: this file runs on the board.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path("/")

_LARGEST_BYTES = 1 << 16
"""Of a file that is read: those of the kernel that are read here have a page at most, 4 KiB."""

_SOC = re.compile(r"rockchip,(rk\d{4}[a-z0-9]*)")
"""A chip in the device tree's `compatible`, where every board lists its own name, then its chip: `radxa,rock-5a`,
`rockchip,rk3588s`; vendors' kernels name the board after the chip: `rockchip,rk3588s-orangepi-5`, `rockchip,rk3588`."""

_DRIVER_VERSION = re.compile(r"v?(\d+\.\d+\.\d+)")
_VM_HWM = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)
_KIB = 1024


class NpuState(NamedTuple):
    """How the NPU is clocked.

    Attributes:
        governor: devfreq's: "rknpu_ondemand".
        hz: its clock now; under `rknpu_ondemand` it rises only while the NPU works.
        available_hz: the clocks there are, the lowest first.
    """

    governor: str | None
    hz: int | None
    available_hz: tuple[int, ...]


class Board(NamedTuple):
    """What is told with every figure of a board; None where the machine does not say.

    Attributes:
        model: the board: "Orange Pi 5 Plus".
        soc: its chip: "rk3588".
        kernel: the kernel's release.
        driver: the version of the NPU's driver; it may take root to read.
        npu: how the NPU is clocked.
    """

    model: str | None
    soc: str | None
    kernel: str | None
    driver: str | None
    npu: NpuState


def board(root: Path = ROOT) -> Board:
    """All of it at once."""
    return Board(model(root), soc(root), kernel(root), driver_version(root), npu_state(root))


def soc(root: Path = ROOT) -> str | None:
    """The chip, "rk3588" or "rk3588s"; None on a machine that is no Rockchip board, or that does not say.

    The last entry of `compatible` is the most general one: a board of an RK3582 ends with the RK3588S that it is a
    part of.
    """
    text = _text(root / "proc/device-tree/compatible") or ""
    chips = [match.group(1) for entry in text.split("\0") for match in [_SOC.match(entry)] if match]
    return chips[-1] if chips else None


def model(root: Path = ROOT) -> str | None:
    """The board as its device tree calls it."""
    text = (_text(root / "proc/device-tree/model") or "").rstrip("\0").strip()
    return text if text and text.isprintable() else None


def kernel(root: Path = ROOT) -> str | None:
    """The kernel's release: "6.1.43-rockchip-rk3588"."""
    return _line(root / "proc/sys/kernel/osrelease")


def driver_version(root: Path = ROOT) -> str | None:
    """Version of the NPU's kernel driver: "0.9.8"; it may take root to read it.

    The kernel's own driver ("rocket") has no such file: `librknnrt` does not run on it.
    """
    for place in ("sys/kernel/debug/rknpu/version", "proc/rknpu/version"):
        found = _DRIVER_VERSION.search(_text(root / place) or "")
        if found:
            return found.group(1)
    return None


def npu_state(root: Path = ROOT) -> NpuState:
    """Governor and clock of the NPU, `fdab0000.npu` on an RK3588, `27700000.npu` on an RK3576."""
    try:
        folders = sorted((root / "sys/class/devfreq").glob("*.npu"))
    except OSError:
        folders = []
    for folder in folders:
        clock = _line(folder / "cur_freq")
        clocks = (_line(folder / "available_frequencies") or "").split()
        return NpuState(
            governor=_line(folder / "governor"),
            hz=_whole(clock),
            available_hz=tuple(sorted(hz for hz in map(_whole, clocks) if hz is not None)),
        )
    return NpuState(None, None, ())


def peak_rss_bytes(root: Path = ROOT) -> int | None:
    """The most resident memory that this process has held so far."""
    found = _VM_HWM.search(_text(root / "proc/self/status") or "")
    return int(found.group(1)) * _KIB if found else None


def _line(path: Path) -> str | None:
    lines = (_text(path) or "").splitlines()
    return lines[0].strip() or None if lines and lines[0].isprintable() else None


def _text(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def _whole(text: str | None) -> int | None:
    return (
        int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= len(str(1 << 64)) else None
    )
