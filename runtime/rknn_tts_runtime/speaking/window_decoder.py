"""The decoder of a component whose engines have fixed windows: Piper's and Inflect's.

    latent z [1, C, N], mask y_mask [1, 1, N], what else the engine takes of fixed size -> samples, window by window

A trimmed engine also takes where in the utterance its window stands; see `window_cover`.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rknn_tts_runtime.backends.engine import Array, Backend, Engine
from rknn_tts_runtime.faults import BadInput, Mismatch
from rknn_tts_runtime.identity import check_host, check_latent, check_stage, identity_notes
from rknn_tts_runtime.ladders import rungs_of, window_of
from rknn_tts_runtime.manifest import EngineManifest, manifest_of
from rknn_tts_runtime.plans.plan import Component, Plan
from rknn_tts_runtime.speaking.stopwatch import Stopwatch
from rknn_tts_runtime.window_cover import RunRung, walk_cover
from rknn_tts_runtime.windows import FloatArray

LATENT, MASK = "z", "y_mask"
"""What such an engine takes, by name, and what else it may take beside them is of fixed size."""

MAIN, HOST = "main", "host"
"""Roles of a plan's artifacts."""

STAGE = "decoder"
"""The stopwatch's name of it; of a ladder the engine's width stands behind it."""


class WindowDecoder:
    """Engines of one stage that are open, one a window; the cheapest windows decode. See `open_decoder`.

    Attributes:
        manifests: of the engines.
        channels: C of the latent.
        hop: samples a frame.
        sample_rate: in Hz; None where the manifests state none.
        given: names of what the engines take beside latent and mask.
        notes: what a person should know of the engines.
    """

    def __init__(self, engines: Sequence[tuple[EngineManifest, Engine]]) -> None:
        """Take over open engines of one voice, one of them at least."""
        self._engines = [engine for _, engine in engines]
        self.manifests = tuple(manifest for manifest, _ in engines)
        self._rungs = rungs_of(self.manifests)
        first = self.manifests[0]
        window = window_of(first)
        self.channels = next(info.shape[1] for info in first.inputs if info.name == LATENT)
        self.hop, self.sample_rate = window.hop, window.sample_rate
        self.given = tuple(name for name, _ in _beside(first))
        self.notes = tuple(note for manifest in self.manifests for note in identity_notes(manifest))

    def samples(
        self, latent: FloatArray, mask: FloatArray, given: Mapping[str, FloatArray], stopwatch: Stopwatch
    ) -> Iterator[npt.NDArray[np.float32]]:
        """The samples of an utterance, each window's as soon as it is decoded.

        Args:
            latent: `[1, C, N]`, float32.
            mask: `[1, 1, N]`, float32.
            given: what the engines take beside them, by name; more is left alone.
            stopwatch: each window is a run of the stage "decoder", of a ladder of the stage "decoder w109".

        Raises:
            Mismatch: the latent has not the channels that the engines take.
            BadInput: something that the engines take is not given, there is no frame, or no engine takes so few.
            RunFault: an engine failed.
        """
        self._check(latent, mask, given)
        beside: dict[str, Array] = {name: given[name] for name in self.given}
        runs = [self._run_of(place, beside, stopwatch) for place in range(len(self._engines))]
        return (samples for _, samples in walk_cover(runs, [latent, mask], self._rungs, self.hop))

    def close(self) -> None:
        """Let go of the engines; once more does nothing."""
        for engine in self._engines:
            engine.close()

    def _run_of(self, index: int, beside: Mapping[str, Array], stopwatch: Stopwatch) -> RunRung:
        """What runs one window of an engine of the ladder."""
        engine, trim = self._engines[index], self.manifests[index].trim
        stage = STAGE if len(self._engines) == 1 else f"{STAGE} w{self._rungs[index].width}"

        def run(latent: FloatArray, mask: FloatArray, place: FloatArray | None) -> Array:
            feed: dict[str, Array] = {LATENT: latent, MASK: mask, **beside}
            if trim is not None and place is not None:
                feed[trim.input] = place
            with stopwatch.stage(stage):
                (samples,) = engine.run(feed).values()
            return samples

        return run

    def _check(self, latent: FloatArray, mask: FloatArray, given: Mapping[str, FloatArray]) -> None:
        """See that the engines decode this."""
        frames = latent.shape[-1] if latent.ndim else 0
        if latent.ndim != 3 or latent.shape[0] != 1 or mask.shape != (1, 1, frames) or not frames:
            raise BadInput(
                f"{self.manifests[0].engine}: decodes a latent [1, C, N] with a mask [1, 1, N], of one frame and more, "
                f"not {list(latent.shape)} with {list(mask.shape)}."
            )
        for manifest in self.manifests:
            check_latent(manifest, latent.shape[1], LATENT)
        missing = [name for name in self.given if name not in given]
        if missing:
            raise Mismatch(
                f"{self.manifests[0].engine}: takes {', '.join(missing)} beside the latent, and the host half gives no "
                "such thing: they are of two voices. Copy an engine, its manifest and its host half together."
            )


def component_of(plan: Plan, name: str) -> Component:
    """The component `name` of `plan`.

    Raises:
        BadInput: the plan places none on the NPU.
    """
    if name not in plan.components:
        left = f" ({', '.join(plan.left_to_host)}: left to the host application)" if plan.left_to_host else ""
        raise BadInput(f"{plan.path}: places no {name} of {plan.family} on the NPU{left}: there is nothing to run.")
    return plan.components[name]


