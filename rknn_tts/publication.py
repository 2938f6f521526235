"""The end of the road: an engine that every gate lets through, its manifest and twin, put in their places."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from contracts.errors import UserInput
from contracts.files import Content, Pieces
from contracts.manifest import (
    EngineFile,
    Manifest,
    OnnxTwin,
    SetManifest,
    SharedAperture,
    Toolkit,
    manifest_text,
    read_manifest,
)
from contracts.serial import to_json
from contracts.verdicts import Status, Verdict
from cost.aperture import sharing
from engine.result import ENGINE_FILE, read_disabled_rules
from rknn_tts.build_gates import Judged
from rknn_tts.build_step import Build
from rknn_tts.checksums import with_sums
from rknn_tts.graph_at_hand import GraphInfo, NumericGates, twin_of, with_proof
from rknn_tts.outcome import Outcome
from rknn_tts.places import Places
from rknn_tts.publish import each_once, publish
from rknn_tts.roles import measurements_of, shared_cache, verdicts_of
from rknn_tts.steps import Steps
from rknn_tts.verify_record import failed_notes, with_board

TOOLKIT = "rknn-toolkit2"


@dataclass(frozen=True)
class Finished:
    """An engine that every gate lets through, and is not in its place yet.

    Attributes:
        build: what was built, and where it goes.
        graph: the verdicts on its graph.
        numbers: the numeric verdicts.
        judged: the verdicts on the build.
        folder: the build's result.
    """

    build: Build
    graph: GraphInfo
    numbers: NumericGates
    judged: Judged
    folder: Path

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """All verdicts."""
        return (*self.numbers.verdicts, *self.graph.verdicts, *self.judged.verdicts)


@dataclass(frozen=True)
class Publication:
    """What is written for one engine, in order, its manifest, and what is lost with the one that it replaces."""

    files: tuple[tuple[Path, Content], ...]
    manifest: Manifest
    lost: tuple[str, ...]


def publish_engine(finished: Finished, steps: Steps) -> Outcome:
    """Put an engine in its place, with its ONNX twin, host half, layer table and, last, its manifest.

    Raises:
        NotWritten: a place cannot be written; all of them are as they were.
    """
    publication = publication_of(finished)
    files = with_sums(publication.files)
    publish(files)
    told = outcome_of(finished, publication, steps)
    return replace(told, files=tuple(str(path) for path, _ in files))


def publish_set(members: Sequence[Finished], place: Path, steps: Steps) -> Outcome:
    """Put engines that belong together in their places, all or none, and the manifest of the set behind them.

    Args:
        members: the engines.
        place: where the set's manifest goes: their own folder.
        steps: the finished steps.

    Raises:
        NotWritten: a place cannot be written; all of them are as they were.
        ToolFailure: their host halves, or the caches that they keep, are unlike.
    """
    publications = [publication_of(member) for member in members]
    manifest, shared = set_manifest(members, publications)
    files = with_sums(each_once((*(item for p in publications for item in p.files), (place, manifest))))
    publish(files)
    roles = [member.build.source.contract.role for member in members]
    return outcome_of_many(dict(zip(roles, zip(members, publications, strict=True), strict=True)), files, shared, steps)


def outcome_of_many(
    members: Mapping[str | None, tuple[Finished, Publication]],
    files: Sequence[tuple[Path, Content]],
    shared: SharedAperture | None,
    steps: Steps,
) -> Outcome:
    """What the user is told of engines that were written together.

    Args:
        members: the engines, by what verdicts and measurements of each are told under.
        files: what was written.
        shared: which of them fit into one process together.
        steps: the finished steps.
    """
    outcomes = {name: outcome_of(*both, steps) for name, both in members.items()}
    verdicts = tuple(v for name, told in outcomes.items() for v in verdicts_of(name, told.verdicts))
    notes = (note for finished, publication in members.values() for note in notes_of(finished, publication))
    return Outcome(
        files=tuple(str(path) for path, _ in files),
        manifest=None,
        verdicts=verdicts,
        measurements=tuple(m for name, told in outcomes.items() for m in measurements_of(name, told.measurements)),
        notes=(*dict.fromkeys(notes), *unproven_notes(verdicts)),
        reused=tuple(dict.fromkeys(steps.reused)),
        members=tuple(outcomes.values()),
        aperture=shared,
    )


def set_manifest(
    members: Sequence[Finished], publications: Sequence[Publication]
) -> tuple[bytes, SharedAperture | None]:
    """The manifest of engines of one stage that belong together, and which of them fit into one process.

    Raises:
        ToolFailure: the caches that they keep are unlike.
    """
    names = [member.build.places.manifest.name for member in members]
    contracts = [member.build.source.contract for member in members]
    engines = {
        contract.role: member.build.places.engine.name
        for contract, member in zip(contracts, members, strict=True)
        if contract.role is not None
    }
    shared = shared_aperture({name: p.manifest for name, p in zip(names, publications, strict=True)})
    return manifest_text(SetManifest(tuple(names), engines, shared_cache(contracts), shared)).encode(), shared


def shared_aperture(members: Mapping[str, Manifest]) -> SharedAperture | None:
    """Which `members` fit into one process; None where it is not known what one takes."""
    contexts = {name: m.aperture.context_bytes for name, m in members.items() if m.aperture is not None}
    return sharing(contexts) if len(contexts) == len(members) else None


def publication_of(finished: Finished) -> Publication:
    """The files of a finished engine, its manifest last."""
    build, graph, numbers, judged = finished.build, finished.graph, finished.numbers, finished.judged
    folder = finished.folder
    source, places, engine = build.source, build.places, Pieces((folder / ENGINE_FILE,))
    contract = with_proof(source.contract, numbers.proof)
    twin = twin_of(source, numbers.proof)
    manifest = Manifest(
        family=contract.family,
        stage=contract.stage,
        target=build.target,
        toolkit=Toolkit(TOOLKIT, build.request.toolkit, read_disabled_rules(folder)),
        source=contract.source,
        onnx=OnnxTwin(places.onnx.name, twin.sha256, graph.opset, graph.nodes),
        engine=EngineFile(places.engine.name, engine.sha256, engine.size),
        inputs=contract.inputs,
        outputs=contract.outputs,
        layers=judged.layers,
        memory=judged.memory,
        aperture=judged.aperture,
        log=judged.log,
        host=contract.host if source.host is not None else None,
        window=contract.window,
        cache=contract.cache,
        step=contract.step,
        state=contract.state,
        quantisation=contract.quantisation,
        quality=contract.quality,
        trim=contract.trim,
        choices=contract.choices,
        noise=contract.noise,
        thresholds=contract.thresholds,
        passes=contract.passes,
        skipped=contract.skipped,
        role=contract.role,
        verdicts=finished.verdicts,
        measurements=(*contract.measurements, *graph.measurements, *judged.measurements),
    )
    every_layer = json.dumps(to_json(judged.every_layer), indent=0) + "\n"
    manifest, lost = _with_board_figures(manifest, places)
    files: list[tuple[Path, Content]] = [(places.engine, engine), (places.onnx, twin)]
    if source.host is not None and manifest.host is not None:
        files.append((places.engine.with_name(manifest.host.file), source.host.read_bytes()))
    files += [(places.layers, every_layer.encode()), (places.manifest, manifest_text(manifest).encode())]
    return Publication(tuple(files), manifest, lost)


def outcome_of(finished: Finished, publication: Publication, steps: Steps) -> Outcome:
    """What the user is told of an engine that is in its place now."""
    manifest, places = publication.manifest, finished.build.places
    places.failed.unlink(missing_ok=True)
    return Outcome(
        files=tuple(str(path) for path, _ in publication.files),
        manifest=manifest,
        verdicts=manifest.verdicts,
        measurements=manifest.measurements,
        notes=(*notes_of(finished, publication), *unproven_notes(manifest.verdicts)),
        reused=tuple(dict.fromkeys(steps.reused)),
        log=str(places.log),
    )


def notes_of(finished: Finished, publication: Publication) -> tuple[str, ...]:
    """Sentences on one engine, but for that on what is unproven."""
    rules = _rule_notes(publication.manifest.toolkit, finished.build.source.contract.disabled_rules)
    return (*finished.build.source.notes, *rules, *publication.lost, *failed_notes(publication.manifest))


def _with_board_figures(manifest: Manifest, places: Places) -> tuple[Manifest, tuple[str, ...]]:
    """`manifest` with the board figures of the manifest it replaces, if that can be read and is of the same engine;
    and, loudly, that there were some of another one."""
    try:
        earlier = read_manifest(places.manifest)
    except UserInput:
        return manifest, ()
    if earlier.board is None:
        return manifest, ()
    if earlier.engine.sha256 != manifest.engine.sha256:
        return manifest, (f"LOST: a board's figures of {earlier.board.date} were of another engine; probe this one.",)
    return with_board(manifest, earlier.board), ()


def _rule_notes(toolkit: Toolkit, stated: Sequence[str]) -> list[str]:
    """What the user shall know of fuse rules that crashed, as none of those `stated` by a stage: that it is slower."""
    crashed = [rule for rule in toolkit.disabled_rules if rule not in stated]
    if not crashed:
        return []
    rules = ", ".join(crashed)
    return [f"The toolkit crashed in its fuse rule {rules}, so the engine was built without it, and may be slower."]


def unproven_notes(verdicts: Sequence[Verdict]) -> list[str]:
    """Loudly, how many verdicts only a board can give; nothing where there are none."""
    count = sum(verdict.status is Status.UNPROVEN for verdict in verdicts)
    if not count:
        return []
    return [f"UNPROVEN: {count} verdict{'s' * (count > 1)} can only be given by a board; nothing here was run on one."]
