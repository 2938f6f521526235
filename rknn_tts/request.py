"""What a user asks for: the one dataclass behind every command's options, `make` variable and JSON field.

Each field states its help, the commands it belongs to, and whether it is a positional argument. The command line is
built from this table; the option is the field's name with dashes (`--decoder-mask`), the `make` variable its name in
capitals (`DECODER_MASK=1`), but for those in `MAKE_NAMES` and `FLAG_NAMES`.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from contracts.errors import UserInput
from environments.locks import DEFAULT_TOOLKIT
from rknn_tts.hints import did_you_mean

BUILDING = ("engine", "compile")
CONVERTING = ("engine", "export")
WRITING = ("engine", "export", "compile")
FOREIGN = ("compile", "surgery")
FOREIGN_ONLY = ("shape", "inputs", "no_pass")
"""Options of `compile` that make no sense for an ONNX which `export` wrote: it brings all of that along."""
STREAMING = (*CONVERTING, "bench")
"""Commands that open a checkpoint whose steps may go along a stream."""
OPENING = (*STREAMING, "tune")
"""Commands that open a checkpoint."""
EVERY = (
    "engine",
    "export",
    "compile",
    "surgery",
    "inspect",
    "diff",
    "plan",
    "report",
    "probe",
    "verify",
    "bench",
    "tune",
    "farm",
    "catalogue",
    "families",
    "passes",
    "doctor",
    "clean",
)

MAKE_NAMES = {"output": "OUT"}
"""Fields whose `make` variable is not simply their flag in capitals."""

FLAG_NAMES = {"timeout_s": "timeout", "memory_gb": "memory", "passes": "pass"}
"""Fields whose flag is not their name: without the unit, which the help states, or in the singular."""

EXPECTED = {str: "a text", int: "a whole number", float: "a number", bool: "1 or 0"}
"""What an option's kind is called in a sentence."""


