"""What a pass says of itself, and what it returns.

A pass is one rewrite. It declares its algebra in its module's docstring, and here whether it is exact or an
approximation with a stated bound. It takes a model and returns another; the one it was given is not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

EXACT_PARITY_DB = 120.0
"""Least output SNR (dB, onnxruntime fp32) of an exact rewrite: it reorders sums, so a few ulp may differ. fp32 carries
about 146 dB per operation; exact rewrites of whole decoders measure 127 dB and more (toolkit-facts, Layer table)."""


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
        changes_padding: it changes by design what a padded feed gives (zeros in the frame mask), so its parity is owed on
            full feeds only; the stage's gates on short utterances judge the rest.
        after: names of passes that must have run before, where both are in a stage's list.
    """

    name: str
    summary: str
    exactness: Exact | Bounded
    after: frozenset[str] = frozenset()
    changes_padding: bool = False

    def __post_init__(self) -> None:
        if self.name.split("_")[0] not in VERBS:
            raise ValueError(f"the pass {self.name} must begin with one of {', '.join(sorted(VERBS))}")


VERBS = frozenset({"fold", "fuse", "decompose", "rewrite", "mask", "split", "normalise"})


@dataclass(frozen=True)
class Refused:
    """A place a pass left alone: which node, which precondition, its limit, what it found."""

    node: str
    precondition: str
    limit: str
    got: str


@dataclass(frozen=True)
class Rewritten:
    """What a pass returns: the new model, how many places it rewrote, and those it refused."""

    model: ir.Model
    hits: int
    refused: tuple[Refused, ...] = ()


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
