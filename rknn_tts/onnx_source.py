"""What `compile` is given: an ONNX that carries its contract, or one that nobody made for us."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx_ir as ir

from contracts.contract import NAME_ADVICE, RANDOM, STAND_IN, Contract, TensorSpec, is_file_name
from contracts.errors import UserInput
from contracts.files import sha256_of, sha256_of_bytes
from converters.onnx_file import external_files, read_onnx
from rknn_tts.carried import (
    carried_calibration,
    carried_contract,
    carried_feeds,
    carried_originals,
    check_seal,
    feeds_to_npz,
    without_carried,
)
from rknn_tts.export_step import Proof
from rknn_tts.finished_graph import described
from rknn_tts.foreign_onnx import digests_of, open_foreign
from rknn_tts.graph_at_hand import OnnxSource
from rknn_tts.progress import Say
from rknn_tts.request import FOREIGN_ONLY, Request
from rknn_tts.steps import Steps


def open_source(path: Path, request: Request, target: str, steps: Steps, say: Say) -> OnnxSource:
    """Read the ONNX in `path`, what it carries, and the host half beside it.

    What is judged, compiled and published is a copy in the cache without what it carries: the user may go on with the
    file meanwhile.

    Raises:
        UserInput: no ONNX, or what it carries is damaged, or it was changed while it was read.
        Refusal: see `open_foreign`.
    """
    if not is_file_name(path.name):
        raise UserInput(f"{path!s:.300}: {NAME_ADVICE}")
    before = digests_of(path)
    model = read_onnx(path)
    contract = carried_contract(model, str(path))
    if contract is None:
        return open_foreign(path, request, target, steps, say)
    for name in FOREIGN_ONLY:
        if getattr(request, name):
            raise UserInput(
                f"{path}: was written by export, with its shapes, its inputs and its passes: compile takes no "
                f"--{name.replace('_', '-')} for it."
            )

    _check_shapes(contract, model, str(path))

    def bare(folder: Path) -> None:
        (folder / "model.onnx").write_bytes(_exported_graph(path))
        _check_unchanged(path, before)

    graph = steps.folder("bare", before, bare) / "model.onnx"
    feeds = feeds_to_npz(carried_feeds(model, str(path)))
    originals = feeds_to_npz(carried_originals(model, str(path)))
    calibration = _calibration(contract, model, str(path))
    host, notes = _host_beside(contract, path)
    notes += (*_cuts_notes(contract, target), *_stand_in_notes(contract))
    proof = Proof(contract.passes, contract.verdicts, contract.measurements)
    contract = dataclasses.replace(contract, passes=(), verdicts=(), measurements=())
    _check_unchanged(path, before)
    inputs = (path, *external_files(path))
    return OnnxSource(
        graph,
        path.stem,
        contract,
        host,
        lambda: feeds,
        lambda: proof,
        notes,
        inputs,
        exported=True,
        make_originals=lambda: originals,
        make_calibration=lambda: calibration,
    )


def open_set(paths: Sequence[Path], request: Request, target: str, steps: Steps, say: Say) -> list[OnnxSource]:
    """Read the exports in `paths`, which are to be one set of engines, in order.

    Raises:
        UserInput: as of `open_source`; or two do not belong together: one was not made by `export`, or of another
            checkpoint, stage or voice, or has the role of another.
    """
    sources = [open_source(path, request, target, steps, say) for path in paths]
    first, roles = sources[0], dict[str, Path]()
    for path, source in zip(paths, sources, strict=True):
        if not source.exported or source.contract.role is None:
            raise UserInput(
                f"{path}: is no part of a set that `export` wrote, as a ladder's windows are; compile it alone."
            )
        if _of_text(source.contract) != _of_text(first.contract):
            raise UserInput(
                f"{path}: is of {_of_text(source.contract)}, and {paths[0]} of {_of_text(first.contract)}: compile "
                "them by two commands."
            )
        if source.contract.source != first.contract.source:
            raise UserInput(
                f"{path}: is of another {first.contract.source.name} than {paths[0]}, which was changed in between; "
                "export both again."
            )
        other = roles.get(source.contract.role)
        if other is not None:
            raise UserInput(f"{path}: is the set's {source.contract.role}, as {other} is; leave one out.")
        roles[source.contract.role] = path
    return sources


def _of_text(contract: Contract) -> str:
    return f"{contract.family} {contract.stage} of {contract.source.name}"


def _cuts_notes(contract: Contract, target: str) -> tuple[str, ...]:
    """What the user shall know of a graph whose cuts were not chosen for `target`."""
    if contract.cuts_for == target:
        return ()
    chosen = contract.cuts_for or "no target in particular"
    slower = f"passes that pay on {target} may be missing, and the engine slower than it need be"
    return (f"It was exported for {chosen}: {slower}; export --target {target} chooses them for it.",)


def _calibration(contract: Contract, model: ir.Model, where: str) -> bytes:
    """What ranges of 8 bits are found on, as an npz.

    Raises:
        UserInput: it is not what the contract says was found on, or there is none where it says that it is quantised.
    """
    if contract.quantisation is None:
        return feeds_to_npz(())
    windows = carried_calibration(model, where)
    packed = feeds_to_npz(windows)
    if len(windows) != contract.quantisation.windows or sha256_of_bytes(packed) != contract.quantisation.sha256:
        raise UserInput(
            f"{where}: is for an engine of 8 bits, and does not carry the {contract.quantisation.windows} inputs that "
            "its ranges are found on; export it again."
        )
    return packed


def _stand_in_notes(contract: Contract) -> tuple[str, ...]:
    return (f"It was exported with {STAND_IN}.",) if contract.source.kind == RANDOM else ()


def _check_shapes(contract: Contract, model: ir.Model, where: str) -> None:
    """See that the graph takes and gives what its contract says.

    Raises:
        UserInput: it does not; the first tensor that differs is told.
    """
    real = described(contract, model, ())
    for what, told, found in (("input", contract.inputs, real.inputs), ("output", contract.outputs, real.outputs)):
        for a, b in itertools.zip_longest(told, found):
            if a != b:
                raise UserInput(
                    f"{where}: carries the contract of another graph: its {what} {_tensor(a)} is {_tensor(b)} in the "
                    "graph itself; export it again."
                )


def _tensor(spec: TensorSpec | None) -> str:
    return f"{spec.name!r:.60} {list(spec.shape)!s:.60} {spec.dtype:.20}" if spec is not None else "missing"


def _check_unchanged(path: Path, before: Mapping[str, str]) -> None:
    if digests_of(path) != before:
        raise UserInput(f"{path}: was changed while it was read; run the command again.")


def _exported_graph(path: Path) -> bytes:
    data = path.read_bytes()
    check_seal(data, str(path))
    return without_carried(data)


def _host_beside(contract: Contract, path: Path) -> tuple[Path | None, tuple[str, ...]]:
    """The host half beside `path`, if it is the one `contract` names; else a sentence about it."""
    if contract.host is None:
        return None, ()
    host = path.with_name(contract.host.file)
    if host.is_file() and sha256_of(host) == contract.host.sha256:
        return host, ()
    what = "another one than this ONNX was exported with" if host.is_file() else "missing"
    return None, (f"The host half {host.name} beside {path.name} is {what}, so none is put beside the engine.",)
