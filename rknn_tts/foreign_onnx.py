"""An ONNX that nobody made for us: its sizes are pinned, the preflight passes run on it, and it is described.

What is judged, compiled and published is made of the graph in memory, and kept in the cache: the user may go on with
the file meanwhile.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx_ir as ir

from contracts.contract import Cache, CodeStep, Contract, Noise, Source
from contracts.errors import GateFailure, Refusal, RknnTtsError, UserInput
from contracts.files import sha256_of
from contracts.serial import from_json, to_json
from contracts.verdicts import Verdict, failure
from converters.large_onnx import sha256_of_onnx, write_onnx
from converters.onnx_file import external_files, load_external, read_onnx
from converters.registry import STAGES
from converters.stages import Probe, Session
from gates.graphs import with_shapes
from gates.snr import ALL_ZERO, compare_outputs, verdict_of, worst
from rknn_tts.array_archive import archive_digest
from rknn_tts.carried import Feed, feeds_to_npz
from rknn_tts.earning.choosing import Choosing, hits_of
from rknn_tts.earning.offers import offers_of_cuts
from rknn_tts.export_step import Proof
from rknn_tts.feeds import stand_in_feed, unused_array
from rknn_tts.finished_graph import check_size, described, fed_inputs
from rknn_tts.graph_at_hand import OnnxSource
from rknn_tts.inputs_file import read_inputs
from rknn_tts.parity import followed_feeds, judge_passes, least_db
from rknn_tts.progress import Say
from rknn_tts.request import Request
from rknn_tts.rewriting import refusals, rewrite, without_skipped
from rknn_tts.runnable import make_runnable
from rknn_tts.session_form import session_form
from rknn_tts.shapes import agreed, parse_shapes, resolve_shapes
from rknn_tts.steps import Steps
from surgery.declaration import Pass, Rewritten
from surgery.matching import opset_of
from surgery.normalise_initializers import normalise_initializers
from surgery.normalise_static_inputs import normalise_static_inputs
from surgery.normalise_unused_inputs import normalise_unused_inputs, unused_inputs
from surgery.preflight import preflight

EQUAL_DB = 100.0
"""Least SNR of the graph that the toolkit is given against the file as it is: 1e-5 relative."""

ORIGINAL_GATE = "fp32.original"

_MODEL_FILE, _INFO_FILE, _FEEDS_FILE = "model.onnx", "preflight.json", "feeds.npz"


@dataclass(frozen=True)
class _Info:
    """`preflight.json`: what the passes came to, beside the graph."""

    contract: Contract
    refused: tuple[Verdict, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ForeignOnnx:
    """One foreign ONNX on its way to the toolkit. It is read and rewritten when somebody needs it, and once.

    Attributes:
        path: its file.
        request: the options that say how it is read: shapes, inputs, passes that are left out.
        digests: of the file and its external data.
        target: for which chip, where that is known.
        chosen: the passes that run on it once its sizes are pinned.
        say: gets the progress.
    """

    path: Path
    request: Request
    digests: Mapping[str, str]
    target: str | None
    chosen: tuple[Pass, ...]
    say: Say

    @cached_property
    def model(self) -> ir.Model:
        """The file's graph as onnxruntime can run and repeat it: its external data in memory, no two nodes of one name,
        no branch that puts out what it did not make, and a seed at each node that draws.

        Raises:
            UserInput: it was changed while it was read.
            Refusal: it is too large.
        """
        model = read_onnx(self.path)
        check_size(str(self.path), model)
        self.say.step(f"reading {self.path.name}")
        load_external(model)
        if digests_of(self.path) != self.digests:
            raise UserInput(f"{self.path}: was changed while it was read; run the command again.")
        make_runnable(model)
        return model

    @cached_property
    def given(self) -> tuple[Feed, ...]:
        """The windows of `--inputs`; none where there is no such file."""
        if self.request.inputs is None:
            return ()
        return read_inputs(Path(self.request.inputs), fed_inputs(self.model), self._unused)

    @cached_property
    def _unused(self) -> frozenset[str]:
        """The file's inputs that no output depends on, if they are dropped: nobody need say anything about them."""
        if normalise_unused_inputs().name in self.request.no_pass:
            return frozenset()
        return frozenset(str(value.name) for value in unused_inputs(self.model.graph))

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """What runs on it."""
        arrays = {name: tuple(np.shape(array)) for name, array in self.given[0].items()} if self.given else {}
        origin = "its array in --inputs" if self.request.inputs is not None else "the real input that the file carries"
        given = agreed(parse_shapes(self.request.shape), arrays, origin)
        shapes = resolve_shapes(fed_inputs(self.model), given, str(self.path), self._unused)
        every = (normalise_initializers(), normalise_static_inputs(shapes), *self.chosen)
        return without_skipped(every, self.request.no_pass)

    @cached_property
    def rewritten(self) -> Sequence[Rewritten]:
        """What each pass returned."""
        passes = self.passes
        self.say.step("rewriting the graph for the NPU")
        return rewrite(self.model, passes)

    @cached_property
    def feeds(self) -> Sequence[Feed]:
        """Inputs of the file's graph: those given, or a stand-in."""
        shaped = self._behind("normalise_static_inputs")
        if not self.given:
            if self.probe is not None:
                return (self.probe.feed,)
            dropped = {name for done in self.rewritten for name in done.interface.removed}  # some where constants fold
            return (stand_in_feed(shaped, str(self.path), dropped),)
        unused = {str(value.name): unused_array(value) for value in fed_inputs(shaped) if value.name in self._unused}
        return tuple({**unused, **window} for window in self.given)

    @cached_property
    def probe(self) -> Probe | None:
        """What a stage judges the graph on, where it is one of its own and no inputs are given."""
        if self.given:
            return None
        shaped = self._behind("normalise_static_inputs")
        found = (stage.probe(shaped) for stage in STAGES if stage.probe is not None)
        return next((probe for probe in found if probe is not None), None)

    def _behind(self, name: str) -> ir.Model:
        """The graph behind the pass `name`; the file's where that was left out."""
        found = zip(self.passes, self.rewritten, strict=True)
        return next((result.model for bound, result in found if bound.name == name), self.model)

    def open_session(self, model: ir.Model) -> Session:
        """A graph in onnxruntime; what fails there is told of the file."""
        from gates.session import Session as OrtSession

        return OrtSession(session_form(model, opset_of(self.model)), name=str(self.path)).run


