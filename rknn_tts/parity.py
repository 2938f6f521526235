"""Each pass against the graph before it, in onnxruntime: the gates `pass.NAME`.

What a pass did to the graph's inputs and outputs is followed: noise that the graph before drew is fed to the graph
after, so that both compute with one draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.contract import PassRecord
from contracts.seed import SEED
from contracts.verdicts import Verdict
from converters.remembered import Remembered
from converters.stages import OpenSession, Session
from gates.padding import without_padding
from gates.snr import compare_outputs, verdict_of, worst
from rknn_tts.carried import Feed
from surgery.declaration import EXACT_PARITY_DB, Bounded, Exact, Interface, Pass, Rewritten
from surgery.normalise_float32 import HALVES
from surgery.parting import Pair, draws, part_up_to, parting
from surgery.typed_values import stated_types

Outputs = Mapping[str, NDArray[Any]]

Steps = tuple[int, int]
"""Of an axis: the first, and where they end."""

NOTHING_CHANGED = Interface()
"""What a pass did to inputs and outputs that left them alone."""

WORTH_A_PART = 0.6
"""Of a graph's nodes, how many may stand ahead of where a pass parts two graphs, for these to run by themselves first:
past that, little is spared where they agree, and both are run twice where they do not."""

COARSE_DB = 40.0
"""Least output SNR of an exact rewrite of a graph that itself rounds to half floats or to 8-bit levels: 66 to 77 dB and
93 dB measured (onnxruntime 1.23, fp16 copies of random graphs; an int16 QDQ model). A level that flips costs what the
graph's own rounding costs, so the bound is that of fp16 in the simulator."""

ROUNDING_MARGIN_DB = 6.0
"""How much less than two programs of the original agree an exact rewrite may agree with the graph before it: each of
four programs rounds by itself, and 3 dB are for chance. A deep net of many sines (Qwen3's) makes of fp32's rounding
what 110 dB is, and no pass can be told from an exact one more closely than that. Where there is one program alone, it
is compared with itself on inputs of another last bit: a Piper decoder of the high quality makes 118 dB of that."""

LEAST_EXACT_DB = 90.0
"""What an exact rewrite owes however far two programs of the original are apart: what is further is no rounding."""


@dataclass(frozen=True)
class Parity:
    """What the comparison of all passes came to.

    Attributes:
        records: what each pass did.
        verdicts: one for each pass that changed the graph.
        session: the finished graph, opened; where it draws nothing, it knows its outputs for the feeds.
        first, last: outputs of the graph before the first pass and after the last, one for each feed without padding;
            `first` in the shapes and types of `last`, both of the steps alone that the passes say are the same.
    """

    records: tuple[PassRecord, ...]
    verdicts: tuple[Verdict, ...]
    session: Session
    first: tuple[Outputs, ...]
    last: tuple[Outputs, ...]


def followed_feeds(
    model: ir.Model, rewritten: Sequence[Rewritten], open_session: OpenSession, feeds: Sequence[Feed]
) -> list[Feed]:
    """`feeds` of `model` as the graph behind all of `rewritten` takes them."""
    followed = list(feeds)
    for result in rewritten:
        followed = _next_feeds(model, result.interface, open_session, followed)
        model = result.model
    return followed


