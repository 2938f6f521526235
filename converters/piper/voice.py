"""A Piper voice: its graph, its seam and its config, checked against each other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir

from contracts.errors import Refusal, UserInput
from converters.piper.config import VoiceConfig, read_config
from converters.piper.names import is_ours
from converters.piper.streaming import read_voice
from converters.piper.voice_inputs import EXPORT_IT, VoiceInputs, find_inputs, table_rows
from converters.stages import Array
from converters.vits_seam import VitsSeam, find_vits_seam
from surgery.graph import descendants, move_aside, value_named
from surgery.naming import node_label

_NAMED_SPEAKERS = 3
"""Names of speakers that a sentence tells at most."""

_RATE = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
"""A sample rate in a graph's metadata, in Hz."""

_HALF = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


@dataclass(frozen=True)
class Voice:
    """An opened voice.

    Attributes:
        path: the file.
        beside: its JSON, which need not be there.
        model: the graph as it was exported, but for inputs that were called as a value at a seam is.
        seam: where the decoder half begins.
        inputs: its inputs.
        config: what its JSON states.
        symbols: rows of the phoneme embedding, read from the graph.
        speakers: how many there are, rows of the speaker embedding; 1 where there is none.
        languages: how many there are in the speaker's embedding; 1 where it has none.
        sample_rate: from the graph's metadata or the JSON; None where neither states it.
    """

    path: Path
    beside: Path
    model: ir.Model
    seam: VitsSeam
    inputs: VoiceInputs
    config: VoiceConfig
    symbols: int
    speakers: int
    languages: int
    sample_rate: int | None


def open_voice(path: Path, sample_rate: int | None = None) -> Voice:
    """Read the voice in `path` and check it against its JSON; `sample_rate` is what the user says it is.

    Raises:
        UserInput: the file is no ONNX, or the JSON, the graph and the user disagree (both figures are named).
        Refusal: the graph is no VITS voice, a weight of it is not finite, it computes in half precision, or its
            decoder rounds by what is spoken.
    """
    if sample_rate is not None and sample_rate < 1:
        raise UserInput(f"--sample-rate {sample_rate}: a rate above 0 is expected.")
    model, beside = read_voice(path)
    # Its parts have values of ours beside the voice's inputs.
    move_aside(model.graph, [str(value.name) for value in model.graph.inputs if is_ours(str(value.name))])
    _check_finite(model, path)
    seam = find_vits_seam(model, str(path))
    _check_float(model, seam, path)
    config = read_config(path, beside)
    inputs = find_inputs(model.graph, seam, str(path))
    symbols = table_rows(value_named(model.graph, inputs.ids))
    if symbols is None:
        raise Refusal(
            f"{path}: is no Piper voice: its input {inputs.ids} does not index a phoneme embedding; {EXPORT_IT}"
        )
    speakers, languages = (
        1 if given is None else table_rows(value_named(model.graph, given.name)) or 1
        for given in (inputs.speaker, inputs.language)
    )
    _agree(path, beside, "samples per frame (hop)", seam.hop, config.hop)
    _agree(path, beside, "rows of the phoneme embedding (num_symbols)", symbols, config.symbols)
    _agree(path, beside, "number of speakers (num_speakers)", speakers, config.speakers)
    highest = max((i for ids in config.phoneme_ids.values() for i in ids), default=0)
    if highest >= symbols:
        raise UserInput(
            f"{beside.name} does not belong to {path.name}: its phoneme_id_map goes up to {highest}, "
            f"the graph's phoneme embedding has {symbols} rows."
        )
    highest = max(config.speaker_ids.values(), default=0)
    if highest >= speakers:
        raise UserInput(
            f"{beside.name} does not belong to {path.name}: its speaker_id_map goes up to {highest}, "
            f"the graph's speaker embedding has {speakers} row{'s' * (speakers > 1)}."
        )
    rate = _sample_rate(model, path, beside, config, sample_rate)
    return Voice(path, beside, model, seam, inputs, config, symbols, speakers, languages, rate)


