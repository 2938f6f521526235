"""What a plan says, read and checked: which components run as engines, of which files, with which settings.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Mapping

from rknn_tts_runtime.plans.definition import ParamValue


@dataclass(frozen=True)
class Component:
    """A component that runs as engines.

    Attributes:
        name: "decoder".
        artifacts: role to its files, all there; several only where the role is a ladder, in the plan's order.
        params: every param of the implementation, those that are left out at their defaults.
    """

    name: str
    artifacts: Mapping[str, tuple[Path, ...]]
    params: Mapping[str, ParamValue]


@dataclass(frozen=True)
class Plan:
    """The plan of one family.

    Attributes:
        path: the file that it was read from.
        family: as manifests name it: "piper".
        components: those that run as engines, by name, in the order of the definition.
        left_to_host: those that it names and leaves to the host application, each with what it says of them:
            "duration_flows (ggml)", "decoder (default)".
    """

    path: Path
    family: str
    components: Mapping[str, Component]
    left_to_host: tuple[str, ...]
