"""The conversion that made an engine, found again from its manifest: for what only the checkpoint can tell.

A manifest keeps no options. So those that it hints at are tried, the stage's defaults first, until the graph that they
give is the one in the engine's twin, to the byte.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.contract import RANDOM
from contracts.errors import Refusal, UserInput
from contracts.files import sha256_of, sha256_of_bytes
from contracts.manifest import Manifest
from converters.registry import STAGES
from converters.stages import Stage, find_stage
from converters.vits_ladder import MASKED, TRIMMED
from rknn_tts.carried import without_carried
from rknn_tts.checkpoint_to_onnx import MODEL_FILE, Conversion, export_graph, open_conversions
from rknn_tts.progress import Say
from rknn_tts.request import Request, options
from rknn_tts.steps import Steps

PACKAGE = "package"
"""Kind of a source that is fetched by its stage."""

_MASKING = "mask_decoder"
"""The pass behind --decoder-mask."""


@dataclass(frozen=True)
class Remade:
    """A conversion that gives an engine's graph again.

    Attributes:
        conversion: of the checkpoint.
        request: what asks for it.
    """

    conversion: Conversion
    request: Request

    @property
    def command(self) -> str:
        """The command that builds the engine again from its checkpoint."""
        return command_of(self.request)


def stage_of(manifest: Manifest) -> Stage:
    """The stage that the engine is of.

    Raises:
        Refusal: it is of none, or of one that is not known here.
    """
    if manifest.family is None or manifest.stage is None:
        raise Refusal("it was made of a foreign ONNX, which belongs to no stage.")
    try:
        return find_stage(STAGES, manifest.family, manifest.stage)
    except UserInput as error:
        raise Refusal(f"{error}") from error


def remade(manifest: Manifest, twin: Path, checkpoint: str | None, steps: Steps, say: Say) -> Remade:
    """The conversion that makes the graph in `twin` of the checkpoint that `manifest` names.

    Args:
        manifest: the engine's.
        twin: the ONNX that it was compiled from.
        checkpoint: where the user says the checkpoint is; None: the one of the stage's package.
        steps: those of the command.
        say: gets the progress.

    Raises:
        UserInput: `checkpoint` is another one.
        Refusal: the checkpoint is not at hand, or no options that are tried give that graph.
    """
    stage = stage_of(manifest)
    if not twin.is_file() or sha256_of(twin) != manifest.onnx.sha256:
        what = "another one than the manifest tells of" if twin.is_file() else "not at hand"
        raise Refusal(f"its twin {twin.name} is {what}.")
    graph = sha256_of_bytes(without_carried(twin.read_bytes()))
    place = _place(manifest, checkpoint)
    for chosen in _requests(manifest, stage, place):
        found = _matching(manifest, chosen, graph, checkpoint, steps, say)
        if found is not None:
            return Remade(found, chosen)
    raise Refusal(
        "it was built with options that its manifest does not tell, or by another version of rknn-tts: none that were "
        "tried give the graph in its twin."
    )


def command_of(request: Request) -> str:
    """`request` as a line for a shell."""
    words = ["./rknn-tts", request.command]
    for option in options(request.command):
        value = getattr(request, option.name)
        if value == option.default or value is None:
            continue
        if option.positional:
            words += [value] if isinstance(value, str) else value
        elif option.kind is bool:
            words.append(option.flag)
        else:
            words += [word for one in (value if option.many else [value]) for word in (option.flag, str(one))]
    return shlex.join(words)


def _place(manifest: Manifest, checkpoint: str | None) -> str | None:
    """What --checkpoint is; None for the package's."""
    if checkpoint is not None or manifest.source.kind == PACKAGE:
        return checkpoint
    if manifest.source.kind == RANDOM:
        return RANDOM
    raise Refusal(f"its checkpoint {manifest.source.name} is needed: --checkpoint names it.")


def _requests(manifest: Manifest, stage: Stage, checkpoint: str | None) -> Iterator[Request]:
    """What may have asked for the engine: the stage's defaults, and what its geometry tells."""
    base = Request(
        "engine",
        family=stage.family,
        stage=stage.name,
        target=manifest.target,
        checkpoint=checkpoint,
        no_pass=list(manifest.skipped),
        toolkit=manifest.toolkit.version,
        accept_regtask=list(manifest.log.accepted),
    )
    yield base
    for told in _told_by_window(manifest):
        given = {name: value for name, value in told.items() if name in stage.options}
        if "windows" in told and "windows" not in given:
            continue
        yield dataclasses.replace(base, **given)
        if manifest.role is not None and "member" in stage.options:
            yield dataclasses.replace(base, member=manifest.role, **given)


def _told_by_window(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Options that the window tells: those of an engine alone, and those of a rung, which is one of a ladder of one."""
    window = manifest.window
    if window is None:
        yield {}
        return
    masked = any(record.name == _MASKING and record.hits for record in manifest.passes)
    mask = {"decoder_mask": True} if masked else {"no_decoder_mask": True}
    if manifest.trim is None:
        yield {"window": window.frames, "context": window.left, **mask}
    letter = TRIMMED if manifest.trim else MASKED if masked else ""
    yield {"windows": f"{window.frames}{letter}", "context": window.left}


def _matching(
    manifest: Manifest, chosen: Request, graph: str, checkpoint: str | None, steps: Steps, say: Say
) -> Conversion | None:
    """The conversion among those of `chosen` that gives `graph`; None where none does.

    Raises:
        UserInput: the checkpoint that the user names is another one.
        Refusal: the package's is.
    """
    try:
        conversions = open_conversions(chosen, manifest.target, say)
    except UserInput:
        if checkpoint is not None:
            raise
        return None
    source = conversions[0].origin.checkpoint.source
    if source.sha256 != manifest.source.sha256:
        told = f"{source.name} is not the checkpoint of the engine, {manifest.source.name}: its digest is another"
        if checkpoint is not None:
            raise UserInput(f"--checkpoint {checkpoint}: {told}.")
        raise Refusal(f"{told}.")
    for conversion in conversions:
        if conversion.role != (manifest.role or ""):  # it stands in the engine, and decides its digest
            continue
        if conversion.opened.contract.window != manifest.window:
            continue
        if sha256_of(export_graph(conversion, steps).folder / MODEL_FILE) == graph:
            return conversion
        conversion.release()
    return None
