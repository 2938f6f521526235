"""CosyVoice3's flow estimator as a ladder of engines of fixed lengths, each loaded when a mel of its length comes.

A mel of N frames goes to the shortest engine that holds it, behind zeros on the right where the mask is zero too; what
comes out for these means nothing and is cut off (docs/cosyvoice3.md). The solver around it is the host application's,
and so is a mel that is longer than the longest engine.

The engine rounds its inputs to fp16: the solver goes between times that fp16 holds (the same page).

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import Mapping

import numpy as np

from rknn_tts_runtime.aperture_budget import ApertureBudget
from rknn_tts_runtime.backends.engine import Array, Backend
from rknn_tts_runtime.faults import BadInput, Mismatch
from rknn_tts_runtime.identity import check_stage, identity_notes
from rknn_tts_runtime.ladders import ladder_of, narrowest_rung
from rknn_tts_runtime.lazy_ladder import LazyLadder
from rknn_tts_runtime.manifest import EngineManifest, manifest_of
from rknn_tts_runtime.plans.plan import Plan
from rknn_tts_runtime.speaking.stopwatch import Stopwatch
from rknn_tts_runtime.windows import FloatArray, cut_window

FAMILY, STAGE, MAIN = "cosyvoice3", "flow", "main"
NOISED, MASK, TOKENS_MEL, TIME, SPEAKER, PROMPT = "x", "mask", "mu", "t", "spks", "cond"
VELOCITY = "estimator_out"
"""What an engine takes and gives (docs/cosyvoice3.md)."""

_BY_FRAME = (NOISED, TOKENS_MEL, PROMPT)
"""Inputs `[2, 80, N]` that are cut and padded along their last axis."""


class FlowLadder:
    """The estimator's engines; made by `open_flow`. Not for two threads at once.

    Attributes:
        notes: what a person should know of them, as sentences.
    """

    def __init__(self, ladder: LazyLadder, rungs: Mapping[int, EngineManifest]) -> None:
        """
        Args:
            ladder: loads them.
            rungs: frames to manifest.
        """
        self._ladder, self._rungs = ladder, dict(rungs)
        self.notes = tuple(note for rung in self._rungs.values() for note in identity_notes(rung))

    @property
    def longest(self) -> int:
        """Frames of the longest engine."""
        return max(self._rungs)

    def velocity(
        self, x: FloatArray, mu: FloatArray, t: FloatArray, spks: FloatArray, cond: FloatArray, stopwatch: Stopwatch
    ) -> Array | None:
        """The velocity of one step of the solver.

        Args:
            x: the noised mel, `[2, 80, N]`, float32 like all of them.
            mu: what the tokens say, `[2, 80, N]`.
            t: the solver's time, `[2]`, from 0 to 1.
            spks: the speaker, `[2, 80]`.
            cond: the prompt's mel, `[2, 80, N]`.
            stopwatch: counts the run as the stage "flow", and loading an engine as "flow engine".

        Returns:
            `[2, 80, N]`, float32; None where N is more than the longest engine holds, which is the host's then.

        Raises:
            BadInput: an array has another shape or type than the engine takes, or the engine alone is too large.
            RunFault: the engine cannot be loaded or run.
        """
        by_frame = dict(zip(_BY_FRAME, (x, mu, cond)))
        frames = x.shape[-1] if x.ndim else 0
        if frames < 1 or any(array.ndim != 3 or array.shape[-1] != frames for array in by_frame.values()):
            shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in by_frame.items())
            raise BadInput(f"The flow takes x, mu and cond of one number of frames, [2, 80, N], not {shapes}.")
        length = narrowest_rung(frames, {length: length for length in self._rungs})
        if length is None:
            return None
        feed = {name: cut_window(array, 0, frames, length) for name, array in by_frame.items()}
        feed[MASK] = cut_window(np.ones((x.shape[0], 1, frames), np.float32), 0, frames, length)
        with stopwatch.stage(f"{STAGE} engine"):
            engine = self._ladder.engine(self._rungs[length])
        with stopwatch.stage(STAGE):
            given = engine.run({**feed, TIME: t, SPEAKER: spks})
        return given[VELOCITY][..., :frames]

    def close(self) -> None:
        """Let go of the engines; once more does nothing."""
        self._ladder.close()


def open_flow(plan: Plan, backend: Backend, budget: ApertureBudget | None = None) -> FlowLadder:
    """The flow of a CosyVoice3's plan. No engine is loaded yet.

    Args:
        plan: of the family cosyvoice3.
        backend: what will load engines.
        budget: counts what is loaded: the one of all engines of the process, or of this ladder alone.

    Raises:
        BadInput: the plan has no flow on the NPU, a manifest is missing or cannot be read, or two engines are of one
            length.
        Mismatch: an engine is no flow estimator, or two are of two checkpoints.
    """
    component = plan.components.get(STAGE)
    if component is None:
        raise BadInput(f"{plan.path}: places no {STAGE} of {FAMILY} on the NPU (impl rknn), so nothing is loaded here.")
    manifests = [manifest_of(path) for path in component.artifacts[MAIN]]
    for manifest in manifests:
        check_stage(manifest, FAMILY, STAGE)
        _check_tensors(manifest)
        if manifest.source_sha256 != manifests[0].source_sha256:
            raise Mismatch(
                f"{manifests[0].engine} and {manifest.engine} are of two checkpoints ({manifests[0].source_name}, "
                f"{manifest.source_name}); name engines of one in the plan."
            )
    return FlowLadder(LazyLadder(backend, manifests, budget), ladder_of(manifests, NOISED))


def _check_tensors(manifest: EngineManifest) -> None:
    expected = {NOISED, MASK, TOKENS_MEL, TIME, SPEAKER, PROMPT}
    found = {info.name for info in manifest.inputs}
    given = {info.name for info in manifest.outputs}
    if found != expected or VELOCITY not in given:
        raise Mismatch(
            f"{manifest.engine}: takes {', '.join(sorted(found)) or 'nothing'} and gives "
            f"{', '.join(sorted(given)) or 'nothing'}; a flow estimator takes {', '.join(sorted(expected))} and gives "
            f"{VELOCITY}. Build it anew: make engine FAMILY={FAMILY}."
        )
