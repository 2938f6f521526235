"""Engines of one stage that belong together: whatever is told of several of them says of which, by its role."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from contracts.contract import Cache, Contract
from contracts.errors import ToolFailure
from contracts.verdicts import Measurement, Verdict
from rknn_tts.progress import Say


def stage_text(family: object, stage: object, role: object) -> str:
    """What an engine is: `kokoro generator, short`."""
    if not family:
        return "a foreign ONNX"
    return f"{family} {stage or ''}".rstrip() + (f", {role}" if role else "")


def verdicts_of(role: str | None, verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """`verdicts` as they are told among those of other engines: `short.simulator`."""
    return tuple(replace(verdict, gate=f"{role}.{verdict.gate}") for verdict in verdicts)


def measurements_of(role: str | None, measurements: Iterable[Measurement]) -> tuple[Measurement, ...]:
    """`measurements` as they are told among those of other engines: `short.build.wall`."""
    return tuple(replace(figure, name=f"{role}.{figure.name}") for figure in measurements)


def shared_cache(contracts: Sequence[Contract]) -> Cache | None:
    """The cache of those engines that keep one, the same for all, so that each goes on where another ended.

    Raises:
        ToolFailure: two are laid out otherwise.
    """
    keeping = [contract for contract in contracts if contract.cache is not None]
    for other in keeping[1:]:
        if other.cache != keeping[0].cache:
            raise ToolFailure(
                f"The engines of {other.family} {other.stage} do not share a cache: {keeping[0].role} lays it out in "
                f"another way than {other.role}; this is a bug of the stage."
            )
    return keeping[0].cache if keeping else None


@dataclass(frozen=True)
class RoleSay:
    """The progress of one engine: `building for rk3588 (short): fusing operators`; of many stages' `(net short)`."""

    say: Say
    role: str | None

    def step(self, text: str) -> None:
        """A stage of work begins; the role stands behind its first words, by which `PlainSay` tells steps apart."""
        if isinstance(self.say, RoleSay):
            RoleSay(self.say.say, f"{self.say.role} {self.role}").step(text)
            return
        head, colon, rest = text.partition(":")
        self.say.step(f"{head} ({self.role}){colon}{rest}")

    def note(self, text: str) -> None:
        """A sentence that stays visible."""
        self.say.note(text)