def voice_feed(
    voice: Voice, ids: list[int], scales: tuple[float, float, float], speaker: int = 0, language: int = 0
) -> dict[str, Array]:
    """The voice's inputs for one sentence of `ids`, spoken by `speaker` in `language`."""
    return voice.inputs.feed(ids, scales, speaker, language)


def speaker_of(voice: Voice, number: int | None) -> int:
    """The speaker that the user asks for with --speaker `number`; 0 where None.

    Raises:
        UserInput: there is no such speaker; the message tells which there are.
    """
    if number is None or 0 <= number < voice.speakers:
        return number or 0
    if voice.speakers == 1:
        raise UserInput(f"--speaker {number}: the voice {voice.path.name} has one speaker; leave the option out.")
    some = list(voice.config.speaker_ids.items())[:_NAMED_SPEAKERS]
    more = ", ..." if len(voice.config.speaker_ids) > len(some) else ""
    hint = f" ({', '.join(f'{key}: {value}' for key, value in some)}{more})" if some else ""
    raise UserInput(
        f"--speaker {number}: the voice {voice.path.name} has the speakers 0 to {voice.speakers - 1}{hint:.200}."
    )


def _check_finite(model: ir.Model, path: Path) -> None:
    """A NaN in the encoder half would reach no gate on the decoder's graph, so the whole voice is looked at."""
    weights = [(value.name, value.const_value) for value in model.graph.initializers.values()]
    held = [node.outputs[0] for node in model.graph if node.op_type == "Constant"]
    weights += [(value.name, ir.convenience.get_const_tensor(value)) for value in held]
    for name, tensor in weights:
        if tensor is not None and tensor.dtype.is_floating_point() and not np.isfinite(tensor.numpy()).all():
            raise Refusal(
                f"{path}: the weight {name} holds NaN or infinity, so the voice cannot be right; get it again, "
                "or export it again from a good checkpoint."
            )


def _check_float(model: ir.Model, seam: VitsSeam, path: Path) -> None:
    """The gates compare float32; and a decoder that rounds by the whole utterance's range is another in windows."""
    for node in model.graph:
        held = [] if node.op_type == "Cast" else [value for value in node.inputs if value is not None]
        for value in held:
            tensor = ir.convenience.get_const_tensor(value)
            if tensor is not None and tensor.dtype in _HALF:
                raise Refusal(
                    f"{path}: {node_label(node)} computes with the weight {value.name} in {tensor.dtype.name.lower()}; "
                    "give the float32 voice that this one was made from: the toolkit rounds to float16 by itself."
                )
    for node in descendants(model.graph, [value_named(model.graph, seam.latent)]):
        if node.op_type.startswith("DynamicQuantize"):
            raise Refusal(
                f"{path}: {node_label(node)} of the decoder rounds to 8 bits by the range of the whole "
                "utterance, which no window has; give the float32 voice that this one was quantised from."
            )


def _sample_rate(model: ir.Model, path: Path, beside: Path, config: VoiceConfig, said: int | None) -> int | None:
    text = model.metadata_props.get("sample_rate")  # written by exporters for sherpa-onnx
    in_graph = int(text) if text is not None and _RATE.fullmatch(text) else None
    _agree(path, beside, "sample rate", in_graph, config.sample_rate)
    stated = in_graph if in_graph is not None else config.sample_rate
    if said is not None and stated is not None and said != stated:
        raise UserInput(f"--sample-rate {said}: the voice {path.name} states {stated}.")
    return stated if stated is not None else said


def _agree(path: Path, beside: Path, what: str, in_graph: int | None, in_json: int | None) -> None:
    if in_graph is not None and in_json is not None and in_graph != in_json:
        raise UserInput(
            f"{beside.name} does not belong to {path.name}: the graph's {what} is {in_graph}, the JSON says {in_json}."
        )
