"""Engines on the NPU of a Rockchip board, through `librknnrt.so`.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Mapping

import numpy as np

from rknn_tts_runtime import board
from rknn_tts_runtime.aperture_budget import cost_of
from rknn_tts_runtime.backends.engine import Array, MemoryUse
from rknn_tts_runtime.backends.feeds import fitted
from rknn_tts_runtime.engine_file import short_contract_of
from rknn_tts_runtime.faults import BadInput, Mismatch, RunFault
from rknn_tts_runtime.identity import build_command, check_digest, check_identity
from rknn_tts_runtime.manifest import EngineManifest, TensorInfo
from rknn_tts_runtime.npu import api
from rknn_tts_runtime.npu.attributes import Port, ports
from rknn_tts_runtime.npu.context import Context, InitRefused
from rknn_tts_runtime.npu.failures import Loaded, Versions, load_failure
from rknn_tts_runtime.npu.library import Library
from rknn_tts_runtime.npu.zero_copy import BoundTensors


class NpuEngine:
    """An engine that is loaded on the NPU (`backends.engine.Engine`).

    Attributes:
        inputs: what `run` takes, in order.
        outputs: what `run` gives, in order.
        core_mask: the cores it was granted: what was asked for, or "auto".
        zero_copy: whether its tensors stand in buffers that the NPU reaches itself.
    """

    def __init__(self, context: Context, manifest: EngineManifest, core_mask: str, zero_copy: bool) -> None:
        """Check the tensors of `context` against `manifest`, and ask for cores. It is the caller's to close.

        Raises:
            Mismatch: its tensors are not the manifest's.
            RunFault: the library does not tell them, or refused zero-copy.
        """
        self.inputs: tuple[TensorInfo, ...] = manifest.inputs
        self.outputs: tuple[TensorInfo, ...] = manifest.outputs
        told_inputs, told_outputs = context.attributes()
        self._ins = ports(manifest.engine, "inputs", manifest.inputs, told_inputs)
        self._outs = ports(manifest.engine, "outputs", manifest.outputs, told_outputs)
        self.core_mask = context.grant_cores(core_mask)
        self.zero_copy = zero_copy
        self._bound = BoundTensors(context, self._ins, self._outs) if zero_copy else None
        self._context: Context | None = context
        self._engine = manifest.engine
        self.on_close: Callable[[], None] = lambda: None

    def run(self, feed: Mapping[str, Array]) -> dict[str, Array]:
        """One inference; see `backends.engine.Engine.run`. Values that are no numbers come back as they are."""
        if self._context is None:
            raise RunFault(f"{self._engine}: was closed; open it again.")
        arrays = fitted(self.inputs, feed, str(self._engine))
        inputs = [(port, port.handed_over(array)) for port, array in zip(self._ins, arrays)]
        outputs = [(port, _blank(port)) for port in self._outs]
        if self._bound is not None:
            self._bound.run(inputs, outputs)
        else:
            self._context.set_inputs(inputs)
            self._context.run()
            self._context.get_outputs(outputs)
        return {port.info.name: port.taken_back(array) for port, array in outputs}

    def close(self) -> None:
        """Give back what it holds; once more does nothing."""
        if self._context is None:
            return
        if self._bound is not None:
            self._bound.close()
        self._context.close()
        self._context = None
        self.on_close()


class NpuBackend:
    """Opens engines on the NPU (`backends.engine.Backend`).

    Attributes:
        name: "librknnrt".
        core_mask: the cores that are asked for.
    """

    name = "librknnrt"

    def __init__(
        self,
        library: Path | None = None,
        core_mask: str = api.EVERY_CORE,
        zero_copy: bool = False,
        root: Path = Path("/"),
    ) -> None:
        """Load the library.

        Args:
            library: `librknnrt.so`; None: as the loader finds it.
            core_mask: a key of `api.CORE_MASKS`; "auto" where the driver refuses it.
            zero_copy: whether tensors stand in buffers that the NPU reaches itself; not measured on a board.
            root: where the board's files are, for tests.

        Raises:
            BadInput: there is no such file, or no such core mask.
            RunFault: the library is not installed, is for another machine, or too old.
        """
        if core_mask not in api.CORE_MASKS:
            raise BadInput(f"There is no core mask '{core_mask}'; there are {', '.join(api.CORE_MASKS)}.")
        self.core_mask = core_mask
        self._zero_copy = zero_copy
        self._root = root
        self._library = Library(library)
        if zero_copy:
            self._library.bind_zero_copy()
        self._versions = Versions()
        self._loaded: dict[int, tuple[str, int]] = {}

    def open(self, manifest: EngineManifest) -> NpuEngine:
        """The engine of `manifest`, loaded, its identity checked.

        Raises:
            BadInput: its file cannot be read.
            Mismatch: it is not the engine that its manifest tells of, or not one for this board.
            RunFault: it cannot be loaded.
        """
        soc = board.soc(self._root)
        check_identity(manifest, short_contract_of(manifest.engine), soc)
        context = self._context(manifest)
        try:
            carried = _contract_in(manifest, context.custom_string())
            if carried is not None:
                check_identity(manifest, carried, soc)
            engine = NpuEngine(context, manifest, self.core_mask, self._zero_copy)
        except BaseException:
            context.close()
            raise
        number = id(engine)
        self._loaded[number] = (manifest.engine.name, cost_of(manifest, None).context_bytes)
        engine.on_close = lambda: self._forget(number)
        return engine

    def memory(self, manifest: EngineManifest) -> MemoryUse | None:
        """What the engine would map, as the library tells without building its network; else as its manifest estimates.

        Raises:
            BadInput: its file cannot be read.
        """
        try:
            context = Context(self._library, manifest.engine, api.FLAG_COLLECT_MODEL_INFO_ONLY)
        except (InitRefused, RunFault):
            return _estimated(manifest)
        try:
            self._remember(context)
            size = context.memory()
        except RunFault:
            return _estimated(manifest)
        finally:
            context.close()
        if not size.total_weight_size and not size.total_internal_size:
            return _estimated(manifest)
        return MemoryUse(size.total_weight_size, size.total_internal_size, measured=True)

    def versions(self) -> dict[str, str]:
        """{"api": ..., "driver": ...} as the first engine told them; empty before."""
        return {key: value for key, value in self._versions._asdict().items() if value}

    def _context(self, manifest: EngineManifest) -> Context:
        try:
            context = Context(self._library, manifest.engine)
        except InitRefused as refusal:
            raise self._refused(manifest, refusal.code) from None
        self._remember(context)
        return context

    def _remember(self, context: Context) -> None:
        """Keep the versions that the first context told: those that fail cannot ask (reference, "Who refused")."""
        if self._versions == Versions():
            self._versions = context.versions
        context.versions = self._versions  # there is one library and one driver, whether or not it told them again

    def _forget(self, number: int) -> None:
        self._loaded.pop(number, None)

    def _refused(self, manifest: EngineManifest, code: int) -> RunFault:
        versions = self._versions
        if versions == Versions():  # none was ever loaded: the files tell
            versions = Versions(self._library.file_version, board.driver_version(self._root))
        known = Loaded(
            engine=manifest.engine,
            target=manifest.target,
            toolkit=manifest.toolkit,
            context_bytes=manifest.context_bytes,
            rebuild=_rebuild(manifest),
            file_fault=_file_fault(manifest),
            soc=board.soc(self._root),
            others=tuple(self._loaded.values()),
        )
        return load_failure(known, code, versions)


def _contract_in(manifest: EngineManifest, text: str) -> Mapping[str, Any] | None:
    """The short contract that the loaded engine told; None where it tells none: its file was asked before."""
    if not text:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        if manifest.family is None:  # a foreign engine may carry what it likes
            return None
        raise Mismatch(
            f"{manifest.engine}: carries the text {text[:60]!r} and no contract of rknn-tts; its manifest "
            f"{manifest.path.name} is of another engine. Copy the engine and its manifest together."
        )
    return found


def _rebuild(manifest: EngineManifest) -> str:
    """The command that compiles it for another chip, whose name is to be put in."""
    if manifest.family is None or manifest.stage is None:
        return f"make compile MODEL={manifest.twin.name} TARGET=CHIP TOOLKIT={manifest.toolkit}"
    return build_command(manifest.family, manifest.stage, "CHIP", manifest.toolkit)


def _file_fault(manifest: EngineManifest) -> str | None:
    try:
        check_digest(manifest)
    except BadInput as fault:
        return f"The file is bad: {fault}"
    return None


def _estimated(manifest: EngineManifest) -> MemoryUse | None:
    return None if manifest.context_bytes is None else MemoryUse(manifest.context_bytes, 0, measured=False)


def _blank(port: Port) -> Array:
    """An array for an output: of no numbers, so that what was not written is seen."""
    return np.full(port.shape, np.nan, np.float32)
