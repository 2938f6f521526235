"""A Piper voice: its graph, its seam and its config, checked against each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir

from contracts.errors import Refusal, UserInput
from converters.onnx_file import load_external, read_onnx
from converters.piper.config import VoiceConfig, config_path, read_config
from converters.stages import Array
from converters.vits_seam import VitsSeam, find_vits_seam

SCALES = 3
"""Piper's `scales` input: noise scale, length scale, noise width."""


@dataclass(frozen=True)
class VoiceInputs:
    """Names of the voice's inputs, found by type and rank: ids [1, T] int64, lengths [1] int64, scales [3] float32."""

    ids: str
    lengths: str
    scales: str


@dataclass(frozen=True)
class Voice:
    """An opened voice.

    Attributes:
        path: the file.
        model: the graph as it was exported.
        seam: where the decoder half begins.
        inputs: its inputs.
        config: what its JSON states.
        symbols: rows of the phoneme embedding, read from the graph.
        sample_rate: from the graph's metadata or the JSON; None where neither states it.
    """

    path: Path
    model: ir.Model
    seam: VitsSeam
    inputs: VoiceInputs
    config: VoiceConfig
    symbols: int
    sample_rate: int | None


def open_voice(path: Path, sample_rate: int | None = None) -> Voice:
    """Read the voice in `path` and check it against its JSON; `sample_rate` is what the user says it is.

    Raises:
        UserInput: the file is no ONNX, or the JSON, the graph and the user disagree (both figures are named).
        Refusal: the graph is no VITS voice of one speaker.
    """
    if sample_rate is not None and sample_rate < 1:
        raise UserInput(f"--sample-rate {sample_rate}: a rate above 0 is expected.")
    # Its parts go into other files, where external data would be lost.
    model = read_onnx(path)
    load_external(model)
    _check_finite(model, path)
    seam = find_vits_seam(model, str(path))
    config = read_config(path)
    if seam.speaker is not None or (config.speakers or 1) > 1:
        raise Refusal(
            f"{path}: is a voice of several speakers ({config.speakers or 'an embedding'} behind the seam); "
            "voices of one speaker are supported so far."
        )
    inputs = _inputs(model.graph, path)
    symbols = _embedding_rows(model.graph, inputs.ids, path)
    beside = config_path(path)
    _agree(path, beside, "samples per frame (hop)", seam.hop, config.hop)
    _agree(path, beside, "rows of the phoneme embedding (num_symbols)", symbols, config.symbols)
    highest = max((i for ids in config.phoneme_ids.values() for i in ids), default=0)
    if highest >= symbols:
        raise UserInput(
            f"{beside.name} does not belong to {path.name}: its phoneme_id_map goes up to {highest}, "
            f"the graph's phoneme embedding has {symbols} rows."
        )
    rate = _sample_rate(model, path, config, sample_rate)
    return Voice(path, model, seam, inputs, config, symbols, rate)


def voice_feed(voice: Voice, ids: list[int], scales: tuple[float, float, float]) -> dict[str, Array]:
    """The voice's inputs for one sentence of `ids`."""
    return {
        voice.inputs.ids: np.array([ids], np.int64),
        voice.inputs.lengths: np.array([len(ids)], np.int64),
        voice.inputs.scales: np.array(scales, np.float32),
    }


def _check_finite(model: ir.Model, path: Path) -> None:
    """A NaN in the encoder half would reach no gate on the decoder's graph, so the whole voice is looked at."""
    for value in model.graph.initializers.values():
        tensor = value.const_value
        if tensor is not None and tensor.dtype.is_floating_point() and not np.isfinite(tensor.numpy()).all():
            raise Refusal(
                f"{path}: the weight {value.name} holds NaN or infinity, so the voice cannot be right; get it again, "
                "or export it again from a good checkpoint."
            )


def _inputs(graph: ir.Graph, path: Path) -> VoiceInputs:
    real = [value for value in graph.inputs if value.name not in graph.initializers]

    def only(what: str, dtype: ir.DataType, rank: int) -> str:
        found = [v for v in real if v.dtype == dtype and v.shape is not None and len(v.shape) == rank]
        if not found or found[0].name is None:
            raise Refusal(f"{path}: is no Piper voice: it has no input for {what}.")
        return found[0].name

    inputs = VoiceInputs(
        ids=only("the phoneme ids (int64, rank 2)", ir.DataType.INT64, 2),
        lengths=only("their count (int64, rank 1)", ir.DataType.INT64, 1),
        scales=only(f"the {SCALES} scales (float, rank 1)", ir.DataType.FLOAT, 1),
    )
    known = {inputs.ids, inputs.lengths, inputs.scales}
    unknown = [value.name for value in real if value.name not in known]
    if unknown:
        raise Refusal(f"{path}: the voice has inputs that are not supported so far: {', '.join(map(str, unknown))}.")
    return inputs


def _embedding_rows(graph: ir.Graph, ids: str, path: Path) -> int:
    tables = [
        node.inputs[0]
        for value in graph.inputs
        for node in value.consumers()
        if value.name == ids and node.op_type == "Gather"
    ]
    for table in tables:
        shape = table.shape if table is not None else None
        if shape is not None and len(shape) == 2 and isinstance(shape[0], int):
            return shape[0]
    raise Refusal(f"{path}: is no Piper voice: its input {ids} does not index a phoneme embedding.")


def _sample_rate(model: ir.Model, path: Path, config: VoiceConfig, said: int | None) -> int | None:
    text = model.metadata_props.get("sample_rate")  # written by exporters for sherpa-onnx
    in_graph = int(text) if text is not None and text.isdigit() else None
    _agree(path, config_path(path), "sample rate", in_graph, config.sample_rate)
    stated = in_graph if in_graph is not None else config.sample_rate
    if said is not None and stated is not None and said != stated:
        raise UserInput(f"--sample-rate {said}: the voice {path.name} states {stated}.")
    return stated if stated is not None else said


def _agree(path: Path, beside: Path, what: str, in_graph: int | None, in_json: int | None) -> None:
    if in_graph is not None and in_json is not None and in_graph != in_json:
        raise UserInput(
            f"{beside.name} does not belong to {path.name}: the graph's {what} is {in_graph}, the JSON says {in_json}."
        )