def open_foreign(path: Path, request: Request, target: str, steps: Steps, say: Say) -> OnnxSource:
    """Preflight the ONNX in `path` for `target`.

    Raises:
        UserInput: no ONNX, or an option does not fit it.
        Refusal: an input has no fixed size, or the file is too large.
    """
    digests = digests_of(path)
    foreign = ForeignOnnx(path, request, digests, target, preflight(target), say)
    parts = {
        **digests,
        "name": path.name,
        "target": target,
        "shape": " ".join(sorted(request.shape)),
        "no_pass": " ".join(sorted(set(request.no_pass))),
        "inputs": _inputs_digest(request),
    }
    folder = steps.folder("preflight", parts, functools.partial(_preflight, foreign))
    info = from_json(_Info, json.loads((folder / _INFO_FILE).read_text(encoding="utf-8")), "preflight")
    graph = folder / _MODEL_FILE

    def feeds() -> bytes:
        made = steps.folder("feeds", parts, lambda made: _write_feeds(foreign, made))
        return (made / _FEEDS_FILE).read_bytes()

    return OnnxSource(
        graph=graph,
        stem=path.stem,
        contract=info.contract,
        host=None,
        make_feeds=feeds,
        prove=lambda: steps.value("prove", Proof, {**parts, "graph": sha256_of(graph)}, lambda: _prove(foreign, graph)),
        notes=info.notes,
        inputs=(path, *external_files(path)),
        refused=info.refused,
    )


def _inputs_digest(request: Request) -> str:
    return archive_digest(Path(request.inputs), f"--inputs {request.inputs:.300}") if request.inputs else ""


def digests_of(path: Path) -> dict[str, str]:
    """Of the ONNX, and of the files with its external data."""
    if not path.is_file():
        read_onnx(path)  # says what is wrong
    data = " ".join(f"{file.relative_to(path.parent)}:{sha256_of(file)}" for file in external_files(path))
    return {"onnx": sha256_of(path), "data": data}


def _preflight(foreign: ForeignOnnx, folder: Path) -> None:
    """The step `preflight`: the finished graph and what is known of it, in `folder`."""
    finished = foreign.rewritten[-1].model
    check_size(str(foreign.path), finished)
    write_onnx(finished, folder / _MODEL_FILE)
    contract = _contract(foreign, finished)
    info = _Info(contract, tuple(refusals(foreign.passes, foreign.rewritten)), _notes(foreign, contract))
    (folder / _INFO_FILE).write_text(json.dumps(to_json(info)), encoding="utf-8")


def _write_feeds(foreign: ForeignOnnx, folder: Path) -> None:
    feeds = followed_feeds(foreign.model, foreign.rewritten, foreign.open_session, foreign.feeds)
    (folder / _FEEDS_FILE).write_bytes(feeds_to_npz(feeds))


