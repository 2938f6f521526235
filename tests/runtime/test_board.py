from __future__ import annotations

from pathlib import Path

import pytest
from rknn_tts_runtime.board import Board, NpuState, board, driver_version, model, npu_state, peak_rss_bytes, soc


def put(root: Path, place: str, text: str) -> None:
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


@pytest.mark.parametrize(
    ("compatible", "expected"),
    [
        # The kernel's own device trees, then vendors'.
        ("xunlong,orangepi-5-plus\0rockchip,rk3588\0", "rk3588"),
        ("radxa,rock-5a\0rockchip,rk3588s\0", "rk3588s"),
        ("radxa,e52c\0rockchip,rk3582\0rockchip,rk3588s\0", "rk3588s"),
        ("armsom,sige5\0rockchip,rk3576\0", "rk3576"),
        ("pine64,quartz64-b\0rockchip,rk3566\0", "rk3566"),
        ("rockchip,rk3588s-orangepi-5-pro\0rockchip,rk3588\0", "rk3588"),
        ("rockchip,rk3566-odroid-m1s\0rockchip,rk3566\0", "rk3566"),
        ("rockchip,rk3568-evb1-v10\0rockchip,rk3568\0", "rk3568"),
        ("rockchip,rk3562-evb1-lp4x-v10\0rockchip,rk3562\0", "rk3562"),
        ("rockchip,rk3399-nanopc-t4\0rockchip,rk3399", "rk3399"),
        ("raspberrypi,5-model-b\0brcm,bcm2712\0", None),
        ("xrockchip,rk3588\0", None),
        ("", None),
    ],
)
def test_soc_is_what_the_device_tree_ends_with(tmp_path: Path, compatible: str, expected: str | None) -> None:
    put(tmp_path, "proc/device-tree/compatible", compatible)
    assert soc(tmp_path) == expected


def test_board_tells_all_that_the_kernel_tells(tmp_path: Path) -> None:
    put(tmp_path, "proc/device-tree/compatible", "rockchip,rk3588-orangepi-5-plus\0rockchip,rk3588\0")
    put(tmp_path, "proc/device-tree/model", "Orange Pi 5 Plus\0")
    put(tmp_path, "proc/sys/kernel/osrelease", "6.1.43-rockchip-rk3588\n")
    put(tmp_path, "sys/kernel/debug/rknpu/version", "RKNPU driver: v0.9.8\n")
    put(tmp_path, "sys/class/devfreq/fb000000.gpu/governor", "simple_ondemand\n")
    put(tmp_path, "sys/class/devfreq/fdab0000.npu/governor", "rknpu_ondemand\n")
    put(tmp_path, "sys/class/devfreq/fdab0000.npu/cur_freq", "1000000000\n")
    put(tmp_path, "sys/class/devfreq/fdab0000.npu/available_frequencies", "1000000000 300000000 400000000 \n")
    npu = NpuState("rknpu_ondemand", 1_000_000_000, (300_000_000, 400_000_000, 1_000_000_000))
    assert board(tmp_path) == Board("Orange Pi 5 Plus", "rk3588", "6.1.43-rockchip-rk3588", "0.9.8", npu)


def test_board_tells_nothing_when_there_is_nothing(tmp_path: Path) -> None:
    assert board(tmp_path) == Board(None, None, None, None, NpuState(None, None, ()))
    assert peak_rss_bytes(tmp_path) is None


def test_board_tells_nothing_when_files_say_something_else(tmp_path: Path) -> None:
    (tmp_path / "proc/device-tree/compatible").mkdir(parents=True)
    put(tmp_path, "proc/device-tree/model", "\x1b[31mred\0")
    put(tmp_path, "proc/sys/kernel/osrelease", "\n")
    put(tmp_path, "proc/rknpu/version", "\xff unknown")
    put(tmp_path, "sys/class/devfreq/27700000.npu/cur_freq", "<busy>\n")
    put(tmp_path, "sys/class/devfreq/27700000.npu/available_frequencies", "1 x -2 " + "9" * 5000)
    assert board(tmp_path) == Board(None, None, None, None, NpuState(None, None, (1,)))


def test_driver_is_told_by_what_anyone_can_read(tmp_path: Path) -> None:
    put(tmp_path, "proc/rknpu/version", "RKNPU driver: v0.9.2\n")
    assert driver_version(tmp_path) == "0.9.2"


def test_npu_state_has_what_there_is_when_the_clocks_are_not_listed(tmp_path: Path) -> None:
    put(tmp_path, "sys/class/devfreq/27700000.npu/cur_freq", "950000000\n")
    assert npu_state(tmp_path) == NpuState(None, 950_000_000, ())


def test_peak_memory_is_what_the_kernel_counts(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/status", "Name:\tpython\nVmPeak:\t  999999 kB\nVmHWM:\t   13580 kB\nVmRSS:\t 10 kB\n")
    assert peak_rss_bytes(tmp_path) == 13580 * 1024


def test_board_of_this_machine_can_be_asked() -> None:
    board()
    assert model() is None or model() != ""
