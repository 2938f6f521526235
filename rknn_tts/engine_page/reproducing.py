"""How an engine is made again: commands, and the digests that tell whether that worked."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from contracts.manifest import Manifest
from rknn_tts.blocks import Facts, Notice, Verbatim
from rknn_tts.engine_page.elements import Element, Section
from rknn_tts.engine_page.remade import command_of
from rknn_tts.request import Request


def reproducing_section(manifest: Manifest, folder: str, checkpoint_command: str | None, report: Request) -> Section:
    """How the engine of `manifest` is made again.

    Args:
        manifest: the engine's.
        folder: where it stands, as the page calls it; "" where that is the present one.
        checkpoint_command: the command that gives the same graph of the checkpoint; None where that was not tried.
        report: the command that made the page.
    """
    return Section("reproduce", "How to reproduce", tuple(_elements(manifest, folder, checkpoint_command, report)))


def _elements(manifest: Manifest, folder: str, checkpoint_command: str | None, report: Request) -> Iterator[Element]:
    place = f"{folder}/" if folder else ""
    compiling = Request(
        "compile",
        model=f"{place}{manifest.onnx.file}",
        target=manifest.target,
        toolkit=manifest.toolkit.version,
        output="again/",
        accept_regtask=list(manifest.log.accepted),
    )
    yield Notice(
        "from the twin", "The engine's own graph, with its contract inside, compiled again; no checkpoint needed:"
    )
    yield Verbatim(command_of(compiling))
    if checkpoint_command is not None:
        yield Notice("from the checkpoint", "Gives the graph of the twin, to the byte; that was tried for this page:")
        yield Verbatim(checkpoint_command)
    else:
        yield Notice("from the checkpoint", _untried(manifest))
    yield Notice("digests", "Both give an engine of this digest; sha256sum --check reads these lines:")
    yield Verbatim("\n".join(f"{digest}  {name}" for digest, name in _digests(manifest)))
    yield Facts(
        (
            ("checkpoint", f"{manifest.source.name} ({manifest.source.kind}), sha256 {manifest.source.sha256}"),
            ("toolkit", f"{manifest.toolkit.name} {manifest.toolkit.version}, by its lock in requirements/"),
        )
    )
    yield Notice("this page", "Made by:")
    yield Verbatim(command_of(report))


def _untried(manifest: Manifest) -> str:
    if manifest.family is None:
        return "It was made of a foreign ONNX; the manifest does not keep the options of that command."
    words = shlex.join(
        ["rknn-tts", "engine", manifest.family, "--stage", manifest.stage or "", "--target", manifest.target]
    )
    return f"By {words}, with the options that it was built with: the manifest does not keep them, and none were tried."


def _digests(manifest: Manifest) -> Iterator[tuple[str, str]]:
    yield manifest.engine.sha256, manifest.engine.file
    yield manifest.onnx.sha256, manifest.onnx.file
    if manifest.host:
        yield manifest.host.sha256, manifest.host.file
