"""The graph that is about to be compiled, and the gates on it: cached, each found again by the graph's digest."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from contracts.contract import Contract
from contracts.files import Pieces, sha256_of, sha256_of_bytes
from contracts.verdicts import Measurement, Verdict
from rknn_tts.carried import carried_behind, feeds_from_npz, feeds_to_npz
from rknn_tts.export_step import Proof
from rknn_tts.progress import Say
from rknn_tts.steps import Steps


def nothing_carried() -> bytes:
    """An npz of no arrays."""
    return feeds_to_npz(())


@dataclass(frozen=True)
class OnnxSource:
    """What is compiled.

    Attributes:
        graph: the bare graph, as the toolkit is given it.
        stem: stem of the engine's file.
        contract: its contract, without a proof.
        host: the host half's file; None where there is none.
        make_feeds: gives `feeds`; called when somebody needs them, and once.
        prove: the verdicts that the graph brings along, or reaches now.
        notes: sentences for the user.
        inputs: the user's files that it was made from; what is written replaces none of them.
        refused: failed verdicts on places that a pass had to rewrite and could not.
        exported: whether it came as one ONNX that `export` wrote.
        make_originals: gives `originals`; called when somebody needs them, and once.
        make_calibration: gives `calibration`; likewise.
    """

    graph: Path
    stem: str
    contract: Contract
    host: Path | None
    make_feeds: Callable[[], bytes]
    prove: Callable[[], Proof]
    notes: tuple[str, ...]
    inputs: tuple[Path, ...]
    refused: tuple[Verdict, ...] = ()
    exported: bool = False
    make_originals: Callable[[], bytes] = nothing_carried
    make_calibration: Callable[[], bytes] = nothing_carried

    @cached_property
    def feeds(self) -> bytes:
        """Real inputs of the graph, as an npz (`carried.feeds_to_npz`)."""
        return self.make_feeds()

    @cached_property
    def originals(self) -> bytes:
        """What the unpatched original gives on each of the feeds, as an npz like theirs; an empty one: none is said."""
        return self.make_originals()

    @cached_property
    def calibration(self) -> bytes:
        """What ranges of 8 bits are found on, an npz like the feeds; an empty one where nothing is quantised."""
        return self.make_calibration()


@dataclass(frozen=True)
class GraphInfo:
    """The step `graph`: the structural gates on the graph, and what the manifest says of it."""

    opset: int
    nodes: int
    verdicts: tuple[Verdict, ...]
    measurements: tuple[Measurement, ...]


def check_graph(
    graph: Path, steps: Steps, say: Say, target: str | None = None, accepted: Collection[str] = ()
) -> GraphInfo:
    """The cached structural gates on `graph`: fast, so they come before anything is built. See `judge_structure`."""

    def work() -> GraphInfo:
        from converters.onnx_file import read_onnx
        from rknn_tts.graph_gates import judge_structure

        say.step("checking the graph")
        model = read_onnx(graph, in_place=True)
        verdicts, measurements = judge_structure(model, target, accepted)
        return GraphInfo(
            opset=model.opset_imports.get("", 0),
            nodes=model.graph.num_nodes(),
            verdicts=tuple(verdicts),
            measurements=tuple(measurements),
        )

    parts = {"graph": sha256_of(graph), "target": target or "", "accepted": " ".join(sorted(accepted))}
    return steps.value("graph", GraphInfo, parts, work)


@dataclass(frozen=True)
class NumericGates:
    """What the numeric gates concluded: the export's proof, and the fp16 range of this graph's activations."""

    proof: Proof
    activations: Verdict

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """All verdicts."""
        return (*self.proof.verdicts, self.activations)


def judge_numbers(source: OnnxSource, steps: Steps) -> NumericGates:
    """The source's proof, and the fp16 range of its activations (cached)."""

    def work() -> Verdict:
        from converters.onnx_file import read_onnx
        from gates.fp16_range import activation_range

        return activation_range(read_onnx(source.graph, in_place=True), feeds_from_npz(source.feeds))

    proof = source.prove()
    parts = {"graph": sha256_of(source.graph), "feeds": sha256_of_bytes(source.feeds)}
    return NumericGates(proof, steps.value("activations", Verdict, parts, work))


def with_proof(contract: Contract, proof: Proof) -> Contract:
    """`contract` with what was proven, as an exported ONNX carries it."""
    return dataclasses.replace(contract, passes=proof.passes, verdicts=proof.verdicts, measurements=proof.measurements)


def twin_of(source: OnnxSource, proof: Proof) -> Pieces:
    """The ONNX that stands beside the engine: the graph of `source` with contract, proof and inputs inside.

    It holds all weights, though those of a ladder's rungs are the same: each is compiled again by itself, elsewhere.
    """
    feeds, originals, calibration = map(feeds_from_npz, (source.feeds, source.originals, source.calibration))
    return carried_behind(source.graph, with_proof(source.contract, proof), feeds, originals, calibration)
