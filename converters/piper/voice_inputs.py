"""What a Piper voice is fed: ids, their count, scales, the speaker's id, and further inputs that stay before the seam.

All are found by type, rank and what they index. One thing structure cannot tell: of two embeddings that are added to
one g, which is the speaker's and which the language's. There an input called after a language is the language's, and
of others the first is the speaker's.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import onnx_ir as ir

from contracts.errors import Refusal
from converters.stages import Array
from converters.vits_seam import VitsSeam
from surgery.graph import ancestors, node_dependencies, value_named

SCALES = 3
"""Piper's `scales` input: noise scale, length scale, noise width."""

LANGUAGE_NAMES = ("lid", "lang")
"""What the name of a language's id is or begins with in public exporters (piper-plus: `lid`; coqui: `langid`)."""

_WHOLE = (ir.DataType.INT64, ir.DataType.INT32)

EXPORT_IT = "export it with piper's export_onnx, whose voices take ids, their count and three scales in one input."
"""What to do where a voice is fed otherwise."""

_FED = frozenset(
    {ir.DataType.BOOL, ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE}
    | {ir.DataType[f"{sign}INT{bits}"] for sign in ("", "U") for bits in (8, 16, 32, 64)}
)
"""Types of inputs that can be fed: onnxruntime takes arrays of numpy's own."""

MOST_FED = 1 << 22
"""Numbers of a further input, its open sizes left out: features of a sentence that a language model made, which are
what is largest of any exporter's (Bert-VITS2: 1024 a phoneme), come to an eighth with 512 phonemes fixed."""

_CARRIES = ("Cast", "Clip", "Identity", "Reshape", "Squeeze", "Unsqueeze")
"""Operators between an id and the lookup: the same number in another form."""


@dataclass(frozen=True)
class ExtraInput:
    """An input that Piper's own exporter does not have, prosody features or a language's id; the gates feed it zeros.

    Attributes:
        name: its name.
        dtype: its type.
        shape: its sizes; a size of the ids' shape, and any open one behind the first, is that of the ids.
    """

    name: str
    dtype: ir.DataType
    shape: tuple[int | str | None, ...]

    def zeros(self, phonemes: int, ids_shape: tuple[int | str | None, ...]) -> Array:
        """Zeros for a sentence of so many `phonemes`; `ids_shape` is the shape that the voice's ids state."""
        open_sizes: dict[int | str | None, int] = dict(zip(ids_shape, (1, phonemes), strict=True))
        open_sizes.pop(None, None)
        sizes = [
            size if isinstance(size, int) else open_sizes.get(size, phonemes if axis else 1)
            for axis, size in enumerate(self.shape)
        ]
        return np.zeros(sizes, self.dtype.numpy())

    def __str__(self) -> str:
        return f"{self.name} {self.dtype.name.lower()} {_sizes(self.shape)}"


@dataclass(frozen=True)
class VoiceInputs:
    """A voice's inputs.

    Attributes:
        ids: name of the phoneme ids, [1, T] int64.
        lengths: name of their count, [1] int64.
        scales: name of the scales, [3] float32.
        speaker: the speaker's id; None for a voice of one speaker.
        extras: further inputs, which the host half takes.
        language: the one of them that is an id in the speaker's embedding; None where there is none.
        unread: names of inputs that the samples do not depend on, which are left out.
        ids_shape: the shape that the ids state.
    """

    ids: str
    lengths: str
    scales: str
    speaker: ExtraInput | None = None
    extras: tuple[ExtraInput, ...] = ()
    language: ExtraInput | None = None
    unread: tuple[str, ...] = ()
    ids_shape: tuple[int | str | None, ...] = (None, None)

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs that the samples depend on, Piper's own first."""
        speaker = () if self.speaker is None else (self.speaker.name,)
        return (self.ids, self.lengths, self.scales, *speaker, *(extra.name for extra in self.extras))

    def feed(self, ids: list[int], scales: tuple[float, float, float], speaker: int, language: int) -> dict[str, Array]:
        """The inputs for one sentence of `ids`, spoken by `speaker` in `language`."""
        fed: dict[str, Array] = {
            self.ids: np.array([ids], np.int64),
            self.lengths: np.array([len(ids)], np.int64),
            self.scales: np.array(scales, np.float32),
        }
        numbers = {given.name: n for given, n in ((self.speaker, speaker), (self.language, language)) if given}
        others = (*self.extras, *((self.speaker,) if self.speaker else ()))
        for given in others:
            fed[given.name] = given.zeros(len(ids), self.ids_shape)
            fed[given.name][...] = numbers.get(given.name, 0)
        return fed


def find_inputs(graph: ir.Graph, seam: VitsSeam, where: str) -> VoiceInputs:
    """The inputs of the voice `graph` with the seam `seam`; `where` names its file in messages.

    Raises:
        Refusal: one of Piper's own is missing or of a fixed size, another cannot be fed, or one reaches the speaker
            embedding that is no id of anything.
    """
    real = [value for value in graph.inputs if value.name not in graph.initializers]

    ids, lengths, scales = _pipers_own(real, where)
    for name in seam.speaker_inputs:
        if table_rows(value_named(graph, name)) is None:
            raise Refusal(f"{where}: the input {name} reaches the speaker embedding, but is the id of nothing in it.")
    read = _read_for(graph, seam.output)
    further = [value for value in real if value not in (ids, lengths, scales)]
    speaker = _speaker([value for value in further if value in read], seam)
    extras = [_described(value, where) for value in further if value in read and value is not speaker]
    language = [extra for extra in extras if extra.name in seam.speaker_inputs]
    return VoiceInputs(
        str(ids.name),
        str(lengths.name),
        str(scales.name),
        None if speaker is None else _described(speaker, where),
        tuple(extras),
        language[0] if language else None,
        tuple(str(value.name) for value in further if value not in read),
        _shape(ids),
    )


