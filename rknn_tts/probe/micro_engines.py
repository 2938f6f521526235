"""Small graphs compiled by themselves, as any engine is: with every gate, the simulator, a manifest and a twin."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from contracts.contract import Contract, Source
from contracts.errors import ToolFailure
from contracts.thresholds import SIMULATOR
from converters.large_onnx import write_onnx
from gates.graphs import with_shapes
from rknn_tts.carried import Feed, Outputs, feeds_to_npz
from rknn_tts.export_step import Proof
from rknn_tts.finished_graph import described
from rknn_tts.graph_at_hand import OnnxSource
from rknn_tts.onnx_to_engine import finish_engine
from rknn_tts.probe.bounds import FLOOR_DB, operator_bound_db
from rknn_tts.probe.kit_files import Draft
from rknn_tts.progress import Say
from rknn_tts.publication import publication_of
from rknn_tts.publish import publish
from rknn_tts.request import Request
from rknn_tts.steps import Steps
from surgery.declaration import Rewritten


@dataclass(frozen=True)
class MicroGraph:
    """A graph that is compiled by itself.

    Attributes:
        stem: of its files.
        model: as the toolkit gets it.
        source: where its weights come from.
        feeds: inputs.
        expected: what is right for each.
        proof: what is known of it.
        rewritten: what its passes returned.
        disabled_rules: fuse rules of the toolkit that are left out.
    """

    stem: str
    model: ir.Model
    source: Source
    feeds: Sequence[Feed]
    expected: Sequence[Outputs]
    proof: Proof
    rewritten: Sequence[Rewritten] = ()
    disabled_rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Workshop:
    """What micro-engines are compiled with.

    Attributes:
        request: its options on the toolkit count.
        target: for which chip.
        toolkit: by which version of the toolkit.
        accepted: hardware fields that the engine at hand was built past, as `--accept-regtask` takes them.
        folder: the kit's, where their files go.
        work: where a graph is put while it is compiled.
        steps: the cache.
        say: gets the progress.
    """

    request: Request
    target: str
    toolkit: str
    accepted: tuple[str, ...]
    folder: Path
    work: Path
    steps: Steps
    say: Say


def compiled(graph: MicroGraph, name: str, kind: str, what: str, proves: Sequence[str], shop: Workshop) -> Draft:
    """The case `name` of the engine that `graph` gives; nothing but its build log is written.

    What a board owes follows from what the simulator reaches (`bounds.operator_bound_db`).

    Raises:
        GateFailure, ToolFailure, NotWritten: as of `finish_engine`; or the simulator gave no figure.
    """
    wanted = dataclasses.replace(
        shop.request,
        command="compile",
        model=None,
        target=shop.target,
        toolkit=shop.toolkit,
        output=str(shop.folder),
        accept_regtask=list(shop.accepted),
    )
    finished = finish_engine(wanted, shop.target, _source(graph, shop.target, shop.work), shop.steps, shop.say)
    publication = publication_of(finished)
    reached_db = next((v.measured for v in finished.verdicts if v.gate == SIMULATOR), None)
    if not isinstance(reached_db, (int, float)):
        raise ToolFailure(f"{graph.stem}: the simulator gave no figure, so nothing bounds what a board may give.")
    places = finished.build.places
    publish([(path, content) for path, content in publication.files if path == places.layers])
    bound_db = operator_bound_db(reached_db)
    return Draft(
        name=name,
        kind=kind,
        what=f"{what}; the simulator reached {reached_db:.1f} dB, a board owes {bound_db:.1f}",
        proves=tuple(proves),
        manifest=places.manifest.name,
        files=[(path.name, content) for path, content in publication.files if path != places.layers],
        feeds=graph.feeds,
        expected=graph.expected,
        bounds_db={name: bound_db for outputs in graph.expected for name in outputs},
        simulator_db=float(reached_db),
    )


def _source(graph: MicroGraph, target: str, work: Path) -> OnnxSource:
    path = work / f"{graph.stem}.onnx"
    write_onnx(graph.model, path)
    bare = Contract(
        None,
        None,
        graph.source,
        inputs=(),
        outputs=(),
        thresholds={SIMULATOR: FLOOR_DB},
        cuts_for=target,
        disabled_rules=graph.disabled_rules,
    )
    return OnnxSource(
        graph=path,
        stem=graph.stem,
        contract=described(bare, with_shapes(graph.model), graph.rewritten),
        host=None,
        make_feeds=lambda: feeds_to_npz(graph.feeds),
        prove=lambda: graph.proof,
        notes=(),
        inputs=(),
        make_originals=lambda: feeds_to_npz(graph.expected),
    )
