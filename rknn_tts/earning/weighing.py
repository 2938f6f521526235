"""`--weigh`: an engine's variants built for their layer tables, and the cheapest one that passes the gates.

A variant is found again as any build for a layer table is (the step `layers`). A cheaper one is built once more, whole,
to see whether it passes every gate; what is kept is found again when the engine itself is built.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

import onnx_ir as ir

from contracts.choices import ON_THIS_ENGINE, Variant
from contracts.errors import GateFailure, ToolFailure, UserInput
from contracts.files import sha256_of_bytes
from contracts.verdicts import Verdict, failed
from engine.environment import converter_python
from logs.regtask import parse_accepted
from rknn_tts.background import beside_each_other
from rknn_tts.build_step import Build, built, judge
from rknn_tts.carried import without_carried
from rknn_tts.checkpoint_to_onnx import Conversion
from rknn_tts.earning.choosing import trying
from rknn_tts.earning.greedy import Weighed, choose
from rknn_tts.earning.offers import Offer, Picks, arranged, offers
from rknn_tts.earning.table import weighed_text
from rknn_tts.exported_sources import exported_sources
from rknn_tts.finished_graph import serialised
from rknn_tts.graph_at_hand import check_graph, judge_numbers
from rknn_tts.graph_cost import CostBuilds, GraphCost
from rknn_tts.places import ANOTHER_FOLDER, LOGS, engine_places, make_folder
from rknn_tts.request import Request
from rknn_tts.rewriting import refusals, rewrite, without_skipped
from rknn_tts.steps import Steps
from surgery.declaration import Pass, Rewritten
from surgery.inferred import static_shape


def weighed(conversions: Sequence[Conversion], request: Request, target: str, steps: Steps) -> tuple[Conversion, ...]:
    """`conversions` as their engines are cheapest.

    Raises:
        UserInput: one is of 8 bits, whose ranges are found in the whole build; or logs cannot be written.
        RknnTtsError: a checkpoint is refused.
    """
    return tuple(_weighed(conversion, request, target, steps) for conversion in conversions)


def _weighed(conversion: Conversion, request: Request, target: str, steps: Steps) -> Conversion:
    export = conversion.opened
    if export.contract.quantisation is not None:
        raise UserInput("--weigh builds in fp16, and this engine is of 8 bits: leave it out.")
    make_folder(LOGS, ANOTHER_FOLDER)
    python = converter_python(request.toolkit)
    rules = export.contract.disabled_rules
    scales = Scales(conversion, CostBuilds(request, target, python, steps, LOGS, rules))
    choices = choose(
        scales.offers,
        scales.weigh,
        partial(_fault, conversion, request, target, python, steps),
        ON_THIS_ENGINE,
        weighed_text(export.stem, target, request.toolkit),
    )
    return replace(conversion, choosing=replace(conversion.choosing, weighed=choices))


class Scales:
    """Weighs the variants of one engine: each different graph is built once, and rewritten from where it differs from
    the one before it."""

    def __init__(self, conversion: Conversion, builds: CostBuilds) -> None:
        self.conversion = conversion
        self.builds = builds
        self._costs: dict[str, GraphCost] = {}
        self._trail: list[tuple[tuple[str, str], Rewritten]] = []
        self._lines: int | None = None

    @cached_property
    def offers(self) -> tuple[Offer, ...]:
        """What is weighed; what the user leaves out is no question."""
        found = offers(self.conversion.opened, self.builds.target)
        return tuple(offer for offer in found if offer.name not in self.conversion.skipped)

    def weigh(self, picks: Picks) -> Weighed:
        """What the engine of these variants costs."""
        passes = self._passes(picks)
        try:
            rewritten = self._rewritten(passes, picks)
        except ToolFailure as error:
            return Weighed(str(error), Variant("", fault=str(error)))
        if refused := refusals(passes, rewritten):
            fault = "; ".join(verdict.detail for verdict in refused)
            return Weighed(fault, Variant("", fault=fault))
        graph = without_carried(serialised(rewritten[-1].model))
        digest = sha256_of_bytes(graph)
        if digest not in self._costs:
            changed = ", ".join(f"{variant} {name}" for name, variant in list(picks.items())[-1:])
            self.conversion.say.step(f"weighing for {self.builds.target}: {changed or 'as it is'}")
            name = f"{self.conversion.opened.stem}-{self.builds.target}.weighed-{digest[:8]}"
            self._costs[digest] = self.builds.cost(name, graph)
        idle = frozenset(one.name for one, done in zip(passes, rewritten, strict=True) if not done.hits)
        cost = self._costs[digest]
        if self._lines is None:
            self._lines = cost.regtask_lines
        return Weighed(digest, figures_of(cost, self._lines), idle, _interface(rewritten[-1].model))

    def _passes(self, picks: Picks) -> tuple[Pass, ...]:
        return without_skipped(arranged(self.conversion.opened, self.builds.target, picks), self.conversion.skipped)

    def _rewritten(self, passes: Sequence[Pass], picks: Picks) -> list[Rewritten]:
        """What each of `passes` returned, the first ones as they did the last time."""
        names = [(bound.name, picks.get(bound.name, "")) for bound in passes]
        alike = itertools.takewhile(lambda pair: pair[0][0] == pair[1], zip(self._trail, names, strict=False))
        kept = [done for (_, done), _ in alike]
        model = kept[-1].model if kept else self.conversion.opened.model
        made = [*kept, *rewrite(model, passes[len(kept) :])]
        self._trail = list(zip(names, made, strict=True))
        return made


def _interface(model: ir.Model) -> tuple[tuple[int, ...], ...]:
    """The shapes of what a finished graph takes and gives, which are static."""
    values = (*model.graph.inputs, *model.graph.outputs)
    return tuple(static_shape(value) or () for value in values)


def figures_of(cost: GraphCost, lines: int) -> Variant:
    """What a variant costs, under no name yet.

    Args:
        cost: of its graph.
        lines: that tell of overflowing fields in the log of the engine as it was. Where a variant has more, it may be
            wrong on a board, of which the gates leave some unproven, for a little time that it saves.
    """
    if cost.layers is None:
        return Variant("", fault=cost.fault)
    layers = cost.layers
    more = cost.regtask_lines > lines
    fault = f"{cost.regtask_lines} lines of its log tell of overflowing fields, {lines} as it was" if more else ""
    return Variant("", layers.count, len(layers.cpu), layers.cycles, layers.rw_kb, layers.modelled_ms, fault)


def _fault(conversion: Conversion, request: Request, target: str, python: Path, steps: Steps, picks: Picks) -> str:
    """Why the engine of the variants `picks` does not pass, as a clause; "" where every gate lets it."""
    conversion = replace(conversion, choosing=trying(picks))
    say = conversion.say
    (source,) = exported_sources([conversion], steps)
    accepted = tuple(sorted(parse_accepted(text) for text in request.accept_regtask))
    with tempfile.TemporaryDirectory() as folder:
        places = engine_places(source.contract, source.stem, target, folder)
        build = Build(request, target, source, accepted, places, python)
        try:
            graph = check_graph(source.graph, steps, say, target, [str(key) for key in accepted])
            checks: tuple[Callable[[], tuple[Verdict, ...]], ...] = (
                lambda: judge_numbers(source, steps).verdicts,
                lambda: judge(build, built(build, steps, say, lambda: None), steps, say).verdicts,
            )
            found = [verdict for verdicts in beside_each_other(checks) for verdict in verdicts]
        except (GateFailure, ToolFailure) as error:
            return str(error)
    bad = failed([*source.refused, *graph.verdicts, *found])
    return "; ".join(f"{verdict.gate}: {verdict.detail}" for verdict in bad)
