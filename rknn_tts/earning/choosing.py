"""What a conversion goes by when it chooses among the variants of its engine, and what is said of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contracts.choices import AS_ASKED, ON_A_SPECIMEN, ON_THIS_ENGINE, WITHOUT, Choice
from contracts.contract import Contract
from rknn_tts.earning.offers import Offer
from rknn_tts.earning.table import Entry, as_taken_over, nearest
from surgery.declaration import Pass, Rewritten

NO_PASS = "--no-pass"
SPECIMENS_PAGE = "docs/cuts.md"


@dataclass(frozen=True)
class Choosing:
    """What is known of a conversion's variants.

    Attributes:
        entries: what was weighed of its stage for its target.
        weighed: what was chosen by weighing the very engine; None where it was not weighed.
    """

    entries: tuple[Entry, ...] = ()
    weighed: tuple[Choice, ...] | None = None

    def picks(self, stem: str, contract: Contract) -> dict[str, str]:
        """The variant of each pass that the engine `stem` has, as far as something was weighed."""
        return {choice.name: choice.kept for choice in self._known(stem, contract)}

    def made(
        self, stem: str, contract: Contract, offers: Sequence[Offer], skipped: Sequence[str], hits: Mapping[str, int]
    ) -> tuple[Choice, ...]:
        """What was chosen about each optional pass of the engine `stem`, but for those that make no difference.

        Args:
            stem: of its file.
            contract: its contract.
            offers: its optional passes.
            skipped: passes that the user left out.
            hits: of the passes that ran.
        """
        known = {choice.name: choice for choice in self._known(stem, contract)}
        found = []
        for offer in offers:
            choice = known.get(offer.name)
            if offer.name in skipped:
                found.append(Choice(offer.name, WITHOUT, AS_ASKED, NO_PASS))
            elif hits.get(offer.name) == 0:
                continue
            elif choice is not None and choice.kept in offer.variants:
                found.append(choice)
            elif self.weighed is None:
                found.append(Choice(offer.name, offer.usual, ON_A_SPECIMEN, SPECIMENS_PAGE))
        return tuple(found)

    def _known(self, stem: str, contract: Contract) -> tuple[Choice, ...]:
        if self.weighed is not None:
            return self.weighed
        entry = nearest(self.entries, stem, contract)
        return tuple(map(as_taken_over, entry.choices)) if entry is not None else ()


def trying(picks: Mapping[str, str]) -> Choosing:
    """What makes the engine of the variants `picks`, to see what becomes of it."""
    return Choosing(weighed=tuple(Choice(name, kept, ON_THIS_ENGINE, "") for name, kept in picks.items()))


def hits_of(passes: Sequence[Pass], rewritten: Sequence[Rewritten]) -> dict[str, int]:
    """How many places each pass rewrote."""
    return {bound.name: done.hits for bound, done in zip(passes, rewritten, strict=True)}
