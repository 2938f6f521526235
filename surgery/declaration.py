"""What a pass says of itself, and what it returns.

A pass is one rewrite. It declares its algebra in its module's docstring, and here whether it is exact or an
approximation with a stated bound. It takes a model and returns another; the one it was given is not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from contracts.contract import Noise
from surgery.matching import Matched

EXACT_PARITY_DB = 120.0
"""Least output SNR (dB, onnxruntime fp32) of an exact rewrite, which computes the same and may round elsewhere. fp32
has 24 bits, so one rounding lies 24 * 6.02 = 144 dB down; 24 dB are left for the sum of many. Measured: the passes here
change no bit (inf) of the Piper decoder, and a rewrite that regroups every transposed convolution's sum reaches 127 dB
(toolkit-facts, polyphase)."""


@dataclass(frozen=True)
class Exact:
    """The rewrite is an algebraic identity; `why` says where from."""

    why: str


@dataclass(frozen=True)
class Bounded:
    """The rewrite is an approximation: output SNR of at least `minimum_db`; `why` gives the source of the bound."""

    minimum_db: float
    why: str


@dataclass(frozen=True)
class Declaration:
    """A pass as the catalogue lists it.

    Attributes:
        name: its name, also the name of its module; begins with one of `VERBS`.
        summary: one line for `passes` and the docs.
        exactness: exact, or an approximation with its bound.
        changes_padding: it changes by design what a padded feed gives (zeros in the frame mask), so its parity is owed
            on full feeds only; the stage's gates on short utterances judge the rest.
        after: names of passes that must have run before, where both are in a stage's list.
        matches: the operators it matches, with what it makes of each attribute.
        preconditions: what a place must be like for it to be rewritten; each may stand in a `Refused`.
        pays_on: where a graph compiles without it too: the targets on which the layer table of its specimens shows a
            lower modelled time with it. None: it is owed on every target.
    """

    name: str
    summary: str
    exactness: Exact | Bounded
    after: frozenset[str] = frozenset()
    changes_padding: bool = False
    matches: tuple[Matched, ...] = ()
    preconditions: tuple[str, ...] = ()
    pays_on: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if self.name.split("_")[0] not in VERBS:
            raise ValueError(f"the pass {self.name} must begin with one of {', '.join(sorted(VERBS))}")


VERBS = frozenset({"fold", "fuse", "decompose", "rewrite", "mask", "trim", "split", "normalise"})


@dataclass(frozen=True)
class Refused:
    """A place a pass left alone: the node (input, output, weight), which precondition, its limit, what it found."""

    node: str
    precondition: str
    limit: str
    got: str


@dataclass(frozen=True)
class AddedInput:
    """An input that the graph did not have: a tensor that it drew itself before.

    Attributes:
        name: of the new input.
        drawn_as: name of the tensor in the main graph before the pass, of the same shape and dtype.
        noise: how a runtime draws it.
    """

    name: str
    drawn_as: str
    noise: Noise


@dataclass(frozen=True)
class Recast:
    """An input or output that keeps its name and its values, and has another shape or dtype ("float32") now."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class GivenInput:
    """An input that the graph did not have, and what is fed to it to compare before and after.

    Attributes:
        name: of the new input.
        shape: of it.
        values: all of them, in order.
        dtype: "float32".
    """

    name: str
    shape: tuple[int, ...]
    values: tuple[float, ...]
    dtype: str


@dataclass(frozen=True)
class Cropped:
    """An output that has fewer steps on its last axis: what it has at `after` it had at `before`.

    Attributes:
        name: of the output.
        before, after: the first of the steps that are the same, and where they end.
    """

    name: str
    before: tuple[int, int]
    after: tuple[int, int]


@dataclass(frozen=True)
class Interface:
    """How a pass changed what a graph takes and gives; whoever compares before and after follows it.

    Attributes:
        added: new inputs that the graph drew itself before.
        given: other new inputs.
        removed: names of inputs that are gone: no output depended on them.
        inputs, outputs: those of another shape or dtype.
        cropped: outputs of fewer steps.
    """

    added: tuple[AddedInput, ...] = ()
    removed: tuple[str, ...] = ()
    inputs: tuple[Recast, ...] = ()
    outputs: tuple[Recast, ...] = ()
    given: tuple[GivenInput, ...] = ()
    cropped: tuple[Cropped, ...] = ()


@dataclass(frozen=True)
class Rewritten:
    """What a pass returns.

    Attributes:
        model: the new model; the very one it was given where nothing was rewritten.
        hits: how many places it rewrote.
        refused: places that cannot be compiled as they are, and that it cannot rewrite.
        interface: how it changed the graph's inputs and outputs.
    """

    model: ir.Model
    hits: int
    refused: tuple[Refused, ...] = ()
    interface: Interface = field(default_factory=Interface)


@dataclass(frozen=True)
class Pass:
    """A declared pass, bound to its arguments."""

    declaration: Declaration
    rewrite: Callable[[ir.Model], Rewritten]

    @property
    def name(self) -> str:
        """The declared name."""
        return self.declaration.name


def check_order(passes: Sequence[Pass]) -> None:
    """Check that `passes` names no pass twice and keeps every declared `after`.

    Raises:
        ValueError: the order breaks a constraint; the message names both passes.
    """
    names = [bound.name for bound in passes]
    for position, bound in enumerate(passes):
        if bound.name in names[:position]:
            raise ValueError(f"the pass {bound.name} stands twice")
        for earlier in sorted(bound.declaration.after & set(names[position + 1 :])):
            raise ValueError(f"the pass {bound.name} must run after {earlier}")
