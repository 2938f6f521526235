"""One turn of the researcher's loop: chosen passes on any ONNX, and what each of them hits, loses and costs.

The graph may be any that `compile` takes, or one that `export` wrote; nothing is compiled into an engine's place. What
a graph costs is the layer table of what `compile` would build of it: behind the passes that every graph is owed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import onnx
import onnx_ir as ir

from contracts.errors import ToolFailure, UserInput
from contracts.verdicts import Verdict, failed
from converters.onnx_file import external_files
from engine.environment import converter_python
from engine.targets import resolve_target
from gates.snr import compare_outputs, worst
from rknn_tts.background import beside_each_other
from rknn_tts.carried import Feed, carried_feeds, without_carried
from rknn_tts.chosen_passes import chosen_passes
from rknn_tts.finished_graph import serialised
from rknn_tts.foreign_onnx import ForeignOnnx, digests_of
from rknn_tts.graph_cost import CostBuilds, GraphCost
from rknn_tts.overwriting import NAME_LIMIT_BYTES
from rknn_tts.parity import judge_passes
from rknn_tts.places import ANOTHER_FOLDER, LOGS, make_folder
from rknn_tts.progress import Say
from rknn_tts.publish import publish
from rknn_tts.request import Request
from rknn_tts.rewriting import refusals, rewrite
from rknn_tts.steps import open_steps
from surgery.declaration import Pass, Refused, Rewritten
from surgery.preflight import owed, preflight

_ANOTHER_FILE = "name another file"

_PRODUCER = "rknn-tts surgery"

BEFORE = "before"
"""The name of the graph as it is read, its sizes pinned."""


@dataclass(frozen=True)
class Tried:
    """A graph of the trial: the one before all passes, or the one behind a pass.

    Attributes:
        name: of the pass; `BEFORE` for the first.
        hits: how many places it rewrote.
        refused: places that cannot be compiled as they are and that it cannot rewrite, as sentences.
        verdict: its graph against the one before it; None where nothing was compared, or there is nothing to.
        nodes: of the graph.
        cost: what the graph costs; None where nobody asked.
    """

    name: str
    hits: int
    refused: tuple[str, ...]
    verdict: Verdict | None
    nodes: int
    cost: GraphCost | None


@dataclass(frozen=True)
class Trial:
    """What one turn came to.

    Attributes:
        model: the file.
        target: whose cost is shown; None where nobody asked.
        tried: the graphs, in order; where no pass was named, those that a pass changed.
        whole_db: the last graph's outputs against the first's; None where nothing was compared.
        judged_on: what the comparison ran on.
        saved: the file that the last graph was written to.
        notes: sentences for the user.
        fault: why the turn failed, as a sentence; None where it did not.
    """

    model: str
    target: str | None
    tried: tuple[Tried, ...]
    whole_db: float | None
    judged_on: str
    saved: str | None
    notes: tuple[str, ...]
    fault: str | None


def try_passes(request: Request, say: Say) -> Trial:
    """Run the passes that `request` names, or all that `compile` would, on its file.

    Raises:
        UserInput: no ONNX, no such pass, or an option does not fit the file.
        ToolFailure: a pass broke.
        NotWritten: the graph cannot be saved.
    """
    assert request.model is not None
    path = Path(request.model)
    target = resolve_target(request.cost) if request.cost is not None else None
    passes = chosen_passes(request.passes, target) if request.passes else preflight(target)
    save = _save_place(request.save, path)
    foreign = _FileAtHand(path, request, digests_of(path), target, passes, say)
    rewritten = foreign.rewritten
    pinned = len(rewritten) - len(passes)
    first = rewritten[pinned - 1].model
    results = rewritten[pinned:]
    told = [
        (bound, result)
        for bound, result in zip(passes, results, strict=True)
        if request.passes or result.hits or result.refused
    ]
    costs = _costs(request, target, path, first, told, say) if target else {}
    verdicts, whole_db = _compared(foreign, say) if request.check else ({}, None)
    tried = [Tried(BEFORE, 0, (), None, first.graph.num_nodes(), costs.get(id(first)))]
    tried += [
        Tried(
            name=bound.name,
            hits=result.hits,
            refused=tuple(map(_sentence, result.refused)),
            verdict=verdicts.get(bound.name),
            nodes=result.model.graph.num_nodes(),
            cost=costs.get(id(result.model)),
        )
        for bound, result in told
    ]
    trial = Trial(
        model=str(path),
        target=target,
        tried=tuple(tried),
        whole_db=whole_db,
        judged_on=_judged_on(foreign) if request.check else "",
        saved=None,
        notes=(),
        fault=_fault(tried),
    )
    if save is not None and trial.fault is None:
        publish([(save, _saved_bytes(results[-1].model))], _ANOTHER_FILE)
        trial = replace(trial, saved=str(save), notes=(_saved_note(save, request.check),))
    return trial


class _FileAtHand(ForeignOnnx):
    """A foreign ONNX, or one that `export` wrote, whose real inputs it carries."""

    @cached_property
    def carried(self) -> tuple[Feed, ...]:
        """The windows that the file carries."""
        return carried_feeds(self.model, str(self.path))

    @cached_property
    def given(self) -> tuple[Feed, ...]:
        """The windows of `--inputs`, or else those that the file carries."""
        return super().given or self.carried


def _costs(
    request: Request, target: str, path: Path, first: ir.Model, done: Sequence[tuple[Pass, Rewritten]], say: Say
) -> dict[int, GraphCost]:
    """What each different graph costs, by the identity of its model."""
    graphs = {id(first): (f"0-{BEFORE}", first)}
    for place, (bound, result) in enumerate(done, start=1):
        graphs.setdefault(id(result.model), (f"{place}-{bound.name}", result.model))
    ready = {key: _ready(model) for key, (_, model) in graphs.items()}
    distinct = {graph: name for key, (name, _) in reversed(graphs.items()) if isinstance(graph := ready[key], bytes)}
    names = [f"{path.stem}-{target}.{name}" for name in distinct.values()]
    if max((len(os.fsencode(f"{name}.layers.json")) for name in names), default=0) > NAME_LIMIT_BYTES:
        raise UserInput(f"{path}: its name is too long for those of its layer tables, which hold it; rename it.")
    make_folder(LOGS, ANOTHER_FOLDER)
    builds = CostBuilds(request, target, converter_python(request.toolkit), open_steps(request.force, say.note), LOGS)
    graphs_text = "1 graph" if len(distinct) == 1 else f"{len(distinct)} graphs"
    say.step(f"building for {target} what was not built before of {graphs_text}")
    found = beside_each_other([partial(builds.cost, *one) for one in zip(names, distinct, strict=True)])
    costs = dict(zip(distinct, found, strict=True))
    return {key: costs[graph] if isinstance(graph, bytes) else graph for key, graph in ready.items()}


def _ready(model: ir.Model) -> bytes | GraphCost:
    """`model` as the toolkit is given it; a cost without an engine where an owed pass refuses it, or breaks."""
    passes = owed()
    try:
        rewritten = rewrite(model, passes)
    except ToolFailure as error:
        return GraphCost(fault=str(error))
    if refused := refusals(passes, rewritten):
        return GraphCost(fault="; ".join(verdict.detail for verdict in refused))
    return without_carried(serialised(rewritten[-1].model))


def _compared(foreign: ForeignOnnx, say: Say) -> tuple[dict[str, Verdict], float]:
    """The verdict on each pass that changed something, by its name, and the whole against the file as it is."""
    feeds = foreign.feeds
    say.step("comparing each graph with the one before it")
    parity = judge_passes(
        foreign.passes, foreign.model, foreign.rewritten, foreign.open_session, feeds[:1], padded_feeds=feeds[1:]
    )
    whole = worst(compare_outputs(a, b) for a, b in zip(parity.first, parity.last, strict=True))
    return {verdict.gate.removeprefix("pass."): verdict for verdict in parity.verdicts}, whole.snr_db


def _judged_on(foreign: _FileAtHand) -> str:
    windows = f"{len(foreign.feeds)} window{'s' * (len(foreign.feeds) > 1)}"
    if foreign.request.inputs is not None:
        return f"{windows} of {foreign.request.inputs}"
    if foreign.carried:
        return f"the real inputs that the file carries ({windows})"
    return "seeded stand-ins for the inputs; --inputs FILE.npz judges on real ones"


def _sentence(refused: Refused) -> str:
    return f"{refused.node}: {refused.precondition}: {refused.limit} is needed, {refused.got}"


def _fault(tried: Sequence[Tried]) -> str | None:
    """Why the turn failed: a pass that changed more than it may or found a place it cannot rewrite, or a last graph
    that does not build."""
    bad = failed([one.verdict for one in tried if one.verdict is not None])
    if bad:
        return f"{', '.join(verdict.gate for verdict in bad)} failed: {bad[0].detail.rstrip('.')}."
    refusing = next((one for one in tried if one.refused), None)
    if refusing is not None:
        return f"The pass {refusing.name} refused {refusing.refused[0]}."
    last = tried[-1].cost
    return f"The last graph does not build: {last.fault}" if last is not None and last.fault else None


def _save_place(save: str | None, path: Path) -> Path | None:
    """Where the rewritten graph goes.

    Raises:
        UserInput: that is no .onnx, it cannot be written there, or something stands there that no turn has saved.
    """
    if save is None:
        return None
    place = Path(save)
    if len(os.fsencode(place.name)) > NAME_LIMIT_BYTES:
        raise UserInput(f"--save {save}: a file's name has at most {NAME_LIMIT_BYTES} bytes; {_ANOTHER_FILE}.")
    if place.suffix != ".onnx" or place.is_dir():
        raise UserInput(f"--save {save}: a file ending in .onnx is expected.")
    if place.resolve() in {file.resolve() for file in (path, *external_files(path))}:
        raise UserInput(f"--save {save}: is an input of this command, and would be replaced; name another file.")
    make_folder(place.parent, _ANOTHER_FILE)
    if place.exists() and not (place.is_file() and _was_saved(place)):
        raise UserInput(f"--save {save}: stands there already, and was not saved by this command; {_ANOTHER_FILE}.")
    return place


def _saved_bytes(model: ir.Model) -> bytes:
    """`model` as `--save` writes it, by which a later turn knows that it may replace it."""
    proto = onnx.ModelProto.FromString(without_carried(serialised(model)))
    proto.producer_name = _PRODUCER
    data: bytes = proto.SerializeToString()
    return data


def _was_saved(place: Path) -> bool:
    with place.open("rb") as file:  # the producer's name is the second field
        return _PRODUCER.encode() in file.read(len(_PRODUCER) + 32)


def _saved_note(save: Path, checked: bool) -> str:
    text = f"{save} carries no contract and no verdicts: compile takes it as a foreign ONNX"
    return f"{text}." if checked else f"{text}; nothing was compared, --check does."