def judge_passes(
    passes: Sequence[Pass],
    model: ir.Model,
    rewritten: Sequence[Rewritten],
    open_session: OpenSession,
    feeds: Sequence[Feed],
    padded_feeds: Sequence[Feed] = (),
    originals: Sequence[Outputs] = (),
    opened: Callable[[], Session] | None = None,
) -> Parity:
    """Each of `passes` against the graph before it; one that changed nothing has nothing to prove.

    Where a pass that owes to be exact changed one part of a graph, and that part gives the same bit for bit, the rest,
    which is the same too (`surgery.parting`), need not run again to give the same. The finished graph is run as a whole
    by whoever runs `Parity.session`.

    Args:
        passes: the passes.
        model: the graph before the first.
        rewritten: what each returned.
        open_session: opens a graph in onnxruntime; two graphs at most are open at a time.
        feeds: real inputs of `model` without padding.
        padded_feeds: real inputs with padding; a pass that changes them by design is not compared on them.
        originals: what the original, another program of the same arithmetic, gives on all of these; how closely it
            agrees with `model` bounds what any pass owes. None: that is not known.
        opened: gives `model` opened, by whom has that already.
    """
    current = [*feeds, *padded_feeds]
    first_session = opened() if opened is not None else open_session(model)
    session: Session | None = first_session  # of the graph at hand; None where nobody has opened that
    before: list[Outputs] = [first_session(feed) for feed in current]
    roundings = [compare_outputs(o, without_padding(b, o)) for o, b in zip(originals, before, strict=False)]
    told_db = [max(LEAST_EXACT_DB, item.snr_db - ROUNDING_MARGIN_DB) for item in roundings if not item.problem]
    first, records, verdicts, compared_steps = before[: len(feeds)], [], [], dict[str, Steps]()
    for bound, result in zip(passes, rewritten, strict=True):
        exactness = bound.declaration.exactness
        if result.model is model:
            records.append(PassRecord(bound.name, result.hits, isinstance(exactness, Exact), math.inf))
            continue
        fed, given = current, before
        current = _next_feeds(model, result.interface, open_session, current)
        owed = min([_exact_db(model), *told_db])
        earlier, model = model, result.model
        pairs = (
            parting(earlier, model) if isinstance(exactness, Exact) and result.interface == NOTHING_CHANGED else None
        )
        if pairs == []:  # the session at hand, of a graph that computes the same, stands for this one too
            after: list[Outputs] = before
        elif pairs and _same_parts(earlier, model, pairs, open_session, current):
            after, session = before, None
        else:
            session = _remembered(model, open_session, len(current))
            after = [session(feed) for feed in current]
        kept_before = {crop.name: crop.before for crop in result.interface.cropped}
        kept_after = {crop.name: crop.after for crop in result.interface.cropped}
        compared_steps |= kept_after
        first = [_recast(_steps_of(outputs, kept_before), result.interface) for outputs in first]
        owing = [_recast(_steps_of(outputs, kept_before), result.interface) for outputs in before]
        giving = [_steps_of(outputs, kept_after) for outputs in after]
        compared = len(feeds) if bound.declaration.changes_padding else len(before)
        comparison = worst(compare_outputs(b, a) for b, a in zip(owing[:compared], giving[:compared], strict=True))
        minimum_db = min(owed, exactness.minimum_db) if isinstance(exactness, Bounded) else owed
        detail = f"{result.hits} hit{'s' * (result.hits != 1)}, after against before"
        if isinstance(exactness, Exact) and not told_db and LEAST_EXACT_DB <= comparison.snr_db < owed:
            rounding_db = _rounding_db(earlier, open_session, fed[:compared], given[:compared])
            if rounding_db - ROUNDING_MARGIN_DB < owed:
                minimum_db = max(LEAST_EXACT_DB, rounding_db - ROUNDING_MARGIN_DB)
                detail += f"; of inputs of another last bit the graph makes {rounding_db:.1f} dB"
        verdicts.append(verdict_of(f"pass.{bound.name}", comparison, minimum_db, detail))
        records.append(PassRecord(bound.name, result.hits, isinstance(exactness, Exact), comparison.snr_db))
        before = after
    if session is None:
        session = _remembered(model, open_session, len(current))
    last = [_steps_of(outputs, compared_steps) for outputs in before[: len(feeds)]]
    return Parity(tuple(records), tuple(verdicts), session, tuple(first), tuple(last))


def _rounding_db(
    model: ir.Model, open_session: OpenSession, feeds: Sequence[Feed], outputs: Sequence[Outputs]
) -> float:
    """What `model` makes of inputs of another last bit, against its `outputs` for `feeds`: the worst feed, in dB.

    Infinite where nothing can be told of it: its outputs are another draw, or no numbers.
    """
    if draws(model):
        return math.inf
    session, rng = open_session(model), np.random.default_rng(SEED)
    compared = worst(
        compare_outputs(owed, session({name: _nudged(array, rng) for name, array in feed.items()}))
        for feed, owed in zip(feeds, outputs, strict=True)
    )
    return math.inf if compared.problem else compared.snr_db