def _option(
    help_text: str,
    commands: tuple[str, ...],
    default: Any = None,
    *,
    positional: bool = False,
    required: tuple[str, ...] | None = None,
) -> Any:
    required_by = required if required is not None else commands if positional else ()
    metadata = {"help": help_text, "commands": commands, "positional": positional, "required_by": required_by}
    if isinstance(default, list):
        return field(default_factory=list, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Request:
    """One command with its options; None where the user said nothing."""

    command: str
    family: str | None = _option("The family: see `rknn-tts families`.", OPENING, positional=True)
    model: str | None = _option(
        "An ONNX to compile or to operate on; an engine, a manifest, a layer table or an ONNX to inspect; an engine to "
        "probe, or whose manifest takes what a probe found.",
        ("compile", "surgery", "inspect", "probe", "verify"),
        positional=True,
    )
    also: list[str] = _option(
        "Further exports of the same set, a ladder's other windows: engines of all of them are written, or none.",
        ("compile",),
        [],
        positional=True,
        required=(),
    )
    a: str | None = _option("The engine to compare B with, its manifest or layer table.", ("diff",), positional=True)
    b: str | None = _option("The engine to compare with A, its manifest or layer table.", ("diff",), positional=True)
    result: str | None = _option(
        "What `python -m rknn_tts_runtime probe` found on a board: its JSON.", ("verify",), positional=True
    )
    engines: list[str] = _option(
        "What a plan places, or a report is of: engines, manifests, manifests of sets, or folders of engines.",
        ("plan", "report"),
        [],
        positional=True,
        required=("report",),
    )
    matrix: str | None = _option(
        "The matrix: a TOML file that names checkpoints, families, stages, widths and targets.",
        ("farm",),
        positional=True,
    )
    folder: str | None = _option("A farm's output folder, or any folder of engines.", ("catalogue",), positional=True)
    target: str | None = _option(
        "The SoC to build for: rk3588, rk3576, rk3568, rk3566 or rk3562. Export without: what pays on each of them; "
        "bench and tune: whose modelled cost is told, rk3588 by default.",
        (*WRITING, "bench", "tune"),
        required=BUILDING,
    )
    stage: str | None = _option("The family's stage; its first one by default.", OPENING)
    all: bool = _option(
        "Build every stage of the family, and write one manifest of them all and MANIFEST.sha256.", ("engine",), False
    )
    checkpoint: str | None = _option(
        "The checkpoint to convert: a file; a folder, hf://OWNER/REPO or random (qwen3, inflect, cosyvoice2, "
        "cosyvoice3); a package's by default. A pattern ('voices/*.onnx') stands for many: engine and export convert "
        "each. report: the one that the engine was made of, where it is a file of yours.",
        (*OPENING, "report"),
    )
    jobs: int | None = _option(
        "Convert at most so many checkpoints of a pattern at once; by default one a processor, as memory allows.",
        CONVERTING,
    )
    window: int | None = _option("Width of the compiled window in latent frames.", CONVERTING)
    windows: str | None = _option(
        "Widths of windows, one engine each; m masks its decoder, for utterances shorter than a window, t drops "
        "context on the way: 128m,256t,448t (piper's and inflect's decoder); tune: the widths that are swept.",
        (*CONVERTING, "tune"),
    )
    context: int | None = _option("Frames of context on each side of what a window emits.", CONVERTING)
    decoder_mask: bool = _option(
        "Mask inside the decoder too, so that utterances shorter than a window end exactly.", CONVERTING, False
    )
    no_decoder_mask: bool = _option(
        "Leave the decoder unmasked, where masking it is the default (inflect).", CONVERTING, False
    )
    speaker: int | None = _option(
        "Number of the speaker that gates and samples speak with, of a voice of several; 0 by default (piper).",
        CONVERTING,
    )
    widths: str | None = _option(
        "Widths in tokens, one engine each: 128,192 (the default, piper's duration_encoder).", CONVERTING
    )
    relative: str | None = _option(
        "How relative attention is computed: banded (the default) or gather (piper's duration_encoder).", CONVERTING
    )
    sample_rate: int | None = _option(
        "Samples per second, for a checkpoint that does not state it.", (*CONVERTING, "tune")
    )
    config: str | None = _option(
        "The model's config.json, where it does not stand beside the checkpoint.", (*CONVERTING, "tune")
    )
    member: str | None = _option(
        "Only this one of a stage's engines: full or short (kokoro), main, first or window (qwen3), first or steady "
        "(cosyvoice2's flow_encoder), step or s200 (flow_estimator).",
        CONVERTING,
    )
    norm: str | None = _option(
        "How the engine for whole windows normalises: native (the default) or gap (means by pooling).",
        CONVERTING,
    )
    sine: str | None = _option("How sines are computed: triangle, fine, soft, floor, clip or exact.", CONVERTING)
    max_axis: int | None = _option(
        "Walk windows of at most this many spectrogram columns inside the graph, for a wider --window.", CONVERTING
    )
    padding: int | None = _option("Frames of context on each side of a window inside the graph.", CONVERTING)
    codes: str | None = _option("Codes that a step decodes, one step each: 64,16 (the default, qwen3).", OPENING)
    seam: str | None = _option("What a step takes: hidden (the default) or codes (qwen3).", STREAMING)
    cache: str | None = _option("The state of a stream: as in the reference or minimal (qwen3).", STREAMING)
    window_role: str | None = _option(
        "Also a step that decodes a left context anew with the codes behind it: 25+12 (qwen3).", CONVERTING
    )
    lengths: str | None = _option(
        "Lengths in frames, one engine each: 110,200,250,400 (cosyvoice3; cosyvoice2's flow_estimator and speaker).",
        CONVERTING,
    )
    chunk: int | None = _option("Speech tokens that a step of a stream takes: 16 (cosyvoice2's flow).", CONVERTING)
    look_ahead: str | None = _option(
        "Tokens ahead that a step of the encoder sees, one engine each: 1,3 (cosyvoice2's flow_encoder).", CONVERTING
    )
    history: int | None = _option("Speech tokens of a stream that are remembered (cosyvoice2's flow).", CONVERTING)
    buckets: str | None = _option("Mel frames of the vocoder, one engine each: 32,40 (cosyvoice2).", CONVERTING)
    precision: str | None = _option(
        "fp16, or w8a8: weights and activations of 8 bits (cosyvoice2's speech_head, whose default it is).", CONVERTING
    )
    calibration: str | None = _option(
        "Real inputs that ranges of 8 bits are found on: an .npz (cosyvoice2's speech_head).", CONVERTING
    )
    allow_quantized: bool = _option(
        "Let a stage be built in 8 bits that is known to lose too much (cosyvoice2, cosyvoice3).", CONVERTING, False
    )
    contexts: str | None = _option("Frames of context that are swept: 28,32; the stage's own by default.", ("tune",))
    utterances: str | None = _option(
        "How long utterances are that the ladder is chosen for: a JSON of seconds and weights; sentences of read "
        "English by default.",
        ("tune",),
    )
    rungs: int | None = _option("Windows of a ladder, at most; 3 by default.", ("tune",))
    quick: bool = _option("Run the gates of the ladder's windows alone, not of all that are swept.", ("tune",), False)
    length: int | None = _option("Codes of the stream that is timed, up to 4096; 192 by default.", ("bench",))
    sample: str | None = _option(
        "Write a sentence into this folder, as the original speaks it and as the engine does (kokoro, piper, inflect).",
        ("engine",),
    )
    no_sample: bool = _option("Leave out what the engine sounds like, and build nothing.", ("report",), False)
    text: str | None = _option("What the sample says, through piper's phonemiser (piper).", ("engine", "report"))
    ids: str | None = _option(
        "What the sample says, as the voice's own ids: 1,0,20,0,2 (piper, inflect).", ("engine", "report")
    )
    save_checkpoint: str | None = _option(
        "Write the checkpoint as it was read, recovered weights too, to this file (.pth, kokoro).", ("export",)
    )
    passes: list[str] = _option(
        "A pass to run, in this order: NAME or NAME:key=value,... May be repeated; all that compile runs by default.",
        ("surgery",),
        [],
    )
    cost: str | None = _option("Build for this SoC before and behind each pass, and show what changed.", ("surgery",))
    check: bool = _option("Compare each pass's graph with the one before it, in dB.", ("surgery",), False)
    save: str | None = _option("Write the rewritten graph to this file.", ("surgery",))
    shape: list[str] = _option(
        "The sizes of an input: name:1,192,93. May be repeated; a symbolic size counts for all inputs.",
        FOREIGN,
        [],
    )
    inputs: str | None = _option(
        "Real inputs to judge on: an .npz with an array for each input (0/name, 1/name, ... for several windows).",
        FOREIGN,
    )
    no_pass: list[str] = _option("Leave this pass out: see `rknn-tts passes`. May be repeated.", WRITING, [])
    weigh: bool = _option(
        "Build this very engine with each optional pass and without it, and keep what is cheapest and passes; takes "
        "minutes. Else what was weighed of another of its stage counts.",
        CONVERTING,
        False,
    )
    toolkit: str = _option("Version of rknn-toolkit2.", (*BUILDING, "surgery", "tune"), DEFAULT_TOOLKIT)
    output: str | None = _option(
        "Where to write: a folder, or the file itself (.rknn, .onnx for export, .json for plan and tune, .html for "
        "report); probe: the folder of the kit; farm: the folder of all engines, in place of the matrix's own.",
        (*WRITING, "plan", "report", "probe", "tune", "farm"),
    )
    cores: int | None = _option("Processors that the farm uses; all that it may, by default.", ("farm",))
    profile: str | None = _option(
        "A profile of Snakemake, a folder with a config.yaml: which cluster runs the jobs, and how.", ("farm",)
    )
    dry_run: bool = _option("Say what would be done, and do nothing.", ("farm",), False)
    against: str | None = _option(
        "An earlier catalogue.json: what is better, worse, new or gone since.", ("farm", "catalogue")
    )
    operators: str | None = _option(
        "The rewritten operators that a kit has engines of: auto (those that the engine uses, the default), all, none.",
        ("probe",),
    )
    absolute: bool = _option("Name files by whole paths, so that the plan may stand anywhere.", ("plan",), False)
    reference: bool = _option(
        "Only what the reference application knows: no roles host and short, no ladder of windows, no CosyVoice2.",
        ("plan",),
        False,
    )
    schema: bool = _option("Print the JSON Schema of plans, and write nothing.", ("plan",), False)
    force: bool = _option(
        "Do every step again, though its result is at hand.",
        (*WRITING, "surgery", "report", "probe", "tune", "farm"),
        False,
    )
    accept_regtask: list[str] = _option(
        "Build past this hardware field: target:offset:shift:limit. May be repeated.", BUILDING, []
    )
    timeout_s: float | None = _option(
        "Stop the toolkit after this many seconds.", (*BUILDING, "surgery", "probe", "tune")
    )
    memory_gb: float | None = _option(
        "Stop the toolkit past this many GB, and of many checkpoints those that would take more together; 90 % of the "
        "machine by default. Farm: what all jobs on this machine may take together.",
        (*BUILDING, "surgery", "probe", "tune", "farm"),
    )
    json: bool = _option("Print one JSON object instead of text.", EVERY, False)
    junit: str | None = _option("Write the verdicts to this file as JUnit XML.", (*WRITING, "farm", "catalogue"))


@dataclass(frozen=True)
class Option:
    """One field of `Request` as a command line or `make` sees it.

    `kind` is the plain type of a value: str, int, float or bool; `many` where it may be repeated;
    `required` where the command cannot do without (a `Request` may still lack it: whoever runs it checks).
    """

    name: str
    kind: type
    many: bool
    default: Any
    help: str
    commands: tuple[str, ...]
    positional: bool
    required: bool

    @property
    def flag(self) -> str:
        """The command line's spelling."""
        return "--" + FLAG_NAMES.get(self.name, self.name).replace("_", "-")

    @property
    def variable(self) -> str:
        """`make`'s spelling."""
        return MAKE_NAMES.get(self.name, FLAG_NAMES.get(self.name, self.name).upper())


def options(command: str | None = None) -> tuple[Option, ...]:
    """The options of `command` in order, or of all commands."""
    hints = typing.get_type_hints(Request)
    found = []
    for entry in dataclasses.fields(Request):
        if entry.metadata and (command is None or command in entry.metadata["commands"]):
            many = typing.get_origin(hints[entry.name]) is list
            default = [] if many else entry.default
            metadata = dict(entry.metadata)
            required_by = metadata.pop("required_by")
            required = bool(required_by) if command is None else command in required_by
            found.append(Option(entry.name, _plain(hints[entry.name]), many, default, required=required, **metadata))
    return tuple(found)


def request_from_make(command: str, environment: Mapping[str, str], given: str) -> Request:
    """The request behind `make COMMAND NAME=value ...`.

    Args:
        command: the command.
        environment: where `make` exported its variables.
        given: names of the variables set on make's command line, blank-separated, each with or without `=`.

    Raises:
        UserInput: a variable on make's command line is unknown or not the command's, or a value cannot be read.
    """
    known = {option.variable: option for option in options(command)}
    everywhere = {option.variable for option in options()}
    for name in (word.split("=")[0] for word in given.split()):
        if name not in known and name in everywhere:
            raise UserInput(f"make {command} takes no {name}; it takes {', '.join(known)}.")
        if name not in known:
            hint = did_you_mean(name, known) or f" make {command} takes {', '.join(known)}."
            raise UserInput(f"There is no variable {name}.{hint}")
    values = {
        option.name: _read(option, text) for option in known.values() if (text := environment.get(option.variable))
    }
    return Request(command=command, **values)


def taken_from_environment(command: str, environment: Mapping[str, str], given: str) -> list[str]:
    """Variables of `make COMMAND` that count though they do not stand on its command line, as `NAME=value`."""
    on_line = {word.split("=")[0] for word in given.split()}
    names = [option.variable for option in options(command) if option.variable not in on_line]
    return [f"{name}={environment[name]}" for name in names if environment.get(name)]


def _plain(hint: Any) -> type:
    if typing.get_origin(hint) in (types.UnionType, typing.Union, list):
        return _plain(next(a for a in typing.get_args(hint) if a is not type(None)))
    assert isinstance(hint, type)
    return hint


_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def _read(option: Option, text: str) -> Any:
    if option.many:
        return text.split()
    if option.kind is bool:
        if text.lower() in _TRUE + _FALSE:
            return text.lower() in _TRUE
        raise UserInput(f"{option.variable}={text}: {EXPECTED[bool]} is expected.")
    if option.kind is str:
        return text
    try:
        return option.kind(text)
    except ValueError:
        raise UserInput(f"{option.variable}={text}: {EXPECTED[option.kind]} is expected.") from None
