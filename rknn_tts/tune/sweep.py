"""Builds what is swept, first for its cost alone, then under the gates as `engine` does, but writes no engine.

An engine that fails is a row with its reason. Finished steps are found again, those of `engine` too, so that a sweep
that was interrupted goes on where it was, and one that is repeated takes seconds.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from contracts.errors import GateFailure, Refusal, ToolFailure, UserInput
from contracts.thresholds import SIMULATOR
from contracts.verdicts import Status, Verdict
from engine.environment import converter_python
from engine.result import ENGINE_FILE
from rknn_tts.background import beside_each_other
from rknn_tts.checkpoint_to_onnx import Conversion, open_conversions
from rknn_tts.exported_sources import exported_sources
from rknn_tts.graph_at_hand import OnnxSource
from rknn_tts.graph_cost import CostBuilds, GraphCost
from rknn_tts.numbers import number
from rknn_tts.onnx_to_engine import finish_engine
from rknn_tts.places import ANOTHER_FOLDER, LOGS, make_folder
from rknn_tts.progress import Say
from rknn_tts.request import Request
from rknn_tts.roles import RoleSay
from rknn_tts.steps import Steps
from rknn_tts.tune.candidates import CODES, WINDOW, Candidate
from rknn_tts.tune.rows import COSTED, FAILED, PASSED, Row, size_of

_FP32 = "fp32."
"""How the gates over whole utterances are called."""

_DB = "dB"


@dataclass(frozen=True)
class Swept:
    """One engine of a candidate.

    Attributes:
        candidate: the candidate.
        row: what is known of it.
        source: its graph; None where there is none.
    """

    candidate: Candidate
    row: Row
    source: OnnxSource | None


@dataclass(frozen=True)
class Sweep:
    """The builds of one sweep.

    Attributes:
        request: what was asked.
        target: the SoC.
        steps: the cache.
        say: gets the progress.
        notes: sentences of the stages for the user, without repetition; grows.
    """

    request: Request
    target: str
    steps: Steps
    say: Say
    notes: list[str] = field(default_factory=list)

    def check_toolkit(self) -> None:
        """See that the toolkit is there, before the graphs are made, which takes minutes.

        Raises:
            UserInput: there is none of this version, and it cannot be set up.
        """
        converter_python(self.request.toolkit)

    def opened(self, candidate: Candidate) -> list[Swept]:
        """The graphs of `candidate`, one for each of its engines; without one where the stage refuses it."""
        say = RoleSay(self.say, candidate.name)
        try:
            conversions = open_conversions(candidate.request(self.request), self.target, say)
            sources = exported_sources(conversions, self.steps)
        except (UserInput, Refusal, GateFailure, ToolFailure) as error:
            return [Swept(candidate, _failed(_bare_row(candidate, "", ""), str(error)), None)]
        for note in (note for source in sources for note in source.notes):
            if note not in self.notes:
                self.notes.append(note)
        roles = [source.contract.role or "" for source in sources]
        several = len(sources) > 1
        made = []
        for source, role in zip(sources, roles, strict=True):
            row = _bare_row(candidate, role if several else "", roles[0] if several else "")
            made.append(Swept(candidate, replace(row, size=size_of(source.contract)), source))
        _let_go(conversions)
        return made

    def costed(self, swept: Sequence[Swept]) -> list[Swept]:
        """`swept` with what the engines cost; two are built at a time, neither simulated nor kept."""
        make_folder(LOGS, ANOTHER_FOLDER)
        python = converter_python(self.request.toolkit)
        builds = CostBuilds(self.request, self.target, python, self.steps, LOGS)
        ready = [one for one in swept if one.source is not None]
        done = 0

        def cost(one: Swept) -> GraphCost:
            nonlocal done
            assert one.source is not None
            found = builds.cost(f"{one.source.stem}-{self.target}.tune", one.source.graph.read_bytes())
            done += 1
            self.say.step(f"building for {self.target} for its cost: {one.row.name}, {done} of {len(ready)}")
            return found

        costs = dict(
            zip((id(one) for one in ready), beside_each_other([partial(cost, one) for one in ready]), strict=True)
        )
        return [replace(one, row=_with_cost(one.row, costs[id(one)])) if id(one) in costs else one for one in swept]

    def proven(self, swept: Swept) -> Swept:
        """`swept` built whole, under every gate."""
        source, row = swept.source, swept.row
        assert source is not None
        with tempfile.TemporaryDirectory(prefix="rknn-tts-tune-") as folder:
            request = replace(swept.candidate.request(self.request), output=f"{folder}/")
            try:
                finished = finish_engine(request, self.target, source, self.steps, RoleSay(self.say, row.name))
            except GateFailure as error:
                return replace(swept, row=_failed(row, _gate_reason(error)))
            except (UserInput, Refusal, ToolFailure) as error:
                return replace(swept, row=_failed(row, str(error)))
            judged, verdicts = finished.judged, finished.verdicts
            return replace(
                swept,
                row=replace(
                    row,
                    status=PASSED,
                    layers=judged.layers,
                    memory=judged.memory,
                    aperture_bytes=judged.aperture.context_bytes if judged.aperture is not None else None,
                    engine_bytes=(finished.folder / ENGINE_FILE).stat().st_size,
                    simulator_db=_worst(verdicts, SIMULATOR),
                    fp32_db=_worst(verdicts, _FP32),
                ),
            )


def _bare_row(candidate: Candidate, role: str, first_role: str) -> Row:
    """The row of `candidate` before anything is known of it.

    Of the engines of a set, the first decodes whole windows and the others what is shorter (see `pipeline.engine`).
    """
    value = f"{candidate.value} codes" if candidate.knob == CODES else candidate.name
    masked = candidate.form == "masked" or (candidate.knob == WINDOW and role != first_role)
    return Row(f"{value} {role}".rstrip(), candidate.value, candidate.form, candidate.context, role, masked, COSTED)


def _with_cost(row: Row, cost: GraphCost) -> Row:
    if cost.layers is None:
        return _failed(row, cost.fault)
    return replace(row, layers=cost.layers, memory=cost.memory)


def _failed(row: Row, reason: str) -> Row:
    return replace(row, status=FAILED, reason=" ".join(reason.split()))


def _gate_reason(error: GateFailure) -> str:
    """The first verdict that failed, with its figures where it has any; else what `error` says."""
    bad = next((verdict for verdict in error.verdicts if verdict.status is Status.FAILED), None)
    if bad is None:
        return str(error)
    if isinstance(bad.measured, (int, float)) and isinstance(bad.threshold, (int, float)):
        bounds = f"{number(bad.measured)} {bad.unit}".rstrip()
        return f"{bad.gate}: {bounds}, and {number(bad.threshold)} is the bound"
    return f"{bad.gate}: {bad.detail}"


def _worst(verdicts: Sequence[Verdict], gates: str) -> float | None:
    """The least figure in dB of the verdicts whose gates' names begin with `gates`; None where there is none."""
    found = [
        float(verdict.measured)
        for verdict in verdicts
        if verdict.gate.startswith(gates) and verdict.unit == _DB and isinstance(verdict.measured, (int, float))
    ]
    finite = [value for value in found if math.isfinite(value)]
    return min(finite) if finite else None


def _let_go(conversions: Sequence[Conversion]) -> None:
    """Let go of the graphs of a candidate: those of all candidates do not fit into memory together."""
    for conversion in conversions:
        conversion.release()
    conversions[0].origin.release()
