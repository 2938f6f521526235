"""Writes docs/passes.md from the catalogue of passes: `python -m rknn_tts.catalogue_page > docs/passes.md`.

A test compares the page with what this gives.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from importlib import import_module

from contracts.targets import EVERY_TARGET
from surgery.catalogue import CATALOGUE
from surgery.declaration import EXACT_PARITY_DB, Declaration, Exact

_HEAD = f"""# Passes

Generated from `surgery/catalogue.py` by `python -m rknn_tts.catalogue_page > docs/passes.md`; a test compares them.

A pass is one rewrite of a graph, in a module of its name. It is exact, or an approximation with a stated bound; either
way its graph is run against the graph before it (the gate `pass.PASS`, an exact one at {EXACT_PARITY_DB:g} dB). Where
it makes an engine cheaper and nothing else, it runs for the targets on which the layer table shows that it does
([cuts.md](cuts.md)).
"""


def passes_page(catalogue: Sequence[Declaration] = CATALOGUE) -> str:
    """The page: a table of all passes, then what each does, as its module says it."""
    rows = ["| " + " | ".join(_cells(declaration)) + " |" for declaration in catalogue]
    table = "\n".join(["| Pass | What it does | Algebra | For | Runs after |", "|---|---|---|---|---|", *rows])
    return "\n".join([_HEAD, table, *(_section(declaration) for declaration in catalogue)]) + "\n"


def bound_text(declaration: Declaration) -> str:
    """Whether a pass is exact, or else what its bound is."""
    kind = declaration.exactness
    return "exact" if isinstance(kind, Exact) else f"at least {kind.minimum_db:g} dB"


def _cells(declaration: Declaration) -> tuple[str, ...]:
    return (
        f"[{declaration.name}](#{declaration.name})",
        declaration.summary,
        f"{bound_text(declaration)}: {declaration.exactness.why}",
        targets_text(declaration),
        _after(declaration),
    )


def targets_text(declaration: Declaration) -> str:
    """For which targets a pass runs."""
    if declaration.pays_on is None:
        return "all"
    return (
        "all, as it pays" if declaration.pays_on == EVERY_TARGET else ", ".join(sorted(declaration.pays_on)) or "none"
    )


def _after(declaration: Declaration) -> str:
    return ", ".join(sorted(declaration.after)) or "-"


def _section(declaration: Declaration) -> str:
    text = inspect.getdoc(import_module(f"surgery.{declaration.name}")) or ""
    return f"\n## {declaration.name}\n\n```text\n{text}\n```"


if __name__ == "__main__":
    sys.stdout.write(passes_page())
