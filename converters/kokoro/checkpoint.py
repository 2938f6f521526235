"""A Kokoro checkpoint, opened: the official `.pth`, or an ONNX export that the weights are recovered from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.errors import UserInput
from converters.kokoro.config import CONFIG_NAME, read_config
from converters.kokoro.float_graph import GeneratorValues, float_graph, generator_values
from converters.kokoro.graph_modules import GraphModules
from converters.kokoro.graph_sizes import graph_sizes
from converters.kokoro.layout import UNREAD
from converters.kokoro.onnx_weights import recover
from converters.kokoro.pth_file import read_pth
from converters.kokoro.weight_checks import check_weights, with_unstated_sizes
from converters.onnx_file import load_external, read_onnx
from models.kokoro.config import KOKORO_82M, KokoroConfig


@dataclass(frozen=True)
class Original:
    """The float graph that weights were recovered from.

    Attributes:
        model: runs in onnxruntime.
        values: where its generator begins and ends.
    """

    model: ir.Model
    values: GeneratorValues


@dataclass(frozen=True)
class KokoroCheckpoint:
    """An opened checkpoint.

    Attributes:
        path: the file.
        config: its sizes.
        weights: by official name, float32; checked against the sizes, all finite; views, not to be written to.
        recovered: whether they were recovered from 8-bit weights.
        original: the graph they are from; None for a `.pth`.
        notes: sentences for the person who gave the file.
    """

    path: Path
    config: KokoroConfig
    weights: dict[str, NDArray[np.float32]]
    recovered: bool
    original: Original | None
    notes: tuple[str, ...]


def open_checkpoint(path: Path, config: Path | None = None) -> KokoroCheckpoint:
    """Read the checkpoint `path`, a `.pth` or an `.onnx`, and check it against its sizes.

    Args:
        path: the file.
        config: its `config.json`; None for the one beside a `.pth`. An ONNX needs none.

    Raises:
        UserInput: a file is not there, damaged, of another format, or the config does not belong to it.
        Refusal: another model, other tensors, half precision, NaN: one sentence.
    """
    if path.suffix.lower() == ".onnx":
        return _from_onnx(path, config)
    return _from_pth(path, config)


def _from_pth(path: Path, config: Path | None) -> KokoroCheckpoint:
    weights = read_pth(path)
    stated = config if config is not None else path.with_name(CONFIG_NAME)
    if config is None and not stated.is_file():
        raise UserInput(
            f"{path}: its sizes are in a {CONFIG_NAME}, and there is none beside it; give it with --config FILE."
        )
    sizes = with_unstated_sizes(read_config(stated), weights)
    check_weights(weights, sizes, str(path), stated.name)
    return KokoroCheckpoint(path, sizes, weights, recovered=False, original=None, notes=())


def _from_onnx(path: Path, config: Path | None) -> KokoroCheckpoint:
    given = read_onnx(path)
    load_external(given)
    graph = float_graph(given, str(path))
    places = GraphModules(graph.model.graph, str(path))
    stated = None if config is None else read_config(config)
    sizes = graph_sizes(places, KOKORO_82M if stated is None else stated)
    if stated is not None:
        _check_agree(path, config, sizes, stated)
    found = recover(graph.model.graph, places, sizes)
    check_weights(found.weights, sizes, str(path), "its graph")
    return KokoroCheckpoint(
        path,
        sizes,
        found.weights,
        recovered=graph.was_quantised,
        original=Original(graph.model, generator_values(places)),
        notes=_notes(graph.was_quantised, len(found.weights), found.zero_rows),
    )


def _notes(was_quantised: bool, count: int, zero_rows: dict[str, int]) -> tuple[str, ...]:
    notes = [
        f"{count} tensors are from the graph; {len(UNREAD)} of the official file are not in it ({', '.join(UNREAD)})."
    ]
    if was_quantised:
        notes.insert(0, "The weights are recovered from 8-bit ones (int8): they are as coarse as those are.")
    if zero_rows:
        notes.append(
            f"{sum(zero_rows.values())} filters of {len(zero_rows)} convolutions are zero in the graph, and stay so."
        )
    return tuple(notes)


def _check_agree(path: Path, config: Path | None, found: KokoroConfig, stated: KokoroConfig) -> None:
    """The graph's sizes are those of the config, but for the ones that no config states."""
    wanted = replace(stated, decoder_channels=found.decoder_channels, asr_channels=found.asr_channels)
    for name, here, there in _differences(asdict(found), asdict(wanted)):
        raise UserInput(
            f"{config}: does not belong to {path.name}: the graph's {name} is {here}, the config's {there}."
        )


def _differences(one: dict[str, object], other: dict[str, object]) -> list[tuple[str, object, object]]:
    """What differs, by name, with the values of both."""
    found: list[tuple[str, object, object]] = []
    for name, here in one.items():
        there = other[name]
        if isinstance(here, dict) and isinstance(there, dict):
            found += [(f"{name}.{below}", first, second) for below, first, second in _differences(here, there)]
        elif here != there:
            found.append((name, here, there))
    return found