def _prove(foreign: ForeignOnnx, graph: Path) -> Proof:
    """Each pass against the graph before it, and the finished `graph` against the file as it is.

    Raises:
        GateFailure: the file gives another graph now than the one at hand, of which nothing would be proven.
    """
    passes, rewritten = foreign.passes, foreign.rewritten
    if sha256_of_onnx(rewritten[-1].model) != sha256_of(graph):
        raise GateFailure(
            f"{foreign.path.name} gives another graph now than the one that is compiled, so nothing is proven of that; "
            "run the command again with --force."
        )
    foreign.say.step("comparing with the original")
    try:
        parity = judge_passes(passes, foreign.model, rewritten, foreign.open_session, foreign.feeds)
    except RknnTtsError as error:  # the comparison is owed, so that it could not be made is a failure of it
        return Proof((), (failure(ORIGINAL_GATE, f"it could not run: {error}", unit="dB"),), ())
    whole = worst(compare_outputs(a, b) for a, b in zip(parity.first, parity.last, strict=True))
    detail = "the graph that is compiled against the file as it is, both in onnxruntime"
    if foreign.probe is not None:
        detail += "; degraded to that, for nothing else is known of a slice"
    verdict = verdict_of(ORIGINAL_GATE, whole, least_db(passes, rewritten, EQUAL_DB), detail)
    verdicts = (*parity.verdicts, verdict)
    if foreign.request.inputs is None:
        verdicts = tuple(map(_pointed_to_inputs, verdicts))
    return Proof(parity.records, verdicts, ())


def _pointed_to_inputs(verdict: Verdict) -> Verdict:
    """`verdict`, reached on stand-ins; where they gave zeros, it says that real inputs may give more."""
    if ALL_ZERO not in verdict.detail:
        return verdict
    remedy = "these were seeded stand-ins for the inputs: give real ones with --inputs FILE.npz"
    return dataclasses.replace(verdict, detail=f"{verdict.detail}; {remedy}")


def _contract(foreign: ForeignOnnx, finished: ir.Model) -> Contract:
    try:
        shaped = with_shapes(finished)
    except Refusal:  # no valid ONNX: the structural gate says why
        shaped = finished
    source = Source(foreign.path.name, foreign.digests["onnx"], "checkpoint")
    skipped = tuple(sorted(set(foreign.request.no_pass)))
    bare = Contract(None, None, source, inputs=(), outputs=(), skipped=skipped, cuts_for=foreign.target)
    step, cache = _state_of(shaped)
    hits = hits_of(foreign.passes, foreign.rewritten)
    choices = Choosing().made(foreign.path.stem, bare, offers_of_cuts(foreign.target), skipped, hits)
    contract = dataclasses.replace(described(bare, shaped, foreign.rewritten), step=step, cache=cache)
    return dataclasses.replace(contract, choices=choices)


def _state_of(model: ir.Model) -> tuple[CodeStep | None, Cache | None]:
    """The step and cache that a stage makes out in `model`, a graph of its own that lost its contract."""
    for stage in STAGES:
        found = stage.recognised(model) if stage.recognised is not None else None
        if found is not None:
            return found
    return None, None


def _notes(foreign: ForeignOnnx, contract: Contract) -> tuple[str, ...]:
    hits = {bound.name: done.hits for bound, done in zip(foreign.passes, foreign.rewritten, strict=True)}
    notes = []
    if listed := hits.get("normalise_initializers"):
        notes.append(f"The file lists {listed} of its weights among its inputs; they are fixed in the engine.")
    dropped = [name for done in foreign.rewritten for name in done.interface.removed]
    if dropped:
        notes.append(f"No output depends on {', '.join(dropped)}: dropped from the engine's inputs.")
    if contract.step is not None and contract.cache is not None:
        notes.append(
            f"By its sizes it is a step of {contract.step.codes} codes with a cache of {contract.cache.numel} numbers; "
            "how that is laid out, only an export's contract tells."
        )
    notes += [
        f"The input {noise.input} is noise that the file drew itself: draw it anew for every run, "
        f"{_distribution(noise)}."
        for noise in contract.noise
    ]
    if foreign.probe is not None:
        notes.append(foreign.probe.note)
    elif foreign.request.inputs is None:
        notes.append("Judged on seeded stand-ins for the inputs; --inputs FILE.npz judges on real ones.")
    return tuple(notes)


def _distribution(noise: Noise) -> str:
    if noise.distribution == "uniform":
        return f"uniform between {noise.a:g} and {noise.b:g}"
    return f"normal with mean {noise.a:g} and standard deviation {noise.b:g}"
