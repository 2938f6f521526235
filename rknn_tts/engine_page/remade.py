"""The conversion that made an engine, found again from its manifest: for what only the checkpoint can tell.

A manifest keeps no options. So those that it hints at are tried, the stage's defaults first, until the graph that they
give is the one in the engine's twin, to the byte.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rknn_tts_runtime.manifest import MASKING

from contracts.contract import RANDOM, Source
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


class Member(NamedTuple):
    """An engine to find: its manifest, and the ONNX that it was compiled from."""

    manifest: Manifest
    twin: Path


@dataclass(frozen=True)
class Remade:
    """The conversions that give engines' graphs again.

    Attributes:
        conversions: of the checkpoint, one an engine.
        request: what asks for them.
    """

    conversions: tuple[Conversion, ...]
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


def remade(members: Sequence[Member], checkpoint: str | None, steps: Steps, say: Say) -> Remade:
    """The conversions that make the graphs in the twins of `members`, of the checkpoint that their manifests name.

    Args:
        members: one engine, or all of a ladder, of one stage.
        checkpoint: where the user says the checkpoint is; None: the one of the stage's package.
        steps: those of the command.
        say: gets the progress.

    Raises:
        UserInput: `checkpoint` is another one.
        Refusal: the checkpoint is not at hand, or no options that are tried give those graphs.
    """
    first = members[0].manifest
    stage = stage_of(first)
    graphs = {member.manifest.role or "": _graph_in(member) for member in members}
    place = _place(first, checkpoint)
    for number, chosen in enumerate(_requests([member.manifest for member in members], stage, place)):
        try:
            conversions = open_conversions(chosen, first.target, say)
        except UserInput:
            if checkpoint is not None and not number:
                raise
            continue
        _check_source(first, conversions[0].origin.checkpoint.source, checkpoint)
        found = tuple(conversion for conversion in conversions if conversion.role in graphs)
        whole = len(found) == len(graphs) and (len(members) == 1 or len(conversions) == len(members))
        if whole and all(_gives(conversion, members, graphs, steps) for conversion in found):
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


def _graph_in(member: Member) -> str:
    """The digest of the bare graph in a twin."""
    manifest, twin = member
    if not twin.is_file() or sha256_of(twin) != manifest.onnx.sha256:
        what = "another one than the manifest tells of" if twin.is_file() else "not at hand"
        raise Refusal(f"its twin {twin.name} is {what}.")
    return sha256_of_bytes(without_carried(twin.read_bytes()))


def _requests(manifests: Sequence[Manifest], stage: Stage, checkpoint: str | None) -> Iterator[Request]:
    """What may have asked for the engines: the stage's defaults, and what their geometry tells."""
    manifest = manifests[0]
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
    context = manifest.window.left if manifest.window else None
    for told in _told_by_windows(manifests):
        given = {name: value for name, value in told.items() if name in stage.options}
        if "windows" in told and "windows" not in given:
            continue
        # The context that a stage has anyway is seldom said: without it, what the user's own command made is found.
        yield dataclasses.replace(base, **given)
        if "context" in stage.options:
            yield dataclasses.replace(base, **given, context=context)
        if manifest.role is not None and "member" in stage.options:
            yield dataclasses.replace(base, **given, member=manifest.role)


def _told_by_windows(manifests: Sequence[Manifest]) -> Iterator[dict[str, Any]]:
    """Options that windows tell: of an engine alone that is no rung of a ladder, and of rungs."""
    windows = [(one.window.frames, _letter(one)) for one in manifests if one.window is not None]
    if len(windows) < len(manifests):
        yield {}
        return
    (frames, letter), *others = windows
    if not others and letter != TRIMMED:
        yield {"window": frames, **({"decoder_mask": True} if letter == MASKED else {"no_decoder_mask": True})}
    yield {"windows": ",".join(f"{frames}{letter}" for frames, letter in windows)}


def _letter(manifest: Manifest) -> str:
    """What stands behind a rung's width."""
    if manifest.trim is not None:
        return TRIMMED
    return MASKED if any(record.name == MASKING and record.hits for record in manifest.passes) else ""


def _check_source(manifest: Manifest, source: Source, checkpoint: str | None) -> None:
    """See that the checkpoint is the one that the manifest names.

    Raises:
        UserInput: the one that the user names is another one.
        Refusal: the package's is.
    """
    if source.sha256 == manifest.source.sha256:
        return
    told = f"{source.name} is not the checkpoint of the engine, {manifest.source.name}: its digest is another"
    if checkpoint is not None:
        raise UserInput(f"--checkpoint {checkpoint}: {told}.")
    raise Refusal(f"{told}.")


def _gives(conversion: Conversion, members: Sequence[Member], graphs: Mapping[str, str], steps: Steps) -> bool:
    """Whether the conversion gives the graph of the member of its role, which stands in the engine as well."""
    manifest = next(one.manifest for one in members if (one.manifest.role or "") == conversion.role)
    if conversion.opened.contract.window != manifest.window:
        return False
    return sha256_of(export_graph(conversion, steps).folder / MODEL_FILE) == graphs[conversion.role]
