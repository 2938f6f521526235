"""A board that is none: a backend under the name of the real one, and the files in which a kernel tells of a board."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from rknn_tts_runtime.backends.engine import Array, MemoryUse
from rknn_tts_runtime.manifest import EngineManifest

from tests.runtime.fake_backends import Compute, FakeBackend, FakeEngine

MEMORY = MemoryUse(weight_bytes=3 << 20, internal_bytes=1 << 20, measured=True)


def doubled(feed: Mapping[str, Array]) -> dict[str, Array]:
    """What the engines of `kits` give."""
    return {"y": np.asarray(feed["x"] * 2, np.float32)}


class GrantedEngine(FakeEngine):
    """An engine that was granted cores."""

    core_mask = "0_1_2"


class BoardBackend(FakeBackend):
    """Runs `compute` in the place of an NPU, and says that it is one."""

    name = "librknnrt"

    def __init__(self, compute: Compute | None = doubled, refusals: Mapping[str, int] | None = None) -> None:
        super().__init__(measured={"net": MEMORY}, refusals=refusals, compute=compute, code=-13)

    def open(self, manifest: EngineManifest) -> FakeEngine:
        engine = super().open(manifest)
        engine.__class__ = GrantedEngine
        return engine

    def versions(self) -> dict[str, str]:
        return {"api": "2.3.2", "driver": "0.9.8"}


def write_board(
    root: Path, hz: int = 1_000_000_000, governor: str = "rknpu_ondemand", soc: str = "rk3588", highest: int = 10**9
) -> Path:
    """Files of a kernel under `root`, which is returned."""
    files = {
        "proc/device-tree/model": "Orange Pi 5 Plus\0",
        "proc/device-tree/compatible": f"xunlong,orangepi-5-plus\0rockchip,{soc}\0",
        "proc/sys/kernel/osrelease": "6.1.43-rockchip\n",
        "sys/class/devfreq/fdab0000.npu/governor": f"{governor}\n",
        "sys/class/devfreq/fdab0000.npu/cur_freq": f"{hz}\n",
        "sys/class/devfreq/fdab0000.npu/available_frequencies": f"300000000 {highest}\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root