def _nudged(array: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """`array` with each number that is not 0 or 1, as masks are, moved to the next float32 up or down."""
    if array.dtype != np.float32:
        return array
    up = rng.integers(0, 2, array.shape).astype(bool)
    moved = np.where(up, np.nextafter(array, np.float32(np.inf)), np.nextafter(array, np.float32(-np.inf)))
    return np.where((array == 0) | (array == 1), array, moved)


def _remembered(model: ir.Model, open_session: OpenSession, most: int) -> Session:
    """`model` opened, which runs no feed twice unless it draws."""
    session = open_session(model)
    return session if draws(model) else Remembered(session, most)


def _same_parts(
    one: ir.Model, other: ir.Model, pairs: Sequence[Pair], open_session: OpenSession, feeds: Sequence[Feed]
) -> bool:
    """Whether what two graphs have up to where they part is small, and gives the same for all `feeds`, bit for bit."""
    if not all(value.name for pair in pairs for value in pair):
        return False
    parts = [
        part_up_to(model, list(dict.fromkeys(pair[side] for pair in pairs))) for side, model in enumerate((one, other))
    ]
    if any(len(part.graph) > WORTH_A_PART * len(whole.graph) for part, whole in zip(parts, (one, other), strict=True)):
        return False
    runs = [[session(feed) for feed in feeds] for session in map(open_session, parts)]
    return all(
        _same_bits(before[str(v.name)], after[str(w.name)])
        for before, after in zip(*runs, strict=True)
        for v, w in pairs
    )


def _same_bits(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """NaN is judged where the whole graph runs."""
    alike = one.dtype == other.dtype and one.shape == other.shape
    return alike and one.tobytes() == other.tobytes() and not np.any(one != one)


def _exact_db(model: ir.Model) -> float:
    """What a rewrite of `model` owes at most, an exact one always.

    Less where the graph itself rounds more coarsely than fp32 does, for then a sum that ends in another last bit ends
    in another half float or level behind it. (onnxruntime takes away casts between two nodes of half floats, so that
    their neighbours decide where it rounds.)
    """
    quantises = any(node.op_type.startswith(_QUANTISING) for graph in model.graphs() for node in graph)
    return COARSE_DB if quantises or HALVES.intersection(stated_types(model)) else EXACT_PARITY_DB


_QUANTISING = ("DynamicQuantize", "QGemm", "QLinear", "QuantizeLinear")
"""How the operators begin that round to integers."""


def _next_feeds(model: ir.Model, interface: Interface, open_session: OpenSession, feeds: Sequence[Feed]) -> list[Feed]:
    """`feeds` of `model` as the graph takes them that a pass with this `interface` made of it.

    A feed that has an input already which the pass makes keeps it.
    """
    drawn: list[Outputs] = [{} for _ in feeds]
    if interface.added:
        draw = open_session(_exposed(model, [added.drawn_as for added in interface.added]))
        drawn = [draw(feed) for feed in feeds]
    kinds = {change.name: change for change in interface.inputs}
    followed: list[Feed] = []
    for feed, values in zip(feeds, drawn, strict=True):
        kept = {name: array for name, array in feed.items() if name not in interface.removed}
        for name in kinds.keys() & kept.keys():
            kept[name] = np.asarray(kept[name]).reshape(kinds[name].shape).astype(kinds[name].dtype)
        noise = {added.name: values[added.drawn_as].astype(np.float32) for added in interface.added}
        given = {new.name: np.array(new.values, new.dtype).reshape(new.shape) for new in interface.given}
        followed.append({**given, **kept, **noise})
    return followed


def _exposed(model: ir.Model, names: Sequence[str]) -> ir.Model:
    """`model` with the tensors `names` of its main graph as further outputs; each node draws by its own seed."""
    model = model.clone()
    have = {value.name for value in model.graph.outputs}
    made = {value.name: value for node in model.graph for value in node.outputs}
    model.graph.outputs.extend(made[name] for name in dict.fromkeys(names) if name not in have)
    return model


def _recast(outputs: Outputs, interface: Interface) -> Outputs:
    """`outputs` in the shapes and types that they have now; one that was cropped before has its own steps."""
    kinds = {change.name: change for change in interface.outputs}
    return {
        name: _in_axes(array, kinds[name].shape).astype(kinds[name].dtype) if name in kinds else array
        for name, array in outputs.items()
    }


def _in_axes(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    whole = array.size == math.prod(shape)
    return array.reshape(shape if whole else (*shape[:-1], array.shape[-1]))


def _steps_of(outputs: Outputs, steps: Mapping[str, Steps]) -> Outputs:
    """`outputs`, of those named in `steps` only these steps of the last axis."""
    return {name: array[..., slice(*steps[name])] if name in steps else array for name, array in outputs.items()}


def least_db(passes: Sequence[Pass], rewritten: Sequence[Rewritten], equal_db: float) -> float:
    """What the finished graph owes the original: `equal_db`, or less where an approximation with less was applied."""
    bounds = [
        bound.declaration.exactness.minimum_db
        for bound, result in zip(passes, rewritten, strict=True)
        if result.hits and isinstance(bound.declaration.exactness, Bounded)
    ]
    return min([equal_db, *bounds])
