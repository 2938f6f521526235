"""An Inflect v2 model as its two graphs, `duration.onnx` and `decode.onnx`, checked against each other; its seam."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from contracts.errors import Refusal, UserInput
from converters.inflect.config import Stated
from converters.inflect.seam import Seam, find_seam
from converters.onnx_join import joined
from converters.stages import Array
from converters.vits_windows import AUDIO, LATENT, MASK
from surgery.graph import ancestors, extract, node_dependencies, value_named
from surgery.graph_constants import add_constant
from surgery.interface import fresh_name

SAMPLE_RATE = 24_000
"""Hz, of both releases (family-facts); a config.json may state it."""

_AXES = 3
"""Of the noise, [1, C, N]."""

NOISE, NOISE_SCALE = "zp_noise", "noise_scale"
"""What the host half calls these inputs, whatever `decode.onnx` does: that is their names in the published files."""


@dataclass(frozen=True)
class Graphs:
    """The two graphs, and what sentences call them."""

    duration: ir.Model
    decode: ir.Model
    duration_name: str
    decode_name: str


@dataclass(frozen=True)
class Voice:
    """An opened model.

    Attributes:
        graphs: as they were read.
        seam: in `decode`.
        wires: inputs of `decode`, each with the output of `duration` that it takes.
        ids, lengths, length_scale: inputs of `duration`: int64 [1, T], int64 [1], float.
        symbols: rows of the symbol table.
        sample_rate: in Hz.
    """

    graphs: Graphs
    seam: Seam
    wires: dict[str, str]
    ids: str
    lengths: str
    length_scale: str
    symbols: int
    sample_rate: int

    def durations_feed(self, ids: list[int], length_scale: float = 1.0) -> dict[str, Array]:
        """The inputs of `duration` for `ids`."""
        rank = _rank(self.graphs.duration, self.length_scale)
        return {
            self.ids: np.array([ids], np.int64),
            self.lengths: np.array([len(ids)], np.int64),
            self.length_scale: np.full((1,) * rank, length_scale, np.float32),
        }

    def scale(self, noise_scale: float) -> dict[str, Array]:
        """The input of `decode` that its noise is scaled by, where it has one."""
        if self.seam.scale is None:
            return {}
        rank = _rank(self.graphs.decode, self.seam.scale)
        return {self.seam.scale: np.full((1,) * rank, noise_scale, np.float32)}


def open_voice(graphs: Graphs, stated: Stated | None) -> Voice:
    """The model of these graphs; `stated` is what its config says of them.

    Raises:
        Refusal: they are no Inflect v2, not two of one, or hold what is not finite.
        UserInput: the config is another model's; both figures are named.
    """
    for model, name in ((graphs.duration, graphs.duration_name), (graphs.decode, graphs.decode_name)):
        check_finite(model, name)
    seam = find_seam(graphs.decode, graphs.decode_name)
    ids, lengths, length_scale = _duration_inputs(graphs)
    if stated is not None:
        _check_stated(stated, graphs, seam)
    return Voice(
        graphs=graphs,
        seam=seam,
        wires=_wires(graphs, seam),
        ids=ids,
        lengths=lengths,
        length_scale=length_scale,
        symbols=_symbols(graphs, ids),
        sample_rate=SAMPLE_RATE if stated is None else stated.sample_rate,
    )


def _check_stated(stated: Stated, graphs: Graphs, seam: Seam) -> None:
    channels = shape[1] if (shape := value_named(graphs.decode.graph, seam.noise).shape) else None
    remedy = "give the config.json it came with, or none"
    if stated.hop != seam.hop:
        raise UserInput(
            f"{graphs.decode_name}: has {seam.hop} samples a frame (hop), and config.json says {stated.hop}; {remedy}."
        )
    if isinstance(channels, int) and stated.channels not in (None, channels):
        raise UserInput(
            f"{graphs.decode_name}: has a latent of {channels} channels, and config.json says {stated.channels} "
            f"(inter_channels); {remedy}."
        )


def check_finite(model: ir.Model, where: str) -> None:
    """See that every weight is finite: NaN in the part before the seam would reach no gate on the decoder's graph.

    Raises:
        Refusal: one is not; it is named.
    """
    for value in model.graph.initializers.values():
        tensor = value.const_value
        if tensor is not None and tensor.dtype.is_floating_point() and not np.isfinite(tensor.numpy()).all():
            raise Refusal(f"{where}: the weight {value.name} holds NaN or infinity; get the file again.")


def decoder_cut(voice: Voice) -> ir.Model:
    """The model from the seam to the samples, unpatched, of any length."""
    seam = voice.seam
    cut = extract(voice.graphs.decode, {seam.latent: LATENT, seam.mask: MASK}, {seam.output: AUDIO})
    latent, mask = cut.graph.inputs
    latent.shape, mask.shape = ir.Shape([1, "channels", "frames"]), ir.Shape([1, 1, "frames"])
    latent.dtype = mask.dtype = ir.DataType.FLOAT
    return cut


def watched_decode(voice: Voice) -> ir.Model:
    """`decode` as it is, with what it has at the seam as further outputs: the reference of all gates."""
    seam, decode = voice.seam, voice.graphs.decode
    names = {str(value.name): str(value.name) for value in _inputs(decode)}
    return extract(decode, names, {seam.output: AUDIO, seam.latent: LATENT})


def host_half(voice: Voice) -> ir.Model:
    """All before the seam, for onnxruntime on the board's CPU: `duration` and the head of `decode` as one graph.

    Inputs: those of `duration`, then `zp_noise` [1, C, >= N], standard normal float32, and `noise_scale`. N is what the
    durations come to, which nobody knows beforehand, so the noise is cut to the mean's shape, as Piper's is.
    Outputs: `z` [1, C, N] and `y_mask` [1, 1, N], float32.
    """
    seam, graphs = voice.seam, voice.graphs
    head = extract(graphs.decode, {name: name for name in _ahead(graphs.decode, seam.latent)}, {seam.latent: LATENT})
    _cut_noise(head.graph, seam)
    taken = {value.name for value in head.graph.inputs}
    wires = {name: source for name, source in voice.wires.items() if name in taken}
    whole, names = joined(graphs.duration, head, wires)
    inputs = {str(value.name): str(value.name) for value in graphs.duration.graph.inputs}
    inputs[names[seam.noise]] = NOISE
    if seam.scale is not None:
        inputs[names[seam.scale]] = NOISE_SCALE
    host = extract(whole, inputs, {names[LATENT]: LATENT, voice.wires[seam.mask]: MASK})
    latent, mask = host.graph.outputs
    latent.shape, mask.shape = ir.Shape(["batch", "channels", "frames"]), ir.Shape(["batch", 1, "frames"])
    latent.dtype = mask.dtype = ir.DataType.FLOAT
    return host


def _ahead(model: ir.Model, name: str) -> list[str]:
    """The inputs that the value `name` depends on, in order."""
    read = {value for node in ancestors([value_named(model.graph, name)]) for value in node_dependencies(node)}
    return [str(value.name) for value in _inputs(model) if value in read]


def _cut_noise(graph: ir.Graph, seam: Seam) -> None:
    """Slice the noise of the head to the shape of the mean: it may be longer."""
    noise, mean = value_named(graph, seam.noise), value_named(graph, seam.mean)
    name = fresh_name(graph, f"{NOISE}/cut")
    readers = [(use.node, use.idx) for use in noise.uses()]
    size = ir.node("Shape", [mean], name=f"{name}/size")
    size.outputs[0].name = f"{name}/size"
    starts = add_constant(graph, f"{name}/starts", np.zeros(_AXES, np.int64))
    cut = ir.node("Slice", [noise, starts, size.outputs[0]], name=name)
    cut.outputs[0].name = name
    for reader, place in readers:
        reader.replace_input_with(place, cut.outputs[0])
    graph.extend([size, cut])
    graph.sort()
    noise.shape = ir.Shape([f"{NOISE}_batch", f"{NOISE}_channels", f"{NOISE}_frames"])


def _inputs(model: ir.Model) -> list[ir.Value]:
    return [value for value in model.graph.inputs if value.name not in model.graph.initializers]


def _rank(model: ir.Model, name: str) -> int:
    """Axes of an input; none where it states nothing."""
    shape = next(value.shape for value in _inputs(model) if value.name == name)
    return 0 if shape is None else len(shape)


def _duration_inputs(graphs: Graphs) -> tuple[str, str, str]:
    """Of `duration`, by type and rank: the ids, their count, the length scale."""
    inputs = _inputs(graphs.duration)

    def only(what: str, found: list[ir.Value]) -> str:
        if len(found) != 1:
            raise Refusal(
                f"{graphs.duration_name}: is not Inflect v2's: it has {len(found)} inputs for {what}, not one."
            )
        return str(found[0].name)

    whole = [value for value in inputs if value.dtype == ir.DataType.INT64]
    return (
        only("the token ids (int64, rank 2)", [v for v in whole if len(v.shape or ()) == 2]),
        only("their count (int64, rank 1)", [v for v in whole if len(v.shape or ()) == 1]),
        only("the length scale (float)", [v for v in inputs if v.dtype == ir.DataType.FLOAT]),
    )


def _wires(graphs: Graphs, seam: Seam) -> dict[str, str]:
    """Inputs of `decode` but noise and its scale, each with the output of `duration` of that name."""
    given = {str(value.name) for value in graphs.duration.graph.outputs}
    wanted = [str(v.name) for v in _inputs(graphs.decode) if v.name not in (seam.noise, seam.scale)]
    if missing := [name for name in wanted if name not in given]:
        raise Refusal(
            f"{graphs.decode_name}: takes {', '.join(missing)}, and {graphs.duration_name} gives "
            f"{', '.join(sorted(given))}: they are not two of one release."
        )
    for name in wanted:
        _check_wire(graphs, name)
    if dict(graphs.duration.opset_imports) != dict(graphs.decode.opset_imports):
        raise Refusal(f"{graphs.decode_name} and {graphs.duration_name} state other opsets: give two of one release.")
    return {name: name for name in wanted}


def _check_wire(graphs: Graphs, name: str) -> None:
    """See that what `duration` gives fits the input of `decode`, as far as both state their shapes."""
    taken, given = _sizes(graphs.decode.graph.inputs, name), _sizes(graphs.duration.graph.outputs, name)
    if taken and isinstance(taken[2], int):
        raise Refusal(
            f"{graphs.decode_name}: its input {name} is of {taken[2]} frames, and gates need any number; export it "
            "with that axis dynamic, or give the slice behind its latent."
        )
    widths = [shape[1] for shape in (taken, given) if shape and isinstance(shape[1], int)]
    if len(set(widths)) > 1:
        raise Refusal(
            f"{graphs.decode_name}: takes {name} of {widths[0]} channels, and {graphs.duration_name} gives "
            f"{widths[1]}: they are not two of one release."
        )


def _sizes(values: Sequence[ir.Value], name: str) -> tuple[int | ir.SymbolicDim, ...]:
    """What one of them states of its three axes; nothing where it states none, or other ones."""
    shape = next(value.shape for value in values if value.name == name)
    return () if shape is None or len(shape) != _AXES else tuple(shape)


def _symbols(graphs: Graphs, ids: str) -> int:
    """Rows of the table that the ids look up."""
    value = next(value for value in _inputs(graphs.duration) if value.name == ids)
    for node in value.consumers():
        table = node.inputs[0] if node.op_type == "Gather" else None
        if table is not None and table.shape is not None and len(table.shape) == 2 and isinstance(table.shape[0], int):
            return table.shape[0]
    raise Refusal(f"{graphs.duration_name}: is not Inflect v2's: its input {ids} does not index a table of symbols.")