def open_decoder(family: str, component: Component, backend: Backend) -> WindowDecoder:
    """The engines of `component`, a stage of `family` with fixed windows, open on `backend`.

    Raises:
        BadInput: a manifest is missing or cannot be read, or an engine has no window.
        Mismatch: an engine is of another stage, takes or gives something else than such a decoder, or two of the ladder
            are of two voices; see also `Backend.open`.
        RunFault: an engine cannot be loaded.
    """
    manifests = [manifest_of(path) for path in component.artifacts[MAIN]]
    for manifest in manifests:
        check_stage(manifest, family, component.name)
        _check_tensors(manifest)
        _check_alike(manifests[0], manifest)
    return WindowDecoder(list(zip(manifests, open_engines(manifests, backend))))


def open_engines(manifests: Sequence[EngineManifest], backend: Backend) -> list[Engine]:
    """The engine of each manifest, open on `backend`: all of them, or none stays open."""
    with ExitStack() as opened:
        engines = [_opened(manifest, backend, opened) for manifest in manifests]
        opened.pop_all()
    return engines


def host_of(component: Component, manifests: Sequence[EngineManifest]) -> Path:
    """The host half of `component`: the plan's artifact `host`, else the file that the first manifest names.

    Raises:
        BadInput: neither names one, or it cannot be read.
        Mismatch: it is not the one that an engine was exported with.
    """
    named = component.artifacts.get(HOST, ())
    host = named[0] if named else manifests[0].host
    if host is None:
        raise BadInput(
            f"{manifests[0].path}: names no host half, and neither does the plan: name it as artifacts.host. Without "
            "one this engine takes latents, and no ids."
        )
    for manifest in {manifest.host_sha256: manifest for manifest in reversed(manifests)}.values():
        check_host(manifest, host)  # once for each digest that is told: the file is read through
    return host


def sample_rate_of(decoder: WindowDecoder, hop: int, sample_rate: int | None, host: Path) -> int:
    """The rate of `decoder`, whose voice has `hop` and `sample_rate` by its host half.

    Raises:
        BadInput: neither states a rate.
        Mismatch: they disagree.
    """
    rates = [rate for rate in (decoder.sample_rate, sample_rate) if rate is not None]
    manifest = decoder.manifests[0]
    if not rates:
        raise BadInput(
            f"{manifest.path}: states no sample rate, nor does {host.name}; export the voice again with --sample-rate."
        )
    if len(set(rates)) > 1 or hop != decoder.hop:
        raise Mismatch(
            f"{manifest.engine} gives {decoder.hop} samples a frame at {decoder.sample_rate} Hz, and the voice in "
            f"{host} {hop} at {sample_rate} Hz: they are of two voices. Copy an engine, its manifest and its host half "
            "together."
        )
    return rates[0]


def _opened(manifest: EngineManifest, backend: Backend, opened: ExitStack) -> Engine:
    engine = backend.open(manifest)
    opened.callback(engine.close)
    return engine


def _check_tensors(manifest: EngineManifest) -> None:
    window = window_of(manifest)
    shapes = {info.name: info.shape for info in manifest.inputs}
    sizes = [int(np.prod(info.shape, dtype=np.int64)) for info in manifest.outputs]
    latent, mask = shapes.get(LATENT, ()), shapes.get(MASK, ())
    good = len(latent) > 1 and int(np.prod(latent, dtype=np.int64)) == latent[1] * window.frames
    good = good and int(np.prod(mask, dtype=np.int64)) == window.frames and latent[-1] == mask[-1] == window.frames
    sampled = window.frames if manifest.trim is None else manifest.trim.frames
    if not good or sizes != [sampled * window.hop]:
        raise Mismatch(
            f"{manifest.path}: is no decoder with a window of {window.frames} frames of {window.hop} samples: it takes "
            f"{_listed(shapes)}, and gives {_listed({info.name: info.shape for info in manifest.outputs})}; expected "
            f"{LATENT} [1, C, {window.frames}] and {MASK} [1, 1, {window.frames}]. Export it again."
        )


def _check_alike(first: EngineManifest, other: EngineManifest) -> None:
    """See that two engines of a ladder are of one voice."""
    if _voice_of(first) != _voice_of(other):
        raise Mismatch(
            f"{first.engine} and {other.engine} are of two voices (latent, hop, rate, what else they take, checkpoint: "
            f"{_voice_of(first)} and {_voice_of(other)}); a ladder is of one: correct the plan."
        )


def _voice_of(manifest: EngineManifest) -> tuple[object, ...]:
    window = window_of(manifest)
    channels = next(info.shape[1] for info in manifest.inputs if info.name == LATENT)
    return channels, window.hop, window.sample_rate, _beside(manifest), manifest.source_sha256[:16]


def _beside(manifest: EngineManifest) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Name and shape of what an engine takes beside latent and mask, but for where its window stands."""
    walked = (LATENT, MASK, manifest.trim and manifest.trim.input)
    return tuple((info.name, info.shape) for info in manifest.inputs if info.name not in walked)


def _listed(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items()) or "nothing"
