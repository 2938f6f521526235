"""The decoders of a VITS in the table of issue 10: our default ladder, and the reference's graph and window.

The reference hands the toolkit the graph as it was cut, sizes made static and simplified by onnxslim. Both walk the
same utterances of five seconds, in the simulator, against the decode of the whole by the original.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rknn_tts_runtime.ladders import rungs_of
from rknn_tts_runtime.manifest import EngineManifest
from rknn_tts_runtime.manifest import read_manifest as read_of_board
from rknn_tts_runtime.window_cover import CoverStep, Rung, cover_utterance, sampled_frames, walk_cover

from contracts.manifest import read_manifest
from converters.stages import StageExport
from converters.vits_windows import AUDIO, LATENT, MASK
from gates.session import Session
from gates.snr import snr_db
from surgery.fold_with_onnxslim import fold_with_onnxslim
from tests.bench.reach_builds import built_bare, conversions, made_by_the_command
from tests.bench.reach_figures import Side, side_of

Array = NDArray[Any]
FRAMEWISE = (LATENT, MASK)
"""What is cut into windows."""

SECONDS = 5.0

UTTERANCES = 6
"""Of so many, one behind the other in one stretch of speech, the decibels are the mean: of a single one they move by
several dB with what is said in it, for either side (measured: 38 to 47 the reference's, 43 to 50 ours)."""


@dataclass(frozen=True)
class Voice:
    """What is decoded.

    Attributes:
        family: the stage's.
        checkpoint: as the command takes it; None: the default.
        window, context: the reference's.
    """

    family: str
    checkpoint: str | None
    window: int
    context: int


@dataclass(frozen=True)
class Spoken:
    """Five seconds: inputs of the decoder by name, and their decode by the original, of any length."""

    feed: Mapping[str, Array]
    whole: Array
    hop: int

    @property
    def frames(self) -> int:
        """How long it is."""
        return int(self.feed[LATENT].shape[-1])


def five_seconds(voice: Voice) -> list[Spoken]:
    """Utterances of that length, cut out of what the stage itself is judged on; each ends where it is cut."""
    window = _opened(voice, voice.window).contract.window
    assert window is not None
    assert window.sample_rate is not None
    frames = round(SECONDS * window.sample_rate / window.hop)
    export = _opened(voice, UTTERANCES * frames)
    decode, all_of_it = Session(export.model), export.feeds[0]
    said = []
    for start in range(0, UTTERANCES * frames, frames):
        feed = {
            name: array[..., start : start + frames] if name in FRAMEWISE else array
            for name, array in all_of_it.items()
        }
        said.append(Spoken(feed, np.asarray(decode.run(feed)[AUDIO]).reshape(-1), window.hop))
    return said


def reference(voice: Voice, said: Sequence[Spoken], folder: Path) -> Side:
    """The graph as it was cut, at the reference's window."""
    export = _opened(voice, voice.window)
    graph = fold_with_onnxslim().rewrite(_static(export)).model
    wanted = [str(value.name) for value in graph.graph.inputs]
    rung = Rung(voice.window, voice.context, voice.context, None, False, 1.0)
    fed = [_windows(one, [rung])[0] for one in said]
    bare = built_bare(graph, folder, [{name: feed[name] for name in wanted} for feeds in fed for feed in feeds])
    outputs = iter([each[AUDIO] for each in bare.simulated])
    measured = [_snr_db(one, [rung], [list(islice(outputs, len(feeds)))]) for one, feeds in zip(said, fed, strict=True)]
    emitted = voice.window - 2 * voice.context
    return side_of(
        f"w{voice.window}, {emitted} emitted, as it was cut", emitted, bare.layers, float(np.mean(measured)),
        len(fed[0]) * bare.layers.modelled_ms, len(fed[0]),
    )  # fmt: skip


def ours(said: Sequence[Spoken], folder: Path, *words: str) -> Side:
    """The default ladder, made by the command with `words`; the figures are of the engine that serves most of it."""
    paths = made_by_the_command(folder / "made", *words)
    engines = [read_of_board(path) for path in paths]
    rungs = rungs_of(engines)
    cover = cover_utterance(said[0].frames, rungs)
    fed = [_windows(one, rungs) for one in said]
    outputs: list[Iterator[Array]] = []
    for place, engine in enumerate(engines):
        shaped = [_shaped(engine, feed) for feeds in fed for feed in feeds[place]]
        graph = folder / f"simulated-{engine.role or 'one'}"
        outputs.append(
            iter([each[AUDIO] for each in built_bare(engine.twin, graph, shaped).simulated] if shaped else [])
        )
    measured = [
        _snr_db(one, rungs, [list(islice(mine, len(feeds))) for mine, feeds in zip(outputs, of_rung, strict=True)])
        for one, of_rung in zip(said, fed, strict=True)
    ]
    serving = _serving(cover)
    layers, window = read_manifest(paths[serving]).layers, engines[serving].window
    assert layers is not None
    assert window is not None
    return side_of(
        engines[serving].engine.stem,
        window.emitted,
        layers,
        float(np.mean(measured)),
        sum(rungs[step.rung].cost for step in cover),
        len(cover),
    )


def _snr_db(said: Spoken, rungs: Sequence[Rung], outputs: Sequence[Sequence[Array]]) -> float:
    return snr_db(said.whole, _put_together(said, rungs, outputs))


def _serving(cover: Sequence[CoverStep]) -> int:
    """The rung that emits most of an utterance."""
    emitted: Counter[int] = Counter()
    for step in cover:
        emitted[step.rung] += step.emit_stop - step.emit_start
    return emitted.most_common(1)[0][0]


def _opened(voice: Voice, window: int) -> StageExport:
    """For one window."""
    return conversions(voice.family, voice.checkpoint, window=window, context=voice.context)[0].opened


def _static(export: StageExport) -> Any:
    return export.passes[0].rewrite(export.model).model


def _windows(said: Spoken, rungs: Sequence[Rung]) -> list[list[dict[str, Array]]]:
    """What each rung is fed on the way, in order."""
    fed: list[list[dict[str, Array]]] = [[] for _ in rungs]
    given = {name: array for name, array in said.feed.items() if name not in FRAMEWISE}

    def recorder(index: int) -> Callable[..., Array]:
        def run(latent: Array, mask: Array, place: Array | None) -> Array:
            at = {} if place is None else {"place": place}
            fed[index].append({LATENT: latent.copy(), MASK: mask.copy(), **given, **at})
            return np.zeros(sampled_frames(rungs[index], 0)[1] * said.hop, np.float32)

        return run

    _walk(said, rungs, [recorder(index) for index in range(len(rungs))])
    return fed


def _put_together(said: Spoken, rungs: Sequence[Rung], outputs: Sequence[Sequence[Array]]) -> Array:
    """The samples of a walk, from what each rung gave on the way, in order."""

    def player(index: int) -> Callable[..., Array]:
        kept = iter(outputs[index])
        return lambda *_, place: next(kept)

    return _walk(said, rungs, [player(index) for index in range(len(rungs))])


def _walk(said: Spoken, rungs: Sequence[Rung], runs: Sequence[Callable[..., Array]]) -> Array:
    arrays = [np.asarray(said.feed[name], np.float32) for name in FRAMEWISE]
    return np.concatenate([samples for _, samples in walk_cover(runs, arrays, rungs, said.hop)])


def _shaped(engine: EngineManifest, feed: Mapping[str, Array]) -> dict[str, Array]:
    """`feed` as the engine's inputs are shaped."""
    return {tensor.name: feed[tensor.name].reshape(tensor.shape) for tensor in engine.inputs}
