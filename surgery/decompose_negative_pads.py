"""Cut off with a Slice what a Pad takes away.

Before:  Pad(x, -2 in front, -3 behind)            After:  Slice(x, 2 to -3)
Before:  Pad(x, 4 in front, -3 behind, a mode)     After:  Pad(Slice(x, 0 to -3), 4 in front, the mode)

torch writes such a Pad for `F.pad(x, (-2, -3))`. The toolkit does not take it ("Pad: unsupport pads < 0"), and a Slice
it does (measured, rknn-toolkit2 2.3.2, rk3588).

Preconditions: constant pads of every axis (`normalise_defaults` writes them out). Others stay as they are.

Exact: onnxruntime cuts before it pads, so that what is reflected or repeated is what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.matching import Matched, is_one_of
from surgery.splice import Draft, splice, whole_numbers
from surgery.weights import weight_of

PAD = Matched("Pad", used=frozenset({"mode"}))

DECLARATION = Declaration(
    name="decompose_negative_pads",
    summary="a Slice for what a Pad takes away",
    exactness=Exact("what is cut is not computed with, and the rest is padded as before"),
    matches=(PAD,),
    after=frozenset({"fold_constants", "normalise_opset", "normalise_defaults"}),
)

_DATA, _PADS, _AXES = 0, 1, 3
"""Input positions."""

_TO_THE_END = (1 << 63) - 1


@dataclass(frozen=True)
class _Cut:
    """A Pad, and its pads in front of every axis and behind it."""

    node: ir.Node
    front: tuple[int, ...]
    behind: tuple[int, ...]


def decompose_negative_pads() -> Pass:
    """The pass; its hits are the Pads."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    if not any(_look(node) for node in model.graph):
        return Rewritten(model, 0)
    copy = model.clone()
    cuts = [found for node in copy.graph if (found := _look(node))]
    for cut in cuts:
        draft = Draft()
        splice(cut.node, draft.nodes, [_parts(draft, cut)], DECLARATION.name)
    return Rewritten(copy, hits=len(cuts))


def _parts(draft: Draft, cut: _Cut) -> ir.Value:
    axes = [axis for axis, pads in enumerate(zip(cut.front, cut.behind, strict=True)) if min(pads) < 0]
    starts = [max(-cut.front[axis], 0) for axis in axes]
    ends = [cut.behind[axis] if cut.behind[axis] < 0 else _TO_THE_END for axis in axes]
    bounds = (whole_numbers(numbers) for numbers in (starts, ends, axes))
    rest = draft.add("Slice", cut.node.inputs[_DATA], *bounds)
    pads = [max(count, 0) for count in (*cut.front, *cut.behind)]
    if not any(pads):
        return rest
    return draft.add("Pad", rest, whole_numbers(pads), *cut.node.inputs[_PADS + 1 :], copied=cut.node.attributes)


def _look(node: ir.Node) -> _Cut | None:
    """The plan for one node; None where it stays as it is."""
    if not is_one_of(node, (PAD,)) or len(node.inputs) <= _PADS or any(node.inputs[_AXES:]):
        return None
    pads = weight_of(node.inputs[_PADS])
    if pads is None or pads.size % 2 or not (pads < 0).any():
        return None
    front, behind = pads.reshape(2, -1).tolist()
    return _Cut(node, tuple(front), tuple(behind))
