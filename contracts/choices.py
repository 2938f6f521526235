"""Which variant of an engine was kept, of those that compute the same, and what the others would cost.

A variant is an engine's list of passes with one of them left out, put in, or exchanged for another form of itself. It
is weighed by its layer table alone, as a modelled time (docs/cost.md): no board was asked.
"""

from __future__ import annotations

from dataclasses import dataclass

WITH, WITHOUT = "with", "without"
"""The two variants that every pass has; other forms of it have names of their own."""

ON_THIS_ENGINE = "weighed on this engine"
BY_THE_TABLE = "by the table"
ON_A_SPECIMEN = "weighed on a small graph"
AS_ASKED = "asked for"
"""What a choice rests on: builds of the very graph; of an engine of the same stage, in the table of what was weighed
(docs/earning.md); of the pass's specimen (docs/cuts.md); nothing but the user's word."""

BASES = (ON_THIS_ENGINE, BY_THE_TABLE, ON_A_SPECIMEN, AS_ASKED)


@dataclass(frozen=True)
class Variant:
    """What a variant of an engine costs, by its layer table; None where it was not built to its end.

    Attributes:
        name: `with` or `without` the pass, or the name of another form of it.
        layers: of the table, all of them.
        cpu_layers: those on the CPU, but for inputs and outputs.
        cycles: the compiler's estimate.
        rw_kb: what all layers read and write, in KB.
        modelled_ms: the modelled time of a run, in ms.
        fault: why it cannot be kept, whatever it costs: it does not build, or a gate failed; "" where it can.
    """

    name: str
    layers: int | None = None
    cpu_layers: int | None = None
    cycles: int | None = None
    rw_kb: float | None = None
    modelled_ms: float | None = None
    fault: str = ""


@dataclass(frozen=True)
class Choice:
    """What was chosen about one pass.

    Attributes:
        name: the pass.
        kept: the variant that the engine is.
        basis: one of `BASES`.
        weighed_on: which engine and target, by which toolkit; the page of a specimen; the option that asked.
        variants: the figures of the one that was kept and of all others; none where it is not the engine's own stage
            that was weighed.
    """

    name: str
    kept: str
    basis: str
    weighed_on: str
    variants: tuple[Variant, ...] = ()
