"""What an engine can do without, or with in another form: its optional passes, and its passes once that is chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contracts.choices import WITH, WITHOUT
from converters.stages import StageExport
from surgery.cuts import every_cut, other_forms, runs_for
from surgery.declaration import Pass
from surgery.preflight import preflight

Picks = Mapping[str, str]
"""Pass to the variant of it that is wanted; of others the usual one is."""


@dataclass(frozen=True)
class Offer:
    """One optional pass.

    Attributes:
        name: the pass.
        variants: what runs in each variant, by the variant's name; None where nothing does.
        usual: the variant that runs where this engine was not weighed: the declared rule's.
    """

    name: str
    variants: Mapping[str, Pass | None]
    usual: str

    def chosen(self, picks: Picks) -> str:
        """The variant that `picks` wants, or the usual one: of another form than there is here, nothing is known."""
        wanted = picks.get(self.name, self.usual)
        return wanted if wanted in self.variants else self.usual

    def run(self, picks: Picks) -> Pass | None:
        """The pass of the chosen variant; None where nothing runs."""
        return self.variants[self.chosen(picks)]


def offers(export: StageExport, target: str | None) -> tuple[Offer, ...]:
    """The optional passes of an engine, in the order in which they run.

    Its stage's own cuts are what the user asked for or the stage needs: of those only other forms are on offer.
    """
    return _offers(export, export.cuts(target), target)


def offers_of_cuts(target: str | None) -> tuple[Offer, ...]:
    """The optional passes of any graph, in the order in which they run."""
    forms = other_forms(target)
    return tuple(
        _optional(bound, target, forms.get(bound.name, {}))
        for bound in every_cut(target)
        if bound.declaration.pays_on is not None
    )


def arranged(export: StageExport, target: str | None, picks: Picks) -> tuple[Pass, ...]:
    """All passes of an engine in their order: the stage's own, and those that every graph goes through."""
    stated = export.cuts(target)
    known = {offer.name: offer for offer in _offers(export, stated, target)}
    own, cuts = (_picked(bounds, known, picks) for bounds in (export.passes, stated))
    return (*own, *preflight(target, cuts, _picked(every_cut(target), known, picks)))


def _offers(export: StageExport, cuts: Sequence[Pass], target: str | None) -> tuple[Offer, ...]:
    """See `offers`; `cuts` are the stage's own."""
    forms = export.forms(target)
    own = [_optional(bound, target) for bound in export.passes if bound.declaration.pays_on is not None]
    exchanged = [Offer(bound.name, {WITH: bound, **forms[bound.name]}, WITH) for bound in cuts if bound.name in forms]
    return (*own, *exchanged, *offers_of_cuts(target))


def _optional(bound: Pass, target: str | None, forms: Mapping[str, Pass | None] | None = None) -> Offer:
    usual = WITH if runs_for(bound.declaration, target) else WITHOUT
    return Offer(bound.name, {WITH: bound, WITHOUT: None, **(forms or {})}, usual)


def _picked(bounds: Sequence[Pass], known: Mapping[str, Offer], picks: Picks) -> tuple[Pass, ...]:
    """Of `bounds`, what runs: what is not on offer is owed, or was asked for."""
    found = (known[bound.name].run(picks) if bound.name in known else bound for bound in bounds)
    return tuple(bound for bound in found if bound is not None)
