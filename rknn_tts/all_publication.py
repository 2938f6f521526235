"""The end of `engine FAMILY --all`: every stage's engines and sets, the manifest of them all, and their digests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contracts.files import Content
from contracts.manifest import SetManifest, manifest_text
from contracts.verdicts import Verdict
from rknn_tts.checksums import with_sums
from rknn_tts.outcome import Outcome
from rknn_tts.places import set_place
from rknn_tts.publication import (
    Finished,
    Publication,
    outcome_of_many,
    publication_of,
    set_manifest,
    shared_aperture,
)
from rknn_tts.publish import each_once, publish
from rknn_tts.roles import verdicts_of
from rknn_tts.steps import Steps


@dataclass(frozen=True)
class StageFinished:
    """The finished engines of one stage."""

    stage: str
    members: tuple[Finished, ...]

    @property
    def by_name(self) -> dict[str, Finished]:
        """The engines by what they are called among those of other stages: `hift.b32`, or the stage's name alone."""
        return {self._name(member.build.source.contract.role): member for member in self.members}

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """All verdicts, each with its engine's name before it."""
        return tuple(v for name, member in self.by_name.items() for v in verdicts_of(name, member.verdicts))

    def _name(self, role: str | None) -> str:
        return f"{self.stage}.{role}" if role else self.stage


def publish_all(stages: Sequence[StageFinished], place: Path, steps: Steps) -> Outcome:
    """Put the engines of all stages in their places, all or none, and what is told of them together behind them.

    Args:
        stages: the engines; they all go into one folder.
        place: where the manifest of them all goes: that folder.
        steps: the finished steps.

    Raises:
        NotWritten: a place cannot be written; all of them are as they were.
        ToolFailure: host halves of one name, or caches of one stage, are unlike.
    """
    written: dict[str | None, tuple[Finished, Publication]] = {}
    files: list[tuple[Path, Content]] = []
    for stage in stages:
        publications = [publication_of(member) for member in stage.members]
        written.update(zip(stage.by_name, zip(stage.members, publications, strict=True), strict=True))
        files += [item for publication in publications for item in publication.files]
        if len(stage.members) > 1:
            build = stage.members[0].build
            own_place = set_place(build.source.contract, build.target, build.request.output)
            files.append((own_place, set_manifest(stage.members, publications)[0]))
    manifests = {made.build.places.manifest.name: publication.manifest for made, publication in written.values()}
    engines = {str(name): made.build.places.engine.name for name, (made, _) in written.items()}
    shared = shared_aperture(manifests)
    files.append((place, manifest_text(SetManifest(tuple(manifests), engines, None, shared)).encode()))
    listed = with_sums(each_once(files), beginning=place.parent)
    publish(listed)
    return outcome_of_many(written, listed, shared, steps)
