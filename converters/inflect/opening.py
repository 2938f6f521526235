"""A located checkpoint, read: the graphs of a model, or a slice. torch only where a graph has to be traced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.contract import RANDOM
from contracts.errors import Refusal
from contracts.seed import SEED
from converters.inflect.checkpoint import STAND_INS, Kind, find_files
from converters.inflect.config import ADVICE, Stated, read_config, read_stated
from converters.inflect.seam import SliceSeam, find_slice
from converters.inflect.voice import Graphs, Voice, check_finite, open_voice
from converters.onnx_file import load_external, read_onnx
from converters.stages import Checkpoint
from models.inflect.config import InflectConfig
from surgery.decompose_functions import decompose_functions

SYMBOLS = "enc_p.emb.weight"
"""The table of symbols, whose rows no config states."""

FEWEST_SYMBOLS = 2
"""Of which something can be said: the blank, and one more."""


@dataclass(frozen=True)
class Slice:
    """A decoder that is cut already, with its ends."""

    path: Path
    model: ir.Model
    seam: SliceSeam


def open_checkpoint(checkpoint: Checkpoint) -> Voice | Slice:
    """The model or the slice of a located checkpoint.

    Raises:
        UserInput: a file is missing, damaged, or another model's.
        Refusal: it is no Inflect v2, or not what is supported of it.
    """
    if checkpoint.source.kind == RANDOM:
        config = STAND_INS[checkpoint.source.name][1]
        return open_voice(_stand_in_graphs(config, checkpoint.source.name), Stated(config.sample_rate, config.hop))
    found = find_files(checkpoint.path)
    if found.kind is Kind.SLICE:
        return open_slice(found.files[0])
    if found.kind is Kind.GRAPHS:
        decode, duration = found.files[:2]
        graphs = Graphs(_read(duration), _read(decode), str(duration), str(decode))
        return open_voice(graphs, None if found.config is None else read_stated(found.config))
    weights, config_path = found.files
    return _open_weights(weights, config_path)


def open_slice(path: Path) -> Slice:
    """The slice in the file `path`.

    Raises:
        UserInput: no ONNX.
        Refusal: no slice of an Inflect decoder.
    """
    model = _read(path)
    check_finite(model, str(path))
    return Slice(path, model, find_slice(model, str(path)))


def _read(path: Path) -> ir.Model:
    """Its parts go into other files, where external data would be lost, and are cut out of one graph, no functions."""
    model = read_onnx(path)
    load_external(model)
    return decompose_functions().rewrite(model).model if model.functions else model


def _open_weights(path: Path, config_path: Path) -> Voice:
    from converters.inflect.pth_file import read_pth

    weights = read_pth(path)
    table = weights.get(SYMBOLS)
    if table is None or table.ndim != 2:
        raise Refusal(f"{path}: is no checkpoint of Inflect v2: it lacks the table {SYMBOLS}; {ADVICE}.")
    if table.shape[0] < FEWEST_SYMBOLS:
        raise Refusal(
            f"{path}: its table {SYMBOLS} has 1 row or none, and a sentence has a blank and symbols; {ADVICE}."
        )
    config = read_config(config_path, symbols=table.shape[0])
    return open_voice(_traced(weights, config, str(path)), Stated(config.sample_rate, config.hop))


def _stand_in_graphs(config: InflectConfig, name: str) -> Graphs:
    from models.inflect.stand_in import stand_in

    return _traced(stand_in(config, SEED), config, name)


def _traced(weights: Mapping[str, NDArray[np.float32]], config: InflectConfig, where: str) -> Graphs:
    """The graphs of a model, as the published files have them."""
    from models.inflect.graphs import decode_graph, duration_graph
    from models.inflect.model import load

    model = load(weights, config, where)
    return Graphs(duration_graph(model), decode_graph(model), f"{where}'s durations", f"{where}'s decoder")