def _pipers_own(real: list[ir.Value], where: str) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Ids, their count and scales among `real`, the inputs that are no weights."""

    def of(dtype: ir.DataType, rank: int) -> list[ir.Value]:
        return [value for value in real if value.dtype == dtype and _rank(value) == rank]

    def first(what: str, found: list[ir.Value]) -> ir.Value:
        if not found:
            raise Refusal(f"{where}: is no Piper voice: it has no input for {what}; {EXPORT_IT}")
        return found[0]

    # Further inputs may have type and rank of these; and a speaker's or a language's id those of the count.
    likeliest = sorted(of(ir.DataType.INT64, 2), key=lambda value: table_rows(value) is None)
    ids = first("the phoneme ids (int64, rank 2)", likeliest)
    batch, phonemes = _shape(ids)
    if isinstance(phonemes, int) or (isinstance(batch, int) and batch != 1):
        raise Refusal(
            f"{where}: its input {ids.name} is {_sizes(_shape(ids))}, and the gates speak one sentence of any length; "
            "export it with dynamic axes, as piper's export_onnx does."
        )
    counts = [value for value in of(ir.DataType.INT64, 1) if table_rows(value) is None]
    lengths = first("their count (int64, rank 1)", counts)
    likeliest = sorted(of(ir.DataType.FLOAT, 1), key=lambda value: _shape(value) != (SCALES,))
    scales = first(f"the {SCALES} scales (float, rank 1)", likeliest)
    if (size := _shape(scales)[0]) != SCALES and isinstance(size, int):
        raise Refusal(
            f"{where}: is no Piper voice: its input {scales.name} holds {size} number{'s' * (size != 1)}, not {SCALES} "
            f"scales; {EXPORT_IT}"
        )
    return ids, lengths, scales


def table_rows(given: ir.Value) -> int | None:
    """Rows of the table of embeddings [rows, channels] that the ids in `given` index; None where they index none."""
    seen, todo = {given}, [given]
    while todo:
        for node, place in [(use.node, use.idx) for use in todo.pop().uses()]:
            if node.op_type == "Gather" and place == 1:
                shape = _constant_shape(node.inputs[0])
                if shape is not None and len(shape) == 2:
                    return shape[0]
            elif node.op_type in _CARRIES and place == 0 and node.outputs[0] not in seen:
                seen.add(node.outputs[0])
                todo.append(node.outputs[0])
    return None


def _constant_shape(table: ir.Value | None) -> tuple[int, ...] | None:
    """The shape of a constant; one weight for several equal ones is behind an Identity, one in fp16 behind a Cast."""
    while table is not None and (node := table.producer()) is not None and node.op_type in ("Identity", "Cast"):
        table = node.inputs[0]
    tensor = None if table is None else ir.convenience.get_const_tensor(table)
    return None if tensor is None else tuple(tensor.shape.numpy())


def _speaker(further: list[ir.Value], seam: VitsSeam) -> ir.Value | None:
    """The id of the speaker: of what is in g where there is one, else of what the voice reads before the seam."""
    ids = [v for v in further if v.dtype in _WHOLE and _rank(v) <= 1 and table_rows(v) is not None]
    in_g = [value for value in ids if value.name in seam.speaker_inputs]
    named = [v for v in in_g or ids if not str(v.name).lower().startswith(LANGUAGE_NAMES)]
    return named[0] if named else None


def _described(value: ir.Value, where: str) -> ExtraInput:
    if value.dtype is None or value.shape is None:
        kind = "no type" if value.dtype is None else "no shape"
        raise Refusal(f"{where}: the input {value.name} has {kind}, so nothing can be fed to it; {_WITHOUT_IT}")
    if value.dtype not in _FED:
        kind = value.dtype.name.lower()
        raise Refusal(
            f"{where}: the input {value.name} holds values of the type {kind}, which the gates cannot feed; "
            f"{_WITHOUT_IT}"
        )
    described = ExtraInput(str(value.name), value.dtype, _shape(value))
    if prod(size for size in described.shape if isinstance(size, int)) > MOST_FED:
        raise Refusal(f"{where}: the input {described} is too large for the gates to feed; {_WITHOUT_IT}")
    return described


_WITHOUT_IT = "export the voice with that as a constant, or as numbers of a usual type and size."


def _read_for(graph: ir.Graph, output: str) -> set[ir.Value]:
    return {value for node in ancestors([value_named(graph, output)]) for value in node_dependencies(node)}


def _sizes(shape: tuple[int | str | None, ...]) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def _rank(value: ir.Value) -> int:
    return -1 if value.shape is None else len(value.shape)


def _shape(value: ir.Value) -> tuple[int | str | None, ...]:
    return tuple(size if isinstance(size, int) else size.value for size in value.shape or ())
