"""Qwen3's speech decoder: codes of a language model to samples, while they arrive.

    codes [1, Q, n] -> host half (onnxruntime) -> hidden [1, C, n] -> steps of the engines -> samples
                       none where engines take codes

Which engine takes which codes is told by the plan's roles: `first` and `main` hand a cache on, `window` decodes a left
context anew with every event (docs/qwen3.md). The language model is the host application's.

There are two caches at a time, the one that a step reads and the one that it wrote; neither is copied between steps.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, NamedTuple

import numpy as np

from rknn_tts_runtime.backends.engine import Array, Backend, Engine
from rknn_tts_runtime.backends.host_session import HostSession, open_host
from rknn_tts_runtime.event_stream import stream_events
from rknn_tts_runtime.faults import BadInput, Mismatch
from rknn_tts_runtime.identity import identity_notes
from rknn_tts_runtime.manifest import manifest_of
from rknn_tts_runtime.plans.plan import Plan
from rknn_tts_runtime.speaking.qwen3_steps import (
    AUDIO,
    CACHE,
    CACHE_OUT,
    CODES,
    FAMILY,
    FIRST,
    HIDDEN,
    MAIN,
    STAGE,
    WINDOW,
    Step,
    check_alike,
    event_of,
    step_of,
)
from rknn_tts_runtime.speaking.stopwatch import Stopwatch
from rknn_tts_runtime.speaking.window_decoder import host_of, open_engines
from rknn_tts_runtime.stateful import RunStep, stream_codes
from rknn_tts_runtime.windows import FloatArray

ROLES = (MAIN, FIRST, WINDOW)
HOST_STAGE = "host half"


class _Open(NamedTuple):
    """An engine of the decoder that is open."""

    step: Step
    engine: Engine


class CodesDecoder:
    """A Qwen3 speech decoder whose engines are open; made by `open_qwen3`. Not for two threads at once.

    Attributes:
        sample_rate: samples a second; None where the manifest does not tell.
        samples_per_code: samples of a code.
        codebooks: codes at a time, Q.
        notes: what a person should know of the engines, as sentences.
    """

    def __init__(self, engines: Mapping[str, _Open], host: HostSession | None, codebooks: int) -> None:
        """
        Args:
            engines: role to engine; two roles may share one.
            host: the host half; None where the engines take codes.
            codebooks: codes at a time.
        """
        main = engines[MAIN].step
        self.sample_rate, self.samples_per_code = main.geometry.sample_rate, main.geometry.samples_per_code
        self.codebooks = codebooks
        manifests = {each.step.manifest.path: each.step.manifest for each in engines.values()}
        self.notes = tuple(note for manifest in manifests.values() for note in identity_notes(manifest))
        self._engines, self._host = dict(engines), host

    def stream(self, codes: Iterable[Array], stopwatch: Stopwatch) -> Iterator[FloatArray]:
        """The samples of codes that arrive: event by event where the plan has a `window`, else step by step.

        Args:
            codes: pieces `[1, Q, n]` of whole numbers, of any n; may never end. No more of them is read than the next
                samples need.
            stopwatch: counts the stages "host half" and "speech_decoder ROLE".

        Yields:
            Samples `[s]`, `samples_per_code` a code.

        Raises:
            BadInput: a piece is of another shape or type.
            RunFault: the host half or an engine failed.
        """
        if WINDOW not in self._engines:
            return self._stepwise(codes, stopwatch)
        step = self._engines[WINDOW].step
        context, emitted = event_of(step)
        return stream_events(
            self._seam(codes, stopwatch),
            self._run(WINDOW, stopwatch),
            context,
            emitted,
            step.geometry.codes,
            step.cache_numel,
            self.samples_per_code,
        )

    def decode(self, codes: Array, stopwatch: Stopwatch) -> FloatArray:
        """The samples `[N * samples_per_code]` of codes `[1, Q, N]` that are all there: step by step; as `stream`.

        Raises:
            BadInput: there is no code.
        """
        pieces = list(self._stepwise([codes], stopwatch))
        if not pieces:
            raise BadInput("There are no codes to decode: [1, Q, N] needs N of 1 at least.")
        return np.concatenate(pieces)

    def close(self) -> None:
        """Let go of the engines and the host half; once more does nothing."""
        for each in self._engines.values():
            each.engine.close()
        if self._host is not None:
            self._host.close()

    def _stepwise(self, codes: Iterable[Array], stopwatch: Stopwatch) -> Iterator[FloatArray]:
        main, first = self._engines[MAIN].step, self._engines.get(FIRST)
        steps = {self._engines[role].step.geometry.codes: self._run(role, stopwatch) for role in self._stepping()}
        return stream_codes(
            self._seam(codes, stopwatch),
            steps,
            main.geometry.codes,
            None if first is None else first.step.geometry.codes,
            main.cache_numel,
            self.samples_per_code,
        )

    def _stepping(self) -> list[str]:
        return [role for role in (MAIN, FIRST) if role in self._engines]

    def _run(self, role: str, stopwatch: Stopwatch) -> RunStep:
        step, engine = self._engines[role]

        def run(columns: Array, cache: FloatArray) -> tuple[Array, Array]:
            with stopwatch.stage(f"{STAGE} {role}"):
                given = engine.run({step.seam: columns, CACHE: cache})
            return given[AUDIO], given[CACHE_OUT]

        return run

    def _seam(self, codes: Iterable[Array], stopwatch: Stopwatch) -> Iterator[Array]:
        """What the engines take of the codes, piece by piece."""
        for piece in codes:
            checked = self._checked(piece)
            if not checked.shape[-1]:
                continue
            if self._host is None:
                yield checked
                continue
            with stopwatch.stage(HOST_STAGE):
                hidden = self._host.run([HIDDEN], {CODES: checked})[HIDDEN]
            yield hidden

    def _checked(self, piece: Array) -> Array:
        codes = np.asarray(piece)
        if codes.ndim != 3 or codes.shape[:2] != (1, self.codebooks) or codes.dtype.kind not in "iu":
            raise BadInput(
                f"Codes come as whole numbers [1, {self.codebooks}, n], not {list(codes.shape)} of {codes.dtype}."
            )
        if codes.size and codes.min() < 0:
            raise BadInput(f"A code is {codes.min()}, and a codebook begins at 0.")
        return codes.astype(np.int64, copy=False)


def open_qwen3(plan: Plan, backend: Backend) -> CodesDecoder:
    """The speech decoder of a Qwen3's plan, its engines open on `backend`.

    Args:
        plan: of the family qwen3.
        backend: what runs engines.

    Raises:
        BadInput: the plan has no speech decoder on the NPU; or a file of it is not what it should be.
        Mismatch: engines and host half do not belong together: of another stage, seam, cache or checkpoint.
        RunFault: an engine cannot be loaded.
    """
    component = plan.components.get(STAGE)
    if component is None:
        raise BadInput(f"{plan.path}: places no {STAGE} of {FAMILY} on the NPU (impl rknn), so nothing decodes here.")
    files = {role: component.artifacts[role][0] for role in ROLES if role in component.artifacts}
    by_file = {file: step_of(manifest_of(file)) for file in files.values()}
    steps = {role: by_file[file] for role, file in files.items()}
    check_alike(steps)
    main = steps[MAIN]
    host: HostSession | None = None
    if main.seam == HIDDEN:
        host = open_host(host_of(component, [step.manifest for step in steps.values()]))
    try:
        codebooks = main.channels if host is None else _codebooks(host, main)
        opened = dict(zip(by_file, open_engines([step.manifest for step in by_file.values()], backend)))
    except BaseException:
        if host is not None:
            host.close()
        raise
    return CodesDecoder({role: _Open(steps[role], opened[file]) for role, file in files.items()}, host, codebooks)


def _codebooks(host: HostSession, main: Step) -> int:
    """Codes at a time that the host half takes.

    Raises:
        Mismatch: it is no host half of such an engine.
    """
    taken = {info.name: info.shape for info in host.inputs}.get(CODES, ())
    given = {info.name: info.shape for info in host.outputs}.get(HIDDEN, ())
    if len(taken) != 3 or taken[1] is None or len(given) != 3 or given[1] not in (None, main.channels):
        raise Mismatch(
            f"{host.path}: is no host half of {main.manifest.engine.name}: it takes codes {_shown(taken)} and gives "
            f"hidden {_shown(given)}, expected [1, Q, n] and [1, {main.channels}, n]. Copy both from one export."
        )
    return taken[1]


def _shown(shape: tuple[int | None, ...]) -> str:
    return "[" + ", ".join("any" if size is None else str(size) for size in shape) + "]"
